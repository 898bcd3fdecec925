// Operators whose computation is given as loops or as other operators, so that compilers can look inside: the operator table's own declarations, in a namespace of the
// program's.
import { checkCount } from '../protocol/index.ts'
import type { Arg, PointwiseRule, PromotionRule, ResultSpec, Result } from '../dispatch/index.ts'
import { ArgumentError } from '../errors/index.ts'
import { makeOp, registerOp } from '../ops/index.ts'
import type { BackwardOf, CallOf, OpDeclaration, OpFunction, UntypedDeclaration } from '../ops/index.ts'
import { derivativeOf } from './backward.ts'
import type { UntypedBackward } from './backward.ts'
import { withName } from './customOp.ts'
import { checkFree, publish, readDefinition } from './names.ts'

/** Options of {@link defineOp}: an operator of the operator table, with its gradients by name. */
export interface DefineOpOptions<S extends string, Promotion extends PromotionRule = never, Baked extends string = never> extends Pick<
  OpDeclaration<S, Promotion, Baked>,
  'schema' | 'tags' | 'meta' | 'pointwise' | 'reduction' | 'kernel' | 'decompose' | 'dynamicScalars' | 'module'
> {
  /** Gradients of the arguments by name, written with operators. An operator with `decompose` alone needs none. */
  readonly backward?: BackwardOf<S, Promotion>
}

/** An operator that {@link defineOp} returned. */
export type DefinedOp<S extends string, Promotion = never> = OpFunction<CallOf<S, Promotion>> & {
  /** The schema as it was given. */
  readonly schema: S
}

interface UntypedOptions extends Pick<UntypedDeclaration, 'schema' | 'tags' | 'reduction' | 'dynamicScalars' | 'module'> {
  readonly pointwise?: PointwiseRule
  meta?(...args: readonly Arg[]): ResultSpec
  kernel?(...args: readonly Arg[]): Result
  decompose?(...args: readonly Arg[]): Result
  backward?(...args: Parameters<UntypedBackward>): ReturnType<UntypedBackward>
}

const RULES = ['pointwise', 'reduction', 'kernel', 'decompose'] as const
const OPTIONS = ['schema', 'tags', 'meta', ...RULES, 'dynamicScalars', 'backward', 'module']

/**
 * Defines an operator in the loop IR, and registers it as `torch.ops.namespace.name`: a pointwise rule, a reduction, a kernel with `meta`, or a decomposition. Compilers
 * fuse it like their own. The expressions of rules are made with the functions of `tensorfx/kernels`. PyTorch has no such function; the operator table of tensorfx is
 * declared in the same way.
 *
 * @throws ArgumentError if the name is not `namespace::name` or is taken, the schema cannot be read, or an option is missing or unknown.
 * @example
 * const leaky = torch.library.defineOp('mylib::leaky', {
 *   schema: '(Tensor x, Scalar slope=0.1) -> Tensor',
 *   pointwise: { promotion: 'promote', compute: (x, slope) => call('max', x, call('mul', x, slope)) },
 *   backward: ({ inputs: { x, slope } }, grad) => ({ x: torch.where(x.gt(0), grad, grad.mul(slope)) }),
 * })
 */
export function defineOp<const S extends string, const P extends PromotionRule = never, const B extends string = never>(
  name: string,
  options: DefineOpOptions<S, P, B>,
): DefinedOp<S, P>
export function defineOp(name: string, options: UntypedOptions): DefinedOp<string> {
  checkCount('torch.library.defineOp', arguments, 2)
  const where = 'torch.library.defineOp'
  const [known, schema] = readDefinition(where, name, options, OPTIONS)
  if (schema.args.some((arg) => arg.type.mutated))
    throw new ArgumentError(`${where}: '${name}' writes to an argument (${schema.text}); use torch.library.customOp for such operators.`)
  if (RULES.every((rule) => options[rule] === undefined))
    throw new ArgumentError(
      `${where}: '${name}' does not say how it is computed; give it ${RULES.join(', ')}. For JavaScript code use torch.library.customOp.`,
    )
  if (options.kernel !== undefined && options.meta === undefined && options.decompose === undefined)
    throw new ArgumentError(`${where}: '${name}' has a kernel but no meta: say which shapes and dtypes the results have.`)
  checkFree(where, known)
  const { backward, ...rules } = options
  const qualname = `${known.path}.${known.name}`
  const fn = makeOp({
    ...rules,
    schema: withName(schema, known.name),
    namespace: known.path,
    tags: [...(options.tags ?? []), ...(options.kernel === undefined ? [] : (['custom'] as const))],
    ...(backward === undefined ? {} : { derivative: derivativeOf(qualname, schema, (...args) => backward(...args)) }),
  })
  registerOp(fn)
  publish(known, fn)
  return Object.assign(fn, { schema: options.schema })
}

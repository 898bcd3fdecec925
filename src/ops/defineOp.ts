// One declaration per operator. From it come: the public function and the Tensor method, argument checks and their errors, the target name
// that graphs print, meta (fake tensors), autograd, decompositions, inductor's lowering, and the row of the coverage table.
//
//     export const relu: OpFunction<(self: Tensor) => Tensor> = defineOp({
//       schema: 'relu(Tensor self) -> Tensor',
//       method: true,
//       pointwise: { promotion: 'promote', compute: (x: Expr) => call('max', x, constant(x.dtype, 0)) },
//       derivative: ([g], { outputs: [out] }) => [thresholdBackward(g, out, 0)],
//     })
//     declare module '../tensor/tensor.ts' { interface Tensor { relu(): Tensor } }
import { FakeTensorMode, dispatch, withMode } from '../dispatch/index.ts'
import type { Arg, Derivative, OpDef, OpTag, PointwiseRule, ReductionRule, Result } from '../dispatch/index.ts'
import { InternalError } from '../errors/index.ts'
import { OVERRIDE, findOverride, nameTarget, parseSchema } from '../protocol/index.ts'
import type { Effects, OverrideKind, TargetFunction } from '../protocol/index.ts'
import { Tensor } from '../tensor/index.ts'
import type { TensorSpec } from '../tensor/index.ts'
import { reductionSpec } from './eager/reductionSpec.ts'
import { launchReduction } from './eager/reduction.ts'
import { launchPointwise } from './eager/pointwise.ts'
import { pointwiseSpec } from './eager/pointwiseTypes.ts'
import { asKeywords, normalize, splitOptions } from './normalize.ts'
import { usualArguments } from './usualArguments.ts'
import { inPlaceSpec, writeInPlace } from './eager/inPlace.ts'
import { makeViews } from './eager/views.ts'

export interface OpDeclaration {
  /** PyTorch's schema. Arguments after `*` are given in the trailing options object; the others by position or in the options object. */
  readonly schema: string
  /** Where the public function lives: 'torch' (default), 'torch.nn.functional', 'torch.Tensor' (methods that are no functions of torch), 'torch.ops.tensorfx' (internal primitives, e.g. backward operators). */
  readonly namespace?: string
  /** Install as a method of Tensor under the schema's name. */
  readonly method?: boolean
  readonly tags?: readonly OpTag[]
  /** Derived for pointwise and reduction operators and from `functional`. */
  readonly meta?: (...args: never[]) => TensorSpec | readonly TensorSpec[]
  readonly pointwise?: PointwiseRule
  readonly reduction?: ReductionRule
  readonly kernel?: (...args: never[]) => Result
  readonly decompose?: (...args: never[]) => Result
  readonly derivative?: Derivative
  /** For `relu_`: the functional operator's public function. */
  readonly functional?: TargetFunction
  readonly dynamicScalars?: readonly string[]
  readonly template?: string
  /**
   * How a symbolic trace shows a call, where PyTorch writes the function in Python: 'keywords', arguments with defaults are keywords, whether given or
   * not; 'method', it does nothing but call the method of that name. Default: as the user wrote it.
   */
  readonly recordAs?: 'keywords' | 'method'
}

/** A public function of the operator table; `op` is its definition. */
export type OpFunction<F extends TargetFunction> = F & { readonly op: OpDef }

const table: OpDef[] = []
const byName = new Map<string, OpDef>()

/** Every operator, in order of definition. */
export const allOps = (): readonly OpDef[] => table

/** The operator with that qualified name, e.g. 'torch.relu'; undefined when there is none. */
export const opByName = (qualname: string): OpDef | undefined => byName.get(qualname)

/** The operator behind a public function; undefined for any other function. */
export const opOf = (fn: unknown): OpDef | undefined => (typeof fn === 'function' ? (fn as { op?: OpDef }).op : undefined)

const camelCase = (name: string): string => name.replace(/([a-z0-9])_+([a-z0-9])/g, (_, a: string, b: string) => a + b.toUpperCase())

/** Declares an operator and returns its public function. Throws when the declaration contradicts itself. */
export function defineOp<F extends TargetFunction>(declaration: OpDeclaration): OpFunction<F> {
  const schema = parseSchema(declaration.schema)
  const namespace = declaration.namespace ?? 'torch'
  const qualname = `${namespace}.${schema.name}`
  const functional = declaration.functional === undefined ? null : (opOf(declaration.functional) ?? null)
  const tags = new Set<OpTag>(declaration.tags ?? [])
  if (declaration.pointwise !== undefined) tags.add('pointwise')
  if (declaration.reduction !== undefined) tags.add('reduction')
  if (functional !== null) tags.add('mutates')
  if (declaration.reduction !== undefined && (schema.args[1]?.name !== 'dim' || schema.args[2]?.name !== 'keepdim')) {
    throw new InternalError(`operator ${qualname}: the arguments of a reduction are (self, dim, keepdim), in this order`)
  }
  if (declaration.functional !== undefined && functional === null)
    throw new InternalError(`operator ${qualname}: \`functional\` is not a function of the operator table`)
  const op: { -readonly [K in keyof OpDef]: OpDef[K] } = {
    id: table.length,
    name: schema.name,
    qualname,
    schema,
    tags,
    fn: undefined as unknown as TargetFunction,
    // Derived below, from the whole object.
    meta: (): never => {
      throw new InternalError(`operator ${qualname} has no meta`)
    },
    kernel: (declaration.kernel as OpDef['kernel']) ?? null,
    decompose: (declaration.decompose as OpDef['decompose']) ?? null,
    derivative: declaration.derivative ?? null,
    pointwise: declaration.pointwise ?? null,
    reduction: declaration.reduction ?? null,
    functional,
    dynamicScalars: declaration.dynamicScalars ?? [],
    template: declaration.template ?? null,
  }
  op.meta = deriveMeta(op, declaration)
  op.kernel = deriveKernel(op, declaration)
  const call = callAs(op as OpDef, declaration.recordAs === 'method' ? 'method' : 'function', declaration.recordAs === 'keywords')
  const fn = (...args: unknown[]): Result => call(args)
  Object.defineProperty(fn, 'name', { value: camelCase(schema.name) })
  op.fn = fn
  const effects: Effects = tags.has('random') ? 'random' : tags.has('mutates') ? 'mutates' : 'pure'
  nameTarget(fn, { name: qualname, effects, schema })
  table.push(op as OpDef)
  byName.set(qualname, op as OpDef)
  if (declaration.method === true) installMethod(op as OpDef, fn)
  // torch.Tensor.add_(x, y), as in PyTorch: the method as a function, which captured graphs print.
  if (namespace === 'torch.Tensor') Object.defineProperty(Tensor, fn.name, { value: fn, configurable: true, writable: true })
  return Object.assign(fn, { op: op as OpDef }) as unknown as OpFunction<F>
}

function deriveMeta(op: OpDef, declaration: OpDeclaration): OpDef['meta'] {
  if (declaration.meta !== undefined) return declaration.meta
  const { functional } = op
  if (functional !== null) return ((...args: readonly Arg[]) => inPlaceSpec(op, functional, args)) as OpDef['meta']
  if (op.pointwise !== null) return ((...args: readonly Arg[]) => pointwiseSpec(op, args)) as OpDef['meta']
  if (op.reduction !== null) return ((...args: readonly Arg[]) => reductionSpec(op, args)) as OpDef['meta']
  if (op.decompose !== null) return ((...args: readonly Arg[]) => decomposedSpec(op, args)) as OpDef['meta']
  throw new InternalError(`operator ${op.qualname} declares no meta, and none can be derived`)
}

/** Runs the decomposition on fake tensors. */
function decomposedSpec(op: OpDef, args: readonly Arg[]): TensorSpec | readonly TensorSpec[] {
  const result = withMode(new FakeTensorMode(), () => (op.decompose as (...a: readonly Arg[]) => Result)(...args))
  const one = (t: Tensor): TensorSpec => ({ shape: t.shape, dtype: t.dtype, strides: t.strides, offset: t.offset })
  return result instanceof Tensor ? one(result) : result.map(one)
}

function deriveKernel(op: OpDef, declaration: OpDeclaration): OpDef['kernel'] {
  if (declaration.kernel !== undefined) return op.kernel
  const { functional } = op
  if (functional !== null) return ((...args: readonly Arg[]) => writeInPlace(op, functional, args)) as OpDef['kernel']
  if (op.pointwise !== null) return ((...args: readonly Arg[]) => launchPointwise(op, args, null)) as OpDef['kernel']
  if (op.reduction !== null) return ((...args: readonly Arg[]) => launchReduction(op, args)) as OpDef['kernel']
  if (op.tags.has('view')) return ((...args: readonly Arg[]) => makeViews(op, args)) as OpDef['kernel']
  return null
}

/** Calls an operator with the arguments as the user wrote them. */
function callAs(op: OpDef, kind: OverrideKind, keywords = false): (args: unknown[]) => Result {
  const fast = usualArguments(op)
  return (args) => {
    const usual = fast(args)
    if (usual !== null) return dispatch(op, usual)
    const override = findOverride(args)
    if (override !== null) {
      const [positional, options] = keywords ? asKeywords(op, ...splitOptions(args)) : splitOptions(args)
      return override[OVERRIDE](kind, op.fn, positional, options) as Result
    }
    return dispatch(op, normalize(op, args))
  }
}

function installMethod(op: OpDef, fn: TargetFunction): void {
  const call = callAs(op, 'method')
  const method = function method(this: Tensor, ...args: unknown[]): unknown {
    return call([this, ...args])
  }
  Object.defineProperty(method, 'name', { value: fn.name })
  Object.defineProperty(Tensor.prototype, fn.name, { value: method, configurable: true, writable: true })
}

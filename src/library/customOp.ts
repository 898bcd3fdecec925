// Operators that a program computes itself, in JavaScript. To graphs and compilers such an operator is one opaque call: `fake` tells them the shapes of the results,
// `backward` the gradients.
import { AutogradError } from '../autograd/index.ts'
import type { Arg, Derivative, OpDef } from '../dispatch/index.ts'
import { ArgumentError } from '../errors/index.ts'
import { makeOp, opOf, registerOp } from '../ops/index.ts'
import type { BackwardOf, CallOf, KernelArgumentsOf, OpFunction, ResultOf, TupleHint } from '../ops/index.ts'
import type { FunctionSchema } from '../protocol/index.ts'
import { checkCount, isCallable, valueText } from '../protocol/index.ts'
import { derivativeOf } from './backward.ts'
import type { UntypedBackward } from './backward.ts'
import { mutatingRules } from './mutating.ts'
import { checkFree, publish, readDefinition } from './names.ts'
import { asResult, runFake, runForward, specsOf } from './results.ts'
import type { Implementation } from './results.ts'

/** Computes the results of an operator. It gets one value per argument of the schema, in order. */
export type Forward<S extends string> = (...args: KernelArgumentsOf<S>) => ResultOf<S> | TupleHint

/** Options of {@link customOp}. `S` is the text of the schema. */
export interface CustomOpOptions<S extends string> {
  /** Arguments and results in PyTorch's schema language: `(Tensor x, int n, *, float eps=1e-05) -> (Tensor, Tensor)`. `Tensor(a!) out` is written to. */
  readonly schema: S
  /** Computes the results on real tensors. They must be new: neither an argument nor a view of one. Operators in it are not recorded by autograd. */
  readonly forward: Forward<S>
  /** Results of the right shapes and dtypes; it runs on fake tensors, which have no data. Without it the operator works in eager mode only. PyTorch's register_fake. */
  readonly fake?: Forward<S>
  /** Gradients of the arguments by name, written with operators. Without it, a backward through the operator is an error. PyTorch's register_autograd. */
  readonly backward?: BackwardOf<S>
  /** URL of the module that defines the operator (`import.meta.url`), so that repro scripts and the minifier's child processes can import it. */
  readonly module?: string
}

/** An operator of a program's own. Call it like any function of torch. */
export type CustomOp<S extends string = string> = OpFunction<CallOf<S>> & {
  /** The schema as it was given. */
  readonly schema: S
}

interface UntypedOptions {
  readonly schema: string
  forward(...args: readonly Arg[]): unknown
  fake?(...args: readonly Arg[]): unknown
  backward?(...args: Parameters<UntypedBackward>): ReturnType<UntypedBackward>
  readonly module?: string
}

/** What was registered for an operator, and may be completed later. */
interface Parts {
  fake: Implementation | null
  backward: Derivative | null
  readonly mutates: boolean
}

const registered = new WeakMap<OpDef, Parts>()

const OPTIONS = ['schema', 'forward', 'fake', 'backward', 'module']

/**
 * Defines an operator that a program computes itself, and registers it as `torch.ops.namespace.name`. Graphs record a call of it as one node, print it and save it
 * by that name; `compile` calls `forward` between its own kernels. PyTorch's torch.library.custom_op.
 *
 * Results are contiguous. An operator with mutated arguments (`Tensor(a!)`) has no gradient of its own; in captured graphs it becomes a copy of the new values.
 *
 * @throws ArgumentError if the name is not `namespace::name` or is taken, the schema cannot be read, or an option is missing or unknown.
 * @example
 * const scaled = torch.library.customOp('mylib::scaled', {
 *   schema: '(Tensor x, float factor) -> Tensor',
 *   forward: (x, factor) => torch.tensor(x.toTypedArray().map((value) => value * factor)).reshape(x.shape),
 *   fake: (x) => torch.emptyLike(x),
 *   backward: ({ inputs }, grad) => ({ x: grad.mul(inputs.factor) }),
 * })
 */
export function customOp<const S extends string>(name: string, options: CustomOpOptions<S>): CustomOp<S>
export function customOp(name: string, options: UntypedOptions): CustomOp {
  checkCount('torch.library.customOp', arguments, 2)
  const where = 'torch.library.customOp'
  const [known, schema] = readDefinition(where, name, options, OPTIONS)
  const forward = functionOption(where, name, 'forward', options.forward)
  if (forward === null) throw new ArgumentError(`${where}: '${name}' needs forward, a function that computes the results.`)
  const qualname = `${known.path}.${known.name}`
  const mutates = schema.args.some((arg) => arg.type.mutated)
  const parts: Parts = { fake: functionOption(where, name, 'fake', options.fake), backward: null, mutates }
  const backward = functionOption(where, name, 'backward', options.backward)
  if (backward !== null) parts.backward = autogradFormula(where, qualname, schema, mutates, backward)
  checkFree(where, known)
  const module = options.module === undefined ? {} : { module: options.module }
  const rules = {
    forward: (args: readonly Arg[]) => runForward(qualname, schema, forward, args),
    fake: (args: readonly Arg[]) => runFake(qualname, schema, parts.fake, args),
  }
  const fn = mutates
    ? makeOp({ ...mutatingRules(known, schema, rules, module), ...module })
    : makeOp({
        schema: withName(schema, known.name),
        namespace: known.path,
        tags: ['custom'],
        meta: (...args) => asResult(schema, specsOf(rules.fake(args))),
        kernel: (...args) => asResult(schema, rules.forward(args)),
        derivative: (grads, ctx) => (parts.backward ?? noFormula(qualname))(grads, ctx),
        ...module,
      })
  registerOp(fn)
  publish(known, fn)
  registered.set(fn.op, parts)
  return Object.assign(fn, { schema: options.schema })
}

/** The schema's text, with the operator's name. */
export const withName = (schema: FunctionSchema, name: string): string => `${name}${schema.text.slice(schema.text.indexOf('('))}`

function functionOption<F>(where: string, name: string, option: string, value: F | undefined): F | null {
  if (value === undefined) return null
  if (!isCallable(value)) throw new ArgumentError(`${where}: ${option} of '${name}' must be a function, got ${valueText(value)}.`)
  return value
}

function autogradFormula(where: string, qualname: string, schema: FunctionSchema, mutates: boolean, backward: UntypedBackward): Derivative {
  if (mutates)
    throw new ArgumentError(
      `${where}: Cannot register autograd formula for non-functional operator ${qualname} with schema ${schema.text}. Please create a functional operator and register an autograd formula for that.`,
    )
  return derivativeOf(qualname, schema, backward)
}

const noFormula = (qualname: string): Derivative => {
  throw new AutogradError(
    `Trying to backward through ${qualname} but no autograd formula was registered. Please use torch.library.registerAutograd to add one.`,
  )
}

function partsOf(where: string, fn: unknown): [OpDef, Parts] {
  const op = opOf(fn)
  const parts = op === undefined ? undefined : registered.get(op)
  if (op === undefined || parts === undefined)
    throw new ArgumentError(`${where}: the first argument must be an operator that torch.library.customOp returned.`)
  return [op, parts]
}

/**
 * Gives an operator its fake function, which computes results of the right shapes and dtypes on tensors without data. PyTorch's torch.library.register_fake.
 * @throws ArgumentError if the operator was not made by customOp, or has a fake function already.
 */
export function registerFake<const S extends string>(op: CustomOp<S>, fake: Forward<S>): void
export function registerFake(fn: unknown, given: (...args: never[]) => unknown): void {
  checkCount('torch.library.registerFake', arguments, 2)
  const where = 'torch.library.registerFake'
  const [op, parts] = partsOf(where, fn)
  if (parts.fake !== null) throw new ArgumentError(`${where}: ${op.qualname} already has a fake impl registered.`)
  const { fake }: Pick<UntypedOptions, 'fake'> = { fake: given }
  parts.fake = functionOption(where, op.qualname, 'fake', fake)
  if (parts.fake === null) throw new ArgumentError(`${where}: pass the fake function of ${op.qualname}.`)
}

/**
 * Gives an operator its backward. PyTorch's torch.library.register_autograd; arguments and results are kept for it, so there is no setup_context.
 * @throws ArgumentError if the operator was not made by customOp, has a backward already, or writes to its arguments.
 */
export function registerAutograd<const S extends string>(op: CustomOp<S>, backward: BackwardOf<S>): void
export function registerAutograd(fn: unknown, given: (...args: never[]) => unknown): void {
  checkCount('torch.library.registerAutograd', arguments, 2)
  const where = 'torch.library.registerAutograd'
  const [op, parts] = partsOf(where, fn)
  if (parts.backward !== null) throw new ArgumentError(`${where}: ${op.qualname} already has a backward registered.`)
  const untyped: Pick<UntypedOptions, 'backward'> = { backward: given }
  const backward = functionOption(where, op.qualname, 'backward', untyped.backward)
  if (backward === null) throw new ArgumentError(`${where}: pass the backward of ${op.qualname}.`)
  parts.backward = autogradFormula(where, op.qualname, op.schema, parts.mutates, backward)
}

/** Whether an operator was made by customOp, and has what it needs to be differentiated. */
export const hasBackward = (op: OpDef): boolean => {
  const parts = registered.get(op)
  return parts === undefined ? op.derivative !== null || op.decompose !== null : parts.backward !== null
}

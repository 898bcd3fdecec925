// Derivatives as functions: grad, vjp, jvp and linearize. jacobians.ts has the derivatives of all elements.
import { enableGrad } from '../autograd/index.ts'
import { ArgumentError, ShapeError } from '../errors/index.ts'
import { onesLike, zerosLike } from '../ops/index.ts'
import { checkCallable, checkCount, checkOptions, checkSynchronous, ownCopy, valueText } from '../protocol/index.ts'
import { treeEqual, treeUnflatten } from '../pytree/index.ts'
import { Tensor, formatShape, sameShape } from '../tensor/index.ts'
import { gradients, inputFor, needsTape, release, runOn, tensorsOf } from './differentiable.ts'
import type { Tensors } from './differentiable.ts'

/** Which arguments derivatives are taken for: one, which gives one derivative, or several, which give an array. */
export type Argnums = number | readonly number[]

/** Options of {@link grad}, {@link jacrev}, {@link jacfwd} and {@link hessian}. */
export interface DerivativeOptions {
  /** Default 0, the first argument. */
  readonly argnums?: Argnums
  /** `fn` returns `[result, others]`: `others` is passed on without a derivative. */
  readonly hasAux?: boolean
}

interface Chosen {
  /** The chosen arguments, as one value. */
  readonly value: unknown
  /** All arguments, with others in the places of the chosen ones. */
  readonly withValue: (value: unknown) => readonly unknown[]
}

export function choose(where: string, args: readonly unknown[], argnums: Argnums): Chosen {
  const several = Array.isArray(argnums)
  const numbers: readonly unknown[] = several ? argnums : [argnums]
  const positions = numbers.map((n) => {
    const at = typeof n === 'number' && n < 0 ? n + args.length : n
    if (typeof at !== 'number' || !Number.isInteger(at) || at < 0 || at >= args.length)
      throw new ArgumentError(`${where}: option 'argnums' must name arguments by position, got ${valueText(n)} for ${args.length} argument(s).`)
    return at
  })
  const chosen = positions.map((at) => args[at])
  return {
    value: several ? chosen : chosen[0],
    withValue: (value) => {
      const values: readonly unknown[] = several && Array.isArray(value) ? value : [value]
      const all = [...args]
      positions.forEach((at, i) => (all[at] = values[i]))
      return all
    },
  }
}

export function readOptions(where: string, fn: unknown, options: DerivativeOptions): Required<DerivativeOptions> {
  checkCallable(where, 'fn', fn)
  checkOptions(where, options, { argnums: true, hasAux: 'boolean' })
  return { argnums: ownCopy(options.argnums ?? 0), hasAux: options.hasAux ?? false }
}

/** The tensors in what `fn` returned. */
export function resultsOf(where: string, result: unknown): ReturnType<typeof tensorsOf> {
  checkSynchronous(where, 'fn', result)
  return tensorsOf(where, 'the result of fn', result)
}

/** Takes `[result, others]` apart. */
export function withAux(where: string, result: unknown, hasAux: boolean): readonly [result: unknown, aux: unknown] {
  checkSynchronous(where, 'fn', result)
  if (!hasAux) return [result, undefined]
  if (!Array.isArray(result) || result.length !== 2)
    throw new ArgumentError(`${where}: with hasAux, fn must return [result, others], got ${valueText(result)}.`)
  return [result[0], result[1]]
}

/** Any function with these arguments. */
export type Fn<A extends readonly unknown[]> = (...args: A) => unknown

/**
 * A function that returns the gradient of `fn`, which must return a number (a tensor of one element), and its value: `[gradient, value]`. With `hasAux`,
 * `[gradient, [value, others]]`. PyTorch's torch.func.grad_and_value.
 */
export function gradAndValue<A extends readonly unknown[]>(fn: Fn<A>, options: DerivativeOptions = {}): (...args: A) => readonly [unknown, unknown] {
  checkCount('gradAndValue', arguments, 2)
  return gradientOf('gradAndValue', fn, options)
}

function gradientOf<A extends readonly unknown[]>(where: string, fn: Fn<A>, options: DerivativeOptions): (...args: A) => readonly [unknown, unknown] {
  const { argnums, hasAux } = readOptions(where, fn, options)
  return (...args) => {
    const { value, withValue } = choose(where, args, argnums)
    const given = tensorsOf(where, 'the argument', value)
    const { inputs, result } = runOn(where, given, (inner) => Reflect.apply(fn, undefined, withValue(inner)))
    const [out, aux] = withAux(where, result, hasAux)
    if (!(out instanceof Tensor) || out.numel !== 1)
      throw new ShapeError(
        `${where}: fn must return a tensor of one element, got ${out instanceof Tensor ? `shape ${formatShape(out.shape)}` : valueText(out)}. Reduce it (sum(), mean()), or use jacrev.`,
      )
    const found = gradients([out], inputs, [onesLike(out)], needsTape([out], inputs))
    const values = release(hasAux ? [out, aux] : out, inputs)
    return [treeUnflatten(found, given.spec), values]
  }
}

/**
 * A function that returns the gradient of `fn`, which must return a number (a tensor of one element). The arguments may be nested values of tensors, such as the
 * parameters of a module by name. With `hasAux`, `[gradient, others]`. May be applied again, and under {@link vmap}. PyTorch's torch.func.grad.
 *
 *     grad((x) => x.pow(3).sum())(torch.tensor([1, 2])) // tensor([3., 12.])
 */
export function grad<A extends readonly unknown[]>(
  fn: Fn<A>,
  options: DerivativeOptions & { readonly argnums: readonly number[]; readonly hasAux?: false },
): (...args: A) => readonly Tensor[]
export function grad<A extends readonly unknown[]>(fn: Fn<A>, options?: DerivativeOptions & { readonly hasAux?: false }): (...args: A) => A[0]
export function grad<A extends readonly unknown[]>(
  fn: Fn<A>,
  options: DerivativeOptions & { readonly hasAux: true },
): (...args: A) => readonly [unknown, unknown]
export function grad<A extends readonly unknown[]>(fn: Fn<A>, options: DerivativeOptions = {}): (...args: A) => unknown {
  checkCount('grad', arguments, 2)
  const both = gradientOf('grad', fn, options)
  return (...args) => {
    const [found, value] = both(...args)
    return options.hasAux === true && Array.isArray(value) ? [found, value[1]] : found
  }
}

/** Throws unless the values have the structure and shapes of `like`. */
function checkLike(where: string, name: string, value: unknown, like: Tensors): readonly Tensor[] {
  const { tensors, spec } = tensorsOf(where, name, value)
  const fits = treeEqual(spec, like.spec) && tensors.every((t, i) => sameShape(t.shape, like.tensors[i]?.shape ?? []))
  if (!fits)
    throw new ShapeError(
      `${where}: ${name} must have the structure and shapes ${like.tensors.map((t) => formatShape(t.shape)).join(', ')}, got ${tensors.map((t) => formatShape(t.shape)).join(', ')}.`,
    )
  return tensors
}

/**
 * The value of `fn`, and a function from a gradient of it to the gradients of the arguments (an array if there are several). PyTorch's torch.func.vjp.
 *
 *     const [y, pullback] = vjp((x) => x.sin(), x)
 *     const [gx] = [pullback(torch.onesLike(y))]
 */
export function vjp<A extends readonly unknown[], R>(fn: (...args: A) => R, ...primals: A): readonly [value: R, pullback: (gradient: R) => unknown] {
  const { value, linear } = pullbackOf(fn, primals)
  return [value, linear]
}

/** A value, its derivative as a linear function, and what takes the tape of the arguments off results: see {@link release}. */
interface Linearized<R, L> {
  readonly value: R
  readonly linear: L
  readonly free: (result: unknown) => unknown
}

export function pullbackOf<A extends readonly unknown[], R>(fn: (...args: A) => R, primals: A): Linearized<R, (gradient: R) => unknown> {
  checkCallable('vjp', 'fn', fn)
  const given = tensorsOf('vjp', 'the arguments', primals)
  const { inputs, result } = runOn('vjp', given, (value) => Reflect.apply(fn, undefined, asArray(value)))
  const outputs = resultsOf('vjp', result)
  const pullback = (gradient: R): unknown => {
    const seeds = checkLike('vjp', 'the gradient', gradient, outputs)
    const found = gradients(outputs.tensors, inputs, seeds, needsTape([...outputs.tensors, ...seeds], inputs))
    const all = asArray(treeUnflatten(found, given.spec))
    return all.length === 1 ? all[0] : all
  }
  return { value: release(result, inputs) as R, linear: pullback, free: (derived) => release(derived, inputs) }
}

const asArray = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : [value])

/**
 * The value of `fn`, and its derivative as a function of tangents, one for each argument. PyTorch's torch.func.linearize.
 *
 * The derivative is that of the pullback, which is linear: operators need no rules of their own for it.
 */
export function linearize<A extends readonly unknown[], R>(
  fn: (...args: A) => R,
  ...primals: A
): readonly [value: R, pushforward: (...tangents: A) => R] {
  const { value, linear } = pushforwardOf('linearize', fn, primals)
  return [value, linear]
}

export function pushforwardOf<A extends readonly unknown[], R>(
  where: string,
  fn: (...args: A) => R,
  primals: A,
): Linearized<R, (...tangents: A) => R> {
  checkCallable(where, 'fn', fn)
  const given = tensorsOf(where, 'the arguments', primals)
  const { inputs, result } = runOn(where, given, (value) => Reflect.apply(fn, undefined, asArray(value)))
  const outputs = resultsOf(where, result)
  const seeds = outputs.tensors.map((t) => inputFor(where, zerosLike(t)))
  const pulled = enableGrad(() => gradients(outputs.tensors, inputs, seeds, true))
  const own = [...inputs, ...seeds]
  const pushforward = (...tangents: A): R => {
    const directions = checkLike(where, 'the tangents', tangents, given)
    const found = gradients(pulled, seeds, directions, needsTape([...pulled, ...directions], own))
    return treeUnflatten(found, outputs.spec) as R
  }
  return { value: release(result, inputs) as R, linear: pushforward, free: (derived) => release(derived, own) }
}

/**
 * The value of `fn` at `primals`, and its derivative in the direction of `tangents`: `[value, derivative]`. PyTorch's torch.func.jvp.
 * Throws ArgumentError if `primals` or `tangents` is no array.
 *
 *     jvp((x) => x.square(), [torch.tensor([1, 2])], [torch.tensor([1, 0])]) // [tensor([1., 4.]), tensor([2., 0.])]
 */
export function jvp<A extends readonly unknown[], R>(fn: (...args: A) => R, primals: A, tangents: A): readonly [value: R, derivative: R] {
  checkCount('jvp', arguments, 3)
  // For callers in JavaScript.
  const lists: readonly unknown[] = [primals, tangents]
  if (!lists.every((list) => Array.isArray(list)))
    throw new ArgumentError('jvp: primals and tangents must be arrays, with one value for each argument of fn: jvp(fn, [x], [v]).')
  const { value, linear } = pushforwardOf('jvp', fn, primals)
  return [value, linear(...tangents)]
}

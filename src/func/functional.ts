// torch.autograd.functional: derivatives of a function at a point.
import { isGradEnabled, noGrad } from '../autograd/index.ts'
import { checkOptions } from '../protocol/index.ts'
import { Tensor } from '../tensor/index.ts'
import { grad, hessian as hessianOf, jacrev, jvp as jvpOf, vjp as vjpOf } from './derivatives.ts'

/** One input, or several. */
export type Inputs = Tensor | readonly Tensor[]

/** Options of the functions of `torch.autograd.functional`. */
export interface FunctionalOptions {
  /** Record the derivative, so that it can be differentiated again. Default false. */
  readonly createGraph?: boolean
}

type Fn = (...inputs: readonly Tensor[]) => unknown

const listOf = (inputs: Inputs): readonly Tensor[] => (inputs instanceof Tensor ? [inputs] : inputs)

function run<T>(where: string, options: FunctionalOptions, fn: () => T): T {
  checkOptions(where, options, { createGraph: true })
  return options.createGraph === true && isGradEnabled() ? fn() : noGrad(fn)
}

const argnumsOf = (inputs: Inputs): number | readonly number[] => (inputs instanceof Tensor ? 0 : inputs.map((_, i) => i))

/** The Jacobian of `fn` at the inputs: for several inputs an array for each result. PyTorch's torch.autograd.functional.jacobian. */
export function jacobian(fn: Fn, inputs: Inputs, options: FunctionalOptions = {}): unknown {
  return run('jacobian', options, () => jacrev(fn, { argnums: argnumsOf(inputs) })(...listOf(inputs)))
}

/** The second derivatives of `fn`, which returns a number. PyTorch's torch.autograd.functional.hessian. */
export function hessian(fn: Fn, inputs: Inputs, options: FunctionalOptions = {}): unknown {
  return run('hessian', options, () => hessianOf(fn, { argnums: argnumsOf(inputs) })(...listOf(inputs)))
}

/** The value of `fn`, and `v` times its Jacobian: `[value, product]`. PyTorch's torch.autograd.functional.vjp. */
export function vjp(fn: Fn, inputs: Inputs, v: unknown, options: FunctionalOptions = {}): readonly [value: unknown, product: unknown] {
  return run('vjp', options, () => {
    const [value, pullback] = vjpOf(fn, ...listOf(inputs))
    return [value, pullback(v)]
  })
}

/** The value of `fn`, and its Jacobian times `v`: `[value, product]`. PyTorch's torch.autograd.functional.jvp. */
export function jvp(fn: Fn, inputs: Inputs, v: Inputs, options: FunctionalOptions = {}): readonly [value: unknown, product: unknown] {
  return run('jvp', options, () => jvpOf(fn, listOf(inputs), listOf(v)))
}

function second(
  where: string,
  fn: Fn,
  inputs: Inputs,
  v: Inputs,
  options: FunctionalOptions,
  forward: boolean,
): readonly [value: unknown, product: unknown] {
  return run(where, options, () => {
    const all = listOf(inputs)
    const gradient = (...at: readonly Tensor[]): readonly Tensor[] => grad(fn, { argnums: all.map((_, i) => i) })(...at)
    const product = forward ? jvpOf(gradient, all, listOf(v))[1] : vjpOf(gradient, ...all)[1](listOf(v))
    const list: readonly unknown[] = Array.isArray(product) ? product : [product]
    return [fn(...all), inputs instanceof Tensor ? list[0] : list]
  })
}

/** The value of `fn`, and its second derivatives times `v`. PyTorch's torch.autograd.functional.hvp. */
export function hvp(fn: Fn, inputs: Inputs, v: Inputs, options: FunctionalOptions = {}): readonly [value: unknown, product: unknown] {
  return second('hvp', fn, inputs, v, options, true)
}

/** The value of `fn`, and `v` times its second derivatives. PyTorch's torch.autograd.functional.vhp. */
export function vhp(fn: Fn, inputs: Inputs, v: Inputs, options: FunctionalOptions = {}): readonly [value: unknown, product: unknown] {
  return second('vhp', fn, inputs, v, options, false)
}

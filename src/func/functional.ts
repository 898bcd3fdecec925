// torch.autograd.functional: derivatives of a function at a point.
import { isGradEnabled, noGrad } from '../autograd/index.ts'
import { checkArray, checkCallable, checkCount, checkOptions } from '../protocol/index.ts'
import { Tensor } from '../tensor/index.ts'
import { grad, jvp as jvpOf, vjp as vjpOf } from './derivatives.ts'
import { hessian as hessianOf, jacrev } from './jacobians.ts'

/** One input, or several. */
export type Inputs = Tensor | readonly Tensor[]

/** Options of the functions of `torch.autograd.functional`. */
export interface FunctionalOptions {
  /** Record the derivative, so that it can be differentiated again. Default false. */
  readonly createGraph?: boolean
}

type Fn = (...inputs: readonly Tensor[]) => unknown

function listOf(where: string, name: string, given: Inputs): readonly Tensor[] {
  if (given instanceof Tensor) return [given]
  checkArray(where, name, given)
  return given
}

const argnumsOf = (inputs: Inputs): number | readonly number[] => (inputs instanceof Tensor ? 0 : [...inputs.keys()])

function run<T>(where: string, fn: Fn, options: FunctionalOptions, compute: () => T): T {
  checkCallable(where, 'fn', fn)
  checkOptions(where, options, { createGraph: 'boolean' })
  return options.createGraph === true && isGradEnabled() ? compute() : noGrad(compute)
}

/** The Jacobian of `fn` at the inputs: for several inputs an array for each result. PyTorch's torch.autograd.functional.jacobian. */
export function jacobian(fn: Fn, inputs: Inputs, options: FunctionalOptions = {}): unknown {
  checkCount('jacobian', arguments, 3)
  const list = listOf('jacobian', 'inputs', inputs)
  return run('jacobian', fn, options, () => jacrev(fn, { argnums: argnumsOf(inputs) })(...list))
}

/** The second derivatives of `fn`, which returns a number. PyTorch's torch.autograd.functional.hessian. */
export function hessian(fn: Fn, inputs: Inputs, options: FunctionalOptions = {}): unknown {
  checkCount('hessian', arguments, 3)
  const list = listOf('hessian', 'inputs', inputs)
  return run('hessian', fn, options, () => hessianOf(fn, { argnums: argnumsOf(inputs) })(...list))
}

/** The value of `fn`, and `v` times its Jacobian: `[value, product]`. PyTorch's torch.autograd.functional.vjp. */
export function vjp(fn: Fn, inputs: Inputs, v: unknown, options: FunctionalOptions = {}): readonly [value: unknown, product: unknown] {
  checkCount('vjp', arguments, 4)
  const list = listOf('vjp', 'inputs', inputs)
  return run('vjp', fn, options, () => {
    const [value, pullback] = vjpOf(fn, ...list)
    return [value, pullback(v)]
  })
}

/** The value of `fn`, and its Jacobian times `v`: `[value, product]`. PyTorch's torch.autograd.functional.jvp. */
export function jvp(fn: Fn, inputs: Inputs, v: Inputs, options: FunctionalOptions = {}): readonly [value: unknown, product: unknown] {
  checkCount('jvp', arguments, 4)
  const [list, tangents] = [listOf('jvp', 'inputs', inputs), listOf('jvp', 'v', v)]
  return run('jvp', fn, options, () => jvpOf(fn, list, tangents))
}

function second(
  where: string,
  fn: Fn,
  inputs: Inputs,
  v: Inputs,
  options: FunctionalOptions,
  forward: boolean,
): readonly [value: unknown, product: unknown] {
  const [all, vectors] = [listOf(where, 'inputs', inputs), listOf(where, 'v', v)]
  return run(where, fn, options, () => {
    const gradient = (...at: readonly Tensor[]): readonly Tensor[] => grad(fn, { argnums: all.map((_, i) => i) })(...at)
    const product = forward ? jvpOf(gradient, all, vectors)[1] : vjpOf(gradient, ...all)[1](vectors)
    const list: readonly unknown[] = Array.isArray(product) ? product : [product]
    return [fn(...all), inputs instanceof Tensor ? list[0] : list]
  })
}

/** The value of `fn`, and its second derivatives times `v`. PyTorch's torch.autograd.functional.hvp. */
export function hvp(fn: Fn, inputs: Inputs, v: Inputs, options: FunctionalOptions = {}): readonly [value: unknown, product: unknown] {
  checkCount('hvp', arguments, 4)
  return second('hvp', fn, inputs, v, options, true)
}

/** The value of `fn`, and `v` times its second derivatives. PyTorch's torch.autograd.functional.vhp. */
export function vhp(fn: Fn, inputs: Inputs, v: Inputs, options: FunctionalOptions = {}): readonly [value: unknown, product: unknown] {
  checkCount('vhp', arguments, 4)
  return second('vhp', fn, inputs, v, options, false)
}

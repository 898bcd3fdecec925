// checkpoint: what backward needs of a part of the program is computed again instead of kept.
import { attachGradNode, enableGrad, gradBetween, isGradEnabled, underAutocastOfNow } from '../autograd/index.ts'
import { ArgumentError } from '../errors/index.ts'
import { checkCallable, checkSynchronous, valueText } from '../protocol/index.ts'
import { treeFlatten, treeUnflatten } from '../pytree/index.ts'
import type { TreeSpec } from '../pytree/index.ts'
import { zerosLike } from '../ops/index.ts'
import { Tensor, getRngState, setRngState } from '../tensor/index.ts'
import { inputFor, leavesBehind } from './differentiable.ts'

/**
 * Calls `fn` with the arguments, and keeps only these for backward, which calls it again: less memory for more time. `fn` must compute the same again; random numbers
 * of the default generator do. Tensors that it uses besides its arguments get their gradients too, if they are leaves, such as parameters. Throws ArgumentError if
 * it returns anything but tensors. PyTorch's torch.utils.checkpoint.checkpoint (without reentrance).
 *
 *     const hidden = checkpoint((x) => block(x), x)
 */
export function checkpoint<A extends readonly unknown[], R>(fn: (...args: A) => R, ...args: A): R {
  checkCallable('checkpoint', 'fn', fn)
  if (!isGradEnabled()) return fn(...args)
  const part = new Part(fn, args)
  const first = part.run()
  const others = [...leavesBehind(first.outputs)].filter((leaf) => !first.inputs.includes(leaf))
  const results = first.outputs.map((output) => output.detach())
  attachGradNode(results, [...part.differentiable, ...others], (grads) => part.backward(grads, others), { name: 'CheckpointBackward' })
  return treeUnflatten(results, treeFlatten(first.value).spec) as R
}

/** One run of the part. */
interface PartRun<R> {
  /** Stand-ins of the arguments that require grad. */
  readonly inputs: readonly Tensor[]
  readonly value: R
  /** The tensors in the value. */
  readonly outputs: readonly Tensor[]
}

/** The part of the program that is computed again, with its arguments and the state of the random generator. */
class Part<A extends readonly unknown[], R> {
  readonly #fn: (...args: A) => R
  readonly #leaves: readonly unknown[]
  readonly #spec: TreeSpec
  readonly #random = getRngState()
  readonly #asFirst = underAutocastOfNow()

  constructor(fn: (...args: A) => R, args: A) {
    const { leaves, spec } = treeFlatten(args)
    this.#fn = fn
    this.#leaves = leaves
    this.#spec = spec
  }

  /** The tensors among the arguments that require grad. */
  get differentiable(): readonly Tensor[] {
    return this.#leaves.filter((leaf) => leaf instanceof Tensor).filter(({ requiresGrad }) => requiresGrad)
  }

  /** Runs the part on stand-ins of the arguments, and records it. */
  run(): PartRun<R> {
    const inputs: Tensor[] = []
    const inside = this.#leaves.map((leaf) => {
      if (!(leaf instanceof Tensor) || !leaf.requiresGrad) return leaf
      const input = inputFor('checkpoint', leaf.detach())
      inputs.push(input)
      return input
    })
    const args = treeUnflatten(inside, this.#spec)
    const value: R = this.#asFirst(() => enableGrad(() => Reflect.apply(this.#fn, undefined, Array.isArray(args) ? args : [])))
    checkSynchronous('checkpoint', 'fn', value)
    return { inputs, value, outputs: treeFlatten(value).leaves.map(asOutput) }
  }

  /** Runs the part again with the same random numbers, and returns the gradients of the arguments and of `others`. */
  backward(grads: readonly (Tensor | null)[], others: readonly Tensor[]): readonly (Tensor | null)[] {
    const now = getRngState()
    setRngState(this.#random)
    try {
      const { inputs, outputs } = this.run()
      const seeded = outputs.map((output, i) => ({ output, seed: grads[i] ?? zerosLike(output) })).filter(({ output }) => output.requiresGrad)
      return gradBetween(
        seeded.map(({ output }) => output),
        [...inputs, ...others],
        seeded.map(({ seed }) => seed),
        isGradEnabled(),
      )
    } finally {
      setRngState(now)
    }
  }
}

function asOutput(leaf: unknown): Tensor {
  if (leaf instanceof Tensor) return leaf
  throw new ArgumentError(`checkpoint: fn must return tensors, or arrays and objects of them, got ${valueText(leaf)}.`)
}

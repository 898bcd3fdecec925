// checkpoint: what backward needs of a part of the program is computed again instead of kept.
import { GradNode, attachGradNode, enableGrad, gradBetween, isGradEnabled, producerOf } from '../autograd/index.ts'
import type { Edge } from '../autograd/index.ts'
import { ArgumentError } from '../errors/index.ts'
import { checkCallable, checkSynchronous, valueText } from '../protocol/index.ts'
import { treeFlatten, treeUnflatten } from '../pytree/index.ts'
import { zerosLike } from '../ops/index.ts'
import { Tensor, getRngState, setRngState } from '../tensor/index.ts'
import { inputFor } from './differentiable.ts'

/** Tensors outside of the part that its results depend on, such as parameters. */
function outsiders(outputs: readonly Tensor[], inputs: readonly Tensor[]): readonly Tensor[] {
  const found = new Set<Tensor>()
  const seen = new Set<Edge>()
  const stack: Edge[] = outputs.map((t) => producerOf(t) ?? t)
  for (let edge = stack.pop(); edge !== undefined; edge = stack.pop()) {
    if (edge === null || seen.has(edge)) continue
    seen.add(edge)
    if (edge instanceof GradNode) stack.push(...edge.targets)
    else if (!inputs.includes(edge)) found.add(edge)
  }
  return [...found]
}

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
  const random = getRngState()
  const { leaves, spec } = treeFlatten(args)
  const outer = leaves.filter((leaf) => leaf instanceof Tensor && leaf.requiresGrad)
  /** Runs the part on stand-ins of the arguments. */
  const run = (): { readonly inputs: readonly Tensor[]; readonly value: R; readonly outputs: readonly Tensor[] } => {
    const inputs: Tensor[] = []
    const inside = leaves.map((leaf) => {
      if (!(leaf instanceof Tensor) || !leaf.requiresGrad) return leaf
      const input = inputFor('checkpoint', leaf.detach())
      inputs.push(input)
      return input
    })
    const rebuilt = treeUnflatten(inside, spec)
    const value: R = enableGrad(() => Reflect.apply(fn, undefined, Array.isArray(rebuilt) ? rebuilt : []))
    checkSynchronous('checkpoint', 'fn', value)
    const outputs = treeFlatten(value).leaves.map((leaf) => {
      if (leaf instanceof Tensor) return leaf
      throw new ArgumentError(`checkpoint: fn must return tensors, or arrays and objects of them, got ${valueText(leaf)}.`)
    })
    return { inputs, value, outputs }
  }
  const first = run()
  const others = outsiders(first.outputs, first.inputs)
  const results = first.outputs.map((t) => t.detach())
  const sources = [...outer.flatMap((t) => (t instanceof Tensor ? [t] : [])), ...others]
  attachGradNode(
    results,
    sources,
    (grads) => {
      const now = getRngState()
      setRngState(random)
      try {
        const { inputs, outputs } = run()
        const seeds = outputs.map((t, i) => grads[i] ?? zerosLike(t))
        const kept = outputs.flatMap((t, i) => (t.requiresGrad ? [i] : []))
        return gradBetween(
          kept.flatMap((i) => outputs.slice(i, i + 1)),
          [...inputs, ...others],
          kept.flatMap((i) => seeds.slice(i, i + 1)),
          isGradEnabled(),
        )
      } finally {
        setRngState(now)
      }
    },
    { name: 'CheckpointBackward' },
  )
  return treeUnflatten(results, treeFlatten(first.value).spec) as R
}

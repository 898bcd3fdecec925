// Adds the gradients of a backward pass to `grad` of the leaves.
import { beyondLimit } from '../kernels/index.ts'
import { add, clone, detach } from '../ops/index.ts'
import type { Tensor } from '../tensor/index.ts'
import { hookState } from './hooks.ts'

/**
 * Adds gradients to `grad` of leaves: to all of them, or to none if there is no memory. Of the tensors in `shared`, which others hold too, a leaf gets a copy.
 */
export function accumulate(gradients: ReadonlyMap<Tensor, Tensor>, createGraph: boolean, shared: Set<Tensor>): void {
  const sums: (Tensor | null)[] = []
  for (const [leaf, grad] of gradients) {
    hookState.beforeAccumulation?.(leaf)
    sums.push(newGradient(leaf.grad, grad, createGraph, shared))
  }
  beyondLimit(() => {
    let next = 0
    for (const [leaf, grad] of gradients) {
      const sum = sums[next++] ?? null
      if (sum !== null) leaf.grad = sum
      // In place, as PyTorch does: a program that holds `leaf.grad` sees the sum.
      else leaf.grad?.add_(grad)
    }
  })
}

/** The tensor that becomes `leaf.grad`; null if the gradient is to be added to `known`, the present one, in place. */
function newGradient(known: Tensor | null, grad: Tensor, createGraph: boolean, shared: Set<Tensor>): Tensor | null {
  if (createGraph) return known === null ? grad : add(known, grad)
  if (known !== null) return known.requiresGrad || known.viewBase !== null || !known.contiguousLayout ? add(known, grad) : null
  const needsCopy = shared.has(grad) || grad.viewBase !== null || !grad.contiguousLayout || grad.requiresGrad
  shared.add(grad)
  return needsCopy ? clone(grad.requiresGrad ? detach(grad) : grad) : grad
}

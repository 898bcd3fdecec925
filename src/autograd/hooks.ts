// Hooks on gradients, and tensors that keep the gradient that passes through them.
import { add, clone } from '../ops/index.ts'
import type { Tensor } from '../tensor/index.ts'
import { AutogradError } from './errors.ts'
import { producerOf } from './node.ts'
import type { GradHook } from './node.ts'

// A leaf has no node that could hold its hooks, and hooks are too rare to be worth a field on every tensor.
const leafHooks = new WeakMap<Tensor, GradHook[]>()
const retaining = new WeakSet<Tensor>()

/** How many hooks were registered on tensors that are not leaves. compile keeps the tape of a call that registers one. */
export const hookState: { inner: number } = { inner: 0 }

/** Removes a hook. PyTorch's RemovableHandle. */
export interface RemovableHandle extends Disposable {
  remove(): void
}

/** The hooks of a leaf. */
export const leafHooksOf = (leaf: Tensor): readonly GradHook[] | undefined => leafHooks.get(leaf)

/** Runs hooks in order; each may replace the gradient. */
export function applyHooks(hooks: readonly GradHook[] | undefined, grad: Tensor): Tensor {
  if (hooks === undefined) return grad
  let current = grad
  for (const hook of hooks.slice()) current = hook(current) ?? current
  return current
}

function hooksOf(tensor: Tensor): GradHook[] {
  const node = producerOf(tensor)
  if (node === null) {
    const known = leafHooks.get(tensor) ?? []
    leafHooks.set(tensor, known)
    return known
  }
  hookState.inner++
  node.hooks ??= []
  const { hooks } = node
  while (hooks.length < tensor.outputNr) hooks.push([])
  const own = hooks[tensor.outputNr] ?? []
  hooks[tensor.outputNr] = own
  return own
}

/**
 * Calls `hook` with the gradient of `tensor` in every backward pass; a tensor that it returns replaces the gradient. Throws AutogradError if the tensor does not
 * require grad. PyTorch's `Tensor.register_hook`.
 */
export function registerHook(tensor: Tensor, hook: GradHook): RemovableHandle {
  if (!tensor.requiresGrad)
    throw new AutogradError('registerHook: this tensor does not require grad, so no gradient will ever reach it. Call requiresGrad_() first.')
  const hooks = hooksOf(tensor)
  hooks.push(hook)
  const remove = (): void => {
    const i = hooks.indexOf(hook)
    if (i >= 0) hooks.splice(i, 1)
  }
  return { remove, [Symbol.dispose]: remove }
}

/** Keeps the gradient of a tensor that is not a leaf in its `.grad`. Throws AutogradError if it does not require grad. PyTorch's `Tensor.retain_grad`. */
export function retainGrad(tensor: Tensor): void {
  if (!tensor.requiresGrad)
    throw new AutogradError('retainGrad: this tensor does not require grad, so no gradient will ever reach it. Call requiresGrad_() on a leaf first.')
  if (tensor.gradFn === null || retaining.has(tensor)) return
  retaining.add(tensor)
  registerHook(tensor, (grad) => {
    // A copy, because the gradient itself goes on to the leaves, which own what they get.
    tensor.grad = tensor.grad === null ? clone(grad) : add(tensor.grad, grad)
  })
}

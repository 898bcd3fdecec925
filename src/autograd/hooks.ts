// Hooks on gradients, and tensors that keep the gradient that passes through them.
/// <reference lib="esnext.disposable" preserve="true" />
import { add, clone } from '../ops/index.ts'
import { checkCallable } from '../protocol/index.ts'
import type { Tensor } from '../tensor/index.ts'
import { AutogradError } from './errors.ts'
import { producerOf, retention } from './node.ts'
import type { GradHook, GradNode } from './node.ts'

// A leaf has no node that could hold its hooks, and hooks are too rare to be worth a field on every tensor.
const leafHooks = new WeakMap<Tensor, GradHook[]>()
const accumulatedHooks = new WeakMap<Tensor, AccumulatedHook[]>()
/** The hooks by which tensors keep their gradients. */
const retaining = new WeakMap<Tensor, RemovableHandle>()

/** A function that is told that a gradient was added to `leaf.grad`. */
export type AccumulatedHook = (leaf: Tensor) => void

/** Counts of hooks. Without hooks on leaves the engine need not know when a leaf has all that it will get. */
export const hookState: {
  /** How many were registered on tensors that are not leaves. compile keeps the tape of a call that registers one. */
  inner: number
  /** How many are registered on leaves. */
  leaves: number
  /** Called before `grad` of a leaf changes; set by code that restores gradients later. */
  beforeAccumulation: ((leaf: Tensor) => void) | null
} = { inner: 0, leaves: 0, beforeAccumulation: null }

/** Removes a hook. PyTorch's RemovableHandle. */
export interface RemovableHandle extends Disposable {
  remove(): void
}

/** The hooks of a leaf. */
export const leafHooksOf = (leaf: Tensor): readonly GradHook[] | undefined => leafHooks.get(leaf)

/** What is to be called when a gradient was added to the leaf's `grad`. */
export const accumulatedHooksOf = (leaf: Tensor): readonly AccumulatedHook[] | undefined => accumulatedHooks.get(leaf)

/** Whether anything waits for the gradient of a leaf. */
export const hasLeafHooks = (leaf: Tensor): boolean => (leafHooks.get(leaf)?.length ?? 0) > 0 || (accumulatedHooks.get(leaf)?.length ?? 0) > 0

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
  return hooksAt(node, tensor.outputNr)
}

/** The hooks of an output of a node. */
function hooksAt(node: GradNode, outputNr: number): GradHook[] {
  hookState.inner++
  node.hooks ??= []
  const { hooks } = node
  while (hooks.length < outputNr) hooks.push([])
  const own = hooks[outputNr] ?? []
  hooks[outputNr] = own
  return own
}

/** Adds a hook to a list, and returns what removes it. `counted` says that it is a leaf's. */
function addHook<H>(hooks: H[], hook: H, counted: boolean): RemovableHandle {
  hooks.push(hook)
  if (counted) hookState.leaves++
  const remove = (): void => {
    const i = hooks.indexOf(hook)
    if (i < 0) return
    hooks.splice(i, 1)
    if (counted) hookState.leaves--
  }
  return { remove, [Symbol.dispose]: remove }
}

/**
 * Calls `hook` with the gradient of `tensor` in every backward pass; a tensor that it returns replaces the gradient. A leaf's hook runs as soon as the leaf's
 * gradient is complete, while backward goes on. Throws AutogradError if the tensor does not require grad. PyTorch's `Tensor.register_hook`.
 */
export function registerHook(tensor: Tensor, hook: GradHook): RemovableHandle {
  checkCallable('registerHook', 'hook', hook)
  if (!tensor.requiresGrad)
    throw new AutogradError('registerHook: this tensor does not require grad, so no gradient will ever reach it. Call requiresGrad_() first.')
  return addHook(hooksOf(tensor), hook, tensor.gradFn === null)
}

/**
 * Calls `hook` with a leaf whenever backward has added to its `grad`, while backward goes on. Throws AutogradError if the tensor is not a leaf or does not require
 * grad. PyTorch's `Tensor.register_post_accumulate_grad_hook`.
 */
export function registerPostAccumulateGradHook(leaf: Tensor, hook: AccumulatedHook): RemovableHandle {
  checkCallable('registerPostAccumulateGradHook', 'hook', hook)
  if (leaf.gradFn !== null || !leaf.requiresGrad)
    throw new AutogradError(
      'registerPostAccumulateGradHook: only a leaf that requires grad gets a gradient in its .grad. Use registerHook for the result of an operator, and requiresGrad_() for a leaf.',
    )
  const hooks = accumulatedHooks.get(leaf) ?? []
  accumulatedHooks.set(leaf, hooks)
  return addHook(hooks, hook, true)
}

/**
 * Keeps the gradient of a tensor that is not a leaf in its `.grad`. After a write in place it is the gradient of the tensor as it is then. Throws AutogradError if it does not require grad.
 * PyTorch's `Tensor.retain_grad`.
 */
export function retainGrad(tensor: Tensor): void {
  if (!tensor.requiresGrad)
    throw new AutogradError('retainGrad: this tensor does not require grad, so no gradient will ever reach it. Call requiresGrad_() on a leaf first.')
  const node = producerOf(tensor)
  if (node === null || retaining.has(tensor)) return
  retention.moved ??= moveRetained
  retainAt(tensor, node)
}

function retainAt(tensor: Tensor, node: GradNode): void {
  const keep = (grad: Tensor): void => {
    // A copy, because the gradient itself goes on to the leaves, which own what they get.
    tensor.grad = tensor.grad === null ? clone(grad) : add(tensor.grad, grad)
  }
  retaining.set(tensor, addHook(hooksAt(node, tensor.outputNr), keep, false))
}

/** A tensor has been written to: its gradient is kept where it is that of the new value. */
function moveRetained(tensor: Tensor, node: GradNode): void {
  const before = retaining.get(tensor)
  if (before === undefined) return
  before.remove()
  retainAt(tensor, node)
}

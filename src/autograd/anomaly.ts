// Anomaly mode: backward says which line of the forward pass an error, or a NaN, comes from. PyTorch's torch.autograd.detect_anomaly.
import { messageOf } from '../errors/index.ts'
import { checkArgument, checkCallable, checkCount } from '../protocol/index.ts'
import { captureStack } from '../provenance/index.ts'
import type { CapturedStack } from '../provenance/index.ts'
import { Tensor } from '../tensor/index.ts'
import { AutogradError } from './errors.ts'
import type { GradNode } from './node.ts'

/** Whether the mode is on, and whether operators note where they are called. One object, because a field is read faster than a module binding. */
export const anomaly: { enabled: boolean; notesPlaces: boolean } = { enabled: false, notesPlaces: false }

/** Where the operators were called. */
const places = new WeakMap<GradNode, CapturedStack>()

/** Where the operator of a node was called; undefined if that was not noted. */
export const placeOf = (node: GradNode): CapturedStack | undefined => places.get(node)

/** Remembers where the operator of a new node was called. */
export function notePlace(node: GradNode): void {
  places.set(node, captureStack())
}

function forwardText(stack: CapturedStack | undefined): string {
  return stack === undefined || stack.frames.length === 0
    ? 'The forward pass was computed without anomaly mode, so its line is unknown: turn the mode on before it.'
    : `The forward call was:\n${String(stack)}`
}

/** Errors that name the operator already. */
const complete = new WeakSet<Error>()

/** The error of a NaN in the result of a backward, in PyTorch's words; `more` says where it comes from. */
export function nanError(name: string, output: number, more: string): AutogradError {
  const error = new AutogradError(`backward: ${name} returned nan values in its ${output}th output. ${more}`)
  complete.add(error)
  return error
}

/** The same for an operator; `stack` is that of the forward call. */
export const nanErrorAt = (name: string, output: number, stack: CapturedStack | undefined): AutogradError =>
  nanError(`Function '${name}'`, output, forwardText(stack))

/** Whether an element is NaN; false for a fake tensor. */
export const hasNaN = (t: Tensor): boolean => !t.isFake && Array.from(t.contiguous().toTypedArray(), Number).some(Number.isNaN)

/** The gradients of a node. Throws AutogradError, which names the line of the forward call, if they cannot be computed, or one is NaN. */
export function applyChecked(node: GradNode, grads: readonly (Tensor | null)[], needs: readonly boolean[]): readonly (Tensor | null)[] {
  let results: readonly (Tensor | null)[]
  try {
    results = node.apply(grads, needs)
  } catch (error) {
    if (error instanceof Error && complete.has(error)) throw error
    throw new AutogradError(`backward of ${node.name} failed: ${messageOf(error)}\n${forwardText(places.get(node))}`, {
      cause: error,
    })
  }
  const bad = results.findIndex((t) => t instanceof Tensor && hasNaN(t))
  if (bad >= 0) throw nanErrorAt(node.name, bad, places.get(node))
  return results
}

function within<T>(modes: Partial<typeof anomaly>, fn: () => T): T {
  const outer = { ...anomaly }
  Object.assign(anomaly, modes)
  try {
    return fn()
  } finally {
    Object.assign(anomaly, outer)
  }
}

/** Runs `fn`, in which operators note where they are called, without looking for NaN. */
export const notingPlaces = <T>(fn: () => T): T => within({ notesPlaces: true, enabled: false }, fn)

/**
 * Runs `fn`, in which every operator notes where it is called and every backward looks for NaN: errors of backward then name the operator and the line of the forward
 * pass. Compiled functions work as well. When the backward of a compiled graph returns NaN, the graph runs again node by node to find the operator; a backward inside of a
 * compiled function runs eagerly. Slow; for debugging. PyTorch's `torch.autograd.detect_anomaly`.
 *
 *     detectAnomaly(() => model(x).log().sum().backward())
 *
 * @throws AutogradError if a gradient is NaN.
 */
export function detectAnomaly<T>(fn: () => T): T {
  checkCount('detectAnomaly', arguments, 1)
  checkCallable('detectAnomaly', 'fn', fn)
  return within({ enabled: true, notesPlaces: true }, fn)
}

/** Turns anomaly mode on or off from now on; see {@link detectAnomaly}. PyTorch's `torch.autograd.set_detect_anomaly`. */
export function setDetectAnomaly(enabled: boolean): void {
  checkCount('setDetectAnomaly', arguments, 1)
  checkArgument(typeof enabled === 'boolean', 'setDetectAnomaly', 'enabled', 'true or false', enabled)
  anomaly.enabled = enabled
  anomaly.notesPlaces = enabled
}

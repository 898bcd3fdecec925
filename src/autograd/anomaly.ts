// Anomaly mode: backward says which line of the forward pass an error, or a NaN, comes from. PyTorch's torch.autograd.detect_anomaly.
import { checkArgument, checkCallable } from '../protocol/index.ts'
import { captureStack } from '../provenance/index.ts'
import type { CapturedStack } from '../provenance/index.ts'
import { Tensor } from '../tensor/index.ts'
import { AutogradError } from './errors.ts'
import type { GradNode } from './node.ts'

/** Whether the mode is on. One object, because a field is read faster than a module binding. */
export const anomaly: { enabled: boolean } = { enabled: false }

/** Where the operators were called. */
const places = new WeakMap<GradNode, CapturedStack>()

/** Remembers where the operator of a new node was called. */
export function notePlace(node: GradNode): void {
  places.set(node, captureStack())
}

function forwardOf(node: GradNode): string {
  const stack = places.get(node)
  return stack === undefined || stack.frames.length === 0
    ? 'The forward pass was computed without anomaly mode, so its line is unknown: turn the mode on before it.'
    : `The forward call was:\n${String(stack)}`
}

const hasNaN = (t: Tensor): boolean => !t.isFake && Array.from(t.contiguous().toTypedArray(), Number).some(Number.isNaN)

/** The gradients of a node. Throws AutogradError, which names the line of the forward call, if they cannot be computed, or one is NaN. */
export function applyChecked(node: GradNode, grads: readonly (Tensor | null)[], needs: readonly boolean[]): readonly (Tensor | null)[] {
  let results: readonly (Tensor | null)[]
  try {
    results = node.apply(grads, needs)
  } catch (error) {
    throw new AutogradError(`backward of ${node.name} failed: ${error instanceof Error ? error.message : String(error)}\n${forwardOf(node)}`, {
      cause: error,
    })
  }
  const bad = results.findIndex((t) => t instanceof Tensor && hasNaN(t))
  if (bad >= 0) throw new AutogradError(`backward: ${node.name} returned NaN in gradient ${bad}. ${forwardOf(node)}`)
  return results
}

function within<T>(enabled: boolean, fn: () => T): T {
  const outer = anomaly.enabled
  anomaly.enabled = enabled
  try {
    return fn()
  } finally {
    anomaly.enabled = outer
  }
}

/**
 * Runs `fn`, in which every operator notes where it is called and every backward looks for NaN: errors of backward then name the line of the forward pass. Slow; for
 * debugging. PyTorch's `torch.autograd.detect_anomaly`.
 *
 *     detectAnomaly(() => model(x).log().sum().backward())
 */
export function detectAnomaly<T>(fn: () => T): T {
  checkCallable('detectAnomaly', 'fn', fn)
  return within(true, fn)
}

/** Turns anomaly mode on or off from now on; see {@link detectAnomaly}. PyTorch's `torch.autograd.set_detect_anomaly`. */
export function setDetectAnomaly(enabled: boolean): void {
  checkArgument(typeof enabled === 'boolean', 'setDetectAnomaly', 'enabled', 'true or false', enabled)
  anomaly.enabled = enabled
}

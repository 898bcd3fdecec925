// The errors of the autograd room.
import { TensorfxError } from '../errors/index.ts'

/**
 * A user error in the use of gradients: a leaf modified in place, a graph walked twice, a saved tensor overwritten. PyTorch raises RuntimeError.
 *
 * Fix: follow the message: modify leaves inside `torch.noGrad`, keep the graph for a second `backward` with `retainGraph`, or modify a copy of the saved tensor.
 */
export class AutogradError extends TensorfxError {
  constructor(message: string, options?: { cause?: unknown }) {
    super('TFX_AUTOGRAD', message, options)
  }
}

/** The error of a backward through a node that an earlier one has freed. */
export const walkedBefore = (name: string): AutogradError =>
  new AutogradError(
    `backward: the graph through ${name} has been walked before, and what it saved was freed. Pass { retainGraph: true } to the first backward, or compute the forward pass again.`,
  )

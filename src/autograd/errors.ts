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

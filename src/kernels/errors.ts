// Errors of the kernels room.
import { TensorfxError } from '../errors/index.ts'

/** A kernel in the loop IR that breaks a rule of its specification. The message names the kernel, the statement and the rule. */
export class KernelError extends TensorfxError {
  constructor(message: string) {
    super('TFX_KERNEL', message)
  }
}

// Errors of the kernels room.
import { TensorfxError } from '../errors/index.ts'

/** A kernel violates the specification of the loop IR. The message names the kernel, the statement and the rule. */
export class KernelError extends TensorfxError {
  constructor(message: string) {
    super('TFX_KERNEL', message)
  }
}

// Errors of the kernels room.
import { TensorfxError } from '../../errors/index.ts'

/**
 * A kernel violates the specification of the loop IR. The message names the kernel, the statement and the rule.
 *
 * Fix: correct the kernel or template that the message names. If the kernel is not yours, it is a bug in tensorfx: report it.
 */
export class KernelError extends TensorfxError {
  constructor(message: string) {
    super('TFX_KERNEL', message)
  }
}

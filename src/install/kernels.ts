// The composition root of kernels: every kernel is checked against the specification of the loop IR before it is emitted.
import { installVerifier } from '../kernels/compile.ts'
import { verifyKernel } from '../kernels/index.ts'

/** Lets kernels be checked. */
export const installKernels = (): void => installVerifier(verifyKernel)

// The composition root of kernels that programs or the compiler make: all scalar operations, and every kernel is checked against the specification of the loop IR before it is
// emitted. Programs that only call operators leave the check out.
import { installThreads, installVerifier } from '../kernels/run/compile.ts'
import { verifyKernel } from '../kernels/index.ts'
import { rareOps } from '../kernels/scalars/rareOps.ts'
import { addScalarOps } from '../kernels/scalars/scalarOps.ts'
import { threaded } from '../kernels/threads/threaded.ts'

/** Adds all scalar operations, and lets kernels be checked. */
export function installKernels(): void {
  addScalarOps(rareOps)
  installVerifier(verifyKernel)
  installThreads(threaded)
}

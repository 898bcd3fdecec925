// Kernels whose iterations are independent, as emitters for devices with many threads need them.
import type { Kernel, LoopVar, Scratch } from './loopIr.ts'

/** What a kernel computes as independent iterations: for emitters that run each in a thread of its own. */
export interface Grid extends Kernel {
  readonly scratch: readonly Scratch[]
  /** The loops around the body, the outermost first; none is one iteration. Scratch memory is that of an iteration. */
  readonly loops: readonly LoopVar[]
}

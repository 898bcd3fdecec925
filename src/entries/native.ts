// tensorfx/native: kernels as machine code, by the C compiler of the machine. Node only.
import { installTensors } from '../install/tensors.ts'

export { init, ready, stats } from '../native/engine.ts'
export type { NativeKernelReport, NativeOptions, NativeStats } from '../native/engine.ts'

installTensors()

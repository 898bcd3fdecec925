// tensorfx/kernels
import { installKernels } from '../install/kernels.ts'
export * from '../kernels/index.ts'

installKernels()

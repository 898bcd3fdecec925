// tensorfx/data
import { installTensors } from '../install/tensors.ts'
export * from '../data/index.ts'
export { DistributedSampler } from '../distributed/distributedSampler.ts'
export type { DistributedSamplerOptions } from '../distributed/distributedSampler.ts'

installTensors()

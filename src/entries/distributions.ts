// tensorfx/distributions
import { installTensors } from '../install/tensors.ts'
export * from '../distributions/index.ts'

installTensors()

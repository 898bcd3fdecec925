// tensorfx/nn
import { installTensors } from '../install/tensors.ts'
export * from '../nn/index.ts'

installTensors()

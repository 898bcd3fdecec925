// tensorfx/optim
import { installTensors } from '../install/tensors.ts'
export * from '../optim/index.ts'

installTensors()

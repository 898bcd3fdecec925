// tensorfx/vision
import { installTensors } from '../install/tensors.ts'
export * from '../vision/index.ts'

installTensors()

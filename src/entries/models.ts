// tensorfx/models
import { installTensors } from '../install/tensors.ts'
export * from '../models/index.ts'

installTensors()

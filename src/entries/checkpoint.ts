// tensorfx/checkpoint
import { installTensors } from '../install/tensors.ts'
export * from '../checkpoint/index.ts'

installTensors()
export type { FileSource } from '../interop/fileSource.ts'

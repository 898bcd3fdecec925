// Models in files: tensors in the safetensors format, and GraphModules as one file or as a folder of code.
export { readSafetensors, writeSafetensors } from './safetensors.ts'
export type { Safetensors } from './safetensors.ts'
export { loadGraphModule } from './loadGraphModule.ts'
export { saveGraphModule } from './saveGraphModule.ts'
export type { Trust, TrustOptions } from '../fx/text/readJson.ts'
export { Attributes, folderFiles, loadState, registered, toFolder } from './toFolder.ts'
export type { FolderFiles } from './toFolder.ts'

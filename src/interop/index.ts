// Models in files: tensors in the safetensors format, and GraphModules as one file or as a folder of code.
export { readSafetensors, writeSafetensors } from './safetensors.ts'
export type { Safetensors } from './safetensors.ts'
export type { FileSource } from './fileSource.ts'
export { loadSafetensors, loadTorchFile } from './loadWeights.ts'
export type { LoadTorchFileOptions } from './loadWeights.ts'
export { loadGraphModule, saveGraphModule } from './graphModuleFile.ts'
export { Attributes, folderFiles, loadState, registered, toFolder } from './toFolder.ts'
export type { FolderFiles } from './toFolder.ts'

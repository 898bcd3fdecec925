// Models in files: the safetensors format, GraphModules as one file, and as a folder of code.
export { readSafetensors, writeSafetensors } from './safetensors.ts'
export type { Safetensors } from './safetensors.ts'
export { loadGraphModule, saveGraphModule } from './graphModuleFile.ts'
export { Attributes, folderFiles, loadState, registered, toFolder } from './toFolder.ts'
export type { FolderFiles } from './toFolder.ts'

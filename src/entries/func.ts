// tensorfx/func
import { installModules } from '../install/modules.ts'
import { installTensors } from '../install/tensors.ts'
export * from '../func/index.ts'

installTensors()
installModules()

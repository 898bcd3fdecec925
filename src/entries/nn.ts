// tensorfx/nn
import { installModules } from '../install/modules.ts'
import { installTensors } from '../install/tensors.ts'
export * from '../nn/index.ts'

installTensors()
installModules()

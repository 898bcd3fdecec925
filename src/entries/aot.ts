// tensorfx/aot
import { installFx } from '../install/fx.ts'
import { installTensors } from '../install/tensors.ts'
export * from '../aot/index.ts'

installFx()
installTensors()

// tensorfx/interop
import { installFx } from '../install/fx.ts'
import { installTensors } from '../install/tensors.ts'
export * from '../interop/index.ts'

installFx()
installTensors()

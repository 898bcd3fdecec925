// tensorfx/inductor
import { installFx } from '../install/fx.ts'
import { installTensors } from '../install/tensors.ts'
export * from '../inductor/index.ts'

installFx()
installTensors()

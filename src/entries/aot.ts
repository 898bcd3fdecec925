// tensorfx/aot
import { installFx } from '../install/fx.ts'
import { installSymbolicTraces } from '../install/symbols.ts'
import { installTensors } from '../install/tensors.ts'
export * from '../aot/index.ts'
export { ShapeEnv, SymBool, SymFloat, SymInt } from '../symbols/index.ts'

installFx()
installTensors()
installSymbolicTraces()

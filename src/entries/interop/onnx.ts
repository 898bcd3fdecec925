// tensorfx/interop/onnx
import { installFx } from '../../install/fx.ts'
import { installTensors } from '../../install/tensors.ts'
export * from '../../interop/onnx/index.ts'

installFx()
installTensors()
export type { OnProgress, Progress } from '../../protocol/index.ts'

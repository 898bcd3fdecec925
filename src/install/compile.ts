// The composition root of compile: the backends, and the debugger around all of them. dynamo knows neither.
import { installDebug } from '../debug/index.ts'
import { defaultBackends, installBackends } from '../dynamo/index.ts'
import { compileFx } from '../inductor/index.ts'
import { installFx } from './fx.ts'
import { installTensors } from './tensors.ts'

let isInstalled = false

/** Makes `compile` work: tensors, graphs, backends, debugger. */
export function installCompile(): void {
  if (isInstalled) return
  isInstalled = true
  installFx()
  installTensors()
  installBackends({ ...defaultBackends, inductor: { backend: compileFx, options: {} } })
  installDebug()
}

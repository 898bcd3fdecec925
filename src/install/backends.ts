// The composition root of graphs on backends: tensors, graphs, and the backends that need no code generator. Processes that judge graphs begin with this, so that they
// start sooner.
import { defaultBackends, installBackends } from '../dynamo/index.ts'
import { withoutModes } from '../dispatch/index.ts'
import { setAside } from '../events/index.ts'
import { installFx } from './fx.ts'
import { installTensors } from './tensors.ts'

let isInstalled = false

/** Makes the backends work that have no code generator. */
export function installDefaultBackends(): void {
  if (isInstalled) return
  isInstalled = true
  installFx()
  installTensors()
  installBackends(defaultBackends)
  setAside(withoutModes)
}

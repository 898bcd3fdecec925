// The composition root of all backends: those of backends.ts, and inductor.
import { installBackends } from '../dynamo/index.ts'
import { compileFx } from '../inductor/index.ts'
import { fuseForSizes } from '../inductor/sized/sizedGroups.ts'
import { installDefaultBackends } from './backends.ts'
import { inductorBackends } from './inductorBackends.ts'
import { installKernels } from './kernels.ts'

let isInstalled = false

/** Makes all backends work. */
export function installCompiler(): void {
  if (isInstalled) return
  isInstalled = true
  installKernels()
  installDefaultBackends()
  installBackends({ inductor: { backend: compileFx, options: { staticShapes: true }, fuseForSizes }, ...inductorBackends })
}

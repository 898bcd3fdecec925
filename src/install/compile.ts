// The composition root of compile: the compiler, the debugger around all backends, and logs. dynamo knows neither.
import { installDebug } from '../debug/index.ts'
import { installLogs } from '../events/index.ts'
import { installCompiler } from './compiler.ts'

let isInstalled = false

/** Makes `compile` work: tensors, graphs, backends, debugger, logs. */
export function installCompile(): void {
  if (isInstalled) return
  isInstalled = true
  installCompiler()
  installDebug()
  installLogs()
}

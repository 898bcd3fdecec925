// The composition root of compile: the compiler, the debugger around all backends, logs, and the trace. dynamo knows neither.
// Not debug/index.ts: the minifier and what it needs would be loaded by every program.
import { installDebug } from '../debug/repro/wrappers.ts'
import { installTrace } from '../debug/trace/start.ts'
import { installLogs } from '../events/index.ts'
import { installCompiler } from './compiler.ts'

let isInstalled = false

/** Makes `compile` work: tensors, graphs, backends, debugger, logs, the trace that the environment asks for. */
export function installCompile(): void {
  if (isInstalled) return
  isInstalled = true
  installCompiler()
  installDebug()
  installLogs()
  installTrace()
}

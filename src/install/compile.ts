// The composition root of compile: the compiler, symbols for the sizes of its graphs, the debugger around all backends, logs, and the trace. dynamo knows neither.
// Not debug/index.ts: the minifier and what it needs would be loaded by every program.
import { installDebug } from '../debug/repro/wrappers.ts'
import { installTrace } from '../debug/trace/start.ts'
import { emit, installLogs } from '../events/index.ts'
import { onRefusal } from '../kernels/engine/refusals.ts'
import { installCompiler } from './compiler.ts'
import { installSymbolicTraces } from './symbols.ts'

let isInstalled = false

/** Makes `compile` work: tensors, graphs, backends, symbols for the sizes of graphs, debugger, logs, the trace that the environment asks for. */
export function installCompile(): void {
  if (isInstalled) return
  isInstalled = true
  installCompiler()
  installSymbolicTraces()
  installDebug()
  installLogs()
  installTrace()
  onRefusal((engine, why) => emit({ kind: 'engine', engine, why }))
}

// Warnings of the debugger that are shown once; see events/sink.ts for where messages go.
import { log } from '../../events/index.ts'

export { log, setLogSink } from '../../events/index.ts'
export type { LogLevel, LogSink } from '../../events/index.ts'

const said = new Set<string>()

/** A warning that is repeated for every run of a graph is shown the first time. */
export function warnOnce(message: string): void {
  if (said.has(message)) return
  said.add(message)
  log.warning(message)
}

// Where messages go: logs of the compiler, warnings about failing compiles, and the minifier's progress. One place, so that tests and pages can listen.
import { checkCallable, checkCount } from '../protocol/index.ts'

/** How important a message is. */
export type LogLevel = 'info' | 'warning' | 'error'
/** Gets the messages of compile and of its debugger. */
export type LogSink = (level: LogLevel, message: string) => void

const toConsole: LogSink = (level, message) => {
  // stderr for all levels, as PyTorch's loggers: standard output stays the program's own.
  if (level === 'info') console.error(message)
  else console.error(`[tensorfx ${level}] ${message}`)
}

let sink: LogSink = toConsole

/** Sends messages of the debugger and logs to `next` (null: back to the console's standard error). Returns the previous sink. Throws ArgumentError unless `next` is a function or null. */
export function setLogSink(next: LogSink | null): LogSink {
  checkCount('setLogSink', arguments, 1)
  if (next !== null) checkCallable('setLogSink', 'next', next)
  const previous = sink
  sink = next ?? toConsole
  return previous
}

export const log: Readonly<Record<'info' | 'warning' | 'error', (message: string) => void>> = {
  info: (message) => sink('info', message),
  warning: (message) => sink('warning', message),
  error: (message) => sink('error', message),
}

// What compile does, as a stream of events; logs and counters that read it.
export { eventKinds, isEventKind } from './kinds.ts'
export { count, counters } from './counters.ts'
export type { CounterSection, Counters } from './counters.ts'
export {
  announce,
  currentScope,
  emit,
  enterScope,
  eventState,
  harmless,
  inScope,
  leaveScope,
  newId,
  onEvent,
  remover,
  runName,
  setAside,
  wants,
} from './stream.ts'
export type { EventListener, ListenOptions, Remover } from './stream.ts'
export { installLogs, setLogs } from './logs.ts'
export type { LogArtifact, LogSettings, LogVerbosity } from './logs.ts'
export { log, setLogSink } from './sink.ts'
export type { LogLevel, LogSink } from './sink.ts'
export type * from './types.ts'

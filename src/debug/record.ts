// What the last watched run of a program came to, as a file beside the launcher: a process that dies cannot say how, but it can say before what it is about to do. At
// level 3 the record is written before a graph is compiled or run, and again afterwards.
import { hostProcess, isObject } from '../protocol/index.ts'
import type { FileStore } from './fileStore.ts'

const STATES = ['started', 'ended', 'failed'] as const
const PHASES = ['compile', 'run'] as const

export interface RunRecord {
  readonly phase: (typeof PHASES)[number]
  /** `started` in a file that is read later: the process died in that phase, or still hangs in it. */
  readonly state: (typeof STATES)[number]
  readonly pid: number
}

/** The name of the file, in the folder of the launcher. */
export const RECORD = 'last_run.json'

export function writeRecord(store: FileStore, path: string, phase: RunRecord['phase'], state: RunRecord['state']): void {
  const record: RunRecord = { phase, state, pid: hostProcess()?.pid ?? 0 }
  store.write(path, `${JSON.stringify(record)}\n`)
}

/** The record at that path; null if there is none, or it cannot be read. */
export function readRecord(store: FileStore, path: string): RunRecord | null {
  const bytes = store.read(path)
  if (bytes === null) return null
  let data: unknown
  try {
    data = JSON.parse(new TextDecoder().decode(bytes))
  } catch {
    return null
  }
  if (!isObject(data)) return null
  const phase = PHASES.find((known) => known === Reflect.get(data, 'phase'))
  const state = STATES.find((known) => known === Reflect.get(data, 'state'))
  const pid: unknown = Reflect.get(data, 'pid')
  return phase === undefined || state === undefined || typeof pid !== 'number' ? null : { phase, state, pid }
}

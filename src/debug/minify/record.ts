// The outcome of the program's last recorded run, as a file beside the launcher: a process that dies cannot say how, but it can say before what it is about to do. At
// level 3 the record is written before a graph is compiled or run, and again afterwards.
import { hostProcess, isObject } from '../../protocol/index.ts'
import type { FileStore } from '../files/fileStore.ts'
import type { HuntOptions } from './huntOptions.ts'
import { log } from '../common/log.ts'

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

/**
 * What the launcher of level 3, which knows of no error, looks for: if the run that wrote it never ended, the end of the process. Without a record it finds out by
 * itself how the graph fails.
 */
export function failureOfLastRun(store: FileStore, path: string): Pick<HuntOptions, 'death' | 'findFailure'> {
  const last = readRecord(store, path)
  if (last === null) {
    log.info(`There is no record of the run that wrote this script (${path}). Finding out how the graph fails.`)
    return { findFailure: true }
  }
  if (last.state === 'failed') return {}
  const doing = last.phase === 'compile' ? 'compiled' : 'ran'
  if (last.state === 'ended') {
    // What fails after the call, such as a promise that nothing awaits, is not in the record.
    log.info(`The run that wrote this script ended without a failure (process ${last.pid} ${doing} the graph). Looking for errors all the same.`)
    return {}
  }
  log.info(
    `The run that wrote this script did not end: process ${last.pid} died or hung while it ${doing} the graph. Looking for candidates that do the same.`,
  )
  return { death: 'any' }
}

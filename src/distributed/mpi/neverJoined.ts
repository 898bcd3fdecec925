// A rank of MPI whose program ends before it joins the world: MPI does not hear of it, so others would wait for it until their deadline.
import { boardOfJob } from '../failures/board.ts'
import { exitFailure } from '../failures/report.ts'
import { workerThreads } from '../../protocol/index.ts'
import { hasJoined } from '../processGroup.ts'
import { LAUNCHER_VARIABLES, launched } from './launched.ts'

/** Leaves word if this process ends well without having joined the world. An exit code other than 0 makes the launcher end the job. No effect where no launcher of MPI has started it. */
export function watchNeverJoined(): void {
  const place = launched()
  const host = globalThis.process
  if (place === null || workerThreads()?.isMainThread !== true) return
  const { rank, size } = place
  host.on('exit', (code) => {
    if (code !== 0 || hasJoined() || !isStartedByLauncher()) return
    boardOfJob()?.leave(rank, { failure: exitFailure(rank, size, code, new Error('exit').stack ?? ''), progress: {} })
  })
}

/** Whether this process is the rank itself, and none that the rank has started: then its parent knows of no rank. Only Linux tells; false elsewhere. */
function isStartedByLauncher(): boolean {
  const { ppid, getBuiltinModule } = globalThis.process
  try {
    const variables = getBuiltinModule('node:fs').readFileSync(`/proc/${ppid}/environ`, 'utf8').split('\0')
    return !variables.some((variable) => LAUNCHER_VARIABLES.some((name) => variable.startsWith(`${name}=`)))
  } catch {
    return false
  }
}

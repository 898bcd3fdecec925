// Starts a program as several ranks: as processes of MPI, or as threads.
import * as fs from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Board } from '../../distributed/failures/board.ts'
import type { Job, JobEnd } from './job.ts'
import type { Launcher } from './launcher.ts'
import { runMpi } from './mpiJob.ts'
import { runThreads } from './threadJob.ts'

/** What is to be started. */
export interface RunOptions extends Pick<Job, 'size' | 'file' | 'words' | 'output'> {
  /** What starts processes; null for threads of one process. */
  readonly launcher: Launcher | null
  /** How often the program was started before. */
  readonly restarts: number
}

/** Starts the ranks, and waits for the end of all of them. They share a folder, which is removed then. */
export async function runOnce({ launcher, restarts, ...program }: RunOptions): Promise<JobEnd> {
  const folder = fs.mkdtempSync(join(tmpdir(), 'tensorfx-run-'))
  try {
    const env = { ...process.env, TENSORFX_RUN_DIR: folder, TENSORFX_RESTART_COUNT: String(restarts) }
    const job: Job = { ...program, board: new Board(folder, fs), env }
    return launcher === null ? await runThreads(job) : await runMpi(launcher, job)
  } finally {
    fs.rmSync(folder, { recursive: true, force: true })
  }
}

// One start of a program as several ranks: what it needs, the process that has the ranks, and how it ended.
import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { constants } from 'node:os'
import { fileURLToPath } from 'node:url'
import type { Board } from '../../distributed/failures/board.ts'
import type { Output } from '../line.ts'

/** A program that is to be started as `size` ranks. */
export interface Job {
  readonly size: number
  readonly file: string
  readonly words: readonly string[]
  /** Where ranks leave word of their end. */
  readonly board: Board
  readonly env: NodeJS.ProcessEnv
  readonly output: Output
}

/** How a job ended. */
export interface JobEnd {
  /** The exit code of the first rank that failed; 0 if none did. */
  readonly code: number
  /** Whether the user has stopped it. */
  readonly isStopped: boolean
}

/** The path of a program of this folder. */
export const scriptPath = (name: 'rank.js' | 'supervisor.js' | 'threads.js'): string => fileURLToPath(new URL(name, import.meta.url))

/** Starts the process that has the ranks, in a group of its own: a terminal's signals come to this process only, which passes them on. */
export const startRanks = (command: string, args: readonly string[], env: NodeJS.ProcessEnv): ChildProcess =>
  spawn(command, args, { env, detached: true, stdio: [process.stdin.isTTY ? 'ignore' : 'inherit', 'pipe', 'pipe'] })

/** The exit code that shells give to a process which a signal ended. */
export const signalCode = (signal: NodeJS.Signals): number => 128 + constants.signals[signal]

/** The exit code of a process, once it has ended and its output was read. */
export const exitCode = (child: ChildProcess): Promise<number> =>
  new Promise((done, fail) => {
    child.on('error', fail)
    child.on('close', (code, signal) => done(signal === null ? (code ?? 1) : signalCode(signal)))
  })

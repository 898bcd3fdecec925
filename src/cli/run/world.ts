// One start of a program as several ranks, and what becomes of them.
import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import * as fs from 'node:fs'
import { createServer } from 'node:net'
import type { Socket } from 'node:net'
import { constants, tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Board } from '../../distributed/failures/board.ts'
import { exitFailure, failureLine, failureText, rankName, signalFailure } from '../../distributed/failures/report.ts'
import type { RankFailure } from '../../distributed/failures/report.ts'
import type { Output } from '../line.ts'
import type { Launcher } from './launcher.ts'
import { CrashReport, LineSplitter } from './lines.ts'
import { RANK_MESSAGE, onMessages, send } from './messages.ts'
import type { RankMessage } from './messages.ts'

/** What is to be started. */
export interface RunOptions {
  /** What starts processes; null for threads of one process. */
  readonly launcher: Launcher | null
  readonly size: number
  readonly file: string
  readonly words: readonly string[]
  /** How often the program was started before. */
  readonly restarts: number
}

/** How a start ended. */
export interface RunEnd {
  /** The exit code of the first rank that failed; 0 if none did. */
  readonly code: number
  /** Whether the user has stopped it. */
  readonly isStopped: boolean
}

/** Signals that are passed on to the ranks; those that usually end a program are waited for. */
const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGUSR2'] as const
/** Milliseconds that ranks have to end after such a signal. */
const PATIENCE = 10_000

const script = (name: string): string => fileURLToPath(new URL(name, import.meta.url))

/** Starts the ranks, and waits for the end of all of them. */
export async function runOnce(options: RunOptions, output: Output): Promise<RunEnd> {
  const folder = fs.mkdtempSync(join(tmpdir(), 'tensorfx-run-'))
  const env = { ...process.env, TENSORFX_RUN_DIR: folder, TENSORFX_RESTART_COUNT: String(options.restarts) }
  try {
    const board = new Board(folder, fs)
    const { launcher } = options
    return launcher === null ? await runThreads(options, output, board, env) : await runMpi(launcher, options, output, board, env)
  } finally {
    fs.rmSync(folder, { recursive: true, force: true })
  }
}

/** Passes signals on while a world runs: `pass` sends one to the ranks. Returns what says whether the user has stopped it, and ends that. */
function forwardSignals(pass: (signal: NodeJS.Signals) => void): { readonly stopped: () => NodeJS.Signals | null; readonly end: () => void } {
  let stopped: NodeJS.Signals | null = null
  let timer: NodeJS.Timeout | null = null
  const listeners = SIGNALS.map((signal) => {
    const listener = (): void => {
      if (signal !== 'SIGUSR2') {
        // The second time it is meant.
        if (stopped !== null) return pass('SIGKILL')
        stopped = signal
        timer = setTimeout(() => pass('SIGKILL'), PATIENCE)
      }
      pass(signal)
    }
    process.on(signal, listener)
    return () => process.off(signal, listener)
  })
  return {
    stopped: () => stopped,
    end: () => {
      for (const remove of listeners) remove()
      if (timer !== null) clearTimeout(timer)
    },
  }
}

const closed = (child: ChildProcess): Promise<number> =>
  new Promise((done, fail) => {
    child.on('error', fail)
    child.on('close', (code, signal) => done(signal === null ? (code ?? 1) : 128 + constants.signals[signal]))
  })

/** Open MPI wants to hear that ranks may share cores, and that root may run programs, which is usual in containers. */
const OPEN_MPI = ['--oversubscribe', '--bind-to', 'none']
const AS_ROOT = { OMPI_ALLOW_RUN_AS_ROOT: '1', OMPI_ALLOW_RUN_AS_ROOT_CONFIRM: '1' }

async function runMpi(
  { command, isOpenMpi }: Launcher,
  { size, file, words }: RunOptions,
  output: Output,
  board: Board,
  env: NodeJS.ProcessEnv,
): Promise<RunEnd> {
  const sockets = new Set<Socket>()
  const ends = new Map<number, RankFailure | null>()
  const server = createServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => socket.destroy())
    onMessages(socket, RANK_MESSAGE, (message) => receive(message))
  })
  const receive = (message: RankMessage): void => {
    const { rank, kind, line = '' } = message
    if (kind === 'end') {
      const failure = failureOf(message, size)
      ends.set(rank, failure)
      if (failure !== null && signals.stopped() === null) report(failure, board, output)
    } else if (kind === 'out') output.print(`[${rank}] ${line}`)
    else output.note(`[${rank}] ${line}`)
  }
  const path = join(board.folder, 'socket')
  await new Promise<void>((done) => {
    server.listen(path, done)
  })
  const args = [
    '-n',
    String(size),
    ...(isOpenMpi ? OPEN_MPI : []),
    process.execPath,
    ...process.execArgv,
    script('supervisor.js'),
    path,
    file,
    ...words,
  ]
  // A group of its own: a terminal's signals come to this process only, which passes them on.
  const child = spawn(command, args, {
    env: process.getuid?.() === 0 ? { ...env, ...AS_ROOT } : env,
    detached: true,
    stdio: [process.stdin.isTTY ? 'ignore' : 'inherit', 'pipe', 'pipe'],
  })
  const signals = forwardSignals((signal) => {
    if (sockets.size === 0) child.kill(signal)
    for (const socket of sockets) send(socket, { signal })
  })
  // Ranks speak through the socket, so these are words of mpirun. They matter where no rank has failed.
  const said: string[] = []
  for (const stream of [child.stdout, child.stderr]) {
    const lines = new LineSplitter((line) => said.push(line))
    stream?.on('data', (chunk: Uint8Array) => lines.add(chunk))
  }
  try {
    const code = await closed(child)
    const first = board.first() ?? [...ends.values()].find((failure) => failure !== null) ?? null
    const stopped = signals.stopped()
    if (stopped !== null) return { code: ends.size > 0 && first === null ? 0 : 128 + constants.signals[stopped], isStopped: true }
    if (code !== 0 && first === null) for (const line of said) output.note(line)
    return { code: first?.code ?? code, isStopped: false }
  } finally {
    signals.end()
    for (const socket of sockets) socket.destroy()
    server.close()
  }
}

/** How a rank's process failed; null if it did not. */
function failureOf({ rank, code = 1, signal, crash }: RankMessage, size: number): RankFailure | null {
  if (crash !== undefined)
    return { rank, size, cause: `${crash}${signal === undefined ? '' : ` (signal ${signal})`}`, stack: '', code, isEcho: false }
  if (signal !== undefined) return signalFailure(rank, size, signal, code - 128)
  return code === 0 ? null : exitFailure(rank, size, code, '')
}

/** Says how a rank ended, unless it did so itself. */
function report(failure: RankFailure, board: Board, output: Output): void {
  const { rank } = failure
  if (board.departure(rank) !== null) return
  const first = board.first()
  if (first?.rank === rank) return
  if (first === null && board.claim(failure)) for (const line of failureText(failure).split('\n')) output.note(`[${rank}] ${line}`)
  else output.note(`[${rank}] ${rankName(failure)}: ended with the job: ${failureLine(failure).slice(rankName(failure).length + 2)}`)
  board.leave(rank, { failure, progress: {} })
}

async function runThreads({ size, file, words }: RunOptions, output: Output, board: Board, env: NodeJS.ProcessEnv): Promise<RunEnd> {
  const child = spawn(process.execPath, [...process.execArgv, script('threads.js'), String(size), file, ...words], {
    env,
    detached: true,
    stdio: [process.stdin.isTTY ? 'ignore' : 'inherit', 'pipe', 'pipe'],
  })
  const signals = forwardSignals((signal) => child.kill(signal))
  const out = new LineSplitter((line) => output.print(line))
  const crash = new CrashReport((line) => output.note(line))
  const err = new LineSplitter((line) => crash.add(line))
  child.stdout?.on('data', (chunk: Uint8Array) => out.add(chunk))
  child.stderr?.on('data', (chunk: Uint8Array) => err.add(chunk))
  try {
    const code = await closed(child)
    out.end()
    err.end()
    const stopped = signals.stopped()
    if (code > 128 && board.first() === null && stopped === null) {
      const signal = Object.entries(constants.signals).find(([, number]) => number === code - 128)?.[0] ?? 'unknown'
      const { cause } = signalFailure(0, size, signal, code - 128)
      const ranks = size === 1 ? 'rank 0 of 1' : `ranks 0 to ${size - 1} of ${size}, threads of one process`
      output.note(`${ranks}: ${crash.cause === null ? cause : `${crash.cause} (signal ${signal})`}`)
    }
    crash.release()
    return { code: board.first()?.code ?? code, isStopped: stopped !== null }
  } finally {
    signals.end()
  }
}

// A job whose ranks are processes that mpirun starts. Beside each runs supervisor.ts, which reports its output and its end through a socket.
import { createServer } from 'node:net'
import type { Server, Socket } from 'node:net'
import { join } from 'node:path'
import { exitFailure, failureLine, failureText, rankName, signalFailure } from '../../distributed/failures/report.ts'
import type { RankFailure } from '../../distributed/failures/report.ts'
import { exitCode, scriptPath, signalCode, startRanks } from './job.ts'
import type { Job, JobEnd } from './job.ts'
import type { Launcher } from './launcher.ts'
import { onLines } from './lines.ts'
import { RANK_MESSAGE, onMessages, send } from './messages.ts'
import type { RankEnd, RankMessage } from './messages.ts'
import { SignalForwarder } from './signals.ts'

/** Open MPI must be told that ranks may share cores, and that root may run programs, which is usual in containers. */
const OPEN_MPI = ['--oversubscribe', '--bind-to', 'none']
const AS_ROOT = { OMPI_ALLOW_RUN_AS_ROOT: '1', OMPI_ALLOW_RUN_AS_ROOT_CONFIRM: '1' }

/** Runs a job under mpirun to its end. */
export async function runMpi({ command, isOpenMpi }: Launcher, job: Job): Promise<JobEnd> {
  const { size, file, words, board, output } = job
  const socketPath = join(board.folder, 'socket')
  const ranks = new Supervisors(job, (failure) => {
    if (signals.stoppedBy === null) reportFailure(failure, job)
  })
  await ranks.listen(socketPath)
  const program = [process.execPath, ...process.execArgv, scriptPath('supervisor.js'), socketPath, file, ...words]
  const env = process.getuid?.() === 0 ? { ...job.env, ...AS_ROOT } : job.env
  const mpirun = startRanks(command, ['-n', String(size), ...(isOpenMpi ? OPEN_MPI : []), ...program], env)
  const signals = new SignalForwarder((signal) => {
    if (ranks.isEmpty) mpirun.kill(signal)
    ranks.signal(signal)
  })
  // Ranks report through the socket, so these are mpirun's own lines. They matter where no rank has failed.
  const own: string[] = []
  for (const stream of [mpirun.stdout, mpirun.stderr]) onLines(stream, (line) => own.push(line))
  try {
    const code = await exitCode(mpirun)
    const first = board.first() ?? ranks.firstFailure
    const { stoppedBy } = signals
    if (stoppedBy !== null) return { code: ranks.hasEnded && first === null ? 0 : signalCode(stoppedBy), isStopped: true }
    if (code !== 0 && first === null) for (const line of own) output.note(line)
    return { code: first?.code ?? code, isStopped: false }
  } finally {
    signals.end()
    ranks.close()
  }
}

/** The processes beside the ranks, as they connect and report. */
class Supervisors {
  readonly #server: Server
  readonly #sockets = new Set<Socket>()
  /** How ranks ended, in order: null for those that did not fail. */
  readonly #ends: (RankFailure | null)[] = []

  constructor({ size, output }: Job, onFailure: (failure: RankFailure) => void) {
    const receive = (message: RankMessage): void => {
      if (message.kind === 'end') {
        const failure = failureOf(message, size)
        this.#ends.push(failure)
        if (failure !== null) onFailure(failure)
      } else (message.kind === 'out' ? output.print : output.note)(`[${message.rank}] ${message.line}`)
    }
    this.#server = createServer((socket) => {
      this.#sockets.add(socket)
      socket.on('error', () => socket.destroy())
      onMessages(socket, RANK_MESSAGE, receive)
    })
  }

  listen(path: string): Promise<void> {
    return new Promise((done) => void this.#server.listen(path, done))
  }

  /** Whether none has connected yet. */
  get isEmpty(): boolean {
    return this.#sockets.size === 0
  }

  /** Whether any rank has ended. */
  get hasEnded(): boolean {
    return this.#ends.length > 0
  }

  get firstFailure(): RankFailure | null {
    return this.#ends.find((failure) => failure !== null) ?? null
  }

  /** Sends a signal to all ranks. */
  signal(signal: NodeJS.Signals): void {
    for (const socket of this.#sockets) send(socket, { signal })
  }

  close(): void {
    for (const socket of this.#sockets) socket.destroy()
    this.#server.close()
  }
}

/** How a rank's process failed; null if it did not. */
function failureOf({ rank, code, signal, crash }: RankEnd, size: number): RankFailure | null {
  if (crash !== null) return { rank, size, cause: `${crash}${signal === null ? '' : ` (signal ${signal})`}`, stack: '', code, isEcho: false }
  if (signal !== null) return signalFailure(rank, size, signal, code - 128)
  return code === 0 ? null : exitFailure(rank, size, code, '')
}

/** Says how a rank ended, unless it did so itself. */
function reportFailure(failure: RankFailure, { board, output }: Job): void {
  const { rank } = failure
  if (board.departure(rank) !== null) return
  const first = board.first()
  if (first?.rank === rank) return
  if (first === null && board.claim(failure)) for (const line of failureText(failure).split('\n')) output.note(`[${rank}] ${line}`)
  else output.note(`[${rank}] ${rankName(failure)}: ended with the job: ${failureLine(failure).slice(rankName(failure).length + 2)}`)
  board.leave(rank, { failure, progress: {} })
}

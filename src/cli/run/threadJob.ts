// A job whose ranks are threads of one process, threads.ts. They report their own failures; only what ends the whole process is told here.
import { constants } from 'node:os'
import { signalFailure } from '../../distributed/failures/report.ts'
import { exitCode, scriptPath, startRanks } from './job.ts'
import type { Job, JobEnd } from './job.ts'
import { ProcessOutput } from './lines.ts'
import { SignalForwarder } from './signals.ts'

/** Runs a job in threads to its end. */
export async function runThreads({ size, file, words, board, env, output }: Job): Promise<JobEnd> {
  const child = startRanks(process.execPath, [...process.execArgv, scriptPath('threads.js'), String(size), file, ...words], env)
  const signals = new SignalForwarder((signal) => child.kill(signal))
  const lines = new ProcessOutput(child, output.print, output.note)
  try {
    const code = await exitCode(child)
    const crash = lines.end()
    const isStopped = signals.stoppedBy !== null
    if (code > 128 && board.first() === null && !isStopped) output.note(`${allRanks(size)}: ${causeOf(code, size, crash)}`)
    lines.release()
    return { code: board.first()?.code ?? code, isStopped }
  } finally {
    signals.end()
  }
}

const allRanks = (size: number): string => (size === 1 ? 'rank 0 of 1' : `ranks 0 to ${size - 1} of ${size}, threads of one process`)

/** Why a process ended that a signal has ended. `crash`: what V8 said of it. */
function causeOf(code: number, size: number, crash: string | null): string {
  const signal = Object.entries(constants.signals).find(([, number]) => number === code - 128)?.[0] ?? 'unknown'
  return crash === null ? signalFailure(0, size, signal, code - 128).cause : `${crash} (signal ${signal})`
}

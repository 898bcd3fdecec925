// The command that says whether a saved graph fails, run for one candidate after the other.
import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { ArgumentError } from '../../errors/index.ts'

/** How a run of the command ended. */
export interface Ending {
  /** The exit code; null if a signal or the time limit ended it. */
  readonly code: number | null
  readonly signal: string | null
  readonly timedOut: boolean
}

/** What counts as a failure: any exit code but 0, and death by a signal; with `exitCode` that code alone. A candidate that takes too long does not count. */
export const isFailure = ({ code, timedOut }: Ending, exitCode: number | null): boolean =>
  !timedOut && (exitCode === null ? code !== 0 : code === exitCode)

/** The ending in words. */
export function endingText({ code, signal, timedOut }: Ending): string {
  if (timedOut) return 'it took too long'
  return code === null ? `it was killed by ${signal ?? 'a signal'}` : `its exit code was ${code}`
}

/** What a shell says of a command that it cannot run. */
const NOT_FOUND: ReadonlySet<number | null> = new Set([126, 127])

/** Runs the command on a candidate: its path is the last argument, and in TENSORFX_CANDIDATE; that of its inputs in TENSORFX_CANDIDATE_INPUTS. Throws ArgumentError if there is no such command. */
export async function runCheck(command: string, candidate: string, inputs: string | null, seconds: number): Promise<Ending> {
  const isWindows = process.platform === 'win32'
  const child = spawn(`${command} ${isWindows ? '"%TENSORFX_CANDIDATE%"' : '"$TENSORFX_CANDIDATE"'}`, {
    shell: true,
    // A group of its own, which can be ended as a whole.
    detached: !isWindows,
    stdio: 'ignore',
    env: { ...process.env, TENSORFX_CANDIDATE: candidate, ...(inputs === null ? {} : { TENSORFX_CANDIDATE_INPUTS: inputs }) },
  })
  let timedOut = false
  const timer = setTimeout(() => {
    timedOut = true
    end(child)
  }, 1000 * seconds)
  try {
    const [code, signal] = await new Promise<readonly [number | null, string | null]>((resolve, reject) => {
      child.once('error', reject)
      child.once('close', (exit, by) => resolve([exit, by]))
    })
    if (!timedOut && NOT_FOUND.has(code)) throw new ArgumentError(`--run '${command}': the shell cannot run it (exit code ${code ?? ''}).`)
    return { code: timedOut ? null : code, signal, timedOut }
  } finally {
    clearTimeout(timer)
  }
}

/** Ends the command, and whatever it has started. */
function end(child: ChildProcess): void {
  if (child.pid === undefined) return
  try {
    if (process.platform === 'win32') child.kill('SIGKILL')
    else process.kill(-child.pid, 'SIGKILL')
  } catch {
    // It has just ended by itself.
  }
}

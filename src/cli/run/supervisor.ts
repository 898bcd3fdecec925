// The process that mpirun starts for each rank of `tensorfx run`: it starts the rank's own process, passes its output on and sees how it ends.
import { spawn } from 'node:child_process'
import { connect } from 'node:net'
import { constants } from 'node:os'
import { fileURLToPath } from 'node:url'
import { launchedRank } from './launched.ts'
import { CrashReport, LineSplitter } from './lines.ts'
import { SIGNAL_MESSAGE, onMessages, send } from './messages.ts'

/** Milliseconds after a failure in which the other ranks can say where they were, before mpirun sees it and ends them. */
const LAST_WORDS = 500

const [, , socketPath = '', ...words] = process.argv
const { rank } = launchedRank()
const socket = connect(socketPath)
const child = spawn(process.execPath, [...process.execArgv, fileURLToPath(new URL('rank.js', import.meta.url)), ...words], {
  stdio: ['inherit', 'pipe', 'pipe'],
})

const out = new LineSplitter((line) => send(socket, { rank, kind: 'out', line }))
const crash = new CrashReport((line) => send(socket, { rank, kind: 'err', line }))
const err = new LineSplitter((line) => crash.add(line))
child.stdout.on('data', (chunk: Uint8Array) => out.add(chunk))
child.stderr.on('data', (chunk: Uint8Array) => err.add(chunk))

const isSignal = (name: string): name is NodeJS.Signals => name in constants.signals
onMessages(socket, SIGNAL_MESSAGE, ({ signal }) => void (isSignal(signal) && child.kill(signal)))
// Without the launcher nothing would end this job.
socket.on('close', () => child.kill('SIGKILL'))
socket.on('error', () => child.kill('SIGKILL'))
// mpirun ends the job: the rank goes first, so that its output arrives.
for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.on(signal, () => child.kill('SIGTERM'))

child.on('close', (exitCode, signal) => {
  out.end()
  err.end()
  const code = signal === null ? (exitCode ?? 1) : 128 + constants.signals[signal]
  send(socket, { rank, kind: 'end', code, ...(signal === null ? {} : { signal }), ...(crash.cause === null ? {} : { crash: crash.cause }) })
  crash.release()
  setTimeout(() => socket.end(() => process.exit(code)), code === 0 ? 0 : LAST_WORDS)
})

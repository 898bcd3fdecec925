// The process that mpirun starts for each rank of `tensorfx run`: it starts the rank's own process, passes its output on and sees how it ends.
import { spawn } from 'node:child_process'
import { connect } from 'node:net'
import { constants } from 'node:os'
import { scriptPath, signalCode } from './job.ts'
import { launchedRank } from './launched.ts'
import { ProcessOutput } from './lines.ts'
import { SIGNAL_MESSAGE, onMessages, send } from './messages.ts'

/** Milliseconds after a failure in which the other ranks can say where they were, before mpirun sees it and ends them. */
const LAST_WORDS = 500

const [, , socketPath = '', ...words] = process.argv
const { rank } = launchedRank()
const socket = connect(socketPath)
const child = spawn(process.execPath, [...process.execArgv, scriptPath('rank.js'), ...words], { stdio: ['inherit', 'pipe', 'pipe'] })

const output = new ProcessOutput(
  child,
  (line) => send(socket, { rank, kind: 'out', line }),
  (line) => send(socket, { rank, kind: 'err', line }),
)

const isSignal = (name: string): name is NodeJS.Signals => name in constants.signals
onMessages(socket, SIGNAL_MESSAGE, ({ signal }) => void (isSignal(signal) && child.kill(signal)))
// Without the launcher nothing would end this job.
socket.on('close', () => child.kill('SIGKILL'))
socket.on('error', () => child.kill('SIGKILL'))
// mpirun ends the job: the rank goes first, so that its output arrives.
for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.on(signal, () => child.kill('SIGTERM'))

child.on('close', (exited, signal) => {
  const code = signal === null ? (exited ?? 1) : signalCode(signal)
  send(socket, { rank, kind: 'end', code, signal, crash: output.end() })
  output.release()
  setTimeout(() => socket.end(() => process.exit(code)), code === 0 ? 0 : LAST_WORDS)
})

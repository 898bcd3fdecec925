// The isolated process in Node: a child that runs `src/entries/debugChild.ts`. It ends with this process, however that ends: at its exit we kill it, and a thread of
// the child (watchdog.ts) sees the rest.
import type { ChildProcess } from 'node:child_process'
import type { Helper, StartHelper } from './isolator.ts'
import { answerReader, queryBytes } from './pipes.ts'
import { hostProcess, isAllowed, isCallable } from '../../protocol/index.ts'
import { nodeModule } from '../node.ts'

/** The child's script. Tests that run on the sources point it at the built file, since Node 20 does not run TypeScript. */
export const childEntry: { url: string } = { url: new URL('../../entries/debugChild.js', import.meta.url).href }

const running = new Set<ChildProcess>()
let killsAtExit = false

/** Starts a child process. Null where there are none (browsers) or where they are not allowed (Deno without --allow-run and --allow-env). */
export function nodeHelper(): StartHelper | null {
  const processes = nodeModule('node:child_process')
  const urls = nodeModule('node:url')
  const v8 = nodeModule('node:v8')
  if (processes === null || urls === null || v8 === null || !isAllowed({ name: 'run' }) || !isAllowed({ name: 'env' })) return null
  return async (): Promise<Helper> => {
    killAtExit()
    const child = processes.spawn(process.execPath, [urls.fileURLToPath(childEntry.url), String(process.pid)], {
      stdio: ['pipe', 'pipe', 'inherit'],
      env: childEnv(),
    })
    running.add(child)
    let onMessage: (message: unknown) => void = () => {}
    let onDeath: (reason: string) => void = () => {}
    let death: string | null = null
    const died = (reason: string): void => {
      running.delete(child)
      death ??= reason
      onDeath(death)
    }
    child.on('exit', (code, signal) => died(signal === null ? `exit code ${code}` : `signal ${signal}`))
    child.on('error', (error) => died(error.message))
    // Writing to a child that died fails; the death itself is reported above.
    child.stdin.on('error', () => {})
    child.stdout.setEncoding('utf8')
    let ready = (): void => {}
    const isReady = new Promise<void>((resolve) => (ready = resolve))
    child.stdout.on(
      'data',
      answerReader((message) => {
        keepAlive(child.stdout, false)
        ready()
        onMessage(message)
      }),
    )
    child.on('exit', () => ready())
    child.on('error', () => ready())
    // How long a process takes to start is not the candidate's time. One that has died says so when it is listened to.
    keepAlive(child.stdout, true)
    await isReady
    // A helper that was not closed must not keep the program alive.
    child.unref()
    keepAlive(child.stdin, false)
    keepAlive(child.stdout, false)
    return {
      post: (query) => {
        keepAlive(child.stdout, true)
        child.stdin.write(queryBytes(v8, query))
      },
      listen: (message, dead) => {
        onMessage = message
        onDeath = dead
        if (death !== null) dead(death)
      },
      kill: () => {
        onMessage = onDeath = (): void => {}
        running.delete(child)
        child.kill('SIGKILL')
        child.stdin.destroy()
        child.stdout.destroy()
      },
    }
  }
}

/** Whether a pipe that is open keeps the program alive. Those of a child process can be told, which their types do not say. */
function keepAlive(pipe: object, keep: boolean): void {
  const method: unknown = Reflect.get(pipe, keep ? 'ref' : 'unref')
  if (isCallable(method)) Reflect.apply(method, pipe, [])
}

/** From the first child on, the program kills its children when it ends. */
function killAtExit(): void {
  if (killsAtExit) return
  killsAtExit = true
  process.on('exit', () => {
    for (const child of running) child.kill('SIGKILL')
  })
}

/** The child only judges, so it must not write repros. */
function childEnv(): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(hostProcess()?.env ?? {}).filter(([key]) => !key.startsWith('TENSORFX_REPRO')))
}

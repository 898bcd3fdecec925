// The isolated process in Node: a child that runs `src/entries/debugChild.ts`. It ends with this process, however that ends: at its exit we kill it, and a thread of
// the child (watchdog.ts) sees the rest.
import type { ChildProcess } from 'node:child_process'
import type { Helper, StartHelper } from './isolator.ts'
import { answerReader, queryBytes } from './pipes.ts'
import { progressOf } from './protocol.ts'
import { isAllowed, isCallable } from '../../protocol/index.ts'
import { present } from '../../errors/index.ts'
import { nodeModule } from '../node.ts'

/** The child's script. Tests that run on the sources point it at the built file, since Node 20 does not run TypeScript. */
export const childEntry: { url: string } = { url: new URL('../../entries/debugChild.js', import.meta.url).href }

/** The pipe in which a child reports its processor time. */
const REPORTS = 3

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
    const script = [urls.fileURLToPath(childEntry.url), String(process.pid), String(REPORTS)]
    const child = processes.spawn(process.execPath, [...childOptions(process.execArgv), ...script], {
      stdio: ['pipe', 'pipe', 'inherit', 'pipe'],
      env: childEnv(process.env),
    })
    const [stdin, stdout] = [present(child.stdin, 'the input of a child'), present(child.stdout, 'the output of a child')]
    const reports = present(child.stdio[REPORTS], 'the reports of a child')
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
    stdin.on('error', () => {})
    stdout.setEncoding('utf8')
    let ready = (): void => {}
    const isReady = new Promise<void>((resolve) => (ready = resolve))
    stdout.on(
      'data',
      answerReader((message) => {
        // After a report the answer is still to come.
        if (progressOf(message) === null) keepAlive(stdout, false)
        ready()
        onMessage(message)
      }),
    )
    // The reports of the thread that watches the child.
    const takeReport = answerReader((message) => onMessage(message))
    reports.on('error', () => {})
    reports.on('data', (bytes) => takeReport(String(bytes)))
    child.on('exit', () => ready())
    child.on('error', () => ready())
    // How long a process takes to start is not the candidate's time. One that has died says so when it is listened to.
    keepAlive(stdout, true)
    await isReady
    // A helper that was not closed must not keep the program alive.
    child.unref()
    for (const pipe of [stdout, reports]) keepAlive(pipe, false)
    return {
      announces: true,
      post: (query) => {
        keepAlive(stdout, true)
        stdin.write(queryBytes(v8, query))
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
        stdin.destroy()
        stdout.destroy()
        reports.destroy()
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

/** What a child must not do: wait for a debugger or take its port, run another program than its own, test, watch files, or write profiles. */
const NOT_INHERITED =
  /^(?:--inspect|--debug|--eval$|--eval=|--print$|--print=|-p$|-e$|-pe$|--input-type|--interactive$|-i$|--check$|-c$|--test|--watch|--run$|--cpu-prof|--heap-prof|--prof$|-$)/

/** Those of them whose value is the next argument. */
const WITH_VALUE =
  /^(?:--eval|--print|-p|-e|-pe|--input-type|--(?:inspect|debug)-port|--inspect-publish-uid|--test-[a-z-]+|--watch-path|--run|--(?:cpu|heap)-prof-(?:dir|name|interval))$/

/** The options of Node that a child gets: those of this process, such as loaders and conditions, but for those that only this process can have. */
export function childOptions(given: readonly string[]): string[] {
  const options: string[] = []
  for (let i = 0; i < given.length; i++) {
    const option = given[i] ?? ''
    if (!NOT_INHERITED.test(option)) options.push(option)
    else if (WITH_VALUE.test(option) && given[i + 1]?.startsWith('-') === false) i++
  }
  return options
}

/** What of NODE_OPTIONS makes a process wait for a debugger, or take its port, with the value that follows. */
const WAITING = /(?<=^|\s)(?:--(?:(?:inspect|debug)-port|inspect-publish-uid)\s+[^-\s]\S*|--(?:inspect|debug)\S*)/g

/** The environment of a child, which only judges: it must not write repros, and not wait for a debugger. */
export function childEnv(given: Readonly<Record<string, string | undefined>>): Record<string, string | undefined> {
  const env = Object.fromEntries(Object.entries(given).filter(([key]) => !key.startsWith('TENSORFX_REPRO')))
  const { NODE_OPTIONS: options } = env
  return options === undefined ? env : { ...env, NODE_OPTIONS: options.replace(WAITING, '').trim() }
}

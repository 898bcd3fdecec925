// The isolated process in Node: a child that runs `src/entries/debugChild.ts`. It ends with this process, however that ends: at its exit we kill it, and a thread of
// the child (watchdog.ts) sees the rest.
import type { ChildProcess } from 'node:child_process'
import { isAllowed, isCallable, scriptAt } from '../../protocol/index.ts'
import type { Script } from '../../protocol/index.ts'
import { present } from '../../errors/index.ts'
import { nodeModule } from '../common/node.ts'
import { childEnv, childOptions } from './childOptions.ts'
import type { Helper, StartHelper } from './helper.ts'
import { answerReader, queryBytes } from './pipes.ts'
import type { Serializer } from './pipes.ts'
import { progressOf } from './protocol.ts'
import type { Query } from './protocol.ts'

/** The child's script. */
export const childEntry: Script = scriptAt(() => new URL('../../entries/debugChild.js', import.meta.url))

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
    const helper = new ChildHelper(child, v8)
    // How long a process takes to start is not the candidate's time.
    await helper.ready()
    return helper
  }
}

/** A child process as a helper. */
class ChildHelper implements Helper {
  readonly announces = true
  readonly #child: ChildProcess
  readonly #serializer: Serializer
  readonly #stdin: NonNullable<ChildProcess['stdin']>
  readonly #stdout: NonNullable<ChildProcess['stdout']>
  readonly #reports: NonNullable<ChildProcess['stdio'][typeof REPORTS]>
  #onMessage: (message: unknown) => void = () => {}
  #onDeath: (reason: string) => void = () => {}
  /** Why the child has ended; null while it runs. */
  #death: string | null = null
  #becomeReady: () => void = () => {}
  readonly #isReady = new Promise<void>((resolve) => (this.#becomeReady = resolve))

  constructor(child: ChildProcess, serializer: Serializer) {
    this.#child = child
    this.#serializer = serializer
    this.#stdin = present(child.stdin, 'the input of a child')
    this.#stdout = present(child.stdout, 'the output of a child')
    this.#reports = present(child.stdio[REPORTS], 'the reports of a child')
    running.add(child)
    child.on('exit', (code, signal) => this.#died(signal === null ? `exit code ${code}` : `signal ${signal}`))
    child.on('error', (error) => this.#died(error.message))
    this.#listenToPipes()
  }

  /** Resolves when the child can be asked, or has died. After that it does not keep the program alive. */
  async ready(): Promise<void> {
    keepAlive(this.#stdout, true)
    await this.#isReady
    this.#child.unref()
    for (const pipe of [this.#stdout, this.#reports]) keepAlive(pipe, false)
  }

  post(query: Query): void {
    keepAlive(this.#stdout, true)
    this.#stdin.write(queryBytes(this.#serializer, query))
  }

  listen(onMessage: (message: unknown) => void, onDeath: (reason: string) => void): void {
    this.#onMessage = onMessage
    this.#onDeath = onDeath
    if (this.#death !== null) onDeath(this.#death)
  }

  kill(): void {
    this.#onMessage = this.#onDeath = (): void => {}
    running.delete(this.#child)
    this.#child.kill('SIGKILL')
    for (const pipe of [this.#stdin, this.#stdout, this.#reports]) pipe.destroy()
  }

  #listenToPipes(): void {
    // The pipes of a child that died fail; the death itself is reported by its events.
    for (const pipe of [this.#stdin, this.#stdout, this.#reports]) pipe.on('error', () => {})
    this.#stdout.setEncoding('utf8')
    this.#stdout.on(
      'data',
      answerReader((message) => this.#answered(message)),
    )
    // The reports of the thread that watches the child.
    const takeReport = answerReader((message) => this.#onMessage(message))
    this.#reports.on('data', (bytes) => takeReport(String(bytes)))
  }

  #answered(message: unknown): void {
    // After a report of progress the answer is still to come.
    if (progressOf(message) === null) keepAlive(this.#stdout, false)
    this.#becomeReady()
    this.#onMessage(message)
  }

  #died(reason: string): void {
    running.delete(this.#child)
    this.#death ??= reason
    this.#onDeath(this.#death)
    this.#becomeReady()
  }
}

/** Sets whether an open pipe keeps the program alive. The pipes of a child process have these methods, though their types do not say so. */
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

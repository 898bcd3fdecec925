// The GPU of the program: in a thread of its own, so that compiled functions can wait for results, or on this thread, where they must be awaited.
import { UnsupportedError } from '../errors/index.ts'
import { checkArgument, checkOptions, isCallable } from '../protocol/index.ts'
import { DeviceHost } from './host.ts'
import type { KernelTime } from './clock.ts'
import type { DeviceStats, InitOptions } from './device.ts'
import { DeviceReadError } from './errors.ts'
import type { DeviceAnswer, DeviceRequest } from './requests.ts'
import { DeviceThread, hasThreads } from './thread.ts'

const TIMEOUT = 300_000

/** Carries out requests. */
export class Engine {
  readonly options: InitOptions
  readonly #here: DeviceHost | null
  readonly #thread: DeviceThread | null
  #answer: DeviceAnswer | null = null

  constructor(options: InitOptions) {
    this.options = options
    const isThread = options.thread ?? hasThreads()
    if (isThread && !hasThreads())
      throw new UnsupportedError(
        'init: there are no worker threads of Node here, so the GPU cannot have a thread of its own. Leave out `thread`, and await results.',
      )
    this.#thread = isThread ? new DeviceThread(options.timeout ?? TIMEOUT) : null
    this.#here = isThread ? null : new DeviceHost()
  }

  /** Whether this thread can wait for answers. */
  get canWait(): boolean {
    return this.#thread !== null
  }

  /** Whether {@link ask} has ended for good: its thread has. */
  get isClosed(): boolean {
    return this.#thread?.isClosed === true
  }

  /** The last answer's counts and description. */
  get last(): DeviceAnswer | null {
    return this.#answer
  }

  /** Carries out a request. Throws UnsupportedError, DeviceError and DeviceLostError. */
  async ask(request: DeviceRequest): Promise<DeviceAnswer> {
    if (this.#here === null) return this.askNow(request)
    this.#answer = await this.#here.answer(request)
    return this.#answer
  }

  /** Carries out a request while this thread waits. Throws DeviceReadError where it cannot. */
  askNow(request: DeviceRequest): DeviceAnswer {
    if (this.#thread === null)
      throw new DeviceReadError(
        'This thread cannot wait for the GPU: `await` the read of the result, as in `await y.toArrayAsync()`, or `await graph.run(...inputs)` of a graph from compileGraph. In Node, init() without `thread: false` gives the GPU a thread of its own.',
      )
    this.#answer = this.#thread.ask(request)
    return this.#answer
  }

  /** Asks and goes on. `ended` gets what went wrong, or null, before any later request is answered. */
  post(request: DeviceRequest, ended: (error: unknown) => void): void {
    if (this.#thread !== null) this.#thread.post(request, ended)
    else
      this.ask(request).then(
        () => ended(null),
        (error: unknown) => ended(error),
      )
  }

  /** Gives the GPU back when what it does now is done. */
  close(): void {
    this.#thread?.close()
    this.#here?.answer({ kind: 'close' }).catch(() => undefined)
  }
}

let current: Engine | null = null
let lastOptions: InitOptions = {}

function open(options: InitOptions): Engine {
  const isSame = JSON.stringify(current?.options) === JSON.stringify(options)
  if (current !== null && isSame && !current.isClosed) return current
  current?.close()
  lastOptions = options
  current = new Engine(options)
  return current
}

/**
 * Asks for the GPU, on which compiled graphs then run. A second call asks anew if it was lost, or if the options differ. Without a call the first graph asks for it, with the options given last.
 *
 *     await init({ fallback: 'wasm' })
 *
 * @throws UnsupportedError with the reason and what to do if there is no GPU.
 */
export async function init(options: InitOptions = {}): Promise<void> {
  checkOptions('init', options, {
    powerPreference: true,
    fallback: true,
    check: true,
    limits: true,
    keepCopies: 'boolean',
    thread: 'boolean',
    timeout: 'number',
  })
  await open(options).ask({ kind: 'open', options })
}

/** The engine; the GPU is asked for if the program has not done so. @internal */
export async function readyEngine(): Promise<Engine> {
  const engine = open(lastOptions)
  if (engine.last === null) await engine.ask({ kind: 'open', options: engine.options })
  return engine
}

/** The same for a call that returns at once: where this thread can wait, the GPU is there; elsewhere it is asked for by the first graph. @internal */
export function engineNow(): Engine {
  const engine = open(lastOptions)
  if (engine.last === null && engine.canWait) engine.askNow({ kind: 'open', options: engine.options })
  return engine
}

/** Resolves when the GPU has done all that it was asked for. Throws what went wrong with the device, not with single tensors: their reads throw that. PyTorch's `torch.cuda.synchronize`. */
export async function synchronize(): Promise<void> {
  await current?.ask({ kind: 'read', heap: null, reads: [] })
}

/** What has been done on the GPU since `init`; null before. */
export const stats = (): DeviceStats | null => current?.last?.stats ?? null

/** What the driver says of the GPU; null before `init`. */
export const description = (): string | null => current?.last?.description ?? null

/** What a function computed on the GPU, and how long that took. */
export interface DeviceProfile<T> {
  readonly result: T
  /** The kernels, the longest first. */
  readonly kernels: readonly KernelTime[]
}

/**
 * Runs a function and times the kernels that it runs on the GPU, by timestamps of the GPU. Resolves to the function's result and the times. Kernels are timed one by one, which takes longer than to run them together.
 * What the function does not wait for counts only if it has been submitted by the time it returns: in a page await the results inside. Shaders compile at the first call, which takes no time on the GPU.
 *
 *     const { kernels } = await profile(async () => (await step(x)).toArrayAsync())
 *
 * @throws UnsupportedError if the GPU writes no timestamps; ArgumentError if `fn` is not a function; and what `fn` throws.
 */
export async function profile<T>(fn: () => T | Promise<T>): Promise<DeviceProfile<T>> {
  checkArgument(isCallable(fn), 'profile', 'fn', 'a function', fn)
  const engine = await readyEngine()
  await engine.ask({ kind: 'profile', isOn: true })
  let kernels: readonly KernelTime[] = []
  const stop = async (): Promise<void> => {
    kernels = (await engine.ask({ kind: 'profile', isOn: false })).times
  }
  try {
    const result = await fn()
    await stop()
    return { result, kernels }
  } catch (error) {
    if (!engine.isClosed) await stop()
    throw error
  }
}

/**
 * Gives the GPU back, as if it were lost: what lies on it is gone, and the next call asks for it again. With `'next run'` that happens in the middle of the next graph, whose call throws
 * DeviceLostError: so a program can test what it does then.
 */
export async function loseDevice(when: 'now' | 'next run' = 'now'): Promise<void> {
  await current?.ask({ kind: 'lose', when })
}

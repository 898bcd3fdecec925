// Runs the two sides of the pool's protocol in every order of their steps. The code is that of src/kernels/threads: each access of shared memory in its text becomes a `yield`, so that threads
// are generators, and an explorer decides who takes the next step. Orders that lead to the same memory, with all threads having seen the same values, are followed once.
import { readFileSync } from 'node:fs'
import { withoutTypes } from '../../../scripts/docs/examples.mjs'
import { CLOSED, MOST_ARGS, STATE, WORD } from '../../../src/kernels/threads/control.ts'
import type { JobEnd } from '../../../src/kernels/threads/runJob.ts'
import { SERVE } from '../../../src/kernels/threads/serve.ts'

/** The texts of both sides, with loops that look often looking once. */
export interface Sides {
  readonly worker: string
  readonly caller: string
}

/** The text with one passage replaced, which it must have. */
export function replaced(text: string, from: string, to: string): string {
  if (!text.includes(from)) throw new Error(`the code has no ${JSON.stringify(from)}`)
  return text.replace(from, () => to)
}

export function sides(): Sides {
  const caller = withoutTypes(readFileSync(new URL('../../../src/kernels/threads/runJob.ts', import.meta.url), 'utf8')).replace(/^import .*$/gm, '')
  return {
    worker: replaced(SERVE, 'n % 64', 'n % 1'),
    caller: replaced(caller, 'const LOOKS = 2000', 'const LOOKS = 1').replaceAll('export ', ''),
  }
}

const CALLS = /(?<!function )\b(?:Atomics\.\w+|(?:words|numbers)\.set|read|work|kernel|run)\(|\b(?:words|numbers)\[/

/** The code as generators: calls of `Atomics` and plain accesses of `words` and `numbers` are yielded as steps. */
function suspended(text: string): string {
  const match = CALLS.exec(text)
  if (match === null) return text.replace(/function (\w+)/g, 'function* $1')
  const open = match.index + match[0].length
  let end = open
  for (let depth = 1; depth > 0; end++) depth += '([{'.includes(text[end] ?? '') ? 1 : ')]}'.includes(text[end] ?? '') ? -1 : 0
  const inner = suspended(text.slice(open, end - 1))
  const name = match[0].slice(0, -1)
  let called = `yield* ${name}(${inner})`
  if (match[0].endsWith('[')) called = `yield step.get(${name}, ${inner})`
  else if (name.endsWith('.set')) called = `yield* step.set(${name.slice(0, -4)}, ${inner})`
  else if (name.startsWith('Atomics')) called = `yield ${name.replace('Atomics', 'step')}(${inner})`
  const before = text.slice(0, match.index)
  // A statement that begins with a parenthesis would go on with the line before.
  return `${suspended(before)}${/\n *$/.test(before) ? ';' : ''}(${called})${suspended(text.slice(end))}`
}

type Words = Int32Array | Float64Array | Uint8Array
/** A step of a thread. */
interface Step {
  /** Takes the step, and returns what the thread sees. */
  readonly take: () => unknown
  /** Whether other threads cannot tell when it happens: it is part of the step before. */
  readonly isLocal: boolean
  /** What of the result the thread goes on with, as a text. */
  readonly seen: (value: unknown) => string
  /** What the thread knows before the step that matters later, where that is less than all it has seen. */
  readonly knows?: () => string | null
}
type Running<T> = Generator<Step, T, unknown>

/** A job: what the words of the job say, how many chunks it has, and whether the caller fails in its first chunk. */
export interface ModelJob {
  readonly module: number
  readonly part: number
  readonly args: readonly number[]
  readonly chunk: number
  readonly extent: number
  readonly fails?: boolean
}

export interface Setting {
  readonly workers: number
  readonly jobs: readonly ModelJob[]
  /** How many workers may die, at any step. */
  readonly deaths?: number
  /** How often the caller may run out of patience though the worker lives. */
  readonly giveUps?: number
  /** How many times a thread that could go on is interrupted, at most; Infinity for every order. */
  readonly preemptions?: number
}

interface Thread {
  readonly name: string
  readonly run: Running<unknown>
  pending: Step | null
  /** The word on which it sleeps, and the value that it has seen there. */
  sleepsOn: number | null
  heard: number
  /** What it has seen so far, as a number. */
  seen: number
  dead: boolean
}

/** Fields of a job where a read can fall between two writes. */
const TEARS: ReadonlySet<number> = new Set([WORD.kernel, WORD.moduleAt, WORD.extent])

/** The words that decide what happens. */
const SHARED = [WORD.next, WORD.done, WORD.bell, WORD.sleepers, WORD.waiting, WORD.failed, WORD.kernel, WORD.moduleAt, WORD.extent]

interface ModelControl {
  readonly words: Int32Array
  readonly flags: Int32Array
  readonly args: Float64Array
  readonly modules: Uint8Array
}

const nothing = (): string => ''
/** The end of a kernel, or the moment between two writes. */
const END: Step = { take: () => undefined, isLocal: false, seen: nothing }

/** What stands for `Atomics`, and for plain accesses. */
class Steps {
  readonly #control: ModelControl
  readonly #notify: (at: number) => void
  /** What the thread knows whenever it looks at a word. */
  readonly #knows: (at: number) => string | null
  /** What the last exchange returned, the bell when the thread was busy last, and the job that it has read, as a text. */
  exchanged = -1
  busySince = 0
  job = ''

  constructor(control: ModelControl, notify: (at: number) => void, knows: (at: number) => string | null) {
    this.#control = control
    this.#notify = notify
    this.#knows = knows
  }

  #change(array: Words, at: number, to: (value: number) => number, seen: Step['seen'] = nothing): Step {
    const { words } = this.#control
    const take = (): number => {
      const value = array[at] ?? 0
      array[at] = to(value)
      return value
    }
    // Nobody reads flags while a job is open, and states are read between jobs.
    return { take, isLocal: array !== words || at >= WORD.states, seen }
  }

  load(array: Words, at: number): Step {
    return { take: () => array[at], isLocal: false, seen: String, knows: () => this.#knows(at) }
  }

  get(array: Words, at: number): Step {
    const take = (): unknown => {
      if (at === WORD.kernel) this.job = ''
      if (TEARS.has(at)) this.job += `${array[at]} `
      return array[at]
    }
    return { take, isLocal: array !== this.#control.words || !TEARS.has(at), seen: String }
  }

  *set(array: Words, values: readonly number[], start: number): Running<void> {
    for (const [i, value] of values.entries()) {
      if (array === this.#control.words && TEARS.has(start + i)) yield END
      array[start + i] = value
    }
  }

  store(array: Words, at: number, value: number): Step {
    if (at >= WORD.states && value === STATE.busy) this.busySince = array[WORD.bell] ?? 0
    return this.#change(array, at, () => value)
  }

  exchange(array: Words, at: number, value: number): Step {
    return this.#change(
      array,
      at,
      () => value,
      (seen) => {
        this.exchanged = Number(seen)
        return String(seen)
      },
    )
  }

  add(array: Words, at: number, by: number): Step {
    if (at !== WORD.next) return this.#change(array, at, (value) => value + by)
    return this.#change(
      array,
      at,
      (value) => value + by,
      (seen) => {
        this.job += String(Number(seen) & CLOSED) === String(CLOSED) ? 'closed' : String(Number(seen) >>> 12)
        return String(seen)
      },
    )
  }

  sub(array: Words, at: number, by: number): Step {
    return this.#change(array, at, (value) => value - by)
  }

  compareExchange(array: Words, at: number, from: number, to: number): Step {
    return this.#change(
      array,
      at,
      (value) => (value === from ? to : value),
      (value) => String(value === from),
    )
  }

  wait(array: Words, at: number, heard: number): Step {
    return {
      take: () => (array[at] === heard ? new Asleep(at, heard) : 'not-equal'),
      isLocal: false,
      seen: (value) => (value instanceof Asleep ? 'asleep' : ''),
    }
  }

  notify(_: Words, at: number): Step {
    return { take: () => this.#notify(at), isLocal: false, seen: nothing }
  }
}

/** What a thread that waits for a notification sees. */
class Asleep {
  readonly on: number
  readonly heard: number
  constructor(on: number, heard: number) {
    this.on = on
    this.heard = heard
  }
}

/** Everything in one order of steps. */
class World {
  readonly control: ModelControl = {
    words: new Int32Array(WORD.states + 64),
    flags: new Int32Array(4).fill(-1),
    args: new Float64Array(2 * MOST_ARGS),
    modules: Uint8Array.of(0, 1, 2, 3),
  }
  readonly threads: Thread[] = []
  readonly #setting: Setting
  readonly #interned: Map<string, number>
  /** The chunks of the open job that run now, and how often each has ended. */
  readonly #running: string[] = []
  #ended: number[] = []
  #job = -1
  /** How many chunks of the job the caller has begun. */
  #mine = 0
  #time = 0
  #deaths = 0
  #giveUps = 0
  #problem: string | null = null

  constructor(code: Compiled, setting: Setting, interned: Map<string, number>) {
    this.#setting = setting
    this.#interned = interned
    this.control.words[WORD.next] = CLOSED
    this.#start('caller', this.#caller(code))
    for (let i = 0; i < setting.workers; i++) this.#start(`worker ${i}`, this.#worker(code, i))
  }

  #start(name: string, run: Running<unknown>): void {
    const thread: Thread = { name, run, pending: null, sleepsOn: null, heard: 0, seen: 0, dead: false }
    this.threads.push(thread)
    this.#resume(thread, undefined)
  }

  #steps(knows: (at: number) => string | null): Steps {
    return new Steps(this.control, (at) => this.#notify(at), knows)
  }

  /** The kernel of a job over one chunk: it begins, and ends a step later. */
  *#kernel(who: string, index: number, module: number, part: number, args: readonly number[]): Running<void> {
    const first = args.at(-2) ?? 0
    const job = this.#setting.jobs[this.#job]
    const wanted = job === undefined ? [] : [...job.args.map((arg) => arg + index), first, Math.min(job.chunk, job.extent - first)]
    if (job === undefined || module !== job.module || part !== job.part || String(args) !== String(wanted))
      this.#problem ??= `${who} runs kernel ${module}.${part}(${args.join()}) while ${job === undefined ? 'no job' : `job ${this.#job}`} is open`
    const chunk = first / (job?.chunk ?? 1)
    const run = `${chunk} of job ${this.#job}`
    const ended = this.#ended
    this.#running.push(run)
    yield END
    this.#running.splice(this.#running.indexOf(run), 1)
    ended[chunk] = (ended[chunk] ?? 0) + 1
  }

  *#caller({ caller }: Compiled): Running<void> {
    const steps = this.#steps((at) => `${at} job ${this.#job}, ${this.#mine} of ${steps.exchanged}`)
    const runJob = caller(steps)
    for (const [i, job] of this.#setting.jobs.entries()) {
      this.#job = i
      this.#mine = 0
      this.#ended = []
      const chunks = Math.ceil(job.extent / job.chunk)
      const fields = [job.module, job.module, 1, job.part, job.args.length, chunks, job.chunk, job.extent]
      const run = (chunk: number): Running<void> => {
        this.#mine++
        if (job.fails === true) throw new Error('this chunk fails')
        const first = chunk * job.chunk
        return this.#kernel('the caller', 0, job.module, job.part, [...job.args, first, Math.min(job.chunk, job.extent - first)])
      }
      const waiting = { maySleep: true, patience: 5, now: () => this.#time }
      const end = yield* runJob(this.control, i + 1, { fields, args: job.args, apart: job.args.map(() => 1), chunks, run }, waiting)
      this.#checkEnd(end, chunks)
      this.#job = -1
    }
  }

  #checkEnd({ error, ended, byWorkers }: JobEnd, chunks: number): void {
    const job = `job ${this.#job} has ended`
    if (ended === 'failed') this.#problem ??= `${job} with a failed chunk`
    for (let chunk = 0; chunk < chunks; chunk++) {
      const times = this.#ended[chunk] ?? 0
      if (times > 1) this.#problem ??= `${job}, and chunk ${chunk} was run ${times} times`
      // What was not finished is run again where the workers were given up.
      const isSaid = error === null && (ended === 'done' || this.control.flags[chunk] === this.#job + 1)
      if (isSaid && times === 0) this.#problem ??= `${job}, and chunk ${chunk} is said to be finished, but is not`
    }
    if (ended !== 'done') return
    const running = this.#running.filter((run) => run.endsWith(` ${this.#job}`))
    if (running.length > 0) this.#problem ??= `${job} while chunk ${running.join()} runs`
    const finished = this.#ended.length === 0 ? 0 : this.#ended.reduce((sum, times) => sum + times, 0)
    if (error === null && finished !== chunks) this.#problem ??= `${job} after ${finished} chunks`
    if (byWorkers !== finished - (error === null ? this.#mine : 0)) this.#problem ??= `${job} with ${byWorkers} chunks by workers`
  }

  #worker({ worker }: Compiled, index: number): Running<unknown> {
    const { words, flags, args, modules } = this.control
    const arrays = [words, flags, args, modules]
    const kernels: number[] = []
    // Between two looks for a chunk, a worker knows the bell that it heard, its kernels, and the job that it read last.
    const steps = this.#steps((at) => (at === WORD.next ? `${steps.busySince} ${kernels.join()} ${steps.job}` : null))
    const exportsOf = (module: number): unknown =>
      [0, 1].map(
        (part) =>
          (...of: number[]) =>
            this.#kernel(`worker ${index}`, index, module, part, of),
      )
    // A module is a byte here: its number.
    const wasm = {
      Module: function Module(bytes: Uint8Array): unknown {
        return { id: bytes[0] ?? -1 }
      },
      Instance: function Instance({ id }: { readonly id: number }): unknown {
        kernels.push(id)
        return { exports: exportsOf(id) }
      },
    }
    let time = 0
    return worker(steps, { WebAssembly: wasm, performance: { now: () => time++ }, view: () => arrays.shift() })(null, null, index)
  }

  #notify(at: number): void {
    for (const thread of this.threads) {
      if (thread.sleepsOn !== at) continue
      thread.sleepsOn = null
      thread.pending = END
    }
  }

  /** Lets the thread go on to its next step that others can tell. */
  #resume(thread: Thread, value: unknown): void {
    let result = thread.run.next(value)
    while (result.done !== true && result.value.isLocal) {
      const seen = result.value.take()
      this.#note(thread, result.value.seen(seen))
      result = thread.run.next(seen)
    }
    thread.pending = result.done === true ? null : result.value
  }

  /** What can happen next: a thread takes a step, a worker dies, or the caller's patience ends. */
  choices(): readonly string[] {
    const { deaths = 0, giveUps = 0 } = this.#setting
    if (this.#problem !== null || this.#isOver) return []
    const able = this.threads.filter(({ pending, sleepsOn, dead }) => pending !== null && sleepsOn === null && !dead)
    const choices = able.map(({ name }) => name)
    const [caller, ...workers] = this.threads
    if (this.#deaths < deaths) for (const { name, dead } of workers) if (!dead) choices.push(`death of ${name}`)
    const waits = caller?.sleepsOn === WORD.done
    if (waits && (this.#giveUps < giveUps || (able.length === 0 && this.#deaths > 0))) choices.push('patience')
    return choices
  }

  /** Whether the caller has done all jobs, and all workers sleep or are dead. */
  get #isOver(): boolean {
    return this.threads[0]?.pending === null && this.threads.every(({ pending, sleepsOn, dead }) => pending === null || sleepsOn !== null || dead)
  }

  take(choice: string): void {
    const death = choice.startsWith('death of ')
    const name = choice === 'patience' ? 'caller' : death ? choice.slice('death of '.length) : choice
    const thread = this.threads.find((one) => one.name === name)
    if (thread === undefined || thread.pending === null) throw new Error(`${choice} cannot happen`)
    if (death) {
      thread.dead = true
      this.#deaths++
    } else if (choice === 'patience') {
      this.#giveUps++
      this.#time += 1000
      thread.sleepsOn = null
      this.#note(thread, choice)
      this.#resume(thread, 'timed-out')
    } else this.#step(thread, thread.pending)
  }

  #step(thread: Thread, { take, seen, knows }: Step): void {
    const known = knows?.() ?? null
    if (known !== null) {
      thread.seen = -1
      this.#note(thread, known)
    }
    const value = take()
    this.#note(thread, seen(value))
    if (!(value instanceof Asleep)) return this.#resume(thread, value)
    thread.sleepsOn = value.on
    thread.heard = value.heard
  }

  /** Adds to what a thread has seen. */
  #note(thread: Thread, value: string): void {
    const text = `${thread.seen} ${value}`
    let seen = this.#interned.get(text)
    if (seen === undefined) this.#interned.set(text, (seen = this.#interned.size + 1))
    thread.seen = seen
  }

  /** What decides all that can still happen. */
  key(): string {
    const { words, flags } = this.control
    let key = `${this.#ended.join()} ${flags.join()} ${this.#running.join()} ${this.#deaths} ${this.#giveUps}`
    for (const { seen, sleepsOn, dead, pending } of this.threads)
      key += ` ${seen}${sleepsOn === null ? '' : 's'}${dead ? 'd' : ''}${pending === null ? 'e' : ''}`
    for (const at of SHARED) key += ` ${words[at]}`
    return key
  }

  /** What is wrong where nothing more can happen; null if nothing is. */
  verdict(): string | null {
    const { words } = this.control
    if (this.#problem !== null) return this.#problem
    if (this.threads[0]?.pending !== null) return 'the caller sleeps for ever'
    if (this.threads.some((_, i) => words[WORD.states + 16 * i] === STATE.useless)) return 'a worker has given up'
    const late = this.threads.find(({ sleepsOn, heard, dead }) => sleepsOn === WORD.bell && !dead && heard !== words[WORD.bell])
    return late === undefined ? null : `${late.name} sleeps and has not heard the last bell`
  }
}

interface Compiled {
  readonly worker: (step: unknown, globals: Record<string, unknown>) => (memory: unknown, buffer: unknown, index: number) => Running<unknown>
  readonly caller: (step: unknown) => (...args: unknown[]) => Running<JobEnd>
}

function compiled({ worker, caller }: Sides): Compiled {
  const views = worker.replace(/new (?:Int32Array|Float64Array|Uint8Array)\(/g, 'view(')
  const serve = new Function('step', 'WebAssembly', 'performance', 'view', `${suspended(views)}; return serve`)
  const run = new Function('step', 'WORD', 'CLOSED', 'MOST_ARGS', `${suspended(caller)}; return runJob`)
  return {
    worker: (step, { WebAssembly: wasm, performance: clock, view }) => serve(step, wasm, clock, view) as never,
    caller: (step) => run(step, WORD, CLOSED, MOST_ARGS) as never,
  }
}

export interface Explored {
  readonly states: number
  readonly problem: string | null
  /** The order of steps that led to it. */
  readonly order: readonly string[]
}

/** Follows every order of the setting until one goes wrong. */
export function explore(of: Sides, setting: Setting, most = Infinity): Explored {
  const code = compiled(of)
  const interned = new Map<string, number>()
  const known = new Set<string>()
  const { preemptions = Infinity } = setting
  const open: { readonly order: readonly string[]; readonly spent: number }[] = [{ order: [], spent: 0 }]
  for (let from = open.pop(); from !== undefined; from = open.pop()) {
    const world = new World(code, setting, interned)
    const order = [...from.order]
    let { spent } = from
    for (const choice of order) world.take(choice)
    for (;;) {
      const choices = world.choices()
      if (choices.length === 0) {
        const problem = world.verdict()
        if (problem !== null) return { states: known.size, problem, order }
        break
      }
      const last = order.at(-1) ?? ''
      const key = preemptions === Infinity ? world.key() : `${world.key()} ${last} ${spent}`
      if (known.has(key)) break
      known.add(key)
      if (known.size > most) return { states: known.size, problem: 'too many states', order }
      // Going on with the same thread costs nothing.
      const goesOn = choices.includes(last)
      const costOf = (choice: string): number => (goesOn && choice !== last ? 1 : 0)
      const [first, ...others] = choices.filter((choice) => spent + costOf(choice) <= preemptions)
      if (first === undefined) break
      for (const choice of others) open.push({ order: [...order, choice], spent: spent + costOf(choice) })
      spent += costOf(first)
      order.push(first)
      world.take(first)
    }
  }
  return { states: known.size, problem: null, order: [] }
}

// From a failure to its smallest form: the minifier, with candidates judged in isolation if possible, and every step kept as a script.
import { ArgumentError } from '../../errors/index.ts'
import type { GraphModule } from '../../fx/index.ts'
import { backendImports, labelOf } from '../../dynamo/index.ts'
import { checkOptions, checkPositive } from '../../protocol/index.ts'
import { whyNotNameable } from '../script/backendModule.ts'
import { dumpCheckpoint } from '../script/checkpoint.ts'
import { operatorsOf } from './subgraph.ts'
import { HANG, isDeath, isDeathSignature } from '../judge/death.ts'
import { describe } from '../common/describeError.ts'
import { fileStore } from '../files/fileStore.ts'
import type { Calls } from '../runs/history.ts'
import type { HuntOptions, HuntResult, Lead } from './huntOptions.ts'
import { Isolator } from '../isolate/isolator.ts'
import type { StartHelper } from '../isolate/helper.ts'
import { nodeHelper } from '../isolate/nodeHelper.ts'
import { whyNotShippable } from '../isolate/protocol.ts'
import { NO_DEATH, judgeSettled } from '../judge/judge.ts'
import type { FailureSpec, Outcome } from '../judge/judge.ts'
import { log } from '../common/log.ts'
import { MinifierError, minifier } from './minifier.ts'
import type { MinifierResult } from './minifier.ts'
import { operatorImports, whyNotImportable } from '../script/operatorImports.ts'
import { leadPaths, writeRepro } from '../script/reproScript.ts'
import type { ReproOptions } from '../script/reproScript.ts'

/**
 * Shrinks a graph that a backend fails on. The graph and the inputs are not changed. Each candidate that is accepted fails with the backend and passes on `eager`.
 *
 * @throws MinifierError if the graph does not fail, or fails on `eager` too, or if no result fails when it is judged anew; then no script is left as a repro.
 */
export async function minifyBackendFailure(gm: GraphModule, inputs: readonly unknown[], options: HuntOptions): Promise<HuntResult> {
  checkOptions('minifyBackendFailure', options, {
    backend: true,
    accuracy: true,
    checkStr: true,
    signature: true,
    onlyFwd: 'boolean',
    isolate: 'boolean',
    startHelper: true,
    timeoutMs: 'number',
    importTimeoutMs: 'number',
    death: true,
    deathFails: 'boolean',
    findFailure: 'boolean',
    maxGranularity: 'number',
    skipSanity: 'boolean',
    offloadToDisk: 'boolean',
    saveDir: true,
    skipOffload: 'boolean',
    earlier: true,
    contract: 'boolean',
    after: true,
    runDir: true,
    print: true,
  })
  for (const name of ['timeoutMs', 'importTimeoutMs'] as const)
    if (options[name] !== undefined) checkPositive('minifyBackendFailure', `options.${name}`, options[name])
  const imports = typeof options.backend === 'string' ? [...new Set([...backendImports(options.backend), ...operatorImports(gm)])] : []
  const start = options.startHelper ?? nodeHelper()
  const whyNot = whyNotIsolated(gm, [...(options.earlier ?? []), inputs].flat(), options, start)
  const death = options.death ?? (options.deathFails === true ? 'any' : null)
  if (whyNot !== null && death !== null)
    throw new ArgumentError(`minifyBackendFailure: the failure ends the process (${death}), so candidates need one of their own, but ${whyNot}.`)
  if (whyNot !== null && options.isolate === true) log.warning(`candidates are judged in this process: ${whyNot}`)
  const isolator =
    whyNot === null && start !== null
      ? new Isolator(start, { imports, ...(options.importTimeoutMs === undefined ? {} : { importTimeoutMs: options.importTimeoutMs }) })
      : null
  isolator?.warmUp()
  try {
    const hunt = new Hunt(options, death, imports, isolator)
    const result = await hunt.run(gm, inputs)
    return { ...result, isolated: isolator !== null, whyNotIsolated: whyNot, processes: isolator?.started ?? 0 }
  } finally {
    isolator?.close()
  }
}

/** How many different failures are kept beside the one that is minified. */
const MOST_LEADS = 5

/** A candidate gets at least this much of the longest processor time that an answer took, and of the longest time. */
const CPU_FACTOR = 20
const WALL_FACTOR = 4

/** What a candidate gets at least while a hang is minified. */
const HANG_LEAST_MS = 2000

/** The backend that is right by definition: the graph itself, on eager kernels. */
const RIGHT = 'eager'

/** How often a result that ends its process is judged at the end: each time needs a new process. */
const DEATH_RUNS = 3

/** How often a failure of an unknown kind is looked for. */
const FINDING_RUNS = 3

type Offloading = Pick<HuntOptions, 'offloadToDisk' | 'saveDir' | 'skipOffload'>

class Hunt {
  readonly #options: HuntOptions
  readonly #isolator: Isolator | null
  readonly #imports: readonly string[]
  readonly #print: (line: string) => void
  readonly #leads = new Map<string, Lead>()
  #spec: FailureSpec
  #path: string | null = null
  /** Whether the failure that is looked for is the first one that is seen. */
  #takesFirstKind: boolean
  #dumps: boolean
  #timeoutMs: number
  #controls = 0
  /** What the last control said, if it did not pass. */
  #whyNotRight = ''
  #lastChecked = ''
  #isFirstCheck = false

  constructor(options: HuntOptions, death: string | null, imports: readonly string[], isolator: Isolator | null) {
    this.#options = options
    this.#isolator = isolator
    this.#imports = imports
    this.#print = options.print ?? log.info
    this.#timeoutMs = options.timeoutMs ?? 30_000
    this.#dumps = typeof options.runDir === 'string'
    this.#takesFirstKind = (options.signature ?? null) === null && (options.checkStr ?? null) === null
    this.#spec = {
      backend: typeof options.backend === 'string' ? options.backend : labelOf(options.backend),
      accuracy: options.accuracy ?? 'none',
      checkStr: options.checkStr ?? null,
      signature: options.signature ?? null,
      onlyFwd: options.onlyFwd ?? false,
      contract: options.contract ?? false,
      death,
    }
  }

  async run(gm: GraphModule, inputs: readonly unknown[]): Promise<Omit<HuntResult, 'isolated' | 'whyNotIsolated' | 'processes'>> {
    const { findFailure, earlier: history = [] } = this.#options
    await this.#measure(gm, [...history, inputs])
    if (findFailure === true) await this.#find(gm, [...history, inputs])
    const earlier = (await this.#needsHistory(gm, inputs, history)) ? history : []
    let result: MinifierResult
    try {
      result = await this.#cause(await this.#search(gm, inputs, earlier, this.#options))
    } catch (error) {
      // What was written on the way is no repro.
      if (this.#path !== null) fileStore().remove?.(this.#path)
      throw this.#withReasons(error)
    }
    const controls = this.#controls
    if (result.failureRate < 1) {
      this.#dump(result.gm, [...result.earlier, result.inputs], result.failureRate)
      this.#print(
        `'${this.#spec.backend}' is flaky: for the same graph and inputs it failed in ${Math.round(100 * result.failureRate)}% of the runs, and ${RIGHT} in none.`,
      )
    }
    return { ...result, controls, path: this.#path, leads: [...this.#leads.values()] }
  }

  #search(gm: GraphModule, inputs: readonly unknown[], earlier: Calls, offloading: Offloading = {}): Promise<MinifierResult> {
    const { maxGranularity, skipSanity } = this.#options
    const { offloadToDisk = false, saveDir = null, skipOffload = false } = offloading
    return minifier(gm, inputs, (candidate, last, before) => this.#fails(candidate, [...before, last], this.#limit()), {
      ...{ offloadToDisk, saveDir, skipOffload },
      print: this.#print,
      shrinkValues: true,
      earlier,
      ...(this.#hasControl()
        ? { control: (state, last, isFinal, before): Promise<boolean> => this.#control(state, [...before, last], isFinal) }
        : {}),
      finalCheck: (state, last, before) => this.#check(state, [...before, last]),
      ...(isDeath(this.#spec.death) ? { finalRuns: DEATH_RUNS } : {}),
      ...(maxGranularity === undefined ? {} : { maxGranularity }),
      ...(skipSanity === undefined ? {} : { skipSanity }),
      dumpState: (state, last, before) => this.#dump(state, [...before, last], 1),
    })
  }

  /**
   * What is behind the wrong numbers of a result, if that is wrong in another way: a mask that is off makes a NaN many operators later. A search keeps to one kind, so as not to
   * end at another fault. But the result fails only while all of its operators compute as they do, so a part of it that is wrong by itself is the cause.
   */
  async #cause(result: MinifierResult): Promise<MinifierResult> {
    const { signature } = this.#spec
    const isWrong = (text: string): boolean => text.startsWith('accuracy|')
    const size = ({ gm }: MinifierResult): number => operatorsOf(gm.graph).length
    const isOpen = this.#takesFirstKind && signature !== null && isWrong(signature) && [...this.#leads.keys()].some(isWrong)
    if (!isOpen || size(result) === 1) return result
    this.#print(`Every part of the result that has wrong numbers, in whatever way, is the cause of it. Looking for one.`)
    this.#takesFirstKind = false
    this.#spec = { ...this.#spec, signature: null }
    let cause: MinifierResult | null = null
    try {
      cause = await this.#search(result.gm, result.inputs, result.earlier)
    } catch (error) {
      if (!(error instanceof MinifierError)) throw error
    }
    if (cause !== null && size(cause) < size(result)) {
      const steps = [...result.steps, ...cause.steps.slice(1)]
      return { ...cause, queries: result.queries + cause.queries, checks: result.checks + cause.checks, steps }
    }
    this.#spec = { ...this.#spec, signature }
    this.#dump(result.gm, [...result.earlier, result.inputs], 1)
    return result
  }

  /**
   * Whether wrong numbers need the calls before. If the last one alone has them by the plain comparison, which knows backward passes and in which way they are wrong, that
   * judges candidates; otherwise calls are judged as level 4 does.
   */
  async #needsHistory(gm: GraphModule, inputs: readonly unknown[], history: Calls): Promise<boolean> {
    if (history.length === 0 || this.#spec.accuracy === 'none' || isDeath(this.#spec.death)) return history.length > 0
    if (this.#spec.contract !== true && (await this.#fails(gm, [inputs], this.#timeoutMs))) {
      this.#print(`The last call fails by itself: ${history.length} calls before it are not needed`)
      return false
    }
    this.#spec = { ...this.#spec, contract: true }
    return true
  }

  /** Whether there is a backend to compare with. */
  #hasControl(): boolean {
    return this.#spec.backend !== RIGHT
  }

  /** Runs the graph as it is on eager: it must pass there, and the time that it takes is the scale for that of candidates. */
  async #measure(gm: GraphModule, calls: Calls): Promise<void> {
    if (!this.#hasControl() || this.#isolator === null) return
    const timeoutMs = CPU_FACTOR * this.#timeoutMs
    if (!(await this.#isRight(gm, calls, { ...this.#spec, accuracy: 'none' }, timeoutMs)))
      throw new MinifierError(`Input graph fails on ${RIGHT} too, so its failure is not that of '${this.#spec.backend}': ${this.#whyNotRight}`)
    this.#timeoutMs = Math.max(this.#timeoutMs, this.#scale())
  }

  /** What a candidate may take, judged by those that answered. */
  #scale(): number {
    const { cpuMs, wallMs } = this.#isolator?.longest ?? { cpuMs: 0, wallMs: 0 }
    return Math.max(CPU_FACTOR * cpuMs, WALL_FACTOR * wallMs)
  }

  /** Finds out how the graph fails. */
  async #find(gm: GraphModule, calls: Calls): Promise<void> {
    const { backend } = this.#spec
    const unknown: FailureSpec = { ...this.#spec, accuracy: 'none', checkStr: null, signature: null, death: this.#isolator === null ? null : 'any' }
    const found = (how: string, spec: Partial<FailureSpec>): void => {
      this.#print(`With '${backend}', the graph ${how}. Looking for candidates that do the same.`)
      this.#spec = { ...unknown, death: null, ...spec }
    }
    for (let run = 0; run < FINDING_RUNS; run++) {
      const ended = await this.#judge(gm, calls, unknown, this.#timeoutMs)
      const { signature = null } = ended
      if (signature !== null && isDeathSignature(signature))
        return found(signature === HANG ? 'does not end' : `ends its process (${signature})`, { death: signature })
      if (signature !== null) return found(`fails: ${firstLine(ended.message).replace(`${NO_DEATH}: `, '')}`, { signature })
      if (ended.status === 'unrelated') throw new MinifierError(`The graph cannot be judged: ${ended.message}`)
      for (const contract of [false, true]) {
        const wrong = await this.#judge(gm, calls, { ...unknown, accuracy: 'accuracy', contract, death: null }, this.#timeoutMs)
        const how = contract ? `breaks a rule for backends (${firstLine(wrong.message)})` : 'computes wrong numbers'
        if (wrong.status === 'fails') return found(how, { accuracy: 'accuracy', contract })
      }
    }
    throw new MinifierError(
      `With '${backend}', the graph runs, ends, and its numbers are right (in ${FINDING_RUNS} runs), so there is nothing to minify.`,
    )
  }

  async #fails(gm: GraphModule, calls: Calls, timeoutMs: number): Promise<boolean> {
    const outcome = await this.#judge(gm, calls, this.#spec, timeoutMs)
    const { status, signature } = outcome
    // From the first failure on, only this one counts.
    if (status === 'fails' && signature !== undefined) {
      if (this.#spec.death === 'any') this.#spec = { ...this.#spec, death: signature }
      else if (!isDeath(this.#spec.death) && this.#spec.signature === null && this.#takesFirstKind) this.#spec = { ...this.#spec, signature }
    }
    if (status === 'unrelated') {
      this.#print(`  (candidate skipped: ${firstLine(outcome.message)})`)
      if (signature !== undefined) this.#lead(gm, calls, signature, outcome.message)
    }
    return status === 'fails'
  }

  async #judge(gm: GraphModule, calls: Calls, spec: FailureSpec, timeoutMs: number): Promise<Outcome> {
    const [earlier, inputs] = [calls.slice(0, -1), calls.at(-1) ?? []]
    if (this.#isolator !== null) return this.#isolator.query(gm, inputs, spec, timeoutMs, earlier)
    return judgeSettled(gm, inputs, spec, spec.backend === this.#spec.backend ? this.#options.backend : spec.backend, earlier)
  }

  /** Whether the graph passes on eager, by the rules that the backend is judged by. */
  async #isRight(gm: GraphModule, calls: Calls, spec: FailureSpec, timeoutMs: number): Promise<boolean> {
    this.#controls++
    const { status, message } = await this.#judge(gm, calls, { ...spec, backend: RIGHT, checkStr: null, signature: null, death: null }, timeoutMs)
    this.#whyNotRight = status === 'passes' ? '' : message
    return status === 'passes'
  }

  /** The control of a candidate that fails. The first final one of a state is in a fresh process, where no other candidate has run. */
  async #control(gm: GraphModule, calls: Calls, isFinal: boolean): Promise<boolean> {
    if (isFinal) this.#renewFor(gm)
    // To judge an error, the graph has run without the backend already.
    else if (this.#spec.accuracy === 'none' && !isDeath(this.#spec.death)) return true
    const isRight = await this.#isRight(gm, calls, this.#spec, this.#timeoutMs)
    if (!isRight) this.#print(`  (candidate skipped: it fails on ${RIGHT} too: ${firstLine(this.#whyNotRight)})`)
    return isRight
  }

  /** The first final runs of a state are in a fresh process. */
  #renewFor(gm: GraphModule): void {
    const state = String(gm.graph)
    this.#isFirstCheck = state !== this.#lastChecked
    if (this.#isFirstCheck) this.#isolator?.renew()
    this.#lastChecked = state
  }

  /** The first final run has all the time that was asked for. */
  async #check(gm: GraphModule, calls: Calls): Promise<boolean> {
    if (!this.#hasControl()) this.#renewFor(gm)
    return this.#fails(gm, calls, this.#isFirstCheck ? this.#timeoutMs : this.#limit())
  }

  /** The time limit of a candidate. Once it is known that the failure is a hang, there is no need to wait for so long. */
  #limit(): number {
    if (this.#spec.death !== HANG) return this.#timeoutMs
    return Math.min(this.#timeoutMs, Math.max(HANG_LEAST_MS, this.#scale()))
  }

  #dump(gm: GraphModule, calls: Calls, rate: number): void {
    const { runDir, after } = this.#options
    if (!this.#dumps || typeof runDir !== 'string') return
    const options = {
      after: after ?? 'dynamo',
      spec: this.#spec,
      imports: this.#imports,
      ...flakiness(rate),
      backendProblem: whyNotNameable(this.#spec.backend),
      earlier: calls.slice(0, -1),
    } as const
    this.#attempt(() => (this.#path = dumpCheckpoint(runDir, gm, calls.at(-1) ?? [], options, this.#print)))
  }

  /** The search goes on without scripts if they cannot be written; its result is returned as well. */
  #attempt(write: () => void): void {
    try {
      write()
    } catch (error) {
      this.#dumps = false
      log.warning(`No more checkpoints are written: ${describe(error)}`)
    }
  }

  /** Keeps a failure of another kind, with the first graph that showed it. */
  #lead(gm: GraphModule, calls: Calls, signature: string, message: string): void {
    if (this.#leads.has(signature) || this.#leads.size === MOST_LEADS) return
    const { runDir, after } = this.#options
    const spec = {
      ...this.#spec,
      accuracy: signature.startsWith('accuracy') ? 'accuracy' : 'none',
      checkStr: null,
      ...(isDeathSignature(signature) ? { death: signature, signature: null } : { death: null, signature }),
    } as const
    let path: string | null = null
    if (this.#dumps && typeof runDir === 'string')
      this.#attempt(() => {
        const { script, saveDir } = leadPaths(runDir, this.#leads.size + 1)
        writeRepro(fileStore(), script, saveDir, gm, calls.at(-1) ?? [], {
          after: after ?? 'dynamo',
          command: 'run',
          spec,
          imports: this.#imports,
          backendProblem: whyNotNameable(spec.backend),
          earlier: calls.slice(0, -1),
        })
        path = script
      })
    this.#leads.set(signature, { signature, message, path })
    if (path !== null) this.#print(`A failure of another kind was kept as a lead: ${String(path)} (${firstLine(message)})`)
  }

  /** An original that fails in another way than the one that is looked for, or on eager too: the error says so. */
  #withReasons(error: unknown): unknown {
    if (!(error instanceof MinifierError)) return error
    const [lead] = this.#leads.values()
    if (this.#whyNotRight !== '') return new MinifierError(`${error.message} ${RIGHT} said: ${this.#whyNotRight}`)
    return lead === undefined ? error : new MinifierError(`${error.message}. It failed in another way: ${lead.message}`)
  }
}

/** What a script of a failure that comes and goes does and says: it runs so often that the failure shows in 99 of 100 cases, and at most 50 times. */
function flakiness(rate: number): Pick<ReproOptions, 'notes' | 'runs'> {
  if (rate >= 1) return {}
  const runs = Math.min(50, Math.ceil(Math.log(0.01) / Math.log(1 - Math.max(rate, 0.01))))
  return {
    notes: [`The failure comes and goes: it was seen in ${Math.round(rate * 100)}% of the runs. \`run\` runs the graph until it fails.`],
    runs,
  }
}

const firstLine = (text: string): string => text.split('\n')[0] ?? ''

function whyNotIsolated(gm: GraphModule, inputs: readonly unknown[], options: HuntOptions, start: StartHelper | null): string | null {
  if (options.isolate === false) return 'isolate is false'
  if (start === null) return 'there are no child processes here; pass startHelper'
  if (typeof options.backend !== 'string')
    return 'the backend is a function without a name; register it with registerBackend(name, fn, { module }) to have it isolated'
  return whyNotShippable(gm, inputs) ?? whyNotImportable(gm)
}

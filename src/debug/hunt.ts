// From a failure to its smallest form: the minifier, with candidates judged in isolation if possible, and every step kept as a script.
import { ArgumentError } from '../errors/index.ts'
import type { GraphModule } from '../fx/index.ts'
import { backendImports, labelOf } from '../dynamo/index.ts'
import type { Backend } from '../dynamo/index.ts'
import { checkOptions } from '../protocol/index.ts'
import { whyNotNameable } from './backendModule.ts'
import { dumpCheckpoint } from './checkpoint.ts'
import { HANG, isDeath, isDeathSignature } from './death.ts'
import { describe } from './describeError.ts'
import { fileStore } from './fileStore.ts'
import { Isolator } from './isolate/isolator.ts'
import type { StartHelper } from './isolate/isolator.ts'
import { nodeHelper } from './isolate/nodeHelper.ts'
import { whyNotShippable } from './isolate/protocol.ts'
import { judge } from './judge.ts'
import type { FailureSpec, Outcome } from './judge.ts'
import { log } from './log.ts'
import { MinifierError, minifier } from './minifier.ts'
import type { MinifierResult } from './minifier.ts'
import { operatorImports, whyNotImportable } from './operatorImports.ts'
import { leadPaths, writeRepro } from './reproScript.ts'
import type { ReproOptions } from './reproScript.ts'

export interface HuntOptions {
  /** The failing backend: a registered name, or a function (then candidates are judged in this process). */
  readonly backend: string | Backend
  /** What counts as a failure; default 'none': the compiled graph throws. */
  readonly accuracy?: FailureSpec['accuracy']
  /** Only errors whose text contains this. */
  readonly checkStr?: string | null
  /** Which error counts (`signatureOf`); default any. */
  readonly signature?: string | null
  readonly onlyFwd?: boolean
  /** Judge candidates outside this process. Default true if possible: with child processes in Node, with `startHelper` in browsers. */
  readonly isolate?: boolean
  /** How to start an isolated helper; default a child process in Node. */
  readonly startHelper?: StartHelper
  /** Milliseconds before a candidate counts as hanging. Default 30,000. */
  readonly timeoutMs?: number
  /** The failure ends the process, or never ends: see {@link FailureSpec}. Default null. */
  readonly death?: string | null
  /** The same as `death: 'any'`. Default false. */
  readonly deathFails?: boolean
  readonly maxGranularity?: number
  readonly skipSanity?: boolean
  /** Where the failure was seen, for the script. Default 'dynamo'. */
  readonly after?: 'dynamo' | 'aot'
  /** The run's debug folder; checkpoints go to its minifier/checkpoints. Null writes nothing. Default null. */
  readonly runDir?: string | null
  /** Receives the minifier's progress lines. Default: the debug log. */
  readonly print?: (line: string) => void
}

/** A failure of another kind than the one that was minified. */
export interface Lead {
  /** Tells failures apart: `signatureOf` of the error, or how the process died. */
  readonly signature: string
  readonly message: string
  /** The script that shows it, or null when none was written. */
  readonly path: string | null
}

export interface HuntResult extends MinifierResult {
  /** The last script written, or null when nothing was. */
  readonly path: string | null
  /** Whether candidates were judged in isolation; if not, why. */
  readonly isolated: boolean
  readonly whyNotIsolated: string | null
  /** Isolated processes used: one for the search and one for the final check, unless some died or hung. */
  readonly processes: number
  /** Other failures that candidates met. */
  readonly leads: readonly Lead[]
}

/** Shrinks a graph that a backend fails on. The graph and the inputs are not changed. */
export async function minifyBackendFailure(gm: GraphModule, inputs: readonly unknown[], options: HuntOptions): Promise<HuntResult> {
  checkOptions('minifyBackendFailure', options, {
    backend: true,
    accuracy: true,
    checkStr: true,
    signature: true,
    onlyFwd: true,
    isolate: true,
    startHelper: true,
    timeoutMs: true,
    death: true,
    deathFails: true,
    maxGranularity: true,
    skipSanity: true,
    after: true,
    runDir: true,
    print: true,
  })
  const imports = typeof options.backend === 'string' ? [...new Set([...backendImports(options.backend), ...operatorImports(gm)])] : []
  const start = options.startHelper ?? nodeHelper()
  const whyNot = whyNotIsolated(gm, inputs, options, start)
  const death = options.death ?? (options.deathFails === true ? 'any' : null)
  if (whyNot !== null && death !== null)
    throw new ArgumentError(`minifyBackendFailure: the failure ends the process (${death}), so candidates need one of their own, but ${whyNot}.`)
  if (whyNot !== null && options.isolate === true) log.warning(`candidates are judged in this process: ${whyNot}`)
  const isolator = whyNot === null && start !== null ? new Isolator(start, { imports }) : null
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

/** While a hang is minified: a candidate gets this much of the longest time that an answer took, and not less than the second number. */
const HANG_FACTOR = 20
const HANG_LEAST_MS = 2000

class Hunt {
  readonly #options: HuntOptions
  readonly #isolator: Isolator | null
  readonly #imports: readonly string[]
  readonly #print: (line: string) => void
  readonly #timeoutMs: number
  readonly #leads = new Map<string, Lead>()
  #spec: FailureSpec
  #path: string | null = null
  #dumps: boolean
  #longestMs = 0
  #lastChecked = ''

  constructor(options: HuntOptions, death: string | null, imports: readonly string[], isolator: Isolator | null) {
    this.#options = options
    this.#isolator = isolator
    this.#imports = imports
    this.#print = options.print ?? log.info
    this.#timeoutMs = options.timeoutMs ?? 30_000
    this.#dumps = typeof options.runDir === 'string'
    this.#spec = {
      backend: typeof options.backend === 'string' ? options.backend : labelOf(options.backend),
      accuracy: options.accuracy ?? 'none',
      checkStr: options.checkStr ?? null,
      signature: options.signature ?? null,
      onlyFwd: options.onlyFwd ?? false,
      death,
    }
  }

  async run(gm: GraphModule, inputs: readonly unknown[]): Promise<Omit<HuntResult, 'isolated' | 'whyNotIsolated' | 'processes'>> {
    const { maxGranularity, skipSanity } = this.#options
    let result: MinifierResult
    try {
      result = await minifier(gm, inputs, (candidate, values) => this.#fails(candidate, values, this.#limit()), {
        print: this.#print,
        shrinkValues: true,
        finalCheck: (state, values) => this.#check(state, values),
        finalRuns: this.#finalRuns(),
        ...(maxGranularity === undefined ? {} : { maxGranularity }),
        ...(skipSanity === undefined ? {} : { skipSanity }),
        dumpState: (state, values) => this.#dump(state, values, 1),
      })
    } catch (error) {
      throw this.#withLeads(error)
    }
    if (result.failureRate < 1) this.#dump(result.gm, result.inputs, result.failureRate)
    return { ...result, path: this.#path, leads: [...this.#leads.values()] }
  }

  async #fails(gm: GraphModule, inputs: readonly unknown[], timeoutMs: number): Promise<boolean> {
    const began = performance.now()
    const outcome = await this.#judge(gm, inputs, timeoutMs)
    const { status, signature } = outcome
    if (signature !== HANG) this.#longestMs = Math.max(this.#longestMs, performance.now() - began)
    // From the first failure on, only this one counts.
    if (status === 'fails' && signature !== undefined) {
      if (this.#spec.death === 'any') this.#spec = { ...this.#spec, death: signature }
      else if (isError(this.#spec) && this.#spec.checkStr === null) this.#spec = { ...this.#spec, signature }
    }
    if (status === 'unrelated') {
      this.#print(`  (candidate skipped: ${firstLine(outcome.message)})`)
      if (signature !== undefined) this.#lead(gm, inputs, signature, outcome.message)
    }
    return status === 'fails'
  }

  async #judge(gm: GraphModule, inputs: readonly unknown[], timeoutMs: number): Promise<Outcome> {
    return this.#isolator === null ? judge(gm, inputs, this.#spec, this.#options.backend) : this.#isolator.query(gm, inputs, this.#spec, timeoutMs)
  }

  /** The first final run of a state is in a fresh process, where no other candidate has run. */
  async #check(gm: GraphModule, inputs: readonly unknown[]): Promise<boolean> {
    const state = String(gm.graph)
    if (state !== this.#lastChecked) this.#isolator?.renew()
    this.#lastChecked = state
    return this.#fails(gm, inputs, this.#timeoutMs)
  }

  /** The time limit of a candidate. Once it is known that the failure is a hang, there is no need to wait for so long. */
  #limit(): number {
    if (this.#spec.death !== HANG) return this.#timeoutMs
    return Math.min(this.#timeoutMs, Math.max(HANG_LEAST_MS, HANG_FACTOR * this.#longestMs))
  }

  #finalRuns(): number {
    if (!isDeath(this.#spec.death)) return 5
    return this.#spec.death === HANG ? 2 : 3
  }

  #dump(gm: GraphModule, inputs: readonly unknown[], rate: number): void {
    const { runDir, after } = this.#options
    if (!this.#dumps || typeof runDir !== 'string') return
    const options = {
      after: after ?? 'dynamo',
      spec: this.#spec,
      imports: this.#imports,
      ...flakiness(rate),
      backendProblem: whyNotNameable(this.#spec.backend),
    } as const
    this.#attempt(() => (this.#path = dumpCheckpoint(runDir, gm, inputs, options, this.#print)))
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
  #lead(gm: GraphModule, inputs: readonly unknown[], signature: string, message: string): void {
    if (this.#leads.has(signature) || this.#leads.size === MOST_LEADS) return
    const { runDir, after } = this.#options
    const spec = {
      ...this.#spec,
      accuracy: 'none',
      checkStr: null,
      ...(isDeathSignature(signature) ? { death: signature, signature: null } : { death: null, signature }),
    } as const
    let path: string | null = null
    if (this.#dumps && typeof runDir === 'string')
      this.#attempt(() => {
        const { script, saveDir } = leadPaths(runDir, this.#leads.size + 1)
        writeRepro(fileStore(), script, saveDir, gm, inputs, {
          after: after ?? 'dynamo',
          command: 'run',
          spec,
          imports: this.#imports,
          backendProblem: whyNotNameable(spec.backend),
        })
        path = script
      })
    this.#leads.set(signature, { signature, message, path })
    if (path !== null) this.#print(`A failure of another kind was kept as a lead: ${String(path)} (${firstLine(message)})`)
  }

  /** An original that fails in another way than the one that is looked for: the error says in which. */
  #withLeads(error: unknown): unknown {
    const [lead] = this.#leads.values()
    if (!(error instanceof MinifierError) || lead === undefined) return error
    return new MinifierError(`${error.message}. It failed in another way: ${lead.message}`)
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

/** Whether the failure is an error, as opposed to wrong numbers or the end of the process. */
const isError = ({ accuracy, death, signature }: FailureSpec): boolean => accuracy === 'none' && !isDeath(death) && signature === null

function whyNotIsolated(gm: GraphModule, inputs: readonly unknown[], options: HuntOptions, start: StartHelper | null): string | null {
  if (options.isolate === false) return 'isolate is false'
  if (start === null) return 'there are no child processes here; pass startHelper'
  if (typeof options.backend !== 'string')
    return 'the backend is a function without a name; register it with registerBackend(name, fn, { module }) to have it isolated'
  return whyNotShippable(gm, inputs) ?? whyNotImportable(gm)
}

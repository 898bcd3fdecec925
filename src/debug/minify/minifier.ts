// The minifier: shrinks a failing graph, and its inputs, to a small one that still fails, with strategies from coarse to fine. The caller's predicate says what
// "fails" means. The result is judged anew at the end, several times. PyTorch's functorch.compile.minifier.
import { emit } from '../../events/index.ts'
import type { MinifyStepEvent } from '../../events/index.ts'
import { ArgumentError, TensorfxError } from '../../errors/index.ts'
import { GraphModule } from '../../fx/index.ts'
import { checkGraphModule } from '../../protocol/graphChecks.ts'
import type { Graph } from '../../fx/index.ts'
import { checkArgument, checkArray, checkCallable, checkCount, checkOptions, valueText } from '../../protocol/index.ts'
import type { OnProgress } from '../../protocol/index.ts'
import { captureValues, loaded } from './concreteValues.ts'
import type { Offload } from './concreteValues.ts'
import { operatorsOf } from './subgraph.ts'
import type { ReproState } from './subgraph.ts'
import type { Calls } from '../runs/history.ts'
import { shrinkValues } from './shrink.ts'
import { strategies } from './strategies.ts'
import type { Strategy, Tester } from './strategies.ts'
import { fileStore } from '../files/fileStore.ts'
import { isolated } from '../runs/isolated.ts'
import { pathOf } from '../common/node.ts'
import { TensorFiles } from '../files/tensorFiles.ts'
import { Tensor } from '../../tensor/index.ts'

/** Whether the candidate still fails in the same way. `earlier` are the inputs of the calls before, if there were any; see {@link MinifierOptions}. */
export type ModuleFails = (gm: GraphModule, inputs: readonly unknown[], earlier: Calls) => boolean | Promise<boolean>

/** Options of {@link minifier}. */
export interface MinifierOptions {
  /** Called with every state that is reached, the original first. */
  readonly dumpState?: (gm: GraphModule, inputs: readonly unknown[], earlier: Calls) => void
  /**
   * The inputs of the calls before the failing one, oldest first, for a failure that needs a history. Calls are dropped first, then the graph is searched. Default none.
   */
  readonly earlier?: Calls
  /** Receives PyTorch's progress lines ("Strategy: Truncate suffix (G: 8) (13 nodes, 1 inputs)"). */
  readonly print?: (line: string) => void
  /** Is told of each query of `moduleFails`; how many there will be is not known. */
  readonly onProgress?: OnProgress
  /** Do not check that the original fails. Default false. */
  readonly skipSanity?: boolean
  /** The most operators that Delta Debugging replaces at once, a power of two. */
  readonly maxGranularity?: number
  /** Also shrink shapes, values, dtypes and constants, where the graph still runs eagerly. Default false. */
  readonly shrinkValues?: boolean
  /**
   * The control experiment: whether the candidate passes where it must, on a backend that is right. A candidate that fails `moduleFails` is accepted only if this holds
   * too. It runs again before each final run, with `isFinal`. Default: none.
   */
  readonly control?: (gm: GraphModule, inputs: readonly unknown[], isFinal: boolean, earlier: Calls) => boolean | Promise<boolean>
  /** Judges the result once more, as often as `finalRuns` says; default `moduleFails`. Remembered verdicts do not count here. */
  readonly finalCheck?: ModuleFails
  /**
   * How often the result is judged at the end, so that a failure that comes and goes is noticed. Default 5, and 8 for several operators: of them, one that fails alone may have
   * passed by chance.
   */
  readonly finalRuns?: number
  /**
   * Keep the values of the graph's nodes in files under `saveDir` instead of memory: for graphs whose values do not fit there together. A value that shares the memory of another
   * one is then never put in its operator's place. Default false.
   */
  readonly offloadToDisk?: boolean
  /** The folder for `offloadToDisk`. */
  readonly saveDir?: URL | string | null
  /** With `offloadToDisk`: the files are there from an earlier search of the same graph. Default false. */
  readonly skipOffload?: boolean
}

/** One reduction that was kept, for reports. */
export interface MinifierStep {
  readonly strategy: string
  readonly granularity: number
  readonly nodes: number
  readonly inputs: number
  readonly queries: number
}

/** What {@link minifier} found. */
export interface MinifierResult {
  readonly gm: GraphModule
  readonly inputs: readonly unknown[]
  /** The inputs of the calls before that the failure needs, oldest first; usually none. */
  readonly earlier: Calls
  /** How often the predicate ran to find the smallest graph; no candidate is judged twice, unless the failure comes and goes. */
  readonly queries: number
  /** How often it ran besides: to shrink values, and for the final check. */
  readonly checks: number
  /** How often `control` ran. */
  readonly controls: number
  /** How many of the final runs failed: 1, or less for a failure that comes and goes. */
  readonly failureRate: number
  /** The path from the original (first entry) to the result. */
  readonly steps: readonly MinifierStep[]
}

/**
 * The original graph did not fail, or it fails with a backend that is right too.
 *
 * Fix: check that the module fails with these inputs before it is minified: same inputs, same tolerances, same backend. A graph that fails on `eager` has no failure of
 * the backend to look for.
 */
export class MinifierError extends TensorfxError {
  constructor(message: string) {
    super('TFX_MINIFIER', message)
  }
}

/**
 * Shrinks `failing` while `moduleFails` stays true. One input per placeholder. Neither the module nor the inputs are changed.
 * Throws MinifierError if the original does not fail, ArgumentError for bad options.
 */
export async function minifier(
  failing: GraphModule,
  inputs: readonly unknown[],
  moduleFails: ModuleFails,
  options: MinifierOptions = {},
): Promise<MinifierResult> {
  checkCount('minifier', arguments, 4)
  checkGraphModule('minifier', failing, 'failing')
  checkArray('minifier', 'inputs', inputs)
  checkCallable('minifier', 'moduleFails', moduleFails)
  checkOptions('minifier', options, {
    dumpState: true,
    earlier: true,
    print: true,
    onProgress: true,
    skipSanity: 'boolean',
    maxGranularity: 'number',
    shrinkValues: 'boolean',
    control: true,
    finalCheck: true,
    finalRuns: 'number',
    offloadToDisk: 'boolean',
    saveDir: true,
    skipOffload: 'boolean',
  })
  for (const name of ['dumpState', 'print', 'onProgress', 'control', 'finalCheck'] as const)
    if (options[name] !== undefined) checkCallable('minifier', `options.${name}`, options[name])
  const { maxGranularity, finalRuns } = options
  if (finalRuns !== undefined) checkArgument(Number.isInteger(finalRuns) && finalRuns >= 0, 'minifier', 'options.finalRuns', 'a count', finalRuns)
  if (maxGranularity !== undefined && !(Number.isInteger(maxGranularity) && Number.isInteger(Math.log2(maxGranularity))))
    throw new ArgumentError(`minifier: maxGranularity ${valueText(maxGranularity)} is not a power of two.`)
  const placeholders = failing.graph.findNodes({ op: 'placeholder' }).length
  if (placeholders !== inputs.length)
    throw new ArgumentError(`minifier: the graph has ${placeholders} placeholders but ${inputs.length} inputs were given.`)
  const earlier = checkEarlier(options.earlier ?? [], placeholders)
  return new Minifier(failing, moduleFails, options, offloadOf(options)).run({ graph: failing.graph.deepCopy(), inputs: [...inputs], earlier })
}

/** Where the values of nodes go, if not into memory. */
function offloadOf({ offloadToDisk = false, skipOffload = false, saveDir }: MinifierOptions): Offload | null {
  for (const [name, value] of Object.entries({ offloadToDisk, skipOffload }))
    checkArgument(typeof value === 'boolean', 'minifier', `options.${name}`, 'true or false', value)
  if (skipOffload && !offloadToDisk)
    throw new ArgumentError('minifier: skipOffload says where the values of offloadToDisk come from, which is not asked for.')
  if (!offloadToDisk) return null
  const dir = pathOf('minifier', 'options.saveDir', saveDir ?? null)
  if (dir === null) throw new ArgumentError("minifier: offloadToDisk needs the folder 'saveDir', where the values of the graph go.")
  return { files: new TensorFiles(fileStore(), dir), areWritten: skipOffload }
}

/** Checks the inputs of the calls before the failing one. */
function checkEarlier(earlier: Calls, placeholders: number): Calls {
  checkArray('minifier', 'earlier', earlier)
  return earlier.map((inputs, call) => {
    checkArray('minifier', `earlier[${call}]`, inputs)
    if (inputs.length !== placeholders)
      throw new ArgumentError(`minifier: the graph has ${placeholders} placeholders but earlier[${call}] has ${inputs.length} inputs.`)
    return [...inputs]
  })
}

/** The most queries for shrinking values; with the final runs at most 20. */
const SHRINKING = 14

/** Runs that a failure that comes and goes gets before it is given up. */
const PATIENCE = 8

class Minifier {
  readonly #root: GraphModule
  readonly #fails: ModuleFails
  readonly #options: MinifierOptions
  #offload: Offload | null
  readonly #print: (line: string) => void
  readonly #judged = new Map<string, boolean>()
  readonly #inputIds = new Map<unknown, number>()
  readonly #steps: MinifierStep[] = []
  /** The states that were reached, the original first. */
  readonly #reached: ReproState[] = []
  #queries = 0
  #checks = 0
  #controls = 0
  /** The strategy that makes the candidates. */
  #strategy = 'original'
  /** Whether the last control failed. */
  #failsControl = false
  /** How often a candidate runs before it passes. */
  #runs = 1

  constructor(root: GraphModule, fails: ModuleFails, options: MinifierOptions, offload: Offload | null) {
    this.#root = root
    this.#fails = fails
    this.#options = options
    this.#offload = offload
    this.#print = options.print ?? ((): void => {})
  }

  async run(start: ReproState): Promise<MinifierResult> {
    this.#capture(start)
    if (this.#options.skipSanity !== true) await this.#checkOriginal(start)
    this.#print(`Started off with ${start.graph.nodes.length} nodes`)
    this.#reach('original', 0, start)
    let state = await this.#reduce(start)
    let failureRate = await this.#finalRate(state)
    if (failureRate < 1 && this.#runs === 1) {
      // A candidate that passed may have been smaller: look again, with more patience.
      this.#notice(failureRate)
      // Its inputs may have been shrunk, and the values of its nodes are those of the inputs before.
      this.#capture(state)
      state = await this.#reduce(state)
      failureRate = await this.#finalRate(state)
    }
    // What failed only after others had run in the same process is no result: the last state that fails by itself is.
    for (const earlier of failureRate > 0 ? [] : this.#reached.toReversed().slice(1)) {
      failureRate = await this.#finalRate(earlier)
      if (failureRate === 0) continue
      state = earlier
      break
    }
    if (failureRate === 0)
      throw new MinifierError(
        `Uh oh, something went wrong :( Final graph is not failing, nor is any before it, when each is judged anew.${this.#failsControl ? ' On a backend that is right it fails too.' : ''}`,
      )
    if (failureRate < 1) this.#print(`The failure comes and goes: ${Math.round(failureRate * 100)}% of the final runs failed`)
    this.#print(`Made ${this.#queries} queries`)
    const gm = this.#module(state.graph)
    const { inputs, earlier } = withValues(state)
    this.#options.dumpState?.(gm, inputs, earlier)
    emit({ kind: 'minify.end', nodes: state.graph.nodes.length, queries: this.#queries, failureRate })
    return { gm, inputs, earlier, queries: this.#queries, checks: this.#checks, controls: this.#controls, failureRate, steps: this.#steps }
  }

  #capture(state: ReproState): void {
    captureValues(this.#module(state.graph), state, this.#offload)
    // What an earlier search wrote is for the graph and the calls that this one begins with.
    if (this.#offload !== null) this.#offload = { ...this.#offload, areWritten: false }
  }

  async #checkOriginal(start: ReproState): Promise<void> {
    for (let runs = 1; runs <= PATIENCE; runs++) {
      if (await this.#graphFails(start)) {
        if (runs > 1) this.#notice(1 / runs)
        return
      }
      if (this.#failsControl) throw new MinifierError('Input graph fails on a backend that is right too, so its failure is not that of the backend.')
      this.#judged.clear()
    }
    throw new MinifierError(`Input graph did not fail the tester (in ${PATIENCE} runs)`)
  }

  /** From here on a candidate passes only after enough runs for a failure with this rate. */
  #notice(rate: number): void {
    this.#runs = PATIENCE
    this.#judged.clear()
    this.#print(`The failure comes and goes (${Math.round(rate * 100)}% of the runs so far): each candidate gets up to ${PATIENCE} runs`)
  }

  /** How many of the final runs fail; a failure that does not come at once gets more of them. */
  async #finalRate(state: ReproState): Promise<number> {
    const check = this.#options.finalCheck ?? this.#fails
    const whole = withValues(state)
    const once = async (): Promise<boolean> => {
      this.#checks++
      return check(this.#module(whole.graph), whole.inputs, whole.earlier)
    }
    let runs = 0
    let failures = 0
    const planned = this.#runs > 1 ? PATIENCE : Math.max(1, this.#options.finalRuns ?? (operatorsOf(state.graph).length > 1 ? PATIENCE : 5))
    while (runs < planned || (failures < runs && runs < 2 * PATIENCE)) {
      if (!(await this.#passesControl(whole, true))) return 0
      runs++
      if (await once()) failures++
    }
    return failures / runs
  }

  async #reduce(start: ReproState): Promise<ReproState> {
    this.#dump(start)
    let state = start
    const take = (next: ReproState | null): boolean => {
      if (next === null) return false
      state = next
      this.#dump(state)
      return true
    }
    // Values are those of the calls that are left.
    if (take(await this.#try(strategies.dropCalls, state, 1))) this.#capture(state)
    const coarsest = (): number => Math.min(2 ** Math.floor(Math.log2(state.graph.nodes.length)), this.#options.maxGranularity ?? Infinity)
    for (const strategy of this.#coarse(state)) take(await this.#try(strategy, state, coarsest()))
    let granularity = Math.max(1, coarsest() / 2)
    for (;;) {
      while (take(await this.#try(strategies.deltaDebugging, state, granularity)));
      if (granularity === 1) break
      granularity /= 2
    }
    for (const strategy of [strategies.eliminateDeadCode, strategies.consolidateInputs, strategies.removeUnusedInputs])
      take(await this.#try(strategy, state, 1))
    while (take(await this.#try(strategies.removeOutputs, state, 1)));
    if (this.#options.shrinkValues === true) take(await this.#shrink(state))
    return state
  }

  /** What is tried once, before the graph is searched piece by piece. */
  #coarse(state: ReproState): readonly Strategy[] {
    const { removeOutputs, truncateSuffix, isolateLast, truncatePrefix } = strategies
    return [...(outputCount(state.graph) > state.graph.nodes.length / 2 ? [removeOutputs] : []), truncateSuffix, isolateLast, truncatePrefix]
  }

  async #try(strategy: Strategy, old: ReproState, granularity: number): Promise<ReproState | null> {
    if (strategy === strategies.dropCalls && old.earlier.length === 0) return null
    this.#print('')
    this.#print(`Strategy: ${strategy.name} (G: ${granularity}) (${old.graph.nodes.length} nodes, ${old.inputs.length} inputs)`)
    this.#strategy = strategy.name
    const tester: Tester = async (state) => state !== null && (await this.#graphFails(state))
    const next = await strategy.run({ ...old, graph: old.graph.deepCopy() }, granularity, tester)
    if (next === null) {
      this.#print(`FAIL: ${strategy.name}`)
      return null
    }
    const changes: [string, number, number][] = [
      ['nodes', old.graph.nodes.length, next.graph.nodes.length],
      ['inputs', old.inputs.length, next.inputs.length],
      ['calls', old.earlier.length + 1, next.earlier.length + 1],
      ['outputs', outputCount(old.graph), outputCount(next.graph)],
    ]
    for (const [what, before, after] of changes) if (before !== after) this.#print(`SUCCESS: Went from ${before} to ${after} ${what}`)
    this.#reach(strategy.name, granularity, next)
    return next
  }

  async #shrink(reduced: ReproState): Promise<ReproState | null> {
    const start = withValues(reduced)
    const before = this.#queries
    this.#print('')
    this.#print(`Strategy: Shrink values (${elementCount(start)} elements)`)
    this.#strategy = 'Shrink values'
    const state = await shrinkValues(start, SHRINKING, {
      runs: ({ graph, inputs, earlier }) => [...earlier, inputs].every((values) => this.#runsEagerly(graph, values)),
      fails: (candidate) => this.#graphFails(candidate),
      kept: (name, next) => {
        this.#print(`SUCCESS: ${name} (${elementCount(next)} elements)`)
        this.#reach(name, 1, next)
      },
    })
    this.#checks += this.#queries - before
    this.#queries = before
    return state === start ? null : state
  }

  #runsEagerly(graph: Graph, inputs: readonly unknown[]): boolean {
    try {
      const own = isolated(this.#module(graph), inputs)
      own.model.forward(...own.inputs)
      return true
    } catch {
      return false
    }
  }

  #dump(state: ReproState): void {
    const { inputs, earlier } = withValues(state)
    this.#options.dumpState?.(this.#module(state.graph), inputs, earlier)
  }

  #reach(strategy: string, granularity: number, state: ReproState): void {
    this.#reached.push({ ...state, graph: state.graph.deepCopy() })
    this.#steps.push({ strategy, granularity, nodes: state.graph.nodes.length, inputs: state.inputs.length, queries: this.#queries })
  }

  #module(graph: Graph): GraphModule {
    return new GraphModule(this.#root, graph.deepCopy())
  }

  async #graphFails(state: ReproState): Promise<boolean> {
    const { graph, inputs, earlier } = state
    const key = [String(graph), ...[inputs, ...earlier].map((values) => values.map((value) => this.#inputId(value)).join())].join('\n')
    const known = this.#judged.get(key)
    if (known !== undefined) return known
    const whole = withValues(state)
    let fails = false
    for (let run = 0; run < this.#runs && !fails; run++) {
      this.#queries++
      this.#options.onProgress?.({ task: 'minify', done: this.#queries, total: null, text: `${this.#strategy}, ${graph.nodes.length} nodes` })
      const gm = this.#module(graph)
      gm.graph.lint()
      fails = await this.#fails(gm, whole.inputs, whole.earlier)
    }
    let verdict: Pick<MinifyStepEvent, 'verdict' | 'why'> = fails ? { verdict: 'fails', why: null } : { verdict: 'passes', why: 'it does not fail' }
    if (fails && !(await this.#passesControl(whole, false))) {
      fails = false
      verdict = { verdict: 'other', why: 'it fails on a backend that is right too' }
    }
    this.#judged.set(key, fails)
    emit({ kind: 'minify.step', strategy: this.#strategy, nodes: graph.nodes.length, ...verdict })
    return fails
  }

  async #passesControl({ graph, inputs, earlier }: ReproState, isFinal: boolean): Promise<boolean> {
    const { control } = this.#options
    if (control === undefined) return true
    this.#controls++
    const passes = await control(this.#module(graph), inputs, isFinal, earlier)
    this.#failsControl = !passes
    return passes
  }

  #inputId(input: unknown): number {
    let id = this.#inputIds.get(input)
    if (id === undefined) this.#inputIds.set(input, (id = this.#inputIds.size))
    return id
  }
}

/** The state with those of its inputs read that are in files. */
const withValues = ({ graph, inputs, earlier }: ReproState): ReproState => ({ graph, inputs: loaded(inputs), earlier: earlier.map(loaded) })

/** How many values the graph returns. */
function outputCount(graph: Graph): number {
  const value = graph.outputNode().args[0]
  return Array.isArray(value) ? value.length : 1
}

/** How many elements the inputs have. */
const elementCount = ({ inputs }: ReproState): number => inputs.reduce<number>((sum, input) => sum + (input instanceof Tensor ? input.numel : 1), 0)

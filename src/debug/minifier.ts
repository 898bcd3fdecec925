// The minifier: shrinks a failing graph, and its inputs, to a small one that still fails, with six strategies from coarse to fine until none makes
// progress. The caller's predicate says what "fails" means. PyTorch's functorch.compile.minifier.
import { ArgumentError, TensorfxError } from '../errors/index.ts'
import { GraphModule } from '../fx/index.ts'
import { checkGraphModule } from '../protocol/graphChecks.ts'
import type { Graph } from '../fx/index.ts'
import { checkArray, checkCallable, checkOptions } from '../protocol/index.ts'
import { captureValues } from './concreteValues.ts'
import { strategies } from './strategies.ts'
import type { ReproState, Strategy, Tester } from './strategies.ts'

/** Whether the candidate still fails in the same way. */
export type ModuleFails = (gm: GraphModule, inputs: readonly unknown[]) => boolean | Promise<boolean>

export interface MinifierOptions {
  /** Called with every state that is reached, the original first. */
  readonly dumpState?: (gm: GraphModule, inputs: readonly unknown[]) => void
  /** Receives PyTorch's progress lines ("Strategy: Truncate suffix (G: 8) (13 nodes, 1 inputs)"). */
  readonly print?: (line: string) => void
  /** Do not check that the original fails. Default false. */
  readonly skipSanity?: boolean
  /** Largest step, a power of two. */
  readonly maxGranularity?: number
}

/** One reduction that was kept, for reports. */
export interface MinifierStep {
  readonly strategy: string
  readonly granularity: number
  readonly nodes: number
  readonly inputs: number
  readonly queries: number
}

export interface MinifierResult {
  readonly gm: GraphModule
  readonly inputs: readonly unknown[]
  /** How often the predicate ran; no candidate is judged twice. */
  readonly queries: number
  /** The path from the original (first entry) to the result. */
  readonly steps: readonly MinifierStep[]
}

/**
 * The original graph did not fail.
 *
 * Fix: check that the module fails with these inputs before it is minified: same inputs, same tolerances, same backend.
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
  checkGraphModule('minifier', failing, 'failing')
  checkArray('minifier', 'inputs', inputs)
  checkCallable('minifier', 'moduleFails', moduleFails)
  checkOptions('minifier', options, { dumpState: true, print: true, skipSanity: true, maxGranularity: true })
  const { maxGranularity } = options
  if (maxGranularity !== undefined && (maxGranularity < 1 || !Number.isInteger(Math.log2(maxGranularity)))) {
    throw new ArgumentError(`minifier: maxGranularity ${maxGranularity} is not a power of two.`)
  }
  const placeholders = failing.graph.findNodes({ op: 'placeholder' }).length
  if (placeholders !== inputs.length)
    throw new ArgumentError(`minifier: the graph has ${placeholders} placeholders but ${inputs.length} inputs were given.`)
  return new Minifier(failing, moduleFails, options).run({ graph: failing.graph.deepCopy(), inputs: [...inputs] })
}

class Minifier {
  readonly #root: GraphModule
  readonly #fails: ModuleFails
  readonly #print: (line: string) => void
  readonly #dumpState: NonNullable<MinifierOptions['dumpState']>
  readonly #maxGranularity: number
  readonly #skipSanity: boolean
  readonly #judged = new Map<string, boolean>()
  readonly #inputIds = new Map<unknown, number>()
  readonly #steps: MinifierStep[] = []
  #queries = 0

  constructor(root: GraphModule, fails: ModuleFails, options: MinifierOptions) {
    this.#root = root
    this.#fails = fails
    this.#print = options.print ?? ((): void => {})
    this.#dumpState = options.dumpState ?? ((): void => {})
    this.#maxGranularity = options.maxGranularity ?? Infinity
    this.#skipSanity = options.skipSanity ?? false
  }

  async run(start: ReproState): Promise<MinifierResult> {
    captureValues(this.#module(start.graph), start)
    if (!this.#skipSanity && !(await this.#graphFails(start.graph, start.inputs))) throw new MinifierError('Input graph did not fail the tester')
    this.#print(`Started off with ${start.graph.nodes.length} nodes`)
    let state = start
    this.#record('original', 0, state)
    for (;;) {
      this.#dumpState(this.#module(state.graph), state.inputs)
      const next = await this.#step(state)
      if (next === null) break
      state = next
    }
    if (!(await this.#graphFails(state.graph, state.inputs))) throw new MinifierError('Uh oh, something went wrong :( Final graph is not failing')
    this.#print(`Made ${this.#queries} queries`)
    const gm = this.#module(state.graph)
    this.#dumpState(gm, state.inputs)
    return { gm, inputs: state.inputs, queries: this.#queries, steps: this.#steps }
  }

  /** One round: the first strategy that makes progress, from the coarsest granularity down. Null if none does. */
  async #step(state: ReproState): Promise<ReproState | null> {
    const coarsest = Math.min(2 ** Math.floor(Math.log2(state.graph.nodes.length)), this.#maxGranularity)
    for (let granularity = coarsest; granularity >= 1; granularity /= 2) {
      this.#print(`Trying granularity ${granularity}`)
      const round: Strategy[] = []
      if (outputCount(state.graph) > state.graph.nodes.length / 2) round.push(strategies.removeOutputs)
      if (granularity === coarsest) round.push(strategies.eliminateDeadCode, strategies.removeUnusedInputs, strategies.consolidateInputs)
      round.push(strategies.truncateSuffix, strategies.deltaDebugging)
      for (const strategy of round) {
        const next = await this.#try(strategy, state, granularity)
        if (next !== null) return next
      }
    }
    return this.#try(strategies.removeOutputs, state, 1)
  }

  async #try(strategy: Strategy, old: ReproState, granularity: number): Promise<ReproState | null> {
    this.#print('')
    this.#print(`Strategy: ${strategy.name} (G: ${granularity}) (${old.graph.nodes.length} nodes, ${old.inputs.length} inputs)`)
    const next = await strategy.run({ graph: old.graph.deepCopy(), inputs: [...old.inputs] }, granularity, this.#tester)
    if (next === null) {
      this.#print(`FAIL: ${strategy.name}`)
      return null
    }
    const changes: [string, number, number][] = [
      ['nodes', old.graph.nodes.length, next.graph.nodes.length],
      ['inputs', old.inputs.length, next.inputs.length],
      ['outputs', outputCount(old.graph), outputCount(next.graph)],
    ]
    const progress = changes.filter(([what, before, after]) => (what === 'inputs' ? after !== before : after < before))
    if (progress.length === 0) throw new MinifierError(`Success raised but no progress made? (strategy ${strategy.name})`)
    for (const [what, before, after] of progress) this.#print(`SUCCESS: Went from ${before} to ${after} ${what}`)
    this.#record(strategy.name, granularity, next)
    return next
  }

  #record(strategy: string, granularity: number, state: ReproState): void {
    this.#steps.push({ strategy, granularity, nodes: state.graph.nodes.length, inputs: state.inputs.length, queries: this.#queries })
  }

  #module(graph: Graph): GraphModule {
    return new GraphModule(this.#root, graph.deepCopy())
  }

  readonly #tester: Tester = (graph, inputs) => this.#graphFails(graph, inputs)

  async #graphFails(graph: Graph, inputs: readonly unknown[]): Promise<boolean> {
    const key = `${String(graph)}\n${inputs.map((i) => this.#inputId(i)).join()}`
    const known = this.#judged.get(key)
    if (known !== undefined) return known
    this.#queries++
    const gm = this.#module(graph)
    gm.graph.lint()
    const fails = await this.#fails(gm, inputs)
    this.#judged.set(key, fails)
    return fails
  }

  #inputId(input: unknown): number {
    let id = this.#inputIds.get(input)
    if (id === undefined) this.#inputIds.set(input, (id = this.#inputIds.size))
    return id
  }
}

/** How many values the graph returns. */
function outputCount(graph: Graph): number {
  const value = graph.outputNode().args[0]
  return Array.isArray(value) ? value.length : 1
}

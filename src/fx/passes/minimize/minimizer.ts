// MinimizerBase: finds the nodes that make one backend compute something else than another. PyTorch's torch.fx.passes.net_min_base.
import { checkGraphModule } from '../../../protocol/graphChecks.ts'
import { checkCount, checkArray, checkCallable } from '../../../protocol/index.ts'
import { ArgumentError, messageOf } from '../../../errors/index.ts'
import { Node } from '../../graph/node.ts'
import { tuple } from '../../graph/pythonValues.ts'
import { GraphModule } from '../../run/graphModule.ts'
import { pyRepr } from '../../text/format.ts'
import { FxNetMinimizerBadModuleError, FxNetMinimizerResultMismatchError, FxNetMinimizerRunFuncError, MinimizerSettingBase } from './settings.ts'
import type { MinimizerSettingOptions } from './settings.ts'
import { addFusions, traverseAccumulate, traverseBinary, traverseBlock, traverseDefined, traverseSequential, traverseSkip } from './traversals.ts'
import type { Outcome, Trials } from './traversals.ts'
import { ShapeProp } from '../each/shapeProp.ts'
import { splitByTagOf } from '../split/splitByTags.ts'
import { FxNetAccFusionsFinder } from '../split/fusions.ts'
import { isCall } from '../nodes/calls.ts'

/** Runs a part of the model on a backend and returns its result: a value, or an array if the part has several results. `reportIndex` is where in `reports` it is reported. */
export type RunPart = (part: GraphModule, inputs: readonly unknown[], reportIndex: number) => unknown

/**
 * Compares the results of both backends. Returns a number for the reports, such as the largest difference, and whether they are close enough. `names` are the nodes that
 * were asked for; it is empty if all results of a part are compared.
 */
export type CompareFn = (a: unknown, b: unknown, names: readonly string[]) => readonly [accuracy: number, isClose: boolean]

/** Options of {@link MinimizerBase}. */
export interface MinimizerOptions {
  /** The reference. By default, the method `runA`, which a subclass overrides. */
  readonly runA?: RunPart
  /** The backend to check. By default, the method `runB`, which a subclass overrides. */
  readonly runB?: RunPart
  readonly settings?: MinimizerSettingBase | MinimizerSettingOptions
  /** Called with every part that fails and its inputs: once for a, with a name ending in `_cpu`, and once for b, ending in `_acc`. */
  readonly moduleExporter?: (inputs: readonly unknown[], part: GraphModule, name: string) => void
  /** Removes nodes from a list, in place, that should not be run. `start` and `end` are its range among the nodes, or −1. */
  readonly exclusionFn?: (nodes: Node[], start: number, end: number) => void
  /** Gets the lines of the reports. Default console.log. */
  readonly print?: (line: string) => void
}

/** Options of {@link MinimizerBase.minimize}. */
export interface MinimizeOptions {
  /** The name of the first node. Default: the first one that calls something. */
  readonly start?: string
  /** The name of the last node. Default: the last one. */
  readonly end?: string
  /** For the method `skip`: the names of the nodes to leave out. */
  readonly skipNodes?: readonly string[]
  /** For the method `block`: search only the last node (true) or only the first node (false) of the block. Default null, both. */
  readonly findLastNode?: boolean | null
}

/**
 * Finds the nodes that make backend b compute something else than the reference a. It runs parts of the model on both, with the same inputs, and compares the results.
 * The backends are any two functions. PyTorch's _MinimizerBase.
 *
 *     const minimizer = new MinimizerBase(gm, [x], compare, { runA: (part, inputs) => part.call(...inputs), runB: onMyBackend })
 *     const culprits = minimizer.minimize()
 */
export class MinimizerBase {
  readonly module: GraphModule
  readonly sampleInput: readonly unknown[]
  readonly settings: MinimizerSettingBase
  /** The results of a, by the names of nodes; they begin with the sample inputs. */
  readonly aOutputs = new Map<string, unknown>()
  /** The results of b, by the names of nodes; they begin with the sample inputs. */
  readonly bOutputs = new Map<string, unknown>()
  /** The numbers that `compareFn` gave, by what was compared: `('add',)`. */
  readonly results = new Map<string, number>()
  /** What was done: for each part, a list of lines. */
  readonly reports: string[][] = []
  /** The number of parts that were run. */
  iteration = 0
  /** The nodes that run together because they exchange values that are not tensors. */
  readonly fusions: ReadonlyMap<Node, ReadonlySet<Node>>
  readonly #compareFn: CompareFn
  readonly #options: MinimizerOptions

  /** @throws ArgumentError if `module` is not a GraphModule, or the number of inputs is wrong. */
  constructor(module: GraphModule, sampleInput: readonly unknown[], compareFn: CompareFn, options: MinimizerOptions = {}) {
    checkCount('MinimizerBase', arguments, 4)
    checkGraphModule('MinimizerBase', module, 'module')
    checkArray('MinimizerBase', 'sampleInput', sampleInput)
    checkCallable('MinimizerBase', 'compareFn', compareFn)
    const placeholders = module.graph.findNodes({ op: 'placeholder' })
    if (placeholders.length !== sampleInput.length)
      throw new ArgumentError(`Placeholder count (${placeholders.length}) does not match sampleInput count (${sampleInput.length}).`)
    this.module = module
    this.sampleInput = sampleInput
    this.settings = options.settings instanceof MinimizerSettingBase ? options.settings : new MinimizerSettingBase(options.settings)
    this.#compareFn = compareFn
    this.#options = options
    new ShapeProp(module).propagate(...sampleInput)
    this.fusions = new FxNetAccFusionsFinder(module, new Set(this.#callables())).run()
    for (const [i, placeholder] of placeholders.entries()) {
      this.aOutputs.set(placeholder.name, sampleInput[i])
      this.bOutputs.set(placeholder.name, sampleInput[i])
    }
  }

  /** Runs a part on the reference. @throws ArgumentError if neither a subclass nor the options say how. */
  runA(part: GraphModule, inputs: readonly unknown[], reportIndex: number = -1): unknown {
    if (this.#options.runA === undefined) throw new ArgumentError('runA() is not implemented. Pass the option runA, or override the method.')
    return this.#options.runA(part, inputs, reportIndex)
  }

  /** Runs a part on the backend to check. @throws ArgumentError if neither a subclass nor the options say how. */
  runB(part: GraphModule, inputs: readonly unknown[], reportIndex: number = -1): unknown {
    if (this.#options.runB === undefined) throw new ArgumentError('runB() is not implemented. Pass the option runB, or override the method.')
    return this.#options.runB(part, inputs, reportIndex)
  }

  /**
   * Runs parts of the model and returns the nodes that make the backends differ, in graph order. How it goes through the nodes depends on `settings.traverseMethod`:
   *
   * - `sequential`: node by node, up to the first culprit, or all with `findAll`.
   * - `binary`: halves the part that fails, so it needs about 2·log2(n) runs to find one culprit among n nodes.
   * - `accumulate`: runs the first node, the first two, …, so that errors can add up.
   * - `skip`: runs the stretches between the nodes `skipNodes`.
   * - `defined`: runs the nodes from `start` to `end` as one part.
   * - `block`: finds the smallest contiguous block that fails.
   *
   * @throws ArgumentError if `start` or `end` is not the name of a node that calls something, and for `skip` without `skipNodes`.
   */
  minimize(options: MinimizeOptions = {}): Set<Node> {
    const print = this.#print
    print(String(this.settings))
    print(String(this.module.graph))
    const nodes = this.#range('minimize', options)
    const culprits = this.#traverse(nodes, options)
    return new Set([...culprits].sort((a, b) => a.compareTo(b)))
  }

  #traverse(nodes: readonly Node[], { skipNodes, findLastNode = null }: MinimizeOptions): Set<Node> {
    const trials = this.#trials()
    switch (this.settings.traverseMethod) {
      case 'sequential':
        return traverseSequential(trials, nodes)
      case 'binary':
        return traverseBinary(trials, nodes)
      case 'accumulate':
        return traverseAccumulate(trials, nodes)
      case 'skip':
        if (skipNodes === undefined) throw new ArgumentError("'skipNodes' can't be missing when 'traverseMethod' is 'skip'; pass the names of nodes.")
        return traverseSkip(trials, nodes, new Set(skipNodes))
      case 'defined':
        return traverseDefined(trials, nodes)
      case 'block':
        return traverseBlock(trials, nodes, findLastNode)
    }
  }

  /**
   * Runs the nodes from `start` to `end` as one part, with what must run with them, and compares its results. Errors of the backends and differences are printed. Both names
   * are optional. PyTorch's run_nodes.
   * @throws ArgumentError if `start` or `end` is not the name of a node that calls something.
   */
  runNodes(start?: string, end?: string): void {
    const nodes = this.#range('runNodes', { ...(start === undefined ? {} : { start }), ...(end === undefined ? {} : { end }) })
    const names = this.settings.returnIntermediate ? nodes.map((node) => node.name) : []
    addFusions(nodes, this.fusions)
    try {
      this.#runAndCompare(nodes, names, this.#newReport()[0])
    } catch (error) {
      if (!(error instanceof FxNetMinimizerRunFuncError) && !(error instanceof FxNetMinimizerResultMismatchError)) throw error
      this.#print(error.message)
    }
  }

  /** Prints a report; the lines after the first are indented. PyTorch's print_report. */
  printReport(report: readonly string[]): void {
    for (const [i, line] of report.entries()) this.#print(i === 0 ? line : ` . ${line}`)
  }

  /** Prints all reports. PyTorch's print_reports. */
  printReports(): void {
    for (const report of this.reports) this.printReport(report)
  }

  get #print(): (line: string) => void {
    return this.#options.print ?? ((line) => console.log(line))
  }

  #callables(): Node[] {
    return [...this.module.graph.nodes].filter(isCall)
  }

  #range(where: string, { start, end }: Pick<MinimizeOptions, 'start' | 'end'>): Node[] {
    const nodes = this.#callables()
    const indexOf = (name: string, option: string): number => {
      const index = nodes.findIndex((node) => node.name === name)
      if (index < 0) throw new ArgumentError(`${where}: ${option} must be the name of a node that calls something, got '${name}'.`)
      return index
    }
    const first = start === undefined ? 0 : indexOf(start, 'start')
    return nodes.slice(first, end === undefined ? nodes.length : indexOf(end, 'end') + 1)
  }

  #trials(): Trials {
    return {
      settings: this.settings,
      fusions: this.fusions,
      exclusionFn: this.#options.exclusionFn ?? null,
      newReport: () => this.#newReport(),
      addReport: (report) => void this.reports.push(report),
      attempt: (nodes, outputs, report) => this.#attempt(nodes, outputs, report),
      printReport: (report) => this.printReport(report),
      print: this.#print,
    }
  }

  #newReport(): [string[], number] {
    const report: string[] = []
    this.reports.push(report)
    return [report, ++this.iteration]
  }

  #attempt(nodes: Iterable<Node>, outputs: readonly string[], report: string[]): Outcome {
    try {
      this.#runAndCompare(nodes, outputs, report)
      return 'equal'
    } catch (error) {
      if (error instanceof FxNetMinimizerResultMismatchError) return 'mismatch'
      if (error instanceof FxNetMinimizerRunFuncError) return 'run error'
      throw error
    }
  }

  #runAndCompare(nodes: Iterable<Node>, outputs: readonly string[], report: string[]): void {
    const [whole, part] = this.#split(new Set(nodes))
    const [aInputs, bInputs] = this.#inputsOf(whole, part)
    report.push('Run and compare ...')
    if (outputs.length > 0 && !this.settings.allOutputs) returnOnly(part, outputs)
    const returned = part.graph.outputNode().args[0]
    const shown = Array.isArray(returned) ? tuple(...returned.map(String)) : String(returned)
    const key = pyRepr(tuple(shown))
    const index = this.reports.indexOf(report)
    let a: unknown
    let b: unknown
    try {
      a = this.runA(part, aInputs, index)
      b = this.runB(part, bInputs, index)
    } catch (error) {
      const message = `Exception raised when running minimize: ${messageOf(error)}`
      report.push(message)
      throw new FxNetMinimizerRunFuncError(message, { cause: error })
    }
    storeResults(returned, a, this.aOutputs)
    storeResults(returned, b, this.bOutputs)
    const [accuracy, isClose] = this.#compareFn(a, b, outputs)
    this.results.set(key, accuracy)
    report.push(`Numerical accuracy = ${pyRepr(accuracy)}`)
    if (isClose) return
    report.push(`Result mismatch for ${key}`)
    const name = Array.isArray(returned) ? String(returned[0]) : String(returned)
    this.#options.moduleExporter?.(aInputs, part, `${name}_cpu`)
    this.#options.moduleExporter?.(bInputs, part, `${name}_acc`)
    throw new FxNetMinimizerResultMismatchError(`Result mismatch for ${key}`)
  }

  /** Splits the model into what comes before the nodes, the nodes, and what needs them. Returns the whole and the part with the nodes. */
  #split(nodes: ReadonlySet<Node>): [GraphModule, GraphModule] {
    const tags = new Map<Node, string>()
    for (const node of this.module.graph.nodes) {
      const isBelow = (): boolean => node.allInputNodes.some((n) => tags.get(n) === 'minimize' || tags.get(n) === 'main_1')
      if (isCall(node)) tags.set(node, nodes.has(node) ? 'minimize' : isBelow() ? 'main_1' : 'main_0')
    }
    const outside = [...nodes].find((node) => node.allInputNodes.some((n) => tags.get(n) === 'main_1'))
    if (outside !== undefined)
      throw new FxNetMinimizerBadModuleError(
        `The nodes ${[...nodes].join(', ')} are not one part of the graph: '${outside.name}' needs a value that is computed from them outside. Run the nodes in between, too.`,
      )
    const whole = splitByTagOf(this.module, ['main_0', 'minimize', 'main_1'], (node) => tags.get(node)).graphModule
    const part = whole.attribute('minimize')
    if (!(part instanceof GraphModule))
      throw new FxNetMinimizerBadModuleError(`Minimize submodule was not found with nodes ${[...nodes].join(', ')}.`)
    return [whole, part]
  }

  /** The inputs of a part for a and b: earlier results if all are known, else what it gets when the whole model runs. */
  #inputsOf(whole: GraphModule, part: GraphModule): [readonly unknown[], readonly unknown[]] {
    const names = part.graph.findNodes({ op: 'placeholder' }).map((node) => node.name)
    if (names.every((name) => this.aOutputs.has(name))) {
      const aInputs = names.map((name) => this.aOutputs.get(name))
      return [aInputs, this.settings.accumulateError ? names.map((name) => this.bOutputs.get(name)) : aInputs]
    }
    if (this.settings.accumulateError) this.#print(`Can't find previous stored outputs named ${pyRepr(names)}!`)
    let inputs: readonly unknown[] = []
    const handle = part.registerForwardPreHook((_, args) => void (inputs = args))
    try {
      whole.call(...this.sampleInput)
    } finally {
      handle.remove()
    }
    return [inputs, inputs]
  }
}

/** Makes a part return the nodes of these names, in graph order, and nothing else. */
function returnOnly(part: GraphModule, names: readonly string[]): void {
  const { graph } = part
  const wanted = new Set(names)
  const nodes = [...graph.nodes].filter((node) => wanted.has(node.name))
  graph.eraseNode(graph.outputNode())
  graph.output(nodes.length === 1 ? nodes[0] : tuple(...nodes))
  graph.lint()
  part.recompile()
}

function storeResults(returned: unknown, result: unknown, into: Map<string, unknown>): void {
  if (returned instanceof Node) into.set(returned.name, result)
  else if (Array.isArray(returned) && Array.isArray(result))
    for (const [i, node] of returned.entries()) if (node instanceof Node) into.set(node.name, result[i])
}

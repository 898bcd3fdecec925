// The state of one compilation: what is being compiled, and the results of the stages so far.
import { InternalError } from '../errors/index.ts'
import type { GraphModule } from '../fx/index.ts'
import type { TensorSpec } from '../tensor/index.ts'
import type { EmittedGroup } from './emit/kernels.ts'
import type { Group } from './groups.ts'
import { outputsOf } from './ir.ts'
import type { IrGraph } from './ir.ts'
import type { MemoryPlan } from './memoryPlan.ts'
import type { Placement } from './placement.ts'
import { printGroups, printIr, printPlacement, printPlan } from './print.ts'
import type { Program } from './callSequence.ts'
import type { Refusal } from './scheduler.ts'

/** The results of the stages, in order. */
export interface StageResults {
  readonly ir: IrGraph
  readonly groups: readonly Group[]
  readonly placement: Placement
  readonly plan: MemoryPlan
  readonly kernels: readonly EmittedGroup[]
  readonly program: Program
}

/** How each result is printed. */
const texts: { readonly [K in keyof StageResults]: (result: StageResults[K]) => string } = {
  ir: printIr,
  groups: printGroups,
  placement: printPlacement,
  plan: printPlan,
  kernels: (kernels) => kernels.map((kernel) => kernel.report.text).join('\n\n'),
  program: (program) => program.source,
}

/** The state of one compilation, to which each stage adds its result. */
export class Compilation {
  /** The name of the compiled program, unique in the process. */
  readonly name: string
  readonly graph: GraphModule
  /** The placeholders' specs; for a number an example. */
  readonly inputs: readonly (TensorSpec | number)[]
  /** Maps the position of an output to the position of the input that the caller writes it to. */
  readonly writeBacks: ReadonlyMap<number, number>
  /** Nodes that were not fused, if someone wants to know. @internal */
  readonly refused: Refusal[] = []
  readonly #results: Partial<{ -readonly [K in keyof StageResults]: StageResults[K] }> = {}
  #text: () => string

  constructor(name: string, graph: GraphModule, inputs: readonly (TensorSpec | number)[], writeBacks: ReadonlyMap<number, number>) {
    this.name = name
    this.graph = graph
    this.inputs = inputs
    this.writeBacks = writeBacks
    this.#text = () => graph.code
  }

  /** The result of a stage. Throws InternalError when the stage has not run. */
  get<K extends keyof StageResults>(what: K): StageResults[K] {
    const result: StageResults[K] | undefined = this.#results[what]
    if (result === undefined) throw new InternalError(`inductor: the compilation of ${this.name} has no ${what} yet`)
    return result
  }

  /** Sets the result of a stage. Returns true: a stage that sets a result has changed something. @internal */
  set<K extends keyof StageResults>(what: K, result: StageResults[K]): true {
    this.#results[what] = result
    this.#text = () => texts[what](result)
    return true
  }

  /** What a pass works on: the nodes of the graph, then those of the IR. @internal */
  get nodes(): Iterable<{ readonly name: string }> {
    const { ir } = this.#results
    return ir === undefined ? this.graph.graph.nodes : ir.nodes.flatMap(outputsOf)
  }

  /** The latest result as text; before the first stage, the graph's code. */
  get text(): string {
    return this.#text()
  }
}

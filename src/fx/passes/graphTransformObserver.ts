// GraphTransformObserver: what one pass did to a graph: the nodes that came and went, a picture before and one after.
import { ArgumentError } from '../../errors/index.ts'
import type { Graph } from '../graph.ts'
import { GraphModule } from '../graphModule.ts'
import { FxGraphDrawer } from './graphDrawer.ts'
import { PassResult } from './passBase.ts'

/** What a pass did. Names of nodes are those of the graph that they stand in. */
export interface PassRecord {
  readonly passName: string
  /** Number of the pass, counted over all observers, from 1. */
  readonly passCount: number
  readonly createdNodes: ReadonlySet<string>
  readonly erasedNodes: ReadonlySet<string>
  /** The module before; its tensors are those of the observed one. For `graphPage(after, { before })`. */
  readonly before: GraphModule
  readonly after: GraphModule
  /** Graphviz DOT of the graph before; nodes that went are yellow, others grey. */
  readonly inputDot: string
  /** Graphviz DOT of the graph after; nodes that came are yellow, others grey. */
  readonly outputDot: string
}

/** Options of {@link GraphTransformObserver}. */
export interface GraphTransformObserverOptions {
  /** Gets the two pictures when the pass changed something: `pass_1_fuse_input_graph.dot` and `pass_1_fuse_output_graph.dot`. PyTorch's log_url is their folder. */
  readonly write?: (fileName: string, dot: string) => void
  /** Gets the record when the pass changed something. */
  readonly onChange?: (record: PassRecord) => void
}

let passes = 0

/**
 * Observes a pass from its making until it is disposed. PyTorch's torch.fx.passes.graph_transform_observer.GraphTransformObserver.
 *
 *     using observer = new GraphTransformObserver(gm, 'relu_to_sigmoid', { write: (name, dot) => writeFileSync(name, dot) })
 *
 * or around one call: `new GraphTransformObserver(gm, 'fuse', options).applyGmPass(fuse)`.
 */
export class GraphTransformObserver {
  /** Names of the nodes that the pass made. */
  readonly createdNodes: Set<string> = new Set()
  /** Names of the nodes that the pass erased. */
  readonly erasedNodes: Set<string> = new Set()
  readonly #gm: GraphModule
  readonly #passName: string
  readonly #options: GraphTransformObserverOptions
  readonly #count: number
  readonly #before: GraphModule
  readonly #stop: readonly (() => void)[]
  #ended = false

  constructor(gm: GraphModule, passName: string, options: GraphTransformObserverOptions = {}) {
    if (!(gm instanceof GraphModule))
      throw new ArgumentError('GraphTransformObserver: the first argument must be the GraphModule that the pass will change.')
    this.#gm = gm
    this.#passName = passName
    this.#options = options
    this.#count = ++passes
    this.#before = gm.deepCopy({ shareTensors: true })
    this.#stop = [
      gm.registerCreateNodeHook((node) => void this.createdNodes.add(node.name)),
      gm.registerEraseNodeHook((node) => {
        // What the pass made and removed again was never there.
        if (!this.createdNodes.delete(node.name)) this.erasedNodes.add(node.name)
      }),
    ]
  }

  /** How many passes were observed so far. */
  static getCurrentPassCount(): number {
    return passes
  }

  /** Runs a pass that takes the module, and ends the observation. A pass may return another GraphModule (or a PassResult with one): then the two graphs are compared by name. */
  applyGmPass<T>(pass: (gm: GraphModule) => T): T {
    try {
      const result = pass(this.#gm)
      const made = result instanceof PassResult ? result.graphModule : result
      this.#end(made instanceof GraphModule ? made : this.#gm)
      return result
    } finally {
      this[Symbol.dispose]()
    }
  }

  /** Runs a pass that takes the graph, and ends the observation. */
  applyGraphPass<T>(pass: (graph: Graph) => T): T {
    return this.applyGmPass((gm) => pass(gm.graph))
  }

  /** Ends the observation and hands out what was seen. */
  [Symbol.dispose](): void {
    this.#end(this.#gm)
  }

  #end(after: GraphModule): void {
    if (this.#ended) return
    this.#ended = true
    for (const stop of this.#stop) stop()
    if (after !== this.#gm) this.#compare(after)
    if (this.createdNodes.size === 0 && this.erasedNodes.size === 0) return
    const { write, onChange } = this.#options
    if (write === undefined && onChange === undefined) return
    const record = this.#record(after)
    const file = `pass_${this.#count}_${this.#passName}`
    write?.(`${file}_input_graph.dot`, record.inputDot)
    write?.(`${file}_output_graph.dot`, record.outputDot)
    onChange?.(record)
  }

  #compare(after: GraphModule): void {
    const names = (gm: GraphModule): Set<string> => new Set([...gm.graph.nodes].map((n) => n.name))
    const [old, now] = [names(this.#before), names(after)]
    for (const name of now) if (!old.has(name)) this.createdNodes.add(name)
    for (const name of old) if (!now.has(name)) this.erasedNodes.add(name)
  }

  #record(after: GraphModule): PassRecord {
    const draw = (gm: GraphModule, marked: ReadonlySet<string>): string =>
      new FxGraphDrawer(gm, this.#passName, {
        ignoreGetattr: true,
        ignoreParametersAndBuffers: true,
        colorOf: (node) => (marked.has(node.name) ? 'yellow' : 'grey'),
      }).getDotGraph()
    return {
      passName: this.#passName,
      passCount: this.#count,
      createdNodes: this.createdNodes,
      erasedNodes: this.erasedNodes,
      before: this.#before,
      after,
      inputDot: draw(this.#before, this.erasedNodes),
      outputDot: draw(after, this.createdNodes),
    }
  }
}

// GraphTransformObserver: records what a pass does to a graph: the nodes that it adds and removes, and drawings of the graph before and after.
/// <reference lib="esnext.disposable" preserve="true" />
import { checkGraphModule } from '../../../protocol/graphChecks.ts'
import { InternalError } from '../../../errors/index.ts'
import { replaced, runPasses } from '../../../pipeline/index.ts'
import type { PassObserver, Replaced } from '../../../pipeline/index.ts'
import { checkCount, checkOptions } from '../../../protocol/index.ts'
import type { Graph } from '../../graph/graph.ts'
import { GraphModule } from '../../run/graphModule.ts'
import { FxGraphDrawer } from '../dot/graphDrawer.ts'
import { PassResult, graphFacts } from './pass.ts'

/** What a pass did. Created nodes are named as in the graph after the pass, erased nodes as in the graph before it. */
export interface PassRecord {
  readonly passName: string
  /** The number of the pass, counted over all observers, from 1. */
  readonly passCount: number
  readonly createdNodes: ReadonlySet<string>
  readonly erasedNodes: ReadonlySet<string>
  /** The module before the pass, for `graphPage(after, { before })`. It shares its tensors with the observed module. */
  readonly before: GraphModule
  readonly after: GraphModule
  /** The graph before the pass in Graphviz' DOT. Erased nodes are yellow, others grey. */
  readonly inputDot: string
  /** The graph after the pass in Graphviz' DOT. Created nodes are yellow, others grey. */
  readonly outputDot: string
}

/** Options of {@link GraphTransformObserver}. */
export interface GraphTransformObserverOptions {
  /** Called with the two drawings of a pass that changed something: `pass_1_fuse_input_graph.dot` and `pass_1_fuse_output_graph.dot`. PyTorch's log_url is their folder. */
  readonly write?: (fileName: string, dot: string) => void
  /** Called with the record of a pass that changed something. */
  readonly onChange?: (record: PassRecord) => void
}

let passes = 0

/**
 * Observes a module while a pass changes it, until the observer is disposed. PyTorch's torch.fx.passes.graph_transform_observer.GraphTransformObserver.
 *
 *     using observer = new GraphTransformObserver(gm, 'relu_to_sigmoid', { write: (name, dot) => writeFileSync(name, dot) })
 *
 * For one call: `new GraphTransformObserver(gm, 'fuse', options).applyGmPass(fuse)`. For all passes of a run: see {@link observeTransforms}.
 */
export class GraphTransformObserver {
  /** The names of the nodes that the pass created. */
  readonly createdNodes: Set<string> = new Set()
  /** The names of the nodes that the pass erased. */
  readonly erasedNodes: Set<string> = new Set()
  readonly #gm: GraphModule
  readonly #passName: string
  readonly #options: GraphTransformObserverOptions
  readonly #count: number
  readonly #before: GraphModule
  readonly #stop: readonly (() => void)[]
  #ended = false

  constructor(gm: GraphModule, passName: string, options: GraphTransformObserverOptions = {}) {
    checkCount('GraphTransformObserver', arguments, 3)
    checkOptions('GraphTransformObserver', options, { write: true, onChange: true })
    checkGraphModule('GraphTransformObserver', gm)
    this.#gm = gm
    this.#passName = passName
    this.#options = options
    this.#count = ++passes
    this.#before = gm.deepCopy({ shareTensors: true })
    this.#stop = [
      gm.registerCreateNodeHook((node) => void this.createdNodes.add(node.name)),
      gm.registerEraseNodeHook((node) => {
        // A node that the pass created and erased counts as neither.
        if (!this.createdNodes.delete(node.name)) this.erasedNodes.add(node.name)
      }),
    ]
  }

  /** The number of passes observed so far. */
  static getCurrentPassCount(): number {
    checkCount('getCurrentPassCount', arguments, 0)
    return passes
  }

  /**
   * Runs a pass on the module, ends the observation, and returns what the pass returned. If that is another GraphModule, or a PassResult with one, the two graphs
   * are compared by the names of their nodes. Throws InternalError if the pass did not run.
   */
  applyGmPass<T>(pass: (gm: GraphModule) => T): T {
    const results: T[] = []
    const run = (gm: GraphModule): Replaced<GraphModule> => {
      const result = pass(gm)
      results.push(result)
      const made = result instanceof PassResult ? result.graphModule : result
      return replaced(made instanceof GraphModule ? made : gm)
    }
    const observers = [{ after: (_pass: unknown, gm: GraphModule) => this.end(gm), failed: () => this.end() }]
    runPasses([{ name: this.#passName, run }], this.#gm, { observers }, graphFacts)
    for (const result of results) return result
    throw new InternalError('runPasses returned without running the pass')
  }

  /** Runs a pass on the graph, ends the observation, and returns what the pass returned. */
  applyGraphPass<T>(pass: (graph: Graph) => T): T {
    return this.applyGmPass((gm) => pass(gm.graph))
  }

  /** Ends the observation. */
  [Symbol.dispose](): void {
    this.end()
  }

  /** Ends the observation and reports the changes. `after` is the resulting module, if it is not the observed one. */
  end(after: GraphModule = this.#gm): void {
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

/**
 * An observer for `runPasses` that reports every pass that changed something.
 *
 *     runPasses([deadCode, cse], gm, { observers: [observeTransforms({ onChange: (record) => console.log(record.passName) })] })
 */
export function observeTransforms(options: GraphTransformObserverOptions): PassObserver<GraphModule> {
  checkCount('observeTransforms', arguments, 1)
  let current: GraphTransformObserver | null = null
  return {
    before: (pass, gm) => void (current = new GraphTransformObserver(gm, pass.name, options)),
    after: (_pass, gm) => current?.end(gm),
    failed: () => current?.end(),
  }
}

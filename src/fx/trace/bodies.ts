// Bodies of control flow: functions that are recorded as child graphs while a program is traced. A body gets the outer values that it uses as inputs.
import type { Graph } from '../graph/graph.ts'
import type { Node } from '../graph/node.ts'

/** A function to record as a child graph. */
export interface BodySource {
  /** The child module's name without its number: `true_graph_`. */
  readonly prefix: string
  /** The inputs: the name of each, and the outer node that it stands for, if any. */
  readonly inputs: readonly { readonly name: string; readonly outer: Node | null }[]
  /** Computes the results of the body from its traced inputs. */
  readonly run: (inputs: readonly unknown[]) => readonly unknown[]
}

/** Recorded bodies. */
export interface RecordedBodies {
  /** The outer nodes that refer to the child modules, in the order of the sources. */
  readonly modules: readonly Node[]
  /** The outer nodes that the bodies use besides their inputs. All bodies get them as further inputs, after the others. */
  readonly captured: readonly Node[]
}

/** A body that is being recorded. */
interface Frame {
  readonly graph: Graph
  /** The outer graph. */
  readonly around: Graph
  /** From outer node to the body's input for it. */
  readonly captured: Map<Node, Node>
}

/** The nested bodies that a tracer is recording, outermost first. */
export class BodyStack {
  readonly #frames: Frame[] = []
  readonly #onInput: (input: Node, outer: Node) => void

  /** `onInput` is called with each input that stands for an outer node. */
  constructor(onInput: (input: Node, outer: Node) => void) {
    this.#onInput = onInput
  }

  /** The graph outside all bodies; null if no body is being recorded. */
  get outermost(): Graph | null {
    return this.#frames[0]?.around ?? null
  }

  /** The innermost body's input for a node of an outer graph, which is made on first use. Null if the node is not in an outer graph. */
  capture(node: Node): Node | null {
    const level = this.#frames.findIndex((frame) => frame.around === node.graph)
    if (level < 0) return null
    return this.#frames.slice(level).reduce((outer, frame) => this.#inputOf(frame, outer), node)
  }

  #inputOf(frame: Frame, outer: Node): Node {
    let input = frame.captured.get(outer)
    if (input === undefined) {
      const make = (): Node => frame.graph.placeholder(outer.name)
      const operation = firstOperation(frame.graph)
      input = operation === null ? make() : frame.graph.insertingBefore(operation, make)
      frame.captured.set(outer, input)
      this.#onInput(input, outer)
    }
    return input
  }

  /** Calls `record` to record a body into `graph`, inside `around`. */
  within(graph: Graph, around: Graph, record: () => void): Frame {
    const frame: Frame = { graph, around, captured: new Map() }
    this.#frames.push(frame)
    try {
      record()
    } finally {
      this.#frames.pop()
    }
    return frame
  }

  /** Gives all bodies the same further inputs in the same order, and returns the outer nodes that these stand for. */
  align(frames: readonly Frame[]): readonly Node[] {
    const all = [...new Set(frames.flatMap((frame) => [...frame.captured.keys()]))].toSorted((a, b) => a.sortKey - b.sortKey)
    for (const frame of frames) {
      const operation = firstOperation(frame.graph)
      for (const outer of all) operation?.prepend(this.#inputOf(frame, outer))
    }
    return all
  }
}

function firstOperation(graph: Graph): Node | null {
  for (const node of graph.nodes) if (node.op !== 'placeholder') return node
  return null
}

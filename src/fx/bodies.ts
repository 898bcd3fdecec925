// Bodies of control flow: functions that become child graphs while a program is traced. What a body uses of the values around it becomes an input of it.
import type { Graph } from './graph.ts'
import type { Node } from './node.ts'

/** A function to record as a child graph. */
export interface BodySource {
  /** The child module's name without its number: `true_graph_`. */
  readonly prefix: string
  /** The inputs: a name for each, and the node around that it stands for, where there is one. */
  readonly inputs: readonly { readonly name: string; readonly outer: Node | null }[]
  /** Is given the traced inputs and returns the values that the body computes. */
  readonly run: (inputs: readonly unknown[]) => readonly unknown[]
}

/** Bodies that were recorded. */
export interface RecordedBodies {
  /** Nodes around that refer to the child modules, in the order of the sources. */
  readonly modules: readonly Node[]
  /** Nodes around that the bodies use besides their inputs: further inputs, the same for all bodies, behind the others. */
  readonly captured: readonly Node[]
}

/** A body that is being recorded. */
interface Frame {
  readonly graph: Graph
  readonly around: Graph
  /** Node around -> the body's input for it. */
  readonly captured: Map<Node, Node>
}

/** The bodies that a tracer is inside of, outermost first. */
export class BodyStack {
  readonly #frames: Frame[] = []
  readonly #onInput: (input: Node, outer: Node) => void

  /** `onInput` hears of each input that stands for a node around. */
  constructor(onInput: (input: Node, outer: Node) => void) {
    this.#onInput = onInput
  }

  /** The graph that is not inside of any body; null outside of bodies. */
  get outermost(): Graph | null {
    return this.#frames[0]?.around ?? null
  }

  /** The inner body's input for a node of a graph around it, made on first use; null for a node of no such graph. */
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

  /** Fills `graph` by `record`, as a body inside of `around`. */
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

  /** Gives all bodies the same further inputs, in one order, and returns the nodes around that they stand for. */
  align(frames: readonly Frame[]): readonly Node[] {
    const all = [...new Set(frames.flatMap((frame) => [...frame.captured.keys()]))].toSorted((a, b) => a.sortKey - b.sortKey)
    for (const frame of frames) {
      const end = firstOperation(frame.graph) as Node
      for (const outer of all) end.prepend(this.#inputOf(frame, outer))
    }
    return all
  }
}

function firstOperation(graph: Graph): Node | null {
  for (const node of graph.nodes) if (node.op !== 'placeholder') return node
  return null
}

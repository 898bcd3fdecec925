// What a code generator returns: the source, what it refers to, and which node each line came from.
import type { Node } from './node.ts'

/** The generated function; PyTorch's PythonCode. */
export class GeneratedCode {
  /** `function forward(x) { … }`, without trailing newline. */
  readonly source: string
  /** What the source refers to besides its parameters: names and values. */
  readonly globals: ReadonlyMap<string, unknown>
  readonly #nodes: readonly (Node | null)[]
  #lineMap: ReadonlyMap<number, Node> | null = null

  /** `nodes[i]` is the node of line i + 1, null for lines that belong to none. */
  constructor(source: string, globals: ReadonlyMap<string, unknown>, nodes: readonly (Node | null)[]) {
    this.source = source
    this.globals = globals
    this.#nodes = nodes
  }

  get lineCount(): number {
    return this.#nodes.length
  }

  /** The node of a line (from 1). */
  nodeAt(line: number): Node | null {
    return this.#nodes[line - 1] ?? null
  }

  /** Line of `source` (from 1) -> node. PyTorch's _lineno_map. */
  get lineMap(): ReadonlyMap<number, Node> {
    this.#lineMap ??= new Map(this.#nodes.flatMap((node, i): [number, Node][] => (node === null ? [] : [[i + 1, node]])))
    return this.#lineMap
  }
}

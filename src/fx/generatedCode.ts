// What a code generator returns: the source, what it refers to, and which node each line came from.
import type { Node } from './node.ts'
import { sourceMapOf } from './sourceMap.ts'
import type { SourceMap } from './sourceMap.ts'

interface Content {
  readonly source: string
  readonly globals: ReadonlyMap<string, unknown>
  readonly nodes: readonly (Node | null)[]
}

/** The generated function; PyTorch's PythonCode. */
export class GeneratedCode {
  #content: Content | (() => GeneratedCode)
  #lineMap: ReadonlyMap<number, Node> | null = null

  /** `nodes[i]` is the node of line i + 1, null for lines that belong to none. */
  constructor(source: string, globals: ReadonlyMap<string, unknown>, nodes: readonly (Node | null)[]) {
    this.#content = { source, globals, nodes }
  }

  /** Code that is generated when somebody looks at it. */
  static later(make: () => GeneratedCode): GeneratedCode {
    const code = new GeneratedCode('', new Map(), [])
    code.#content = make
    return code
  }

  #known(): Content {
    let content = this.#content
    if (typeof content === 'function') this.#content = content = content().#known()
    return content
  }

  /** `function forward(x) { … }`, without trailing newline. */
  get source(): string {
    return this.#known().source
  }

  /** What the source refers to besides its parameters: names and values. */
  get globals(): ReadonlyMap<string, unknown> {
    return this.#known().globals
  }

  /** Lines of `source`. */
  get lineCount(): number {
    return this.#known().nodes.length
  }

  /** The node of a line (from 1). */
  nodeAt(line: number): Node | null {
    return this.#known().nodes[line - 1] ?? null
  }

  /** Line of `source` (from 1) -> node. PyTorch's _lineno_map. */
  get lineMap(): ReadonlyMap<number, Node> {
    this.#lineMap ??= new Map(this.#known().nodes.flatMap((node, i): [number, Node][] => (node === null ? [] : [[i + 1, node]])))
    return this.#lineMap
  }

  /** Which line of the user's program each line comes from, for debuggers; null when none is known to come from there. */
  get sourceMap(): SourceMap | null {
    return sourceMapOf(this)
  }
}

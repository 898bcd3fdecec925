// The result of code generation: the source, its globals, and the node of each line. It can also be generated lazily, when it is first read.
import type { GeneratedCode, SourceMap } from '../graph/graphText.ts'
import type { Node } from '../graph/node.ts'
import { sourceMapOf } from './sourceMap.ts'

/** Code that has been generated. */
export class WrittenCode implements GeneratedCode {
  readonly source: string
  readonly globals: ReadonlyMap<string, unknown>
  readonly lineCount: number
  readonly #nodes: readonly (Node | null)[]
  #lineMap: ReadonlyMap<number, Node> | null = null
  #sourceMap: SourceMap | null | undefined

  /** `nodes[i]` is the node that line i + 1 computes; null if there is none. */
  constructor(source: string, globals: ReadonlyMap<string, unknown>, nodes: readonly (Node | null)[]) {
    this.source = source
    this.globals = globals
    this.lineCount = nodes.length
    this.#nodes = nodes
  }

  nodeAt(line: number): Node | null {
    return this.#nodes[line - 1] ?? null
  }

  get lineMap(): ReadonlyMap<number, Node> {
    this.#lineMap ??= new Map(this.#nodes.flatMap((node, i): [number, Node][] => (node === null ? [] : [[i + 1, node]])))
    return this.#lineMap
  }

  get sourceMap(): SourceMap | null {
    return this.#sourceMap === undefined ? (this.#sourceMap = sourceMapOf(this.#nodes)) : this.#sourceMap
  }
}

/** Code that is generated when it is first read. */
export function codeLater(make: () => GeneratedCode): GeneratedCode {
  let made: GeneratedCode | null = null
  const code = (): GeneratedCode => (made ??= make())
  return {
    get source() {
      return code().source
    },
    get globals() {
      return code().globals
    },
    get lineCount() {
      return code().lineCount
    },
    nodeAt: (line) => code().nodeAt(line),
    get lineMap() {
      return code().lineMap
    },
    get sourceMap() {
      return code().sourceMap
    },
  }
}

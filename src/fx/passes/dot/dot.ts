// Writes graphs in Graphviz' DOT language, in the same form as pydot.

const ID = /^[_a-zA-Z][a-zA-Z0-9_,]*$/
const NUMBER = /^[0-9,]+$/
const KEYWORDS: ReadonlySet<string> = new Set(['graph', 'subgraph', 'digraph', 'node', 'edge', 'strict'])

/** A name or value, in quotes if DOT requires them. */
function dotId(text: string): string {
  if ((ID.test(text) && !KEYWORDS.has(text)) || NUMBER.test(text)) return text
  return `"${text.replaceAll('"', '\\"').replaceAll('\n', '\\n')}"`
}

/** A graph to which nodes and edges are added; `String(graph)` is its DOT. */
export class DotGraph {
  readonly #name: string
  readonly #lines: string[] = []

  constructor(name: string) {
    this.#name = name
  }

  /** Attributes are written unchanged, so the caller has to quote them. */
  node(name: string, attributes: readonly (readonly [string, string])[]): void {
    this.#lines.push(`${dotId(name)} [${attributes.map(([key, value]) => `${key}=${value}`).join(', ')}];`)
  }

  edge(from: string, to: string): void {
    this.#lines.push(`${dotId(from)} -> ${dotId(to)};`)
  }

  toString(): string {
    return `digraph ${dotId(this.#name)} {\nrankdir=TB;\n${this.#lines.map((line) => `${line}\n`).join('')}}\n`
  }
}

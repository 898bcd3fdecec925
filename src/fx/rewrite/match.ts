// What a matcher finds.
import type { Argument, Node } from '../node.ts'

/** One occurrence of a pattern; PyTorch's InternalMatch. */
export interface InternalMatch {
  /** The pattern's nodes from which it was found: those that only the pattern's output uses. */
  readonly anchors: readonly Node[]
  /** Pattern node -> node of the graph, or the literal that a placeholder of the pattern stands for. */
  readonly nodesMap: Map<Node, Argument>
  /** What the pattern's placeholders stand for, in order. */
  readonly placeholderNodes: Argument[]
  /** The nodes of the graph that the pattern returns, in order. */
  readonly returningNodes: Node[]
}

/** The nodes of the graph that the pattern's calls stand for; not those of its placeholders. */
export const innerNodes = (match: { readonly nodesMap: ReadonlyMap<Node, Argument> }): Node[] =>
  [...match.nodesMap].flatMap(([pattern, value]) => (pattern.op === 'placeholder' || pattern.op === 'output' ? [] : [value as Node]))

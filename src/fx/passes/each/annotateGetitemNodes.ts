// annotateGetitemNodes: the types of elements that are taken out of tuples and lists. PyTorch's torch.fx.passes.annotate_getitem_nodes.
import { checkCount } from '../../../protocol/index.ts'
import { checkGraph } from '../../../protocol/graphChecks.ts'
import { ArgumentError } from '../../../errors/index.ts'
import type { Graph } from '../../graph/graph.ts'
import { Node } from '../../graph/node.ts'
import { operator } from '../../graph/operator.ts'
import { parseType } from '../../text/typeExpression.ts'

/** Options of {@link annotateGetitemNodes}. */
export interface AnnotateGetitemOptions {
  /** The types of the fields of named tuples, by the name of the tuple, in order. */
  readonly namedTuples?: Readonly<Record<string, Readonly<Record<string, string>>>>
}

/**
 * Sets the type of every `operator.getitem` node with a number as index whose sequence has a type: a tuple (`Tuple[int, Tensor]`, `tuple[int, ...]`, or TypeScript's
 * `[number, Tensor]`), a list (`List[Tensor]`, `Tensor[]`, `Array<Tensor>`), or a named tuple. Other nodes stay as they are. Elements of elements get their types too.
 * PyTorch's annotate_getitem_nodes.
 *
 *     annotateGetitemNodes(gm.graph, { namedTuples: { Point: { x: 'int', y: 'int' } } })
 *
 * @throws ArgumentError for an index that the tuple does not have.
 */
export function annotateGetitemNodes(graph: Graph, options: AnnotateGetitemOptions = {}): void {
  checkCount('annotateGetitemNodes', arguments, 2)
  checkGraph('annotateGetitemNodes', graph)
  for (const node of graph.findNodes({ op: 'call_function', target: operator.getitem })) {
    const [sequence, index] = node.args
    if (!(sequence instanceof Node) || typeof sequence.type !== 'string' || typeof index !== 'number') continue
    const elements = elementsOf(sequence.type, options.namedTuples ?? {})
    if (elements === null) continue
    const at = elements.types[elements.repeated ? 0 : index < 0 ? elements.types.length + index : index]
    if (at === undefined)
      throw new ArgumentError(
        `annotateGetitemNodes: Index ${index} out of range for parameterized_types (len=${elements.types.length}); node '${node.name}' takes an element of a ${sequence.type}.`,
      )
    node.type = at
  }
}

interface Elements {
  readonly types: readonly string[]
  /** Every element has the first type. */
  readonly repeated: boolean
}

/** The types of a sequence's elements; null if the type is not one of a sequence. */
function elementsOf(type: string, namedTuples: Readonly<Record<string, Readonly<Record<string, string>>>>): Elements | null {
  const fields = namedTuples[type]
  if (fields !== undefined) return { types: Object.values(fields), repeated: false }
  const { kind, args } = parseType(type)
  if (kind === 'list') return { types: args, repeated: true }
  if (kind !== 'tuple') return null
  return args.at(-1) === '...' ? { types: args.slice(0, -1), repeated: true } : { types: args, repeated: false }
}

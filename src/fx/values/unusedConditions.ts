// Detects conditions on traced values. For `if (x.gt(0))` JavaScript does not call the tracer: a traced value is always true, and the graph gets only one side of
// the branch. What remains is a comparison whose result nothing uses, and that is worth a warning.
import { targetInfo, snakeCase } from '../../protocol/index.ts'
import { targetText } from '../graph/node.ts'
import type { Graph } from '../graph/graph.ts'
import type { Node } from '../graph/node.ts'
import { originOf } from '../graph/origin.ts'
import { TraceError } from '../graph/errors.ts'

/** What to do about comparisons whose result is unused. */
export type UnusedConditions = 'warn' | 'error' | 'ignore'

/** Operators that are typically conditions. */
const CONDITIONS = new Set(
  'eq ne lt le gt ge greater greater_equal less less_equal not_equal equal allclose isclose isnan isinf isfinite any all logical_and logical_or logical_xor logical_not not_ is_ is_not contains'.split(
    ' ',
  ),
)

const HELP = `If the code there branches on it (if, ?:, &&, ||, !, while), the graph contains only one of the branches. What to do:
  - write both sides as data: torch.where(condition, a, b), or torch.cond(condition, f, g, [x])
  - trace one side on purpose: make the condition an argument, and fix it with concreteArgs
  - detect such code: fx.bool(condition) throws while tracing, and the lint rule no-tensor-condition finds it in the source
  - if all you need is speed: use compile(), with condition.item()
If the result is not needed: new Tracer({ unusedConditions: 'ignore' }).`

const known = new WeakSet<Node>()

/** Notes that a tracer has decided this condition (`fx.bool`), so that the program took the right branch. */
export const answered = (node: Node): void => void known.add(node)

/** Reads of tensors count: of one that the program uses, something would be left. */
const isCondition = (node: Node): boolean =>
  node.users.size === 0 &&
  !known.has(node) &&
  (node.op === 'get_attr' ||
    (node.op === 'call_method' && CONDITIONS.has(snakeCase(node.target))) ||
    (node.op === 'call_function' && CONDITIONS.has(targetInfo(node.target)?.shortName ?? '')))

/** Finds comparisons whose result is unused, and warns about them or throws TraceError for the first. */
export function checkConditions(graph: Graph, what: UnusedConditions): void {
  if (what === 'ignore') return
  const told = new Set<string>()
  for (const node of graph.nodes) {
    if (!isCondition(node)) continue
    const frame = originOf(node)
    const result = node.op === 'get_attr' ? `'${node.target}'` : `the result of ${targetText(node.target)}`
    const text = `nothing uses ${result} (node '${node.name}')`
    if (what === 'error') throw new TraceError(text, HELP, frame)
    const place = frame === null ? '' : ` at ${frame.fn} (${frame.file}:${frame.line}:${frame.column})`
    if (told.has(place)) continue
    told.add(place)
    console.warn(`symbolic tracing: ${text}${place}.\n${HELP}`)
  }
}

/** Warns of an argument that the function `name` takes for a condition although it is a traced value, or throws TraceError. */
export function reportTested(argument: string, name: string, what: UnusedConditions): void {
  if (what === 'ignore') return
  const text = `${name} takes its argument '${argument}' for a condition, and a traced value is always true`
  if (what === 'error') throw new TraceError(text, HELP)
  console.warn(`symbolic tracing: ${text}.\n${HELP}`)
}

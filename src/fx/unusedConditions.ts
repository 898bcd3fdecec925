// The branch that nobody saw: `if (x.gt(0))` asks a traced value whether it is true, JavaScript says yes without asking the tracer, and the graph
// keeps one side. What is left of it is a comparison that nothing uses. Worth a word.
import { targetInfo } from '../protocol/index.ts'
import { targetText } from './format.ts'
import type { Graph } from './graph.ts'
import { snakeCase } from './namespace.ts'
import type { Node } from './node.ts'
import { originOf } from './origin.ts'
import { TraceError } from './traceError.ts'

/** What to do about comparisons that nothing uses. */
export type UnusedConditions = 'warn' | 'error' | 'ignore'

/** Operators whose results are asked for in conditions. */
const CONDITIONS = new Set(
  'eq ne lt le gt ge greater greater_equal less less_equal not_equal equal allclose isclose isnan isinf isfinite any all logical_and logical_or logical_xor logical_not not_ is_ is_not contains'.split(
    ' ',
  ),
)

const HELP = `If the code there asks whether it is true (if, ?:, &&, ||, !, while), the trace has taken one side for good. What to do:
  - write both sides as data: torch.where(condition, a, b), or torch.cond(condition, f, g, [x])
  - trace one side on purpose: make the condition an argument, and fix it with concreteArgs
  - keep such a place from tracing: fx.bool(condition) throws while tracing, and the lint rule no-tensor-condition finds it in the source
  - if the program only has to run fast: use compile(), with condition.item()
If the value is just not needed, new Tracer({ unusedConditions: 'ignore' }) is silent.`

const known = new WeakSet<Node>()

/** A tracer knew whether this is true (`fx.bool`), so the program went on in the right direction. */
export const answered = (node: Node): void => void known.add(node)

const isCondition = (node: Node): boolean =>
  node.users.size === 0 &&
  !known.has(node) &&
  ((node.op === 'call_method' && CONDITIONS.has(snakeCase(node.target as string))) ||
    (node.op === 'call_function' && typeof node.target === 'function' && CONDITIONS.has(targetInfo(node.target)?.shortName ?? '')))

/** Looks for comparisons that nothing uses, and warns of them or throws a TraceError for the first. */
export function checkConditions(graph: Graph, what: UnusedConditions): void {
  if (what === 'ignore') return
  const told = new Set<string>()
  for (const node of graph.nodes) {
    if (!isCondition(node)) continue
    const frame = originOf(node)
    const text = `nothing uses the result of ${targetText(node.target)} (node '${node.name}')`
    if (what === 'error') throw new TraceError(text, HELP, frame)
    const place = frame === null ? '' : ` at ${frame.fn} (${frame.file}:${frame.line}:${frame.column})`
    if (told.has(place)) continue
    told.add(place)
    console.warn(`symbolic tracing: ${text}${place}.\n${HELP}`)
  }
}

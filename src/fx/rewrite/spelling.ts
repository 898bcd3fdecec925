// Equivalent spellings of an operation: `torch.relu(x)` and `x.relu()`, `torch.add(x, y)` and `operator.add(x, y)`, options by name or by position. This gives what a
// node calls and its arguments in a normal form, so that a pattern matches however the program was written.
import { lookupTarget, remembered, snakeCase, targetInfo } from '../../protocol/index.ts'
import type { FunctionSchema } from '../../protocol/index.ts'
import type { Argument, Node } from '../graph/node.ts'

/** Operators whose names in Python and in torch differ. */
const OPERATORS: Readonly<Record<string, string>> = { truediv: 'div', floordiv: 'floor_divide', mod: 'remainder' }

const functions = new WeakMap<object, unknown>()
const methods = new Map<string, string>()

/** What a node calls, which is equal for all spellings of an operation. For modules, and for nodes that call nothing, it is the target. */
export function operationOf(node: Node): unknown {
  if (node.op === 'call_method') return remembered(methods, node.target, (name) => `op:${snakeCase(name)}`)
  if (node.op !== 'call_function') return node.target
  return remembered(functions, node.target, (fn) => {
    const [, home, short] = /^(torch|torch\.Tensor|operator)\.(\w+)$/.exec(targetInfo(fn)?.name ?? '') ?? []
    if (home === undefined || short === undefined) return fn
    return `op:${home === 'operator' ? (OPERATORS[short] ?? short) : short}`
  })
}

/** Whether two nodes can be the same operation, judging by their ops. A function and a method can. */
export const sameKind = (a: Node, b: Node): boolean => a.op === b.op || (isCall(a) && isCall(b))
const isCall = (node: Node): boolean => node.op === 'call_function' || node.op === 'call_method'

/** The schema of the operator that the node calls, if it calls one. */
function schemaOf(node: Node): FunctionSchema | undefined {
  if (node.op === 'call_function') {
    const own = targetInfo(node.target)?.schema
    if (own !== undefined) return own
  }
  const operation = operationOf(node)
  if (typeof operation !== 'string' || !operation.startsWith('op:')) return undefined
  const short = operation.slice(3)
  return targetInfo(lookupTarget(`torch.${short}`) ?? lookupTarget(`torch.Tensor.${short}`))?.schema
}

/** All arguments in schema order, with defaults filled in. Null if the node does not call an operator, or if the arguments do not match its schema. */
export function normalizedArgs(node: Node): Argument[] | null {
  const schema = schemaOf(node)
  if (schema === undefined || node.args.length > schema.args.length) return null
  const known = new Set(schema.args.map((a) => a.name))
  if (Object.keys(node.kwargs).some((key) => !known.has(key))) return null
  return schema.args.map((arg, i) => (i < node.args.length ? node.args[i] : (node.kwargs[arg.name] ?? arg.default ?? null)))
}

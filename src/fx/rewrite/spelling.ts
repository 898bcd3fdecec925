// One operation, several spellings: `torch.relu(x)`, `x.relu()`, `torch.add(x, y)`, `operator.add(x, y)`, options by name or by position. What a node calls,
// and its arguments in schema order, so that a pattern matches whichever way the program was written.
import { lookupTarget, targetInfo } from '../../protocol/index.ts'
import type { FunctionSchema } from '../../protocol/index.ts'
import { snakeCase } from '../namespace.ts'
import type { Argument, Node } from '../node.ts'

/** Python's operators whose name differs from torch's. */
const OPERATORS: Readonly<Record<string, string>> = { truediv: 'div', floordiv: 'floor_divide', mod: 'remainder' }

const functions = new WeakMap<object, unknown>()
const methods = new Map<string, string>()

/** What the node calls: equal for all spellings of one operation. Nodes without a call, and modules, have their target. */
export function operationOf(node: Node): unknown {
  const { target } = node
  if (node.op === 'call_method') return remembered(methods, target as string, (name) => `op:${snakeCase(name)}`)
  if (node.op !== 'call_function' || typeof target !== 'function') return target
  return remembered(functions, target, (fn) => {
    const [, home, short] = /^(torch|torch\.Tensor|operator)\.(\w+)$/.exec(targetInfo(fn)?.name ?? '') ?? []
    if (home === undefined || short === undefined) return fn
    return `op:${home === 'operator' ? (OPERATORS[short] ?? short) : short}`
  })
}

function remembered<K, V>(cache: { get(key: K): V | undefined; set(key: K, value: V): unknown }, key: K, make: (key: K) => V): V {
  let value = cache.get(key)
  if (value === undefined) cache.set(key, (value = make(key)))
  return value
}

/** Whether two nodes of these kinds can be one operation: a function and a method can. */
export const sameKind = (a: Node, b: Node): boolean => a.op === b.op || (isCall(a) && isCall(b))
const isCall = (node: Node): boolean => node.op === 'call_function' || node.op === 'call_method'

/** The schema of the operator that the node calls, if it is one. */
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

/** All arguments in schema order, defaults filled in; null when the node calls no operator or they do not fit its schema. */
export function normalizedArgs(node: Node): Argument[] | null {
  const schema = schemaOf(node)
  if (schema === undefined || node.args.length > schema.args.length) return null
  const known = new Set(schema.args.map((a) => a.name))
  if (Object.keys(node.kwargs).some((key) => !known.has(key))) return null
  return schema.args.map((arg, i) => (i < node.args.length ? node.args[i] : (node.kwargs[arg.name] ?? (arg.default as Argument) ?? null)) as Argument)
}

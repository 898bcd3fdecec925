// The text of nodes and graphs, as PyTorch prints them: `%add : [num_users=1] = call_function[target=torch.add](args = (%x, %y), kwargs = {})`.
import { isTensorLike, targetInfo } from '../protocol/index.ts'
import type { Graph } from './graph.ts'
import { snakeCase } from './namespace.ts'
import type { Argument, Node, Target } from './node.ts'
import { Slice } from './slice.ts'

/** Qualified name of a target: registered names as they are, other functions by their own name. */
export function targetText(target: Target): string {
  if (typeof target === 'string') return target
  return targetInfo(target)?.name ?? (target.name === '' ? '<anonymous>' : target.name)
}

/** The target as the node's line shows it: methods in PyTorch's spelling (`masked_fill` for `maskedFill`). */
export const nodeTargetText = (node: Node): string => (node.op === 'call_method' ? snakeCase(node.target as string) : targetText(node.target))

/** By its shape, not its class: node.ts prints through this file. */
const isNode = (value: object): value is Node => 'sortKey' in value && 'users' in value

/** A value as Python prints it: None, True, inf; arrays as lists; nodes through `node`. */
export function formatArg(value: Argument, node: (n: Node) => string = (n) => `%${n.name}`): string {
  if (value === null || value === undefined) return 'None'
  if (value === true) return 'True'
  if (value === false) return 'False'
  if (typeof value === 'number') return Number.isNaN(value) ? 'nan' : value === Infinity ? 'inf' : value === -Infinity ? '-inf' : String(value)
  if (typeof value === 'string') return value
  if (typeof value === 'function') return targetText(value as Target)
  if (isNode(value)) return node(value)
  if (Array.isArray(value)) return `[${value.map((v) => formatArg(v as Argument, node)).join(', ')}]`
  if (value instanceof Slice) return `slice(${[value.start, value.stop, value.step].map((v) => formatArg(v as Argument, node)).join(', ')})`
  if (isTensorLike(value)) return `tensor(shape=[${value.shape.join(', ')}], dtype=${value.dtype})`
  const prototype: unknown = Object.getPrototypeOf(value)
  if (prototype === Object.prototype || prototype === null) {
    return formatKwargs(value as Record<string, Argument>, node)
  }
  return String(value)
}

function formatKwargs(kwargs: Readonly<Record<string, Argument>>, node?: (n: Node) => string): string {
  return `{${Object.entries(kwargs)
    .map(([k, v]) => `${snakeCase(k)}: ${formatArg(v, node)}`)
    .join(', ')}}`
}

/** `(a,)`, `(a, b)`, `()`. */
export function formatTuple(values: readonly Argument[], node?: (n: Node) => string): string {
  const parts = values.map((v) => formatArg(v, node))
  return parts.length === 1 ? `(${parts[0] as string},)` : `(${parts.join(', ')})`
}

export function formatNode(node: Node): string {
  const type = node.type === null ? '' : `${node.type} `
  const head = `%${node.name} : ${type}[num_users=${node.users.size}] = ${node.op}[target=${nodeTargetText(node)}]`
  if (node.op === 'placeholder') return node.args.length === 0 ? head : `${head}(default=${formatArg(node.args[0])})`
  if (node.op === 'get_attr') return head
  if (node.op === 'output') return `return ${formatArg(node.args[0], (n) => n.name)}`
  return `${head}(args = ${formatTuple(node.args)}, kwargs = ${formatArg(node.kwargs)})`
}

export function formatGraph(graph: Graph): string {
  const lines = ['graph():']
  for (const node of graph.nodes) lines.push(`    ${formatNode(node)}`)
  return lines.join('\n')
}

/** Columns of printTabular, as Python's tabulate lays them out. */
export function formatTabular(graph: Graph): string {
  const quoted = (kwargs: Node['kwargs']): string =>
    `{${Object.entries(kwargs)
      .map(([k, v]) => `'${snakeCase(k)}': ${pyRepr(v)}`)
      .join(', ')}}`
  const rows = [['opcode', 'name', 'target', 'args', 'kwargs']]
  for (const node of graph.nodes) rows.push([node.op, node.name, nodeTargetText(node), pyTuple(node.args), quoted(node.kwargs)])
  const widths = (rows[0] as string[]).map((_, column) => Math.max(...rows.map((row) => (row[column] as string).length)))
  const line = (row: readonly string[]): string =>
    row
      .map((cell, i) => cell.padEnd(widths[i] as number))
      .join('  ')
      .trimEnd()
  return [line(rows[0] as string[]), widths.map((w) => '-'.repeat(w)).join('  '), ...rows.slice(1).map(line)].join('\n')
}

/** As `formatArg`, with strings quoted. */
function pyRepr(value: Argument): string {
  if (typeof value === 'string') return `'${value}'`
  if (Array.isArray(value)) return `[${value.map((v) => pyRepr(v as Argument)).join(', ')}]`
  return formatArg(value, (n) => n.name)
}

function pyTuple(values: readonly Argument[]): string {
  const parts = values.map(pyRepr)
  return parts.length === 1 ? `(${parts[0] as string},)` : `(${parts.join(', ')})`
}

// The text of nodes and graphs, as PyTorch prints them: `%add : [num_users=1] = call_function[target=torch.add](args = (%x, %y), kwargs = {})`.
import { isTensorLike, targetInfo } from '../protocol/index.ts'
import type { Graph } from './graph.ts'
import { snakeCase } from './namespace.ts'
import type { Argument, Node, Target } from './node.ts'
import { pyNumber, pyString } from './python.ts'
import { Slice } from './slice.ts'
import { TextBuilder } from './textBuilder.ts'
import { isTuple } from './tuple.ts'

/** Qualified name of a target: registered names as they are, other functions by their own name. */
export function targetText(target: Target): string {
  if (typeof target === 'string') return target
  return targetInfo(target)?.name ?? (target.name === '' ? '<anonymous>' : target.name)
}

/** The target as the node's line shows it: methods in PyTorch's spelling (`masked_fill` for `maskedFill`). */
export const nodeTargetText = (node: Node): string => (node.op === 'call_method' ? snakeCase(node.target as string) : targetText(node.target))

/** By its shape, not its class: node.ts prints through this file. */
const isNode = (value: object): value is Node => 'sortKey' in value && 'users' in value

const withPercent = (node: Node): string => `%${node.name}`
const bare = (node: Node): string => node.name

/** A value in a node's line, by PyTorch's rules: None, True, inf; strings and keys without quotes; nodes through `node`. */
export function formatArg(value: Argument, node: (n: Node) => string = withPercent): string {
  if (typeof value === 'string') return value
  if (typeof value !== 'object' || value === null) return scalarText(value)
  if (isNode(value)) return node(value)
  if (Array.isArray(value)) return sequenceText(value as readonly Argument[], (v) => formatArg(v, node))
  if (isPlain(value))
    return `{${entriesOf(value)
      .map(([k, v]) => `${k}: ${formatArg(v, node)}`)
      .join(', ')}}`
  // PyTorch prints everything else by Python's own repr, in which nodes have no percent sign.
  return pyRepr(value)
}

/** A value as Python's repr writes it; nodes by their names. */
export function pyRepr(value: Argument): string {
  if (typeof value === 'string') return pyString(value)
  if (typeof value !== 'object' || value === null) return scalarText(value)
  if (isNode(value)) return value.name
  if (Array.isArray(value)) return sequenceText(value as readonly Argument[], pyRepr)
  if (value instanceof Slice) return `slice(${[value.start, value.stop, value.step].map((v) => pyRepr(v as Argument)).join(', ')})`
  if (isTensorLike(value)) return `tensor(shape=[${value.shape.join(', ')}], dtype=${value.dtype})`
  if (isPlain(value))
    return `{${entriesOf(value)
      .map(([k, v]) => `${pyString(k)}: ${pyRepr(v)}`)
      .join(', ')}}`
  return String(value)
}

/** Python's str: as repr, but a string alone has no quotes. */
const pyStr = (value: Argument): string => (typeof value === 'string' ? value : pyRepr(value))

function scalarText(value: unknown): string {
  if (value === null || value === undefined) return 'None'
  if (value === true) return 'True'
  if (value === false) return 'False'
  if (typeof value === 'number') return pyNumber(value)
  if (typeof value === 'function') return targetText(value as Target)
  return String(value)
}

function sequenceText(values: readonly Argument[], text: (value: Argument) => string): string {
  return isTuple(values) ? tupleText(values, text) : `[${values.map(text).join(', ')}]`
}

/** `(a,)`, `(a, b)`, `()`. */
function tupleText(values: readonly Argument[], text: (value: Argument) => string): string {
  return values.length === 1 ? `(${text(values[0])},)` : `(${values.map(text).join(', ')})`
}

function isPlain(value: object): value is Readonly<Record<string, Argument>> {
  const prototype: unknown = Object.getPrototypeOf(value)
  return prototype === Object.prototype || prototype === null
}

const entriesOf = (value: Readonly<Record<string, Argument>>): [string, Argument][] => Object.entries(value)

/** Options in PyTorch's spelling: `unbiased: False`, `keep_dim: True`. */
function formatKwargs(kwargs: Node['kwargs'], text: (value: Argument) => string, key: (name: string) => string): string {
  const names = Object.keys(kwargs)
  return names.length === 0 ? '{}' : `{${names.map((k) => `${key(snakeCase(k))}: ${text(kwargs[k])}`).join(', ')}}`
}

const plainText = (value: Argument): string => formatArg(value)
const plainKey = (name: string): string => name

/** One node's line; PyTorch's Node.format_node. */
export function formatNode(node: Node): string {
  if (node.op === 'output') return `return ${pyStr(node.args[0])}`
  const type = node.type === null ? '' : `${node.type} `
  const head = `%${node.name} : ${type}[num_users=${node.users.size}] = ${node.op}[target=${nodeTargetText(node)}]`
  if (node.op === 'placeholder') return node.args.length === 0 ? head : `${head}(default=${pyStr(node.args[0])})`
  if (node.op === 'get_attr') return head
  return `${head}(args = ${tupleText(node.args, plainText)}, kwargs = ${formatKwargs(node.kwargs, plainText, plainKey)})`
}

/** The whole graph; PyTorch's str(graph). */
export function formatGraph(graph: Graph): string {
  const text = new TextBuilder()
  text.add('graph():')
  for (const node of graph.nodes) text.add(`    ${formatNode(node)}`)
  return String(text)
}

/** One more column of `formatTabular`: its title, and a node's cell. */
export type TableColumn = readonly [title: string, cell: (node: Node) => string]

const COLUMNS: readonly TableColumn[] = [
  ['opcode', (node) => node.op],
  ['name', bare],
  ['target', nodeTargetText],
  ['args', (node) => tupleText(node.args, pyRepr)],
  ['kwargs', (node) => formatKwargs(node.kwargs, pyRepr, pyString)],
]

/** The nodes as a table, laid out as Python's tabulate does in its 'simple' format. */
export function formatTabular(graph: Graph, extra: readonly TableColumn[] = []): string {
  const columns = [...COLUMNS, ...extra]
  const rows = [columns.map(([title]) => title)]
  for (const node of graph.nodes) rows.push(columns.map(([, cell]) => cell(node)))
  const widths = columns.map(([title]) => title.length + 2)
  for (const row of rows.slice(1)) for (let i = 0; i < row.length; i++) widths[i] = Math.max(widths[i] as number, (row[i] as string).length)
  const line = (cells: readonly string[]): string =>
    cells
      .map((cell, i) => cell.padEnd(widths[i] as number))
      .join('  ')
      .trimEnd()
  const rule = widths.map((w) => '-'.repeat(w)).join('  ')
  return [line(rows[0] as string[]), rule, ...rows.slice(1).map(line)].join('\n')
}

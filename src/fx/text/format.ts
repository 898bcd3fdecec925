// Prints nodes and graphs as PyTorch does: `%add : [num_users=1] = call_function[target=torch.add](args = (%x, %y), kwargs = {})`. Constants are written as in
// Python: 1e-05, inf, None.
import { checkArgument, checkString, isPlainObject, isTensorLike, snakeCase, isFunction, isObject } from '../../protocol/index.ts'
import type { TableColumn } from '../graph/graphText.ts'
import { Node, targetText } from '../graph/node.ts'
import type { Kwargs, NodeGraph } from '../graph/node.ts'
import { Slice, isTuple } from '../graph/pythonValues.ts'
import { TextBuilder } from './textBuilder.ts'

/** The target as printed in the node's line. Methods are in PyTorch's spelling: `masked_fill` for `maskedFill`. */
export const nodeTargetText = (node: Node): string => (node.op === 'call_method' ? snakeCase(node.target) : targetText(node.target))

const withPercent = (node: Node): string => `%${node.name}`
const bare = (node: Node): string => node.name

/** A value as PyTorch prints it in a node's line: None, True and inf, strings and keys without quotes. `node` gives the text of a node. */
export function formatArg(value: unknown, node: (n: Node) => string = withPercent): string {
  if (typeof value === 'string') return value
  if (!isObject(value)) return scalarText(value)
  if (value instanceof Node) return node(value)
  if (Array.isArray(value)) return sequenceText(value, (v) => formatArg(v, node))
  if (isPlainObject(value)) return recordText(value, plainKey, (v) => formatArg(v, node))
  // For everything else PyTorch falls back to Python's repr, where nodes have no percent sign.
  return pyRepr(value)
}

/** Python's repr of a value; a node is its name. */
export function pyRepr(value: unknown): string {
  if (typeof value === 'string') return pyString(value)
  if (!isObject(value)) return scalarText(value)
  if (value instanceof Node) return value.name
  if (Array.isArray(value)) return sequenceText(value, pyRepr)
  if (value instanceof Slice) return `slice(${[value.start, value.stop, value.step].map((v) => pyRepr(v)).join(', ')})`
  if (isTensorLike(value)) return `tensor(shape=[${value.shape.join(', ')}], dtype=${value.dtype})`
  if (isPlainObject(value)) return recordText(value, pyString, pyRepr)
  return String(value)
}

/** Python's str of a value: its repr, except that a string has no quotes. */
const pyStr = (value: unknown): string => (typeof value === 'string' ? value : pyRepr(value))

function scalarText(value: unknown): string {
  if (value === null || value === undefined) return 'None'
  if (typeof value === 'boolean') return value ? 'True' : 'False'
  if (typeof value === 'number') return pyNumber(value)
  return isFunction(value) ? targetText(value) : String(value)
}

function sequenceText(values: readonly unknown[], text: (value: unknown) => string): string {
  return isTuple(values) ? tupleText(values, text) : `[${listText(values, text)}]`
}

/** `(a,)`, `(a, b)`, `()`. */
function tupleText(values: readonly unknown[], text: (value: unknown) => string): string {
  return values.length === 1 ? `(${text(values[0])},)` : `(${listText(values, text)})`
}

/** `a, b`. A loop, since `map` is slow on the lists of a node, which have a prototype of their own. */
function listText(values: readonly unknown[], text: (value: unknown) => string): string {
  let out = ''
  for (let i = 0; i < values.length; i++) out += (i > 0 ? ', ' : '') + text(values[i])
  return out
}

function recordText(record: Readonly<Record<string, unknown>>, key: (name: string) => string, text: (value: unknown) => string): string {
  const names = Object.keys(record)
  return names.length === 0 ? '{}' : `{${names.map((name) => `${key(name)}: ${text(record[name])}`).join(', ')}}`
}

/** Options in PyTorch's spelling: `unbiased: False`, `keep_dim: True`. */
function formatKwargs(kwargs: Kwargs, text: (value: unknown) => string, key: (name: string) => string): string {
  return recordText(kwargs, (name) => key(snakeCase(name)), text)
}

const plainText = (value: unknown): string => formatArg(value)
const plainKey = (name: string): string => name

/** The line of one node; PyTorch's Node.format_node. */
export function formatNode(node: Node): string {
  if (node.op === 'output') return `return ${pyStr(node.args[0])}`
  const type = node.type === null ? '' : `${String(node.type)} `
  const head = `%${node.name} : ${type}[num_users=${node.users.size}] = ${node.op}[target=${nodeTargetText(node)}]`
  if (node.op === 'placeholder') return node.args.length === 0 ? head : `${head}(default=${pyStr(node.args[0])})`
  if (node.op === 'get_attr') return head
  return `${head}(args = ${tupleText(node.args, plainText)}, kwargs = ${formatKwargs(node.kwargs, plainText, plainKey)})`
}

/** The whole graph; PyTorch's str(graph). */
export function formatGraph(graph: NodeGraph): string {
  const text = new TextBuilder()
  text.add('graph():')
  for (const node of graph.nodes) text.add(`    ${formatNode(node)}`)
  return String(text)
}

const COLUMNS: readonly TableColumn[] = [
  ['opcode', (node) => node.op],
  ['name', bare],
  ['target', nodeTargetText],
  ['args', (node) => tupleText(node.args, pyRepr)],
  ['kwargs', (node) => formatKwargs(node.kwargs, pyRepr, pyString)],
]

const TABULAR = 'Graph.printTabular'

function textOf(what: string, text: string): string {
  checkString(TABULAR, what, text)
  return text
}

/** The nodes as a table in the layout of Python's tabulate, format 'simple'. */
export function formatTabular(graph: NodeGraph, extra: readonly TableColumn[] = []): string {
  const fits = Array.isArray(extra) && extra.every((column) => Array.isArray(column) && isFunction(column[1]))
  checkArgument(fits, TABULAR, 'extra', 'an array of [title, cell]', extra)
  const columns = [...COLUMNS, ...extra]
  const titles = columns.map(([title]) => textOf('title', title))
  const rows: string[][] = []
  for (const node of graph.nodes) rows.push(columns.map(([, cell]) => textOf('cell', cell(node))))
  const widths = titles.map((title, i) => rows.reduce((width, row) => Math.max(width, row[i]?.length ?? 0), title.length + 2))
  const line = (cells: readonly string[]): string =>
    widths
      .map((width, i) => (cells[i] ?? '').padEnd(width))
      .join('  ')
      .trimEnd()
  return [line(titles), widths.map((width) => '-'.repeat(width)).join('  '), ...rows.map(line)].join('\n')
}

/** A number as Python prints it. A whole number prints as an int, because JavaScript cannot distinguish 1.0 from 1. */
export function pyNumber(value: number): string {
  if (Number.isSafeInteger(value)) return Object.is(value, -0) ? '-0.0' : String(value)
  if (Number.isNaN(value)) return 'nan'
  if (!Number.isFinite(value)) return value > 0 ? 'inf' : '-inf'
  const [mantissa = '', exponentText = '0'] = value.toExponential().split('e')
  const exponent = Number(exponentText)
  if (exponent < -4 || exponent >= 16) return `${mantissa}e${exponent < 0 ? '-' : '+'}${String(Math.abs(exponent)).padStart(2, '0')}`
  return String(value)
}

const ESCAPES: Readonly<Record<string, string>> = { '\\': '\\\\', '\n': '\\n', '\r': '\\r', '\t': '\\t' }

/** Python's repr of a string: in single quotes, or in double quotes if that avoids an escape. */
export function pyString(text: string): string {
  const quote = text.includes("'") && !text.includes('"') ? '"' : "'"
  // oxlint-disable-next-line no-control-regex -- this escapes control characters
  const body = text.replace(/[\\\n\r\t]|[\u0000-\u001f\u007f]/g, (c) => ESCAPES[c] ?? `\\x${c.charCodeAt(0).toString(16).padStart(2, '0')}`)
  return `${quote}${quote === "'" ? body.replaceAll("'", "\\'") : body}${quote}`
}

// Graphs as JSON: nodes, names, targets by their qualified names. What a graph means survives the way to another process and back.
import { ArgumentError } from '../errors/index.ts'
import { lookupTarget, targetInfo } from '../protocol/index.ts'
import { Graph } from './graph.ts'
import type { Argument, Node, Opcode } from './node.ts'
import { Slice } from './slice.ts'

/** Version of the format; a reader refuses newer ones. */
export const GRAPH_JSON_VERSION = 1

export type JsonValue = null | boolean | number | string | readonly JsonValue[] | { readonly [key: string]: JsonValue }

export interface NodeJson {
  readonly op: Opcode
  readonly name: string
  readonly target: string
  readonly args: readonly JsonValue[]
  readonly kwargs: { readonly [key: string]: JsonValue }
}

export interface GraphJson {
  readonly version: number
  readonly nodes: readonly NodeJson[]
}

/** Writes a graph. Throws ArgumentError for a call_function whose function has no registered name, or an argument that JSON cannot hold. */
export function graphToJson(graph: Graph): GraphJson {
  return {
    version: GRAPH_JSON_VERSION,
    nodes: [...graph.nodes].map((node) => ({
      op: node.op,
      name: node.name,
      target: targetName(node),
      args: node.args.map((a) => encode(a, node)),
      kwargs: Object.fromEntries(Object.entries(node.kwargs).map(([k, v]) => [k, encode(v, node)])),
    })),
  }
}

function targetName(node: Node): string {
  if (typeof node.target === 'string') return node.target
  const info = targetInfo(node.target)
  if (info === undefined || lookupTarget(info.name) !== node.target) {
    throw new ArgumentError(
      `graphToJson: node '${node.name}' calls a function without a registered name ('${node.target.name}'); give it one with fx.wrap(fn, { name }).`,
    )
  }
  return info.name
}

function encode(value: Argument, node: Node): JsonValue {
  if (value === null || value === undefined) return null
  if (typeof value === 'boolean' || typeof value === 'string') return value
  if (typeof value === 'number')
    return Number.isFinite(value) && !Object.is(value, -0) ? value : { $number: Object.is(value, -0) ? '-0' : String(value) }
  if (Array.isArray(value)) return value.map((v) => encode(v as Argument, node))
  if (typeof value === 'object') {
    if (isNode(value)) return { $node: value.name }
    if (value instanceof Slice)
      return { $slice: [encode(value.start as Argument, node), encode(value.stop as Argument, node), encode(value.step as Argument, node)] }
    if (Object.getPrototypeOf(value) === Object.prototype || Object.getPrototypeOf(value) === null) {
      return { $object: Object.fromEntries(Object.entries(value).map(([k, v]) => [k, encode(v as Argument, node)])) }
    }
  }
  throw new ArgumentError(`graphToJson: an argument of node '${node.name}' cannot be written as JSON: ${String(value)}.`)
}

const isNode = (value: object): value is Node => 'op' in value && 'graph' in value && 'users' in value

/** Reads a graph. Throws ArgumentError for an unknown version, function name or node. */
export function graphFromJson(json: GraphJson): Graph {
  if (json.version > GRAPH_JSON_VERSION)
    throw new ArgumentError(`graphFromJson: version ${json.version} is newer than this tensorfx reads (${GRAPH_JSON_VERSION}); update tensorfx.`)
  const graph = new Graph()
  const nodes = new Map<string, Node>()
  const decode = (value: JsonValue): Argument => {
    if (value === null || typeof value !== 'object') return value as Argument
    if (Array.isArray(value)) return value.map(decode)
    const object = value as { readonly [key: string]: JsonValue }
    if ('$node' in object) {
      const node = nodes.get(object['$node'] as string)
      if (node === undefined) throw new ArgumentError(`graphFromJson: node '${String(object['$node'])}' is used before it is defined.`)
      return node
    }
    if ('$number' in object) return Number(object['$number'])
    if ('$slice' in object) {
      const [start, stop, step] = (object['$slice'] as readonly JsonValue[]).map(decode)
      return new Slice(start as never, stop as never, step as never) as Argument
    }
    return Object.fromEntries(Object.entries(object['$object'] as { readonly [key: string]: JsonValue }).map(([k, v]) => [k, decode(v)])) as Argument
  }
  for (const item of json.nodes) {
    const target = item.op === 'call_function' ? lookupTarget(item.target) : item.target
    if (target === undefined)
      throw new ArgumentError(`graphFromJson: unknown function '${item.target}' at node '${item.name}'; import the module that registers it first.`)
    const kwargs = Object.fromEntries(Object.entries(item.kwargs).map(([k, v]) => [k, decode(v)]))
    nodes.set(item.name, graph.createNode(item.op, target, item.args.map(decode), kwargs, item.name))
  }
  return graph
}

// Graphs as JSON: nodes with their names, types, meta and stack traces, and functions by their qualified names. Written and read back, a graph means the same
// and keeps what is known about it.
import { checkGraph } from '../graph/checks.ts'
import { ArgumentError } from '../../errors/index.ts'
import { isPlainObject, lookupTarget, targetInfo, isFunction, isObject } from '../../protocol/index.ts'
import { CapturedStack } from '../../provenance/index.ts'
import type { Frame } from '../../provenance/index.ts'
import { Graph } from '../graph/graph.ts'
import { Node, isClass, isRecord } from '../graph/node.ts'
import type { Argument, Kwargs, Meta, Opcode } from '../graph/node.ts'
import { Slice, isTuple, markTuple } from '../graph/pythonValues.ts'

/** The version of the format. A reader rejects newer versions. Version 1 had neither types nor meta. */
export const GRAPH_JSON_VERSION = 2

export type JsonValue = null | boolean | number | string | readonly JsonValue[] | JsonObject

/** A JSON object. One that stands for another value has a single key: `$node`, `$number`, `$tuple`, `$map`, `$slice`, or `$object` for a plain object. */
export interface JsonObject {
  readonly [key: string]: JsonValue
}

/** A node as JSON. */
export interface NodeJson {
  readonly op: Opcode
  readonly name: string
  readonly target: string
  readonly args: readonly JsonValue[]
  readonly kwargs: JsonObject
  /** Left out if there is none. */
  readonly type?: string
  /** The part of `meta` that can be written: JSON values, Maps, and classes by name. Left out if empty. */
  readonly meta?: JsonObject
  /** The stack trace: indices into `frames`, innermost last; or a text in PyTorch's format. */
  readonly stack?: readonly number[] | string
}

/** A graph as JSON. */
export interface GraphJson {
  readonly version: number
  readonly nodes: readonly NodeJson[]
  /** The stack frames of all nodes, each once. */
  readonly frames?: readonly Frame[]
  /** Where the traced program is defined; left out if unknown. */
  readonly sourceHint?: string
}

/**
 * Writes a graph as JSON. Throws ArgumentError for a call_function whose function has no registered name, and for an argument that JSON cannot represent.
 * Entries of `meta` that cannot be written, such as tensors and functions, are left out.
 */
export function graphToJson(graph: Graph): GraphJson {
  checkGraph('graphToJson', graph)
  const frames = new Map<string, number>()
  const places: Frame[] = []
  const frameNumber = (frame: Frame): number => {
    const key = JSON.stringify(frame)
    let number = frames.get(key)
    if (number === undefined) {
      number = places.push(frame) - 1
      frames.set(key, number)
    }
    return number
  }
  const nodes = [...graph.nodes].map((node): NodeJson => {
    const { stackTrace } = node
    const meta = encodeMeta(node.meta)
    return {
      op: node.op,
      name: node.name,
      target: targetName(node),
      args: node.args.map((a) => encode(a, node)),
      kwargs: encodeRecord(node.kwargs, node),
      ...(node.type === null ? {} : { type: node.type }),
      ...(Object.keys(meta).length === 0 ? {} : { meta }),
      ...(stackTrace === null ? {} : { stack: stackTrace instanceof CapturedStack ? stackTrace.frames.map(frameNumber) : stackTrace }),
    }
  })
  const source = graph.sourceHint === null ? {} : { sourceHint: graph.sourceHint }
  return { version: GRAPH_JSON_VERSION, nodes, ...(places.length === 0 ? {} : { frames: places }), ...source }
}

/** The entries of `meta` that JSON can represent, without the stack trace. */
export function encodeMeta(meta: Meta): JsonObject {
  return Object.fromEntries(
    Object.entries(meta).flatMap(([key, value]): [string, JsonValue][] => {
      const json = key === 'stack_trace' ? undefined : encodeNote(value)
      return json === undefined ? [] : [[key, json]]
    }),
  )
}

/** A value of `meta` as JSON; undefined if JSON cannot represent it: tensors, functions, instances, and values that contain themselves. */
export function encodeNote(value: unknown, outer: ReadonlySet<object> = new Set()): JsonValue | undefined {
  if (value === null || typeof value === 'string' || typeof value === 'boolean') return value
  if (typeof value === 'number') return number(value)
  // Module stacks contain classes, of which only the names are used.
  if (isFunction(value)) return isClass(value) ? value.name : undefined
  if (!isObject(value) || outer.has(value)) return undefined
  const holders = new Set(outer).add(value)
  const encodeAll = (items: readonly unknown[]): readonly JsonValue[] | undefined => {
    const encoded: JsonValue[] = []
    for (const item of items) {
      const json = encodeNote(item, holders)
      if (json === undefined) return undefined
      encoded.push(json)
    }
    return encoded
  }
  if (Array.isArray(value)) return encodeAll(value)
  if (value instanceof Map) {
    const entries = encodeAll([...value])
    return entries === undefined ? undefined : { $map: entries }
  }
  if (!isPlainObject(value)) return undefined
  const keys = Object.keys(value)
  const values = encodeAll(Object.values(value))
  return values === undefined ? undefined : { $object: Object.fromEntries(values.map((json, i) => [keys[i], json])) }
}

const number = (value: number): JsonValue =>
  Number.isFinite(value) && !Object.is(value, -0) ? value : { $number: Object.is(value, -0) ? '-0' : String(value) }

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
  if (typeof value === 'number') return number(value)
  if (Array.isArray(value)) {
    const items = value.map((item) => encode(item, node))
    return isTuple(value) ? { $tuple: items } : items
  }
  if (value instanceof Node) return { $node: value.name }
  if (value instanceof Slice) return { $slice: [value.start, value.stop, value.step].map((part) => encode(part, node)) }
  if (isRecord(value)) return { $object: encodeRecord(value, node) }
  throw new ArgumentError(`graphToJson: an argument of node '${node.name}' cannot be written as JSON: ${String(value)}.`)
}

function encodeRecord(record: Kwargs, node: Node): JsonObject {
  return Object.fromEntries(Object.entries(record).map(([key, value]) => [key, encode(value, node)]))
}

/** Reads a graph. Throws ArgumentError for an unknown version, function or node, and for data that is not the JSON of a graph. */
export function graphFromJson(json: GraphJson): Graph {
  if (typeof json !== 'object' || json === null || typeof json.version !== 'number' || !Array.isArray(json.nodes))
    throw new ArgumentError('graphFromJson: this is not the JSON of a graph: `version` and `nodes` are missing.')
  if (json.version > GRAPH_JSON_VERSION)
    throw new ArgumentError(`graphFromJson: version ${json.version} is newer than this tensorfx reads (${GRAPH_JSON_VERSION}); update tensorfx.`)
  const graph = new Graph()
  graph.sourceHint = json.sourceHint ?? null
  const nodes = new Map<string, Node>()
  const node = (name: string): Node => {
    const found = nodes.get(name)
    if (found === undefined) throw new ArgumentError(`graphFromJson: node '${name}' is used before it is defined.`)
    return found
  }
  const items: readonly NodeJson[] = json.nodes
  for (const item of items) {
    const target = item.op === 'call_function' ? lookupTarget(item.target) : item.target
    if (target === undefined)
      throw new ArgumentError(`graphFromJson: unknown function '${item.target}' at node '${item.name}'; import the module that registers it first.`)
    const args = item.args.map((value) => decode(value, node))
    const made = graph.createNode(item.op, target, args, decodeRecord(item.kwargs, node), item.name, item.type ?? null)
    for (const [key, value] of Object.entries(item.meta ?? {})) made.meta[key] = decode(value, node)
    if (typeof item.stack === 'string') made.stackTrace = item.stack
    else if (item.stack !== undefined) made.stackTrace = CapturedStack.of(item.stack.map((i) => frameAt(json, i)))
    nodes.set(item.name, made)
  }
  return graph
}

function frameAt(json: GraphJson, index: number): Frame {
  const frame = json.frames?.[index]
  if (frame === undefined) throw new ArgumentError(`graphFromJson: a stack refers to frame ${index}, which is not in \`frames\`.`)
  return frame
}

/** Reads what {@link encodeNote} wrote. */
export const decodeNote = (value: JsonValue): unknown =>
  decode(value, (name) => {
    throw new ArgumentError(`an entry of \`meta\` refers to node '${name}'; entries of \`meta\` cannot contain nodes.`)
  })

const isList = (value: JsonValue | undefined): value is readonly JsonValue[] => Array.isArray(value)

function decode(value: JsonValue, node: (name: string) => Node): Argument {
  if (value === null || typeof value !== 'object') return value
  if (isList(value)) return value.map((item) => decode(item, node))
  const { $node, $number, $tuple, $map, $slice, $object } = value
  if (typeof $node === 'string') return node($node)
  if (typeof $number === 'string') return Number($number)
  if (isList($tuple)) return markTuple($tuple.map((item) => decode(item, node)))
  if (isList($map)) return new Map($map.map((entry) => decodeEntry(entry, node)))
  if (isList($slice)) {
    const [start = null, stop = null, step = null] = $slice.map((item) => decode(item, node))
    return new Slice<Argument>(start, stop, step)
  }
  if (typeof $object === 'object' && $object !== null && !isList($object)) return decodeRecord($object, node)
  throw new ArgumentError(`graphFromJson: cannot read the value ${JSON.stringify(value)}.`)
}

function decodeEntry(entry: JsonValue, node: (name: string) => Node): [Argument, Argument] {
  const [key, value] = isList(entry) ? entry : []
  if (key === undefined || value === undefined)
    throw new ArgumentError(`graphFromJson: an entry of a Map must be a key and a value, got ${JSON.stringify(entry)}.`)
  return [decode(key, node), decode(value, node)]
}

function decodeRecord(record: JsonObject, node: (name: string) => Node): Kwargs {
  return Object.fromEntries(Object.entries(record).map(([key, value]) => [key, decode(value, node)]))
}

/** The first difference between two graphs as a sentence, null if there is none. Compares nodes, arguments and types, and meta and stack traces as JSON keeps them. */
export function compareGraphs(a: Graph, b: Graph): string | null {
  const [left, right] = [graphToJson(a), graphToJson(b)]
  const stackOf = (json: GraphJson, { stack }: NodeJson): unknown => (typeof stack === 'object' ? stack.map((i) => json.frames?.[i]) : stack)
  for (let i = 0; i < Math.max(left.nodes.length, right.nodes.length); i++) {
    const [x, y] = [left.nodes[i], right.nodes[i]]
    if (x === undefined || y === undefined)
      return `one graph has ${left.nodes.length} nodes, the other ${right.nodes.length}: only one of them has '${(x ?? y)?.name}'`
    for (const key of ['name', 'op', 'target', 'args', 'kwargs', 'type', 'meta'] as const)
      if (JSON.stringify(x[key]) !== JSON.stringify(y[key]))
        return `node ${i} ('${x.name}') differs in ${key}: ${JSON.stringify(x[key] ?? null)} and ${JSON.stringify(y[key] ?? null)}`
    if (JSON.stringify(stackOf(left, x)) !== JSON.stringify(stackOf(right, y))) return `node ${i} ('${x.name}') differs in its stack`
  }
  return null
}

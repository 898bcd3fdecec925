// Graphs as JSON: nodes with their names, types, meta and stack traces, and functions by their qualified names. Written and read back (readJson.ts), a graph means
// the same and keeps what is known about it.
import { checkGraph } from '../../protocol/graphChecks.ts'
import { ArgumentError } from '../../errors/index.ts'
import { checkCount, isClass, isFunction, isObject, isPlainObject, lookupTarget, targetInfo } from '../../protocol/index.ts'
import { CapturedStack, sourceLine } from '../../provenance/index.ts'
import type { Frame } from '../../provenance/index.ts'
import type { Graph } from '../graph/graph.ts'
import { Node, isRecord } from '../graph/node.ts'
import type { Argument, Kwargs, Meta, Opcode } from '../graph/node.ts'
import { Slice, isTuple } from '../graph/pythonValues.ts'

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
  checkCount('graphToJson', arguments, 1)
  checkGraph('graphToJson', graph)
  const frames = new Map<string, number>()
  const places: Frame[] = []
  const frameNumber = (frame: Frame): number => {
    const key = JSON.stringify(frame)
    let number = frames.get(key)
    if (number === undefined) {
      // The line is written too, because a reader does not open the file.
      const code = sourceLine(frame)?.trim().slice(0, 500)
      number = places.push(code === undefined ? frame : { ...frame, code }) - 1
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
      ...(node.type === null ? {} : { type: String(node.type) }),
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

/** The first difference between two graphs as a sentence, null if there is none. Compares nodes, arguments and types, and meta and stack traces as JSON keeps them. */
export function compareGraphs(a: Graph, b: Graph): string | null {
  checkCount('compareGraphs', arguments, 2)
  const [left, right] = [graphToJson(a), graphToJson(b)]
  const stackOf = (json: GraphJson, { stack }: NodeJson): unknown =>
    typeof stack === 'object' ? stack.map((i) => placeText(json.frames?.[i])) : stack
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

const placeText = (frame: Frame | undefined): string => (frame === undefined ? '' : `${frame.file}:${frame.line}:${frame.column} ${frame.fn}`)

// Graphs as JSON: nodes, names, targets by their qualified names, types, notes and stacks. What a graph means, and what is known of it, survives the way
// to another process and back.
import { ArgumentError } from '../errors/index.ts'
import { lookupTarget, targetInfo } from '../protocol/index.ts'
import { CapturedStack } from '../provenance/index.ts'
import type { Frame } from '../provenance/index.ts'
import { Graph } from './graph.ts'
import type { Argument, Meta, Node, Opcode } from './node.ts'
import { Slice } from './slice.ts'
import { isTuple, tuple } from './tuple.ts'

/** Version of the format; a reader refuses newer ones. 1 had neither types nor meta. */
export const GRAPH_JSON_VERSION = 2

export type JsonValue = null | boolean | number | string | readonly JsonValue[] | { readonly [key: string]: JsonValue }

export interface NodeJson {
  readonly op: Opcode
  readonly name: string
  readonly target: string
  readonly args: readonly JsonValue[]
  readonly kwargs: { readonly [key: string]: JsonValue }
  /** Left out when there is none. */
  readonly type?: string
  /** What of `meta` can be written: values of JSON, Maps, classes by name. Left out when there is none. */
  readonly meta?: { readonly [key: string]: JsonValue }
  /** The recorded stack: numbers of `frames`, innermost last; or text, as PyTorch has it. */
  readonly stack?: readonly number[] | string
}

export interface GraphJson {
  readonly version: number
  readonly nodes: readonly NodeJson[]
  /** Places of the user's program, which many nodes share. */
  readonly frames?: readonly Frame[]
  /** Where the traced program stands; left out when unknown. */
  readonly sourceHint?: string
}

/**
 * Writes a graph. Throws ArgumentError for a call_function whose function has no registered name, or an argument that JSON cannot hold. Notes in `meta` that
 * cannot be written (live tensors and functions) are left out.
 */
export function graphToJson(graph: Graph): GraphJson {
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
      kwargs: Object.fromEntries(Object.entries(node.kwargs).map(([k, v]) => [k, encode(v, node)])),
      ...(node.type === null ? {} : { type: node.type }),
      ...(Object.keys(meta).length === 0 ? {} : { meta }),
      ...(stackTrace === null ? {} : { stack: stackTrace instanceof CapturedStack ? stackTrace.frames.map(frameNumber) : stackTrace }),
    }
  })
  const source = graph.sourceHint === null ? {} : { sourceHint: graph.sourceHint }
  return { version: GRAPH_JSON_VERSION, nodes, ...(places.length === 0 ? {} : { frames: places }), ...source }
}

/** The notes that JSON can hold. */
export function encodeMeta(meta: Meta): { readonly [key: string]: JsonValue } {
  return Object.fromEntries(
    Object.entries(meta).flatMap(([key, value]): [string, JsonValue][] => {
      const json = key === 'stack_trace' ? undefined : encodeNote(value)
      return json === undefined ? [] : [[key, json]]
    }),
  )
}

/** A note as JSON; undefined for what JSON cannot hold: live tensors, functions, instances, values that hold themselves. */
export function encodeNote(value: unknown, outer: ReadonlySet<object> = new Set()): JsonValue | undefined {
  if (value === null || typeof value === 'string' || typeof value === 'boolean') return value
  if (typeof value === 'number') return number(value)
  // Classes stand in module stacks; their names are what is read of them.
  if (typeof value === 'function') return /^class\b/.test(Function.prototype.toString.call(value)) ? value.name : undefined
  if (typeof value !== 'object' || outer.has(value)) return undefined
  const holders = new Set(outer).add(value)
  const inner = (item: unknown): JsonValue | undefined => encodeNote(item, holders)
  if (Array.isArray(value)) return all(value.map(inner))
  if (value instanceof Map) {
    const entries = all([...value].map(([k, v]) => all([inner(k), inner(v)])))
    return entries === undefined ? undefined : { $map: entries }
  }
  const prototype: unknown = Object.getPrototypeOf(value)
  if (prototype !== Object.prototype && prototype !== null) return undefined
  const entries = Object.entries(value).map(([k, v]): [string, JsonValue | undefined] => [k, inner(v)])
  return entries.some(([, v]) => v === undefined) ? undefined : { $object: Object.fromEntries(entries as [string, JsonValue][]) }
}

const all = (values: readonly (JsonValue | undefined)[]): readonly JsonValue[] | undefined =>
  values.some((v) => v === undefined) ? undefined : (values as readonly JsonValue[])

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
    const items = value.map((v) => encode(v as Argument, node))
    return isTuple(value) ? { $tuple: items } : items
  }
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

/** Reads a graph. Throws ArgumentError for an unknown version, function name or node, and for data that is no graph. */
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
  const decoded = (value: JsonValue): Argument => decode(value, node) as Argument
  for (const item of json.nodes as readonly NodeJson[]) {
    const target = item.op === 'call_function' ? lookupTarget(item.target) : item.target
    if (target === undefined)
      throw new ArgumentError(`graphFromJson: unknown function '${item.target}' at node '${item.name}'; import the module that registers it first.`)
    const kwargs = Object.fromEntries(Object.entries(item.kwargs).map(([k, v]) => [k, decoded(v)]))
    const made = graph.createNode(item.op, target, item.args.map(decoded), kwargs, item.name, item.type ?? null)
    for (const [key, value] of Object.entries(item.meta ?? {})) made.meta[key] = decode(value, node)
    if (typeof item.stack === 'string') made.stackTrace = item.stack
    else if (item.stack !== undefined) made.stackTrace = CapturedStack.of(item.stack.map((i) => frameAt(json, i)))
    nodes.set(item.name, made)
  }
  return graph
}

function frameAt(json: GraphJson, index: number): Frame {
  const frame = json.frames?.[index]
  if (frame === undefined) throw new ArgumentError(`graphFromJson: a stack names frame ${index}, which is not among \`frames\`.`)
  return frame
}

/** What {@link encodeNote} wrote. */
export const decodeNote = (value: JsonValue): unknown =>
  decode(value, (name) => {
    throw new ArgumentError(`a note refers to node '${name}'; notes hold no nodes.`)
  })

function decode(value: JsonValue, node: (name: string) => Node): unknown {
  if (value === null || typeof value !== 'object') return value
  const inner = (v: JsonValue): unknown => decode(v, node)
  if (Array.isArray(value)) return value.map(inner)
  const object = value as { readonly [key: string]: JsonValue }
  if ('$node' in object) return node(object['$node'] as string)
  if ('$number' in object) return Number(object['$number'])
  if ('$tuple' in object) return tuple(...((object['$tuple'] as readonly JsonValue[]).map(inner) as Argument[]))
  if ('$map' in object) return new Map((object['$map'] as readonly JsonValue[]).map((entry) => inner(entry) as [unknown, unknown]))
  if ('$slice' in object) {
    const [start, stop, step] = (object['$slice'] as readonly JsonValue[]).map(inner)
    return new Slice(start as never, stop as never, step as never)
  }
  return Object.fromEntries(Object.entries(object['$object'] as { readonly [key: string]: JsonValue }).map(([k, v]) => [k, inner(v)]))
}

/** The first difference between two graphs, as a sentence; null when they are the same: nodes, arguments, types, and what JSON keeps of notes and stacks. */
export function compareGraphs(a: Graph, b: Graph): string | null {
  const [left, right] = [graphToJson(a), graphToJson(b)]
  const stackOf = (json: GraphJson, { stack }: NodeJson): unknown => (Array.isArray(stack) ? (stack as number[]).map((i) => json.frames?.[i]) : stack)
  for (let i = 0; i < Math.max(left.nodes.length, right.nodes.length); i++) {
    const [x, y] = [left.nodes[i], right.nodes[i]]
    if (x === undefined || y === undefined)
      return `one graph has ${left.nodes.length} nodes, the other ${right.nodes.length}: '${(x ?? y)?.name}' is in one of them only`
    for (const key of ['name', 'op', 'target', 'args', 'kwargs', 'type', 'meta'] as const)
      if (JSON.stringify(x[key]) !== JSON.stringify(y[key]))
        return `node ${i} ('${x.name}') differs in ${key}: ${JSON.stringify(x[key] ?? null)} and ${JSON.stringify(y[key] ?? null)}`
    if (JSON.stringify(stackOf(left, x)) !== JSON.stringify(stackOf(right, y))) return `node ${i} ('${x.name}') differs in its stack`
  }
  return null
}

// Decodes graphs from untrusted JSON: all of it is checked before a node is made, and a node may only name what is data. What is made of the nodes is
// up to the caller: a Graph, or what only runs them.
import { ArgumentError } from '../../errors/index.ts'
import { Place, integer, list, mapOf, name, number, object, oneOf, optional, record, string } from '../../protocol/decode.ts'
import type { Decoder } from '../../protocol/decode.ts'
import { checkOptions, isPlainObject, lookupTarget, missingTarget, namedOnly } from '../../protocol/index.ts'
import type { TargetFunction } from '../../protocol/index.ts'
import type { Frame } from '../../provenance/index.ts'
import type { Argument, Kwargs, Opcode } from '../graph/node.ts'
import { Slice, markTuple } from '../graph/pythonValues.ts'
import { forbidden } from './allowedNames.ts'
import { GRAPH_JSON_VERSION } from './json.ts'

/**
 * What a file is taken for. `data` may come from anyone: what its graph names is checked. `code` is the user's own, or that of an author whom the user trusts as the
 * author of a program: it may call any method and read any attribute.
 */
export type Trust = 'data' | 'code'

/** Options of functions that read graphs. */
export interface TrustOptions {
  /** Default: 'data'. */
  readonly trust?: Trust
}

/** The `trust` of options, checked. */
export function trustOf(where: string, options: TrustOptions): Trust {
  checkOptions(where, options, { trust: true })
  const { trust = 'data' } = options
  if (trust !== 'data' && trust !== 'code') throw new ArgumentError(`${where}: trust must be 'data' or 'code', got ${String(trust)}.`)
  return trust
}

const OPS: readonly Opcode[] = ['placeholder', 'get_attr', 'call_function', 'call_module', 'call_method', 'output']

const MARKS = ['$node', '$number', '$tuple', '$map', '$slice', '$object'] as const

/** Finds what was made of a node, by its name. Throws ArgumentError if there is none so far. */
type FindNode = (nodeName: string, place: Place) => Argument

/** Reads arguments of nodes and values of meta. */
function argument(find: FindNode): Decoder<Argument> {
  const read: Decoder<Argument> = (value, place) => {
    if (value === null || typeof value === 'boolean' || typeof value === 'number') return value
    if (typeof value === 'string') return string()(value, place)
    if (Array.isArray(value)) return all(value, place)
    if (!isPlainObject(value)) return place.refuse('a JSON value', value)
    const mark = MARKS.find((known) => Object.hasOwn(value, known))
    if (mark === undefined) return place.refuse(`an object with one of the keys ${MARKS.join(', ')}`, value)
    const [content, inner] = [value[mark], place.at(mark)]
    switch (mark) {
      case '$node':
        return find(name(content, inner), inner)
      case '$number':
        return Number(oneOf(['NaN', 'Infinity', '-Infinity', '-0'])(content, inner))
      case '$tuple':
        return markTuple([...all(content, inner)])
      case '$map':
        return new Map(list(entry)(content, inner))
      case '$slice': {
        const [start = null, stop = null, step = null] = list(read, 3)(content, inner)
        return new Slice<Argument>(start, stop, step)
      }
      case '$object':
        return record(read)(content, inner)
    }
  }
  const all = list(read)
  const entry: Decoder<readonly [Argument, Argument]> = (value, place) => {
    const items = all(value, place)
    return items.length === 2 ? [items[0], items[1]] : place.refuse('a key and a value', value)
  }
  return read
}

/** Meta cannot contain nodes. */
const note = argument((_, place) => place.refuse('a value without nodes', 'a node'))

/** Reads what `encodeNote` wrote. `place` is where it was found. */
export const decodeNote: Decoder<unknown> = note

const anything: Decoder<unknown> = (value) => value

/** Indices of frames, or a text in PyTorch's format. */
const stack: Decoder<string | readonly number[]> = (value, place) =>
  typeof value === 'string' ? string()(value, place) : list(integer(), 1000)(value, place)

const NODE = object({
  op: oneOf(OPS),
  name,
  target: name,
  args: list(anything),
  kwargs: anything,
  type: optional(string(10_000)),
  meta: optional(mapOf(note)),
  stack: optional(stack),
})

const FRAME = object({ file: string(10_000), line: integer(), column: integer(), fn: string(10_000), code: optional(string(10_000)) })

const GRAPH = object({ version: number, nodes: list(anything), frames: optional(list(FRAME)), sourceHint: optional(string(10_000)) })

/** A node as the JSON describes it. Where its arguments name other nodes, they hold what was made of those. */
export interface DecodedNode {
  readonly op: Opcode
  readonly name: string
  readonly target: string | TargetFunction
  readonly args: readonly Argument[]
  readonly kwargs: Kwargs
  readonly type: string | null
  readonly meta: ReadonlyMap<string, unknown>
  /** A text in PyTorch's format, or frames; null if the JSON has none. */
  readonly stack: string | readonly Frame[] | null
}

/** What is read besides the nodes. */
export interface DecodedGraph {
  readonly sourceHint: string | null
}

/**
 * Decodes the nodes one after the other, and gives each to `make`, which returns what stands for the node in the arguments of later ones. Throws ArgumentError, which names
 * the place, for an unknown version, function or node, for data that are not the JSON of a graph, and, unless `trust` is 'code', for a node that names anything but
 * operators, registered functions, public members of tensors, and attributes. A graph that is only 'shown', and never runs, may name anything.
 */
export function decodeGraph(where: string, json: unknown, place: Place, trust: Trust | 'shown', make: (node: DecodedNode) => object): DecodedGraph {
  const { version, nodes: items, frames = [], sourceHint = null } = GRAPH(json, place)
  if (version > GRAPH_JSON_VERSION)
    throw new ArgumentError(`${where}: version ${version} is newer than this tensorfx reads (${GRAPH_JSON_VERSION}); update tensorfx.`)
  const made = new Map<string, object>()
  const read = argument((wanted, at) => {
    const found = made.get(wanted)
    if (found === undefined) throw new ArgumentError(`${where}: node '${wanted}' is used before it is defined (${String(at)}).`)
    return found
  })
  const args = list(read)
  const kwargs = record(read)
  let hasOutput = false
  for (const [i, given] of items.entries()) {
    const at = place.at('nodes').at(i)
    const item = NODE(given, at)
    if (made.has(item.name)) throw new ArgumentError(`${where}: two nodes are called '${item.name}' (${String(at)}).`)
    if (hasOutput) throw new ArgumentError(`${where}: node '${item.name}' comes after the output.`)
    hasOutput = item.op === 'output'
    const find = trust === 'shown' ? namedOnly : lookupTarget
    const target = item.op === 'call_function' ? find(item.target) : item.target
    if (target === undefined)
      throw new ArgumentError(`${where}: unknown function '${item.target}' at node '${item.name}'; ${missingTarget(item.target)}.`)
    const node: DecodedNode = {
      op: item.op,
      name: item.name,
      target,
      args: args(item.args, at.at('args')),
      kwargs: kwargs(item.kwargs, at.at('kwargs')),
      type: item.type ?? null,
      meta: item.meta ?? new Map(),
      stack: item.stack === undefined ? null : stackOf(item.stack, frames, where),
    }
    checkNode(where, node, trust)
    made.set(item.name, make(node))
  }
  return { sourceHint }
}

function stackOf(stack: string | readonly number[], frames: readonly Frame[], where: string): string | readonly Frame[] {
  if (typeof stack === 'string') return stack
  return stack.map((i) => {
    const frame = frames[i]
    if (frame === undefined) throw new ArgumentError(`${where}: a stack refers to frame ${i}, which is not in \`frames\`.`)
    return frame
  })
}

/** The numbers of arguments that nodes of some ops have. */
const ARGS: Readonly<Partial<Record<Opcode, readonly [least: number, most: number]>>> = {
  placeholder: [0, 1],
  get_attr: [0, 0],
  call_method: [1, Infinity],
  output: [1, 1],
}

function checkNode(where: string, node: DecodedNode, trust: Trust | 'shown'): void {
  const [least, most] = ARGS[node.op] ?? [0, Infinity]
  if (node.args.length < least || node.args.length > most)
    throw new ArgumentError(`${where}: node '${node.name}' (${node.op}) cannot have ${node.args.length} args.`)
  // What is only shown calls nothing, but has a place for each attribute.
  const isChecked = trust === 'data' || (trust === 'shown' && (node.op === 'get_attr' || node.op === 'call_module'))
  const what = isChecked ? forbidden(node) : null
  if (what !== null && trust === 'shown') throw new ArgumentError(`${where}: node '${node.name}' ${what}, which no module can have.`)
  if (what !== null)
    throw new ArgumentError(
      `${where}: node '${node.name}' ${what}. A graph that comes as data may only call operators, registered functions and public methods of tensors, and read public properties of tensors and attributes of the module. If you trust its author as the author of a program that you run, pass { trust: 'code' }.`,
    )
}

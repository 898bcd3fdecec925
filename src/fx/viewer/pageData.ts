// The data of a graph page. `pack` writes a GraphView as JSON that is about a tenth as long: texts that many nodes share are written once, and nodes refer to each other
// by number. `unpack` reads it in the page.
import type { GraphCosts } from './cost.ts'
import type { PackedLayout } from './layout/layered.ts'
import type { Change, GraphView, TargetFacts, ViewModule, ViewNode, ViewStatistics, ViewTensor } from './view.ts'

/** A node as the page knows it. */
export interface PageNode extends Omit<ViewNode, 'inputs' | 'users' | 'kwargs'> {
  readonly index: number
  readonly kwargs: readonly (readonly [name: string, text: string])[]
  /** The nodes whose values it reads, by number. */
  readonly inputs: readonly number[]
  readonly users: readonly number[]
}

/** A line of the generated code. */
export interface PageLine {
  readonly text: string
  /** The number of the node that it computes; -1 if there is none. */
  readonly node: number
  readonly change: Change
}

/** What a page shows. */
export interface PageGraph {
  readonly name: string
  readonly isDiff: boolean
  readonly nodes: readonly PageNode[]
  readonly code: readonly PageLine[]
}

type Origin = ViewNode['origin']

/** A node: numbers are places in the lists of {@link PackedGraph}; -1 stands for null. */
type PackedNode = readonly [
  name: string,
  op: number,
  target: number,
  facts: number,
  spec: number,
  args: readonly number[],
  kwargs: readonly number[],
  /** How many nodes before this one its inputs are; negative for removed inputs that are shown further down. */
  inputs: readonly number[],
  modules: number,
  origin: number,
  stack: number,
  /** These two are left out if the node is the same. */
  change?: number,
  was?: string | 0,
]
/** Texts by their places; statistics are the named ones and then the histogram, with four digits. */
type PackedTensor = readonly [name: number, kind: 0 | 1, shape: readonly number[], dtype: number, statistics: readonly number[]]
type PackedFacts = readonly [type: number, config: number, tensors: readonly PackedTensor[]]

/** A graph as JSON. */
export interface PackedGraph {
  readonly name: string
  readonly isDiff: boolean
  readonly texts: readonly string[]
  readonly facts: readonly PackedFacts[]
  /** Hyper-parameters: names and values, as texts. */
  readonly configs: readonly (readonly number[])[]
  /** The modules around a node, as texts: path and class of each. */
  readonly modules: readonly (readonly number[])[]
  readonly origins: readonly Origin[]
  /** Stacks as lists of lines, which are places in `texts`. */
  readonly stacks: readonly (readonly number[])[]
  readonly nodes: readonly PackedNode[]
  /** Lines: a text, or a place in `texts` with the node that the line computes; the place alone where that is the node after the last one, and the line is the same. */
  readonly code: readonly (string | number | readonly [text: number, node: number, change: number])[]
}

const CHANGES: readonly Change[] = ['same', 'added', 'removed', 'changed']

/** Values, each once. Two values are the same if their JSON is. */
class Shared<T> {
  readonly list: T[] = []
  readonly #places = new Map<string, number>()

  place(value: T): number {
    const key = typeof value === 'string' ? value : JSON.stringify(value)
    const known = this.#places.get(key)
    if (known !== undefined) return known
    this.#places.set(key, this.list.length)
    return this.list.push(value) - 1
  }
}

export function pack(view: GraphView): PackedGraph {
  const places = new Map(view.nodes.map((node, i) => [node.name, i]))
  const texts = new Shared<string>()
  const [facts, modules, origins, stacks] = [new Shared<PackedFacts>(), new Shared<readonly number[]>(), new Shared<Origin>(), new Shared<number[]>()]
  const configs = new Shared<readonly number[]>()
  const optional = (text: string | null): number => (text === null ? -1 : texts.place(text))
  const pairs = (record: Readonly<Record<string, string>>, place: (text: string) => number): number[] =>
    Object.entries(record).flatMap(([key, value]) => [texts.place(key), place(value)])
  const packTensor = ({ name, kind, shape, dtype, statistics }: ViewTensor): PackedTensor => [
    texts.place(name),
    kind === 'parameter' ? 0 : 1,
    shape,
    texts.place(dtype),
    statistics === null ? [] : packStatistics(statistics),
  ]
  const inputsOf = (node: ViewNode): string[] => node.inputs.filter((name) => places.has(name))
  const nodes = view.nodes.map((node, index): PackedNode => {
    const inputs = inputsOf(node)
    const shorten = (text: string): number => texts.place(withNumbers(text, node.name, inputs))
    return [
      node.name,
      texts.place(node.op),
      shorten(node.target),
      facts.place([optional(node.type), configs.place(pairs(node.config, (text) => texts.place(text))), node.tensors.map(packTensor)]),
      optional(node.spec),
      node.args.map(shorten),
      pairs(node.kwargs, shorten),
      inputs.map((name) => index - (places.get(name) ?? index)),
      modules.place(node.modules.flatMap(({ path, className }) => [texts.place(path), texts.place(className)])),
      node.origin === null ? -1 : origins.place(node.origin),
      node.stack === null ? -1 : stacks.place(node.stack.split('\n').map((line) => texts.place(line))),
      ...(node.change === 'same' && node.was === null ? ([] as const) : ([CHANGES.indexOf(node.change), node.was ?? 0] as const)),
    ]
  })
  let last = -1
  const code = view.code.map(({ text, node: name, change }) => {
    const place = name === null ? undefined : places.get(name)
    const node = place === undefined ? undefined : view.nodes[place]
    if (place === undefined || node === undefined) return text
    const written = texts.place(withNumbers(text, node.name, inputsOf(node)))
    const isNext = place === last + 1 && change === 'same'
    last = place
    return isNext ? written : ([written, place, CHANGES.indexOf(change)] as const)
  })
  const { name, isDiff } = view
  const lists = { texts: texts.list, facts: facts.list, configs: configs.list, modules: modules.list, origins: origins.list, stacks: stacks.list }
  return { name, isDiff, ...lists, nodes, code }
}

/** Statistics as the named ones and then the histogram, with four digits. */
export const packStatistics = ({ min, max, mean, std, zeros, special, histogram }: ViewStatistics): number[] => [
  ...[min, max, mean, std].map((value) => Number(value.toPrecision(4))),
  zeros,
  special,
  ...histogram,
]

/** The text with `#2;` for the name of input 2 and `#;` for the node's own, so that texts about different nodes are the same. A `#` is doubled. */
function withNumbers(text: string, own: string, inputs: readonly string[]): string {
  return text.replace(/#|[\p{ID_Start}$_][\p{ID_Continue}$]*/gu, (word) => {
    if (word === '#') return '##'
    if (word === own) return '#;'
    const place = inputs.indexOf(word)
    return place < 0 ? word : `#${place};`
  })
}

const withNames = (text: string, own: string, inputs: readonly string[]): string =>
  text.replace(/##|#(\d*);/g, (found, place?: string) => (found === '##' ? '#' : place === '' ? own : (inputs[Number(place)] ?? '?')))

export function unpack(packed: PackedGraph): PageGraph {
  const text = (place: number): string => packed.texts[place] ?? ''
  const pairs = (list: readonly number[], value: (place: number) => string): (readonly [string, string])[] =>
    Array.from({ length: list.length / 2 }, (_, i) => [text(list[2 * i] ?? -1), value(list[2 * i + 1] ?? -1)])
  const facts = packed.facts.map(([type, config, tensors]): TargetFacts => ({
    type: type < 0 ? null : text(type),
    config: Object.fromEntries(pairs(packed.configs[config] ?? [], text)),
    tensors: tensors.map(([name, kind, shape, dtype, statistics]) => ({
      name: text(name),
      kind: kind === 0 ? 'parameter' : 'buffer',
      shape,
      dtype: text(dtype),
      statistics: unpackStatistics(statistics),
    })),
  }))
  const modules = packed.modules.map((list) => pairs(list, text).map(([path, className]): ViewModule => ({ path, className })))
  const inputsOf = packed.nodes.map(([, , , , , , , inputs], i) => inputs.map((distance) => i - distance))
  const users: number[][] = packed.nodes.map(() => [])
  inputsOf.forEach((inputs, i) => inputs.forEach((input) => users[input]?.push(i)))
  const names = (inputs: readonly number[]): string[] => inputs.map((input) => packed.nodes[input]?.[0] ?? '?')
  const stacks = packed.stacks.map((lines) => lines.map(text).join('\n'))
  const nodes = packed.nodes.map(([name, op, target, fact, spec, args, kwargs, , module, origin, stack, change = 0, was = 0], index): PageNode => {
    const inputs = inputsOf[index] ?? []
    const inputNames = names(inputs)
    const value = (place: number): string => withNames(text(place), name, inputNames)
    return {
      index,
      name,
      op: text(op),
      target: value(target),
      ...(facts[fact] ?? { type: null, config: {}, tensors: [] }),
      spec: spec < 0 ? null : text(spec),
      args: args.map(value),
      kwargs: pairs(kwargs, value),
      inputs,
      users: users[index] ?? [],
      modules: modules[module] ?? [],
      origin: packed.origins[origin] ?? null,
      stack: stacks[stack] ?? null,
      change: CHANGES[change] ?? 'same',
      was: was === 0 ? null : was,
    }
  })
  let last = -1
  const code = packed.code.map((line): PageLine => {
    if (typeof line === 'string') return { text: line, node: -1, change: 'same' }
    const [place, node, change] = typeof line === 'number' ? ([line, last + 1, 0] as const) : line
    last = node
    return { text: withNames(text(place), nodes[node]?.name ?? '?', names(inputsOf[node] ?? [])), node, change: CHANGES[change] ?? 'same' }
  })
  return { name: packed.name, isDiff: packed.isDiff, nodes, code }
}

/** Reads {@link packStatistics}; null for an empty list. */
export function unpackStatistics(packed: readonly number[]): ViewStatistics | null {
  const [min, max, mean, std, zeros, special, ...histogram] = packed
  if (min === undefined || max === undefined || mean === undefined || std === undefined || zeros === undefined || special === undefined) return null
  return { min, max, mean, std, zeros, special, histogram }
}

/** Everything that a page is written with. */
export interface PackedPage {
  readonly graph: PackedGraph
  readonly layouts: Readonly<Record<string, PackedLayout>>
  /** What a profile says of the nodes; null without one. */
  readonly costs: GraphCosts | null
}

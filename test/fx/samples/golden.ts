// The goldens of fx: what PyTorch printed for each sample, and its graphs as Graphs of ours. Functions of PyTorch are stand-ins that only have a name.
import { readFileSync } from 'node:fs'
import { Graph, Node, Slice, tuple } from 'tensorfx/fx'
import type { Argument, Kwargs, Opcode, Target } from 'tensorfx/fx'
import { targetText } from '../../../src/fx/graph/node.ts'
import { nodeTargetText } from '../../../src/fx/text/format.ts'
import { isTuple } from '../../../src/fx/graph/pythonValues.ts'
import { nameTarget } from '../../../src/protocol/index.ts'
import type { TargetFunction } from '../../../src/protocol/index.ts'

/** A value of a node's args: `{ node: 'x' }`, `{ tuple: […] }`, `{ slice: […] }`, `{ dict: {…} }`, `{ float: 0.5 }`, `{ repr: 'torch.float32' }`, or itself. */
export type GoldenValue =
  | null
  | boolean
  | number
  | string
  | readonly GoldenValue[]
  | { readonly node: string }
  | { readonly tuple: readonly GoldenValue[] }
  | { readonly slice: readonly GoldenValue[] }
  | { readonly dict: Readonly<Record<string, GoldenValue>> }
  | { readonly float: number | string }
  | { readonly repr: string }

export interface GoldenNode {
  readonly op: Opcode
  readonly name: string
  readonly target: string
  readonly type: string | null
  readonly args: readonly GoldenValue[]
  readonly kwargs: Readonly<Record<string, GoldenValue>>
  readonly users: readonly string[]
}

export interface GoldenTensor {
  readonly shape: readonly number[]
  readonly dtype: string
  readonly data?: readonly (number | string)[]
  readonly sum?: number
  readonly absmean?: number
  readonly first8?: readonly number[]
  readonly last8?: readonly number[]
}

export type GoldenOutput =
  | GoldenTensor
  | { readonly dict: Readonly<Record<string, GoldenOutput>> }
  | { readonly [sequence: string]: readonly GoldenOutput[] }
  | number
  | string
  | null

export interface GoldenError {
  readonly error_type: string
  readonly error: string
}

export interface GoldenTransform extends Partial<GoldenError> {
  readonly str_graph?: string
  /** Text of the graph before the transform, where the transform first adds something. */
  readonly before?: string
  readonly changed?: boolean
  readonly modified?: boolean
  readonly matches?: number
  /** 'eager_output' where the transformed module gives that. */
  readonly output?: unknown
  readonly submodules?: Readonly<Record<string, string>>
}

export interface GoldenMeta {
  readonly name: string
  readonly type: string | null
  readonly tensor_meta: unknown
}

export interface Golden {
  readonly params?: readonly (readonly [string, readonly number[]])[]
  readonly class_name: string
  readonly str_graph: string
  readonly code: string
  readonly tabular: string
  readonly str_gm: string
  readonly nodes: readonly GoldenNode[]
  readonly eager_output?: GoldenOutput | GoldenError
  /** Whether the graph gave the same; the error that it gave. */
  readonly gm_matches_eager?: boolean | GoldenError
  readonly shape_prop?: readonly GoldenMeta[] | GoldenError
  readonly readable_after_shape_prop?: string
  readonly dot?: string | GoldenError
  readonly trace_error?: GoldenError
  readonly transforms: Readonly<Record<string, GoldenTransform>>
}

/** Reads test/goldens/fx/NAME.json. */
export function readGolden(name: string): Golden {
  const golden = JSON.parse(readFileSync(new URL(`../../goldens/fx/${name}.json`, import.meta.url), 'utf8')) as Golden
  // Types stand there as Python's repr; graphs print their names.
  const nodes = (golden.nodes ?? []).map((node) => ({ ...node, type: node.type?.replace(/^<class '(.+)'>$/, '$1') ?? null }))
  return { ...golden, nodes, transforms: golden.transforms ?? {} }
}

const standIns = new Map<string, TargetFunction>()

/** A function that has only a qualified name. */
export function standIn(name: string): TargetFunction {
  let fn = standIns.get(name)
  if (fn === undefined) {
    fn = () => {
      throw new Error(`${name} stands for a function of PyTorch.`)
    }
    Object.defineProperty(fn, 'name', { value: name.slice(name.lastIndexOf('.') + 1) })
    // Not nameTarget: the real functions have these names.
    standIns.set(name, fn)
    nameTarget(fn, { name: `golden.${name}` })
  }
  return fn
}

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> => typeof value === 'object' && value !== null && !Array.isArray(value)

/** Python's repr of something that is no base type: prints as it stands. */
class Repr {
  readonly text: string
  constructor(text: string) {
    this.text = text
  }
  toString(): string {
    return this.text.replace(/^device\(type='(\w+)'\)$/, '$1')
  }
}

/** A float keeps its point, as in Python. */
const floatText = (value: number): string => (Number.isInteger(value) ? `${value}.0` : '')

/** A golden's value as an argument. */
export function toArgument(value: GoldenValue, nodes: ReadonlyMap<string, Node>): Argument {
  if (!isObject(value)) return Array.isArray(value) ? value.map((v) => toArgument(v as GoldenValue, nodes)) : (value as Argument)
  if ('node' in value) {
    const node = nodes.get(value['node'] as string)
    if (node === undefined) throw new Error(`the golden uses node '${String(value['node'])}' before it is made`)
    return node
  }
  if ('tuple' in value) return tuple(...(value['tuple'] as readonly GoldenValue[]).map((v) => toArgument(v, nodes)))
  if ('slice' in value) {
    const [start, stop, step] = (value['slice'] as readonly GoldenValue[]).map((v) => toArgument(v, nodes))
    return new Slice<unknown>(start, stop, step)
  }
  if ('dict' in value)
    return Object.fromEntries(Object.entries(value['dict'] as Record<string, GoldenValue>).map(([k, v]) => [k, toArgument(v, nodes)]))
  if ('float' in value) {
    const number = Number(String(value['float']).replace('inf', 'Infinity'))
    return floatText(number) === '' || !Number.isFinite(number) ? number : new Repr(floatText(number))
  }
  return new Repr(value['repr'] as string)
}

/** The graph of these nodes. */
export function goldenGraph(nodes: readonly GoldenNode[]): Graph {
  const graph = new Graph()
  const made = new Map<string, Node>()
  for (const { op, name, target, type, args, kwargs } of nodes) {
    const toArg = (v: GoldenValue): Argument => toArgument(v, made)
    const keywords = Object.fromEntries(Object.entries(kwargs).map(([k, v]) => [k, toArg(v)])) as Kwargs
    made.set(name, graph.createNode(op, op === 'call_function' ? (standIn(target) as Target) : target, args.map(toArg), keywords, name, type))
  }
  return graph
}

/** The graph's text, as if its stand-ins were the functions that they stand for. */
export const goldenText = (graph: Graph): string => String(graph).replaceAll('[target=golden.', '[target=')

/** The name under which a target stands in a golden. */
const targetName = (node: Node): string => (node.op === 'call_function' ? targetText(node.target).replace(/^golden\./, '') : nodeTargetText(node))

/** Our value in the golden's form. */
export function toGoldenValue(value: Argument): GoldenValue {
  if (value instanceof Node) return { node: value.name }
  if (value === null || value === undefined) return null
  if (typeof value === 'number') {
    if (!Number.isFinite(value)) return { float: String(value).replace('Infinity', 'inf').replace('NaN', 'nan') }
    return Number.isInteger(value) ? value : { float: value }
  }
  if (typeof value === 'string' || typeof value === 'boolean') return value
  if (Array.isArray(value)) {
    const items = value.map((v) => toGoldenValue(v as Argument))
    return isTuple(value) ? { tuple: items } : items
  }
  if (value instanceof Slice) return { slice: [value.start, value.stop, value.step].map((v) => toGoldenValue(v as Argument)) }
  if (Object.getPrototypeOf(value) === Object.prototype)
    return { dict: Object.fromEntries(Object.entries(value as object).map(([k, v]) => [k, toGoldenValue(v as Argument)])) }
  return { repr: String(value) }
}

/** Our graph in the golden's form. */
export function toGoldenNodes(graph: Graph): GoldenNode[] {
  return [...graph.nodes].map((node) => ({
    op: node.op,
    name: node.name,
    target: targetName(node),
    type: node.type === null ? null : String(node.type),
    args: node.args.map(toGoldenValue),
    kwargs: Object.fromEntries(Object.entries(node.kwargs).map(([k, v]) => [snakeCase(k), toGoldenValue(v)])),
    users: [...node.users].map((u) => u.name),
  }))
}

const snakeCase = (name: string): string => name.replace(/([a-z])(?=[A-Z])/g, '$1_').toLowerCase()

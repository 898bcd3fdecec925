// What JavaScript makes different from PyTorch in graphs, as rules: each turns a node or value of PyTorch's graph into ours, wherever it occurs.
// The rows of docs/differences-from-pytorch.md say why. A rule never looks at a sample's name.
import { torch } from 'tensorfx'
import { getSignatureForTorchOp } from 'tensorfx/fx'
import type { TargetFunction } from 'tensorfx/fx'
import { Namespace } from '../../../src/fx/graph/namespace.ts'
import type { FunctionSchema } from '../../../src/protocol/index.ts'
import type { GoldenNode, GoldenValue } from './golden.ts'

/** What the transform did that was applied to both graphs. */
export interface Applied {
  /** Types were noted by schemas. Default false. */
  readonly annotated?: boolean
}
/** A rule for nodes. It returns the same node if it does not apply. `ours` is the node in its place. */
export type NodeRule = (golden: GoldenNode, ours: GoldenNode, applied: Applied) => GoldenNode
/** A rule for values inside args and kwargs; undefined when it does not apply. */
export type ValueRule = (golden: GoldenValue, ours: GoldenValue | undefined) => GoldenValue | undefined

const isObject = (value: GoldenValue | undefined): value is Exclude<GoldenValue, null | boolean | number | string | readonly GoldenValue[]> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** Methods of tensors whose name is not that of Python's operator. */
const METHODS: Readonly<Record<string, string>> = { truediv: 'div', floordiv: 'floor_divide', mod: 'remainder' }

/** `add_1` for a node whose operator is now called otherwise. */
const rename = (name: string, from: string, to: string): string =>
  name === from || name.startsWith(`${from}_`) ? `${to}${name.slice(from.length)}` : name

/** Functions with several overloads, which PyTorch normalizes only if it knows types. */
const OVERLOADED: ReadonlySet<string> = new Set(['torch.arange', 'torch.clamp', 'torch.neg', 'torch.where'])

/** Arguments that our operators do not have. */
const OMITTED: ReadonlySet<string> = new Set(['dtype', 'layout', 'device', 'pin_memory', 'memory_format', 'sorted'])

/** The schema of our operator that a node calls; null for other nodes. */
function schemaOf(node: GoldenNode): FunctionSchema | null {
  if (node.op !== 'call_function' || !node.target.startsWith('torch.')) return null
  const fn = node.target
    .split('.')
    .slice(1)
    .reduce<unknown>((holder, name) => {
      const found = camelCase(name)
      return holder instanceof Object && found in holder ? (holder as Readonly<Record<string, unknown>>)[found] : undefined
    }, torch)
  return typeof fn === 'function' ? (getSignatureForTorchOp(fn as TargetFunction)?.[0] ?? null) : null
}

const camelCase = (name: string): string => name.replace(/_(\w)/g, (_, c: string) => c.toUpperCase())
const snakeCase = (name: string): string => name.replace(/[A-Z]/g, (c) => `_${c.toLowerCase()}`)

export const nodeRules: Readonly<Record<string, NodeRule>> = {
  'operator-as-method': (golden, ours) => {
    if (golden.op !== 'call_function' || ours.op !== 'call_method' || !golden.target.startsWith('operator.')) return golden
    const operator = golden.target.slice('operator.'.length)
    const method = METHODS[operator] ?? operator
    return { ...golden, op: 'call_method', target: method, name: rename(golden.name, operator, method) }
  },
  'home-of-functions': (golden) => {
    const target = golden.target.replace(/^torch\._C\._nn\./, 'torch.nn.functional.').replace(/^torch\.functional\./, 'torch.')
    return golden.op !== 'call_function' || target === golden.target ? golden : { ...golden, target }
  },
  'no-aten': (golden, ours) => {
    const [, name = '', overload] = /^torch\.ops\.aten\.(\w+)(?:\.(\w+))?$/.exec(golden.target) ?? []
    if (golden.op !== 'call_function' || name === '' || !ours.target.endsWith(`.${name}`)) return golden
    const printed = overload === undefined ? name : `${name}_${overload.toLowerCase()}`
    return { ...golden, target: ours.target, name: rename(golden.name, printed, name) }
  },
  'no-annotations': (golden, ours) =>
    golden.type !== null && ours.type === null && (golden.op === 'placeholder' || golden.op === 'output') ? { ...golden, type: null } : golden,
  'only-schemas-normalize': (golden, ours) => {
    // Ours stays as it was: a module, or a function without a schema.
    const values = Object.values(golden.kwargs)
    if (golden.args.length > 0 || values.length === 0 || ours.args.length === 0 || !/^call_(module|function)$/.test(golden.op)) return golden
    const rest = Object.entries(golden.kwargs).slice(ours.args.length)
    return { ...golden, args: values.slice(0, ours.args.length), kwargs: Object.fromEntries(rest) }
  },
  'own-schemas': (golden, ours) => {
    const schema = schemaOf(golden)
    if (schema === null) return golden
    const isNormalized = golden.args.length === 0 && Object.keys(golden.kwargs).length > 0
    if (!isNormalized && !(OVERLOADED.has(golden.target) && ours.args.length === 0)) return golden
    const kwargs: Record<string, GoldenValue> = {}
    for (const [i, arg] of schema.args.entries()) {
      const name = arg.name === 'self' ? 'input' : snakeCase(arg.name)
      const given = golden.args[i] ?? golden.kwargs[name]
      if (given !== undefined) kwargs[name] = given
      else if (arg.hasDefault) kwargs[name] = arg.default as GoldenValue
    }
    // What is in neither schema stays, so that the comparison fails.
    for (const [name, value] of Object.entries(golden.kwargs)) if (!(name in kwargs) && !OMITTED.has(name)) kwargs[name] = value
    return JSON.stringify([golden.args, golden.kwargs]) === JSON.stringify([[], kwargs]) ? golden : { ...golden, args: [], kwargs }
  },
  'types-from-schemas': (golden, ours, { annotated = false }) => {
    // Some of PyTorch's layers have no annotation.
    if (annotated && golden.op === 'call_module' && golden.type === null) return { ...golden, type: ours.type }
    if (!annotated || golden.op !== 'call_function') return golden
    const [result, more] = schemaOf(golden)?.returns ?? []
    const type = result?.base === 'Tensor' && !result.list && more === undefined ? 'torch.Tensor' : null
    return golden.type === type ? golden : { ...golden, type }
  },
  'no-stacklevel': (golden) => {
    if (!('_stacklevel' in golden.kwargs)) return golden
    const { _stacklevel, ...kwargs } = golden.kwargs
    return { ...golden, kwargs }
  },
}

export const valueRules: Readonly<Record<string, ValueRule>> = {
  'array-for-tuple': (golden, ours) => (isObject(golden) && 'tuple' in golden && Array.isArray(ours) ? golden.tuple : undefined),
  'one-number-type': (golden, ours) => {
    if (isObject(golden) && 'float' in golden && typeof golden.float === 'number' && Number.isInteger(golden.float)) return golden.float
    // In the message of an assertion.
    return typeof golden === 'string' && golden !== ours && / \d+\.0 /.test(golden) ? golden.replace(/ (\d+)\.0 /, ' $1 ') : undefined
  },
  'constants-as-strings': (golden) => {
    if (!isObject(golden) || !('repr' in golden)) return undefined
    return golden.repr === 'Ellipsis' ? '...' : golden.repr.replace(/^device\(type='(\w+)'\)$/, '$1').replace(/^torch\./, '')
  },
}

/** The rules that made a difference so far. */
export const usedDifferences: Set<string> = new Set()

/** PyTorch's nodes as tensorfx should have recorded them. */
export function expectedNodes(golden: readonly GoldenNode[], ours: readonly GoldenNode[], applied: Applied = {}): GoldenNode[] {
  const names = new Map<string, string>()
  const fresh = new Namespace()
  const changed = golden.map((node, i) => {
    const other = ours[i]
    if (other === undefined) return node
    let result = node
    for (const [id, rule] of Object.entries(nodeRules)) {
      const next = rule(result, other, applied)
      if (next !== result) usedDifferences.add(id)
      result = next
    }
    // A name that is free in PyTorch's graph may be taken in ours.
    result = { ...result, name: fresh.create(result.name) }
    names.set(node.name, result.name)
    const value = (v: GoldenValue, o: GoldenValue | undefined): GoldenValue => expectedValue(v, o, names)
    return {
      ...result,
      args: result.args.map((v, k) => value(v, other.args[k])),
      kwargs: Object.fromEntries(Object.entries(result.kwargs).map(([k, v]) => [k, value(v, other.kwargs[k])])),
    }
  })
  return changed.map((node) => ({ ...node, users: node.users.map((name) => names.get(name) ?? name) }))
}

/** Merges calls that differed only in a device, `device('cpu')` and `'cpu'`, which print alike: where both are the same string, CSE does. */
export function mergeSameConstants(nodes: readonly GoldenNode[]): GoldenNode[] {
  const firsts = new Map<string, string>()
  const merged = new Map<string, string>()
  const kept = nodes.flatMap((node): GoldenNode[] => {
    const key = JSON.stringify([node.op, node.target, node.args])
    const first = firsts.get(key)
    firsts.set(key, first ?? node.name)
    if (first === undefined || !node.args.includes('cpu')) return [node]
    merged.set(node.name, first)
    return []
  })
  const renamed = (value: GoldenValue): GoldenValue => JSON.parse(JSON.stringify(value), (_, v: unknown) => renamedNode(v, merged)) as GoldenValue
  return kept.map((node) => ({ ...node, args: node.args.map(renamed), users: [...new Set(node.users.flatMap((u) => (merged.has(u) ? [] : [u])))] }))
}

function renamedNode(value: unknown, names: ReadonlyMap<string, string>): unknown {
  if (typeof value !== 'object' || value === null || !('node' in value)) return value
  return { node: names.get(value.node as string) ?? value.node }
}

function expectedValue(golden: GoldenValue, ours: GoldenValue | undefined, names: ReadonlyMap<string, string>): GoldenValue {
  let value = golden
  for (const [id, rule] of Object.entries(valueRules)) {
    const next = rule(value, ours)
    if (next === undefined) continue
    usedDifferences.add(id)
    value = next
  }
  const inner = (v: GoldenValue, o: GoldenValue | undefined): GoldenValue => expectedValue(v, o, names)
  if (Array.isArray(value)) return value.map((v: GoldenValue, i) => inner(v, Array.isArray(ours) ? (ours[i] as GoldenValue) : undefined))
  if (!isObject(value)) return value
  if ('node' in value) return { node: names.get(value.node) ?? value.node }
  if ('tuple' in value) return { tuple: value.tuple.map((v, i) => inner(v, isObject(ours) && 'tuple' in ours ? ours.tuple[i] : undefined)) }
  if ('slice' in value) return { slice: value.slice.map((v, i) => inner(v, isObject(ours) && 'slice' in ours ? ours.slice[i] : undefined)) }
  if (!('dict' in value)) return value
  const others = isObject(ours) && 'dict' in ours ? ours.dict : {}
  return { dict: Object.fromEntries(Object.entries(value.dict).map(([k, v]) => [k, inner(v, others[k])])) }
}

/** The rules below, which compare other things than nodes. */
export const otherRules = [
  'functions-by-name',
  'release-of-memory',
  'shapes-as-comments',
  'none-checks-stay',
  'tensor-meta',
  'javascript-classes',
  'camel-case',
] as const

function use<T>(id: (typeof otherRules)[number], value: T): T {
  usedDifferences.add(id)
  return value
}

/** A row of PyTorch's table as ours is: functions by their qualified names. */
export function tableRule(row: readonly string[], node: GoldenNode | undefined): readonly string[] {
  // A device is printed as its name in a graph's lines, and as an object in its table.
  const [opcode = '', name = '', target = '', ...rest] = row.map((cell) => cell.replace(/device\(type='(\w+)'\)/, '$1'))
  if (opcode !== 'call_function' || node === undefined) return [opcode, name, target, ...rest]
  const short = /^<(?:built-in )?(?:function|method) (\w+)/.exec(target)?.[1]
  return node.target.endsWith(short ?? target) ? use('functions-by-name', [opcode, name, node.target, ...rest]) : row
}

interface TorchMeta {
  readonly shape: readonly number[]
  readonly dtype: string
  readonly stride: readonly number[]
  readonly requires_grad: boolean
}

const isMeta = (value: unknown): value is TorchMeta => typeof value === 'object' && value !== null && 'stride' in value

/** JavaScript's classes for Python's. */
const CLASSES: Readonly<Record<string, string>> = {
  int: 'number',
  float: 'number',
  str: 'string',
  bool: 'boolean',
  NoneType: 'null',
  list: 'Array',
  tuple: 'Array',
  Size: 'Array',
  immutable_list: 'Array',
  dict: 'Object',
  immutable_dict: 'Object',
  topk: 'Array',
}

/** What is noted of values. */
export const metaRules = {
  dtype: (name: string): string => name.replace(/^torch\./, ''),
  meta: (meta: unknown): unknown => {
    if (isMeta(meta))
      return use('tensor-meta', { shape: meta.shape, dtype: metaRules.dtype(meta.dtype), requiresGrad: meta.requires_grad, strides: meta.stride })
    if (Array.isArray(meta)) return meta.map(metaRules.meta)
    if (typeof meta === 'object' && meta !== null) return Object.fromEntries(Object.entries(meta).map(([k, v]) => [k, metaRules.meta(v)]))
    return meta ?? null
  },
  type: (type: string | null): string | null => {
    if (type === null) return null
    const name = /^<class '(?:[\w.]+\.)?(\w+)'>$/.exec(type)?.[1] ?? type
    return name in CLASSES ? use('javascript-classes', CLASSES[name] as string) : name
  },
}

/** A name that the user gave, as JavaScript writes it. */
export function userName(name: string): string {
  const camel = name.replace(/_([a-z0-9])/g, (_, c: string) => c.toUpperCase())
  return camel === name ? name : use('camel-case', camel)
}

/** A message that holds numbers. */
export const userText = (text: string): string => text.replace(/ (\d+)\.0 /, ' $1 ')

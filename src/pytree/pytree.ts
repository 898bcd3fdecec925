// Flattening nested values to a list of leaves and a TreeSpec, which is their structure, and rebuilding them. Arrays, plain objects, Maps and instances of
// registered classes are nested values; everything else is a leaf.
import { ArgumentError } from '../errors/index.ts'
import { checkArgument, checkArray, checkDepth, isCallable, isFunction, isObject, isPlainObject, swappedHint, valueText } from '../protocol/index.ts'
import { nodeTypeOf } from './registry.ts'
import type { PytreeNodeType } from './registry.ts'

/** The structure of a nested value; PyTorch's TreeSpec. */
export type TreeSpec =
  | { readonly kind: 'leaf' }
  | { readonly kind: 'array'; readonly children: readonly TreeSpec[] }
  | { readonly kind: 'object'; readonly keys: readonly string[]; readonly children: readonly TreeSpec[] }
  | { readonly kind: 'map'; readonly keys: readonly unknown[]; readonly children: readonly TreeSpec[] }
  | { readonly kind: 'registered'; readonly type: PytreeNodeType; readonly context: unknown; readonly children: readonly TreeSpec[] }

const LEAF: TreeSpec = { kind: 'leaf' }

const checkSpec = (where: string, spec: unknown, name = 'spec'): void =>
  checkArgument(isObject(spec) && 'kind' in spec, where, name, 'a TreeSpec', spec)

function visit(value: unknown, leaves: unknown[], depth: number): TreeSpec {
  if (isObject(value)) {
    checkDepth(depth)
    if (Array.isArray(value)) return { kind: 'array', children: visitAll(value, leaves, depth) }
    if (value instanceof Map) return { kind: 'map', keys: [...value.keys()], children: visitAll([...value.values()], leaves, depth) }
    if (isPlainObject(value)) return { kind: 'object', keys: Object.keys(value), children: visitAll(Object.values(value), leaves, depth) }
    const type = nodeTypeOf(value)
    if (type !== null) {
      const { children, context } = type.flatten(value)
      return { kind: 'registered', type, context, children: visitAll(children, leaves, depth) }
    }
  }
  leaves.push(value)
  return LEAF
}

const visitAll = (values: readonly unknown[], leaves: unknown[], depth: number): TreeSpec[] => values.map((v) => visit(v, leaves, depth + 1))

/** The leaves in order, and the structure. PyTorch's tree_flatten. */
export function treeFlatten(value: unknown): { leaves: unknown[]; spec: TreeSpec } {
  const leaves: unknown[] = []
  const spec = visit(value, leaves, 0)
  return { leaves, spec }
}

/** The leaves in order. PyTorch's tree_leaves. */
export const treeLeaves = (value: unknown): unknown[] => treeFlatten(value).leaves

/** The structure alone. PyTorch's tree_structure. */
export const treeStructure = (value: unknown): TreeSpec => treeFlatten(value).spec

/** The number of leaves of a structure. */
export function countLeaves(spec: TreeSpec): number {
  checkSpec('countLeaves', spec)
  return spec.kind === 'leaf' ? 1 : spec.children.reduce((sum, child) => sum + countLeaves(child), 0)
}

/** The nested value with these leaves. Throws ArgumentError if their number is wrong. PyTorch's tree_unflatten. */
export function treeUnflatten(leaves: readonly unknown[], spec: TreeSpec): unknown {
  checkArray('treeUnflatten', 'leaves', leaves)
  checkSpec('treeUnflatten', spec)
  const expected = countLeaves(spec)
  if (leaves.length !== expected) {
    throw new ArgumentError(
      `treeUnflatten: got ${leaves.length} values for a structure of ${expected} leaves, ${treeSpecToString(spec)}; pass one value per leaf.`,
    )
  }
  let next = 0
  const build = (s: TreeSpec): unknown => {
    if (s.kind === 'leaf') return leaves[next++]
    const children = s.children.map(build)
    if (s.kind === 'array') return children
    if (s.kind === 'map') return new Map(s.keys.map((key, i): [unknown, unknown] => [key, children[i]]))
    if (s.kind === 'registered') return s.type.unflatten(children, s.context)
    return Object.fromEntries(s.keys.map((key, i) => [key, children[i]]))
  }
  return build(spec)
}

/**
 * The leaves of a value with a known structure. Where the structure has a leaf, the value may have anything. Throws ArgumentError if the value has another
 * structure. `childrenOf` returns the children of values that only the caller can take apart, and null for others. PyTorch's tree_flatten_spec.
 */
export function treeFlattenSpec(
  value: unknown,
  spec: TreeSpec,
  childrenOf: (value: unknown, spec: TreeSpec) => readonly unknown[] | null = () => null,
): unknown[] {
  checkSpec('treeFlattenSpec', spec)
  const leaves: unknown[] = []
  const collect = (v: unknown, s: TreeSpec): void => {
    if (s.kind === 'leaf') {
      leaves.push(v)
      return
    }
    const children = childrenOf(v, s) ?? childrenAs(v, s)
    if (children === null)
      throw new ArgumentError(
        `treeFlattenSpec: Cannot flatten pytree ${treeSpecToString(treeStructure(value))}, given spec: ${treeSpecToString(spec)}; pass a value of that structure.`,
      )
    s.children.forEach((child, i) => collect(children[i], child))
  }
  collect(value, spec)
  return leaves
}

/** The direct children of a value; null if its kind or its keys differ from those of `spec`. */
function childrenAs(value: unknown, spec: Exclude<TreeSpec, { kind: 'leaf' }>): readonly unknown[] | null {
  if (!isObject(value)) return null
  if (spec.kind === 'array') return Array.isArray(value) && value.length === spec.children.length ? value : null
  if (spec.kind === 'map') {
    const { keys } = spec
    return value instanceof Map && value.size === keys.length && keys.every((k) => value.has(k)) ? keys.map((k) => value.get(k)) : null
  }
  if (spec.kind === 'registered') {
    if (nodeTypeOf(value) !== spec.type) return null
    const { children, context } = spec.type.flatten(value)
    return (spec.type.sameContext ?? Object.is)(context, spec.context) ? children : null
  }
  const { keys } = spec
  const same = isPlainObject(value) && Object.keys(value).length === keys.length && keys.every((k) => Object.hasOwn(value, k))
  return same ? keys.map((k) => value[k]) : null
}

/** The same structure with `fn` applied to each leaf. Throws ArgumentError if `fn` is no function. PyTorch's tree_map. */
export function treeMap(value: unknown, fn: (leaf: unknown) => unknown): unknown {
  if (!isCallable(fn))
    throw new ArgumentError(
      `treeMap: argument 'fn' must be a function, got ${valueText(fn)}.${swappedHint(isFunction(value), 'value', 'fn', 'value, fn')}`,
    )
  const { leaves, spec } = treeFlatten(value)
  // Not `leaves.map(fn)`, which would also pass the index.
  const mapped = leaves.map((leaf) => fn(leaf))
  return treeUnflatten(mapped, spec)
}

/** Whether two structures are equal. */
export function treeEqual(a: TreeSpec, b: TreeSpec): boolean {
  checkSpec('treeEqual', a, 'a')
  checkSpec('treeEqual', b, 'b')
  if (a === b) return true
  if (a.kind === 'leaf' || b.kind === 'leaf') return a.kind === b.kind
  if (a.kind !== b.kind || a.children.length !== b.children.length) return false
  if ('keys' in a && 'keys' in b && !a.keys.every((key, i) => Object.is(key, b.keys[i]))) return false
  if ('type' in a && 'type' in b && (a.type !== b.type || !(a.type.sameContext ?? Object.is)(a.context, b.context))) return false
  const others = b.children
  return a.children.every((child, i) => others[i] !== undefined && treeEqual(child, others[i]))
}

/** A structure as text, with leaves as stars: `[*, { a: *, b: [*] }]`. */
export function treeSpecToString(spec: TreeSpec): string {
  checkSpec('treeSpecToString', spec)
  if (spec.kind === 'leaf') return '*'
  const children = spec.children.map(treeSpecToString)
  if (spec.kind === 'array') return `[${children.join(', ')}]`
  if (spec.kind === 'registered') return `${spec.type.name}(${children.join(', ')})`
  const entries = children.map((child, i) => `${keyText(spec.keys[i])}${spec.kind === 'map' ? ' => ' : ': '}${child}`)
  const body = entries.length === 0 ? '{}' : `{ ${entries.join(', ')} }`
  return spec.kind === 'map' ? `Map ${body}` : body
}

const keyText = (key: unknown): string => (typeof key !== 'string' ? String(key) : /^[\w$]+$/.test(key) ? key : JSON.stringify(key))

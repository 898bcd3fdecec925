// A TreeSpec is the shape of a nested value without its leaves. Everything that is not an array, a plain object or a Map is a leaf.
import { ArgumentError } from '../errors/index.ts'

export type TreeSpec =
  | { readonly kind: 'leaf' }
  | { readonly kind: 'array'; readonly children: readonly TreeSpec[] }
  | { readonly kind: 'object' | 'map'; readonly keys: readonly unknown[]; readonly children: readonly TreeSpec[] }

const LEAF: TreeSpec = { kind: 'leaf' }

function isPlainObject(value: unknown): value is Record<string, unknown> {
  if (typeof value !== 'object' || value === null) return false
  const prototype: unknown = Object.getPrototypeOf(value)
  return prototype === Object.prototype || prototype === null
}

function visit(value: unknown, leaves: unknown[]): TreeSpec {
  if (Array.isArray(value)) return { kind: 'array', children: value.map((v) => visit(v, leaves)) }
  if (value instanceof Map) return { kind: 'map', keys: [...value.keys()], children: [...value.values()].map((v) => visit(v, leaves)) }
  if (isPlainObject(value)) return { kind: 'object', keys: Object.keys(value), children: Object.values(value).map((v) => visit(v, leaves)) }
  leaves.push(value)
  return LEAF
}

/** The leaves in order, and the structure. */
export function treeFlatten(value: unknown): { leaves: unknown[]; spec: TreeSpec } {
  const leaves: unknown[] = []
  const spec = visit(value, leaves)
  return { leaves, spec }
}

/** The leaves in order. */
export const treeLeaves = (value: unknown): unknown[] => treeFlatten(value).leaves

/** The nested value with these leaves. Throws ArgumentError when their number does not fit. */
export function treeUnflatten(leaves: readonly unknown[], spec: TreeSpec): unknown {
  let next = 0
  const build = (s: TreeSpec): unknown => {
    if (s.kind === 'leaf') {
      if (next >= leaves.length)
        throw new ArgumentError(`treeUnflatten: the structure has more than ${leaves.length} leaves; pass one value per leaf.`)
      return leaves[next++]
    }
    const children = s.children.map(build)
    if (s.kind === 'array') return children
    if (s.kind === 'map') return new Map(s.keys.map((key, i): [unknown, unknown] => [key, children[i]]))
    return Object.fromEntries(s.keys.map((key, i): [string, unknown] => [key as string, children[i]]))
  }
  const value = build(spec)
  if (next !== leaves.length)
    throw new ArgumentError(`treeUnflatten: ${leaves.length} values for a structure of ${next} leaves; pass one value per leaf.`)
  return value
}

/** The same structure with `fn` applied to each leaf. */
export function treeMap(value: unknown, fn: (leaf: unknown) => unknown): unknown {
  const { leaves, spec } = treeFlatten(value)
  return treeUnflatten(leaves.map(fn), spec)
}

/** Whether two structures are the same, leaves aside. */
export function treeEqual(a: TreeSpec, b: TreeSpec): boolean {
  if (a.kind === 'leaf' || b.kind === 'leaf') return a.kind === b.kind
  if (a.kind !== b.kind || a.children.length !== b.children.length) return false
  if (a.kind !== 'array' && b.kind !== 'array' && !a.keys.every((key, i) => key === b.keys[i])) return false
  return a.children.every((child, i) => treeEqual(child, b.children[i] as TreeSpec))
}

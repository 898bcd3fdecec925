// Rebuilding the arguments of a node: every node, or every leaf, of a nested structure replaced by what a function returns for it.
import { checkCallable, checkDepth, setOwn } from '../../protocol/index.ts'
import { Node, isRecord } from './node.ts'
import type { Argument, Kwargs } from './node.ts'
import { Slice, isTuple, markTuple } from './pythonValues.ts'

/** The structure with every node in it replaced by what `fn` returns; PyTorch's map_arg. Throws ArgumentError if `fn` is not a function. */
export function mapArg<R>(value: readonly Argument[], fn: (node: Node) => R): readonly (Argument | R)[]
export function mapArg<R>(value: Kwargs, fn: (node: Node) => R): Readonly<Record<string, Argument | R>>
export function mapArg<R>(value: Argument, fn: (node: Node) => R): Argument | R
export function mapArg<R>(value: Argument, fn: (node: Node) => R): Argument | R {
  checkCallable('mapArg', 'fn', fn)
  return walk(value, (leaf) => (leaf instanceof Node ? fn(leaf) : leaf), 0)
}

/** The structure with every leaf, nodes included, replaced by what `fn` returns; PyTorch's map_aggregate. */
export function mapAggregate<R>(value: Argument, fn: (leaf: Argument) => R): R | object {
  checkCallable('mapAggregate', 'fn', fn)
  return walk(value, fn, 0)
}

function walk<R>(value: Argument, fn: (leaf: Argument) => R, depth: number): R | object {
  checkDepth(depth)
  if (typeof value !== 'object' || value === null || value instanceof Node) return fn(value)
  if (Array.isArray(value)) {
    const out: unknown[] = []
    for (let i = 0; i < value.length; i++) out.push(walk(value[i], fn, depth + 1))
    return isTuple(value) ? markTuple(out) : out
  }
  if (value instanceof Slice)
    return new Slice<unknown>(walk(value.start, fn, depth + 1), walk(value.stop, fn, depth + 1), walk(value.step, fn, depth + 1))
  if (!isRecord(value)) return fn(value)
  const out: Record<string, unknown> = {}
  for (const key of Object.keys(value)) setOwn(out, key, walk(value[key], fn, depth + 1))
  return out
}

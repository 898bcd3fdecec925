// Rebuilding the arguments of a node: every node, or every leaf, of a nested structure replaced by what a function returns for it.
import { checkCallable } from '../../protocol/index.ts'
import { mapLeaves } from './pythonValues.ts'
import { Node } from './node.ts'
import type { Argument, Kwargs } from './node.ts'

/** The structure with every node in it replaced by what `fn` returns; PyTorch's map_arg. Throws ArgumentError if `fn` is not a function. */
export function mapArg<R>(value: readonly Argument[], fn: (node: Node) => R): readonly (Argument | R)[]
export function mapArg<R>(value: Kwargs, fn: (node: Node) => R): Readonly<Record<string, Argument | R>>
export function mapArg<R>(value: Argument, fn: (node: Node) => R): Argument | R
export function mapArg<R>(value: Argument, fn: (node: Node) => R): Argument | R {
  checkCallable('mapArg', 'fn', fn)
  return mapLeaves(value, (leaf) => (leaf instanceof Node ? fn(leaf) : leaf), isNode)
}

/** The structure with every leaf, nodes included, replaced by what `fn` returns; PyTorch's map_aggregate. */
export function mapAggregate<R>(value: Argument, fn: (leaf: Argument) => R): R | object {
  checkCallable('mapAggregate', 'fn', fn)
  return mapLeaves(value, fn, isNode)
}

const isNode = (value: object): boolean => value instanceof Node

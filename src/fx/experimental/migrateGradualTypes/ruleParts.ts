// What the rules of the constraint generator share.
import { ArgumentError, UnsupportedError } from '../../../errors/index.ts'
import type { Module } from '../../../module/index.ts'
import { Node } from '../../graph/node.ts'
import { placeOf } from '../gradualTypes/layerRules.ts'
import { Dyn, TensorType } from '../gradualTypes/tensorType.ts'
import { BinConstraintD, BinConstraintT, Conj, DVar, Disj, F, T, TVar } from './constraint.ts'
import type { Constraint, Size, TensorTerm } from './constraint.ts'
import { ApplyBroadcasting, TGreatestUpperBound } from './operatorConstraints.ts'
import { opConsistency, opEq, opLeq } from './operation.ts'
import { genNatConstraints } from './util.ts'
import type { Fresh } from './util.ts'

/** The highest rank that constraints know. PyTorch's MAX_TENSOR_RANK. */
export const MAX_TENSOR_RANK = 4

/** The variables of nodes. */
export type SymbolTable = Map<unknown, TVar | DVar>

/** What a rule gets. */
export interface RuleInput {
  readonly node: Node
  /** The module that has the layers. */
  readonly root: Module
  readonly symbols: SymbolTable
  /** Makes the variables. */
  readonly fresh: Fresh
}

/** The constraints of a node. */
export type ConstraintRule = (input: RuleInput) => readonly Constraint[]

export const ranks: readonly number[] = Array.from({ length: MAX_TENSOR_RANK }, (_, i) => i + 1)
export const isType = (term: TVar, value: TensorTerm): BinConstraintT => new BinConstraintT(term, value, opEq)
export const isDynType = (term: TVar): BinConstraintT => isType(term, Dyn)
export const shapeOf = (term: TVar, sizes: readonly Size[]): BinConstraintT => isType(term, TensorType(sizes))
export const sameSize = (a: Size, b: Size): BinConstraintD => new BinConstraintD(a, b, opEq)
export const natural = (size: Size): BinConstraintD => new BinConstraintD(0, size, opLeq)

/** An error about a call that a rule cannot take. */
export function unsupported(node: Node, what = 'Not yet implemented'): UnsupportedError {
  return new UnsupportedError(`${what}: constraints of node ${node.name}${placeOf(node)}`)
}

/** The variable of a node's argument. */
export function variableAt({ node, symbols }: RuleInput, index = 0): TVar | DVar {
  const variable = symbols.get(node.args[index])
  if (variable === undefined) throw unsupported(node, `Argument ${index} has no type`)
  return variable
}

/** The variable of a tensor at an argument. */
export function tensorAt(input: RuleInput, index = 0): TVar {
  const variable = variableAt(input, index)
  if (variable instanceof TVar) return variable
  throw unsupported(input.node, `Argument ${index} must be a tensor, but is a size`)
}

/** A number at an argument, or in the options. */
export function numberAt({ node }: RuleInput, index: number, ...names: readonly string[]): number | null {
  const value = node.args[index] ?? names.map((name) => node.kwargs[name]).find((v) => v !== undefined)
  if (value === undefined || typeof value === 'number') return value ?? null
  throw unsupported(node, `Argument ${index} must be a number`)
}

/** The sizes at an argument: an array, or all arguments from there. */
export function sizesAt({ node, symbols }: RuleInput, index: number): Size[] {
  const first = node.args[index]
  const given: readonly unknown[] = Array.isArray(first) ? first : first === undefined ? [] : node.args.slice(index)
  return given.map((value) => {
    if (typeof value === 'number') return value
    const variable = symbols.get(value)
    if (variable instanceof DVar) return variable
    throw unsupported(node, `Argument ${index} must hold numbers and sizes`)
  })
}

/** A new variable for the node's value, a tensor. */
export function newTensor({ node, symbols, fresh }: RuleInput): TVar {
  const variable = fresh.tensor()
  symbols.set(node, variable)
  return variable
}

/** A new variable for the node's value, a size. */
export function newSize({ node, symbols, fresh }: RuleInput): DVar {
  const variable = fresh.size()
  symbols.set(node, variable)
  return variable
}

/** Either both types are Dyn, or one alternative for each rank holds. */
const dynOrRanks = (input: TVar, output: TVar, alternatives: readonly Constraint[]): Disj =>
  new Disj([new Conj([isDynType(input), isDynType(output)]), new Disj(alternatives)])

/** `output` is what an operation with broadcasting gives for two tensors. PyTorch's gen_broadcasting_constraints. */
export function genBroadcastingConstraints(one: TVar, other: TVar, output: TVar, fresh: Fresh): Constraint[] {
  const [a, b] = [fresh.tensor(), fresh.tensor()]
  return [new TGreatestUpperBound(output, a, b), new ApplyBroadcasting(a, b, one, other), new BinConstraintT(a, b, opConsistency)]
}

/** Whether an index is one of `count` dimensions; negative ones count from the end. PyTorch's range_check, which takes no negative ones. */
export const rangeCheck = (index: number, count: number): T | F => (index >= -count && index < count ? new T() : new F())

/** The last size is `inFeatures` before, and `outFeatures` after; the others are equal. PyTorch's add_linear_constraints. @throws ArgumentError for different ranks. */
export function addLinearConstraints(before: readonly Size[], after: readonly Size[], inFeatures: Size, outFeatures: Size): Constraint[] {
  if (before.length !== after.length)
    throw new ArgumentError(`addLinearConstraints: both types must have the same rank, got ${before.length} and ${after.length}.`)
  return before.flatMap((size, i) => {
    const result = after[i] ?? Dyn
    return i === before.length - 1 ? [new BinConstraintD(size, inFeatures, opConsistency), sameSize(result, outFeatures)] : [sameSize(size, result)]
  })
}

/** The last sizes are the normalized ones. PyTorch's add_layer_norm_constraints. */
export function addLayerNormConstraints(sizes: readonly Size[], normalized: readonly number[]): Constraint[] {
  if (normalized.length > sizes.length) return [new F()]
  return normalized.toReversed().map((wanted, i) => new BinConstraintD(sizes.at(-1 - i) ?? Dyn, wanted, opConsistency))
}

/** Linear layers. PyTorch's linear_constraints. */
export function linearConstraints(input: RuleInput, inFeatures: Size, outFeatures: Size): Constraint[] {
  const output = newTensor(input)
  const from = tensorAt(input)
  const alternatives = ranks.map((rank) => {
    const [before, after] = [input.fresh.sizes(rank), input.fresh.sizes(rank)]
    const linear = addLinearConstraints(before, after, inFeatures, outFeatures)
    return new Conj([shapeOf(from, before), shapeOf(output, after), ...linear, ...genNatConstraints([...before, ...after])])
  })
  return [dynOrRanks(from, output, alternatives)]
}

/** The result has the input's sizes, for which `more` may say what must hold. */
export function sameShape(input: RuleInput, more: (sizes: readonly DVar[]) => readonly Constraint[]): Constraint[] {
  const output = newTensor(input)
  const from = tensorAt(input)
  const alternatives = ranks.map((rank) => {
    const sizes = input.fresh.sizes(rank)
    return new Conj([shapeOf(from, sizes), shapeOf(output, sizes), ...more(sizes), ...genNatConstraints(sizes)])
  })
  return [dynOrRanks(from, output, alternatives)]
}

/** Embeddings: one more size at the end. PyTorch's gen_embedding_rules. */
export function embeddingConstraints(input: RuleInput, features: Size): Constraint[] {
  const output = newTensor(input)
  const from = tensorAt(input)
  const alternatives = ranks.slice(0, -1).map((rank) => {
    const sizes = input.fresh.sizes(rank)
    return new Conj([shapeOf(from, sizes), shapeOf(output, [...sizes, features]), ...genNatConstraints(sizes)])
  })
  return [dynOrRanks(from, output, alternatives)]
}

export const isNode = (value: unknown): value is Node => value instanceof Node

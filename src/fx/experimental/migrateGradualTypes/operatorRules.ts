// The constraints of functions and methods.
import { normalizeFunction } from '../../graph/operatorSchemas.ts'
import { Slice } from '../../graph/pythonValues.ts'
import { flattenedDims } from '../gradualTypes/graphGradualTypechecker.ts'
import { Dyn, TensorType } from '../gradualTypes/tensorType.ts'
import { BinConstraintD, BinConstraintT, Conj, DVar, Disj, F, TVar } from './constraint.ts'
import type { Constraint, Size } from './constraint.ts'
import { CalcProduct, CanReshape, DGreatestUpperBound, GetItem, GetItemTensor, IndexSelect, Transpose } from './operatorConstraints.ts'
import { opAdd, opConsistency, opDiv, opEq, opGt, opLt, opMul, opNeq, opSub } from './operation.ts'
import type { Operation } from './operation.ts'
import {
  addLayerNormConstraints,
  embeddingConstraints,
  genBroadcastingConstraints,
  isDynType,
  isNode,
  isType,
  linearConstraints,
  natural,
  newSize,
  newTensor,
  numberAt,
  rangeCheck,
  ranks,
  sameShape,
  sameSize,
  shapeOf,
  sizesAt,
  tensorAt,
  unsupported,
  variableAt,
} from './ruleParts.ts'
import type { ConstraintRule, RuleInput } from './ruleParts.ts'
import { genNatConstraints } from './util.ts'
import type { Fresh } from './util.ts'

const getattr: ConstraintRule = (input) => {
  if (input.node.args[1] !== 'device') throw unsupported(input.node)
  const output = newTensor(input)
  return [isType(tensorAt(input), output)]
}

const bmm: ConstraintRule = (input) => {
  const output = newTensor(input)
  const [left, right] = [tensorAt(input, 0), tensorAt(input, 1)]
  const [a, b] = [input.fresh.sizes(3), input.fresh.sizes(3)]
  const [[a0, a1, a2], [b0, b1, b2]] = [a, b]
  const batch = input.fresh.size()
  if (a0 === undefined || a1 === undefined || a2 === undefined || b0 === undefined || b1 === undefined || b2 === undefined) return []
  const tensors = [shapeOf(left, a), shapeOf(right, b), shapeOf(output, [batch, a1, b2])]
  return [
    new Disj([
      new Conj([isDynType(left), isDynType(right), isDynType(output)]),
      new Conj([isDynType(left), shapeOf(right, b), shapeOf(output, [b0, Dyn, b2])]),
      new Conj([isDynType(right), shapeOf(left, a), shapeOf(output, [a0, a1, Dyn])]),
      // PyTorch does not compare the sizes that are summed over.
      new Conj([
        ...tensors,
        new BinConstraintD(a0, b0, opConsistency),
        new DGreatestUpperBound(batch, a0, b0),
        new BinConstraintD(a2, b1, opConsistency),
      ]),
    ]),
  ]
}

const indexSelect: ConstraintRule = (input) => {
  const output = newTensor(input)
  const [from, index, at] = [tensorAt(input, 0), tensorAt(input, 2), numberAt(input, 1, 'dim') ?? 0]
  const [size] = input.fresh.sizes(1)
  if (size === undefined) return []
  const selected = (replacement: Size): Disj => new Disj(ranks.map((rank) => new IndexSelect(rank, from, replacement, at, output)))
  return [new Disj([new Conj([shapeOf(index, [size]), selected(size)]), new Conj([isDynType(index), selected(Dyn)])])]
}

const expand: ConstraintRule = (input) => {
  const output = newTensor(input)
  const from = tensorAt(input)
  const target = input.fresh.tensor()
  const wanted = sizesAt(input, 1)
  const broadcast = genBroadcastingConstraints(from, target, output, input.fresh)
  const sizes = input.fresh.sizes(wanted.length)
  const variables = wanted.filter((size) => size instanceof DVar)
  return [...broadcast, shapeOf(output, sizes), ...genNatConstraints(sizes), shapeOf(target, wanted), ...genNatConstraints(variables)]
}

/** The result has the type of the input; a tensor of given sizes has these. */
const equality: ConstraintRule = (input) => {
  const output = newTensor(input)
  const variable = input.symbols.get(input.node.args[0])
  return [variable instanceof TVar ? isType(variable, output) : shapeOf(output, sizesAt(input, 0))]
}

const transpose: ConstraintRule = (input) => {
  const output = newTensor(input)
  const from = tensorAt(input)
  const [a, b] = [numberAt(input, 1, 'dim0') ?? 0, numberAt(input, 2, 'dim1') ?? 0]
  return [new Disj([new Conj([isDynType(from), isDynType(output)]), new Disj(ranks.map((rank) => new Transpose(rank, from, a, b, output)))])]
}

const typeAs: ConstraintRule = (input) => {
  const output = newTensor(input)
  const [from, to] = [tensorAt(input, 0), tensorAt(input, 1)]
  return [new BinConstraintT(from, to, opConsistency), isType(output, to)]
}

const maskedFill: ConstraintRule = (input) => {
  const [from, mask] = [tensorAt(input, 0), tensorAt(input, 1)]
  return genBroadcastingConstraints(from, mask, newTensor(input), input.fresh)
}

const embedding: ConstraintRule = (input) => {
  const weight = tensorAt(input, 1)
  const sizes = input.fresh.sizes(2)
  const features = sizes[1] ?? Dyn
  return [shapeOf(weight, sizes), ...embeddingConstraints(input, features)]
}

const view: ConstraintRule = (input) => {
  const output = newTensor(input)
  const from = tensorAt(input)
  const shape = sizesAt(input, 1).map((size) => (size === -1 ? input.fresh.size() : size))
  const target = TensorType(shape)
  return [isType(output, target), new CanReshape(from, target), ...shape.map((size) => new BinConstraintD(size, Dyn, opNeq))]
}

const reshape: ConstraintRule = (input) => {
  const output = newTensor(input)
  const from = tensorAt(input)
  const target = TensorType(sizesAt(input, 1).map((size) => (size === -1 ? Dyn : size)))
  return [isType(output, target), new CanReshape(from, target)]
}

/** A size of a tensor; Dyn for a tensor that is Dyn. */
function itemOf(from: TVar, index: number, size: DVar): Constraint {
  const items = new Disj(ranks.map((rank) => new GetItem(rank, index, size, from)))
  return new Disj([new Conj([isDynType(from), sameSize(size, Dyn)]), new Conj([items, natural(size)])])
}

const size: ConstraintRule = (input) => {
  if (input.node.args.length === 1 && Object.keys(input.node.kwargs).length === 0) {
    const output = newTensor(input)
    return [isType(tensorAt(input), output)]
  }
  const index = numberAt(input, 1, 'dim')
  if (index === null) throw unsupported(input.node)
  const output = newSize(input)
  return [itemOf(tensorAt(input), index, output)]
}

const cumsum: ConstraintRule = (input) => {
  const dim = numberAt(input, 1, 'dim')
  if (dim === null) throw unsupported(input.node, 'cumsum needs a dimension')
  return sameShape(input, (sizes) => [rangeCheck(dim, sizes.length)])
}

const getitem: ConstraintRule = (input) => {
  const index = input.node.args[1]
  if (typeof index === 'number') {
    const output = newSize(input)
    return [itemOf(tensorAt(input), index, output)]
  }
  const indices: readonly unknown[] = Array.isArray(index) ? index : [index]
  if (indices.some((i) => i !== null && !(i instanceof Slice))) throw unsupported(input.node)
  const output = newTensor(input)
  const from = input.symbols.get(input.node.args[0])
  if (!(from instanceof TVar)) return []
  const alternatives = ranks.map((rank) => new GetItemTensor(rank, indices, output, from))
  return [new Disj([new Conj([isDynType(from), isDynType(output)]), ...alternatives])]
}

/** A comparison of tensors, or of sizes, which gives a condition. */
const comparison =
  (op: Operation, correctsAssumptions: boolean): ConstraintRule =>
  (input) => {
    const { node, symbols, fresh } = input
    const [left, right] = node.args
    const a = variableAt(input, 0)
    const b = typeof right === 'number' ? right : variableAt(input, 1)
    if (isNode(left) && a instanceof TVar && b instanceof TVar) return genBroadcastingConstraints(a, b, newTensor(input), fresh)
    if (a instanceof DVar && (b instanceof DVar || typeof b === 'number')) {
      const condition = new BinConstraintD(a, b, op)
      return [new BinConstraintD(fresh.truth(), condition, opEq)]
    }
    if (typeof b !== 'number') throw unsupported(node, 'Sort Mismatch')
    if (!correctsAssumptions) throw unsupported(node)
    console.warn(`Made the wrong assumption for node ${node.name}. Correctness not guaranteed.`)
    const size = fresh.size()
    symbols.set(left, size)
    return [new BinConstraintD(fresh.truth(), new BinConstraintD(size, b, op), opEq)]
  }

/** A shape is not the one given: some size is known on both sides, and differs. */
const shapeIsNot: ConstraintRule = (input) => {
  const { node, fresh } = input
  if (!Array.isArray(node.args[1])) return broadcasting(null)(input)
  const wanted = sizesAt(input, 1)
  if (wanted.length !== 3 && wanted.length !== 4) throw unsupported(node)
  const from = tensorAt(input)
  const sizes = fresh.sizes(4).slice(0, wanted.length)
  fresh.truth()
  const differs = wanted.map((size, i) => {
    const own = sizes[i] ?? Dyn
    return new Conj([new BinConstraintD(size, Dyn, opNeq), new BinConstraintD(own, Dyn, opNeq), new BinConstraintD(size, own, opNeq)])
  })
  return [new BinConstraintD(fresh.truth(), new Conj([shapeOf(from, sizes), new Disj(differs)]), opEq)]
}

const full: ConstraintRule = (input) => {
  const output = newTensor(input)
  return [shapeOf(output, sizesAt(input, 0))]
}

const arange: ConstraintRule = (input) => {
  if (input.node.args.length !== 1) throw unsupported(input.node)
  const [end] = sizesAt(input, 0)
  if (end === undefined) return []
  const count = input.fresh.size()
  const length = new BinConstraintD(new BinConstraintD(end, 0, opSub), 1, opDiv)
  const output = newTensor(input)
  const parts: readonly Size[] = [end, 0, 1]
  const unknown = new Conj([new Disj(parts.map((part) => sameSize(part, Dyn))), sameSize(count, Dyn)])
  const known = new Conj([
    new Conj(parts.map((part) => new BinConstraintD(part, Dyn, opNeq))),
    new BinConstraintD(count, Dyn, opNeq),
    new BinConstraintD(count, length, opEq),
  ])
  return [shapeOf(output, [count]), new Disj([unknown, known])]
}

/** Pointwise operations of tensors; of sizes, those that compute one. */
const broadcasting =
  (op: Operation | null): ConstraintRule =>
  (input) => {
    const { node, symbols, fresh } = input
    const variables = node.args.slice(0, 2).map((arg) => symbols.get(arg))
    const [a, b] = variables
    if (a instanceof TVar && b instanceof TVar) return genBroadcastingConstraints(a, b, newTensor(input), fresh)
    const tensor = variables.find((variable) => variable instanceof TVar)
    const other = node.args.slice(0, 2).find((arg) => typeof arg === 'number')
    if (tensor !== undefined && other !== undefined) return [isType(newTensor(input), tensor)]
    const first = variables.find((variable) => variable instanceof DVar)
    const second = a instanceof DVar && b instanceof DVar ? b : other
    if (first === undefined || second === undefined || op === null) throw unsupported(node, 'Method not yet implemented')
    const output = newSize(input)
    return [new Conj([new BinConstraintD(output, new BinConstraintD(first, second, op), opEq), natural(output)])]
  }

/** A type whose sizes from `startDim` to `endDim` become one, for one rank. PyTorch's generate_flatten_constraints. */
function generateFlattenConstraints(startDim: number, endDim: number, from: TVar, flattened: TVar, rank: number, fresh: Fresh): Constraint {
  const sizes = fresh.sizes(rank)
  const start = startDim < 0 ? rank + startDim : startDim
  const end = endDim < 0 ? rank + endDim + 1 : endDim + 1
  return new Conj([shapeOf(from, sizes), new CalcProduct(start, end, flattened, sizes), ...genNatConstraints(sizes)])
}

const flatten: ConstraintRule = (input) => {
  const output = newTensor(input)
  const from = tensorAt(input)
  const [start, end] = flattenedDims(input.node)
  const alternatives = ranks.map((rank) => generateFlattenConstraints(start, end, from, output, rank, input.fresh))
  return [new Disj([new Conj([isDynType(from), isDynType(output)]), ...alternatives])]
}

const layerNorm: ConstraintRule = (input) => {
  const { node } = input
  const call = node.op === 'call_function' ? normalizeFunction(node.target, node.args, node.kwargs, { onlyKwargs: true }) : null
  const shape: unknown = call?.kwargs['normalized_shape'] ?? call?.kwargs['normalizedShape'] ?? node.args[1]
  const normalized = Array.isArray(shape) ? shape.filter((s) => typeof s === 'number') : []
  return sameShape(input, (sizes) => (normalized.length === 0 ? [new F()] : addLayerNormConstraints(sizes, normalized)))
}

const dim: ConstraintRule = (input) => {
  const count = newSize(input)
  const from = tensorAt(input)
  const alternatives = ranks.map((rank) => new Conj([shapeOf(from, input.fresh.sizes(rank)), sameSize(count, rank)]))
  return [new Disj([new Conj([isDynType(from), sameSize(count, Dyn)]), new Disj(alternatives)])]
}

const linear: ConstraintRule = (input: RuleInput) => {
  const weight = tensorAt(input, 1)
  const sizes = input.fresh.sizes(2)
  const [outFeatures, inFeatures] = sizes
  return [shapeOf(weight, sizes), ...linearConstraints(input, inFeatures ?? Dyn, outFeatures ?? Dyn)]
}

/** What has no type: assertions, and tensors of values. */
const nothing: ConstraintRule = () => []

/** Rules by the names of functions; those of methods begin with a dot. */
export const operatorRules: Readonly<Record<string, ConstraintRule>> = {
  'builtins.getattr': getattr,
  'torch.bmm': bmm,
  '.index_select': indexSelect,
  'torch.indexSelect': indexSelect,
  '.expand': expand,
  'torch.nn.functional.gelu': equality,
  'torch.nn.functional.dropout': equality,
  'torch.nn.functional.softmax': equality,
  'torch.softmax': equality,
  '.detach': equality,
  '.to': equality,
  '.int': equality,
  '.long': equality,
  '.contiguous': equality,
  'torch.ones': equality,
  'torch.zeros': equality,
  '.transpose': transpose,
  'torch.transpose': transpose,
  '.type_as': typeAs,
  '.masked_fill_': maskedFill,
  'torch.nn.functional.embedding': embedding,
  'torch.tensor': nothing,
  '.reshape': view,
  '.view': view,
  '.size': size,
  'torch.cumsum': cumsum,
  'torch.fx._symbolic_trace._assert_is_none': nothing,
  'operator.getitem': getitem,
  'operator.gt': comparison(opGt, true),
  'operator.lt': comparison(opLt, false),
  'operator.eq': comparison(opEq, false),
  'operator.ne': shapeIsNot,
  'torch.full': full,
  'torch.arange': arange,
  'operator.mul': broadcasting(opMul),
  'torch.mul': broadcasting(opMul),
  'operator.add': broadcasting(opAdd),
  'torch.add': broadcasting(opAdd),
  'torch.ne': broadcasting(null),
  'torch.flatten': flatten,
  'torch.nn.functional.layer_norm': layerNorm,
  'torch.nn.functional.layerNorm': layerNorm,
  '.dim': dim,
  'torch.nn.functional.linear': linear,
  'torch.reshape': reshape,
}

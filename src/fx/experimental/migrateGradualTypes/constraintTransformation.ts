// Turns constraints of operators into equations between types and sizes, combined by and/or. PyTorch's
// torch.fx.experimental.migrate_gradual_types.constraint_transformation.
import { UnsupportedError } from '../../../errors/index.ts'
import { Slice } from '../../graph/pythonValues.ts'
import { Dyn, TensorType, isTensorType } from '../gradualTypes/tensorType.ts'
import { generateBroadcasting } from './broadcasting.ts'
import { BinConstraintD, BinConstraintT, Conj, Disj, F, Prod, T, TVar, isDim } from './constraint.ts'
import type { Constraint, Size, TensorTerm } from './constraint.ts'
import {
  ApplyBroadcasting,
  CalcConv,
  CalcMaxPool,
  CalcProduct,
  CanReshape,
  DGreatestUpperBound,
  GetItem,
  GetItemTensor,
  IndexSelect,
  TGreatestUpperBound,
  Transpose,
} from './operatorConstraints.ts'
import type { PerDimension } from './operatorConstraints.ts'
import { opAdd, opConsistency, opDiv, opEq, opLeq, opMatching, opMod, opMul, opNeq, opPrecision, opSub } from './operation.ts'
import { MAX_TENSOR_RANK, isDynType, ranks, sameSize, shapeOf } from './ruleParts.ts'
import { Fresh, genNatConstraints } from './util.ts'

const isKnown = (size: Size): BinConstraintD => new BinConstraintD(size, Dyn, opNeq)
const isUnknown = (size: Size): BinConstraintD => sameSize(size, Dyn)

/** Whether a list has an index; negative ones count from the end. PyTorch's valid_index. */
export const validIndex = (index: number, sizes: readonly unknown[]): T | F => (index >= -sizes.length && index < sizes.length ? new T() : new F())

/** Whether a tensor has a dimension for each slice of an index. PyTorch's valid_index_tensor. */
export const validIndexTensor = (index: readonly unknown[], sizes: readonly unknown[]): T | F =>
  index.filter((item) => item instanceof Slice).length > sizes.length ? new F() : new T()

/** Each combination of the sizes being Dyn or not; the last one varies fastest. PyTorch's generate_all_int_dyn_dim_possibilities. */
export const generateAllIntDynDimPossibilities = (sizes: readonly Size[]): BinConstraintD[][] =>
  sizes.reduce<BinConstraintD[][]>(
    (all, size) =>
      all.flatMap((before) => [
        [...before, isUnknown(size)],
        [...before, isKnown(size)],
      ]),
    [[]],
  )

const divides = (dividend: Size | Prod, divisor: Size | Prod): BinConstraintD =>
  new BinConstraintD(new BinConstraintD(dividend, divisor, opMod), 0, opEq)

/** The product of the target is divisible. PyTorch's is_target_div_by_dim. */
export const isTargetDivByDim = (target: readonly Size[], by: Size | Prod): BinConstraintD => divides(new Prod(target), by)

/** A size is divisible by the product of the target. PyTorch's is_dim_div_by_target. */
export const isDimDivByTarget = (target: readonly Size[], size: Size | Prod): BinConstraintD => divides(size, new Prod(target))

/** What must hold for tensors of these sizes, known or not, to take a shape without unknown sizes. PyTorch's gen_all_reshape_possibilities. */
export const genAllReshapePossibilities = (sizes: readonly Size[], target: readonly Size[]): Disj =>
  new Disj(
    generateAllIntDynDimPossibilities(sizes).map((possibility) => {
      const known = sizes.filter((_, i) => possibility[i]?.op === opNeq)
      if (known.length === 0) return new Conj(possibility)
      const products =
        known.length < sizes.length ? isTargetDivByDim(target, new Prod(known)) : new BinConstraintD(new Prod(sizes), new Prod(target), opEq)
      return new Conj([...possibility, products])
    }),
  )

/** The sizes of a type that came from a rule. */
const sizesOf = (type: TensorType): readonly Size[] => type.dims.map((size) => (isDim(size) ? size : Dyn))

type Rule<C> = (constraint: C, fresh: Fresh) => Constraint

const transpose: Rule<Transpose> = ({ tensorSize, inputVar, index1, index2, output }, fresh) => {
  const sizes = fresh.sizes(tensorSize)
  const valid = [validIndex(index1, sizes), validIndex(index2, sizes)]
  const swapped: Size[] = [...sizes]
  if (valid.every((v) => v instanceof T)) {
    const [a, b] = [index1, index2].map((index) => (index < 0 ? tensorSize + index : index))
    if (a !== undefined && b !== undefined) [swapped[a], swapped[b]] = [sizes[b] ?? Dyn, sizes[a] ?? Dyn]
  }
  return new Conj([shapeOf(inputVar, sizes), ...genNatConstraints(sizes), ...valid, shapeOf(output, swapped)])
}

const indexSelect: Rule<IndexSelect> = ({ tensorSize, inputVar, dimReplace, index, output }, fresh) => {
  const sizes = fresh.sizes(tensorSize)
  const valid = validIndex(index, sizes)
  const at = index < 0 ? tensorSize + index : index
  const replaced = sizes.map((size, i) => (i === at ? dimReplace : size))
  return new Conj([shapeOf(inputVar, sizes), ...genNatConstraints(sizes), valid, shapeOf(output, replaced)])
}

const getItem: Rule<GetItem> = ({ tensorSize, index, res, inputVar }, fresh) => {
  const sizes = fresh.sizes(tensorSize)
  const size = sizes.at(index)
  const valid = validIndex(index, sizes)
  const item = valid instanceof T && size !== undefined ? [sameSize(res, size)] : []
  return new Conj([shapeOf(inputVar, sizes), ...genNatConstraints(sizes), valid, ...item])
}

const getItemTensor: Rule<GetItemTensor> = ({ tensorSize, indexTuple, res, inputVar }, fresh) => {
  const sizes = fresh.sizes(tensorSize)
  for (const index of indexTuple)
    if (index !== null && !(index instanceof Slice && index.start === null && index.stop === null && index.step === null))
      throw new UnsupportedError(`Method not yet implemented: an index must hold null and full slices, got ${String(index)}`)
  const added = indexTuple.filter((index) => index === null).length
  const result = Array.from({ length: sizes.length + added }, (_, i): Size | null => (indexTuple[i] === null ? 1 : null))
  // null beyond the last dimension stands for no dimension.
  if (result.length > MAX_TENSOR_RANK || result.filter((size) => size === 1).length < added) return new F()
  const rest = [...sizes]
  const filled = result.map((size) => size ?? rest.shift() ?? Dyn)
  return new Conj([shapeOf(inputVar, sizes), shapeOf(res, filled), ...genNatConstraints(sizes), validIndexTensor(indexTuple, sizes)])
}

const typeConstraint: Rule<BinConstraintT> = (constraint, fresh) => {
  const { lhs, rhs, op } = constraint
  switch (op) {
    case opPrecision:
      return precision(lhs, rhs, fresh) ?? constraint
    case opMatching: {
      if (!isTensorType(rhs) || !(lhs instanceof TVar))
        throw new UnsupportedError(`matching: expected a variable and a type, got ${String(constraint)}`)
      const sizes = sizesOf(rhs)
      return new Disj([new Conj([isDynType(lhs), ...sizes.map(isUnknown)]), shapeOf(lhs, sizes)])
    }
    case opConsistency: {
      const isShape = (term: TensorTerm | number, sizes: readonly Size[]): BinConstraintT =>
        new BinConstraintT(asTensor(term), TensorType(sizes), opEq)
      const alternatives = ranks.map((rank) => {
        const [a, b] = [fresh.sizes(rank), fresh.sizes(rank)]
        const consistent = a.map((size, i) => new BinConstraintD(size, b[i] ?? Dyn, opConsistency))
        return new Conj([isShape(lhs, a), isShape(rhs, b), ...consistent, ...genNatConstraints([...a, ...b])])
      })
      return new Disj([new Disj([new BinConstraintT(asTensor(lhs), Dyn, opEq), new BinConstraintT(asTensor(rhs), Dyn, opEq)]), ...alternatives])
    }
    case opLeq: {
      if (typeof rhs !== 'number' || !(lhs instanceof TVar))
        throw new UnsupportedError(`≤: expected a variable and a number, got ${String(constraint)}`)
      return new Disj([isDynType(lhs), ...Array.from({ length: rhs }, (_, i) => shapeOf(lhs, fresh.sizes(i + 1)))])
    }
    default:
      return constraint
  }
}

function asTensor(term: TensorTerm | number): TensorTerm {
  if (typeof term !== 'number') return term
  throw new UnsupportedError(`a constraint of tensors has the number ${term} as an operand`)
}

function precision(lhs: TensorTerm, rhs: TensorTerm | number, fresh: Fresh): Constraint | null {
  if (lhs === Dyn) return new T()
  if (!isTensorType(lhs)) return null
  if (lhs.dims.every((size) => size !== Dyn)) return new BinConstraintT(lhs, rhs, opEq)
  const sizes = fresh.sizes(lhs.dims.length)
  const known = sizesOf(lhs).map((size, i) => new BinConstraintD(size, sizes[i] ?? Dyn, opPrecision))
  return new Conj([...known, new BinConstraintT(asTensor(rhs), TensorType(sizes), opEq), ...sizes.map((size) => new BinConstraintD(1, size, opLeq))])
}

const sizeConstraint: Rule<BinConstraintD> = (constraint) => {
  const { lhs, rhs, op } = constraint
  if (op === opPrecision) {
    if (lhs === Dyn) return new T()
    return typeof lhs === 'number' ? new BinConstraintD(lhs, rhs, opEq) : constraint
  }
  if (op !== opConsistency) return constraint
  return new Disj([new BinConstraintD(lhs, rhs, opEq), new BinConstraintD(rhs, Dyn, opEq), new BinConstraintD(lhs, Dyn, opEq)])
}

const tensorBound: Rule<TGreatestUpperBound> = ({ res, rhs1, rhs2 }, fresh) => {
  const alternatives = ranks.map((rank) => {
    const [a, b, c] = [fresh.sizes(rank), fresh.sizes(rank), fresh.sizes(rank)]
    const bounds = c.map((size, i) => new DGreatestUpperBound(size, a[i] ?? Dyn, b[i] ?? Dyn))
    return new Conj([shapeOf(rhs1, a), shapeOf(rhs2, b), shapeOf(res, c), ...genNatConstraints([...a, ...b, ...c]), ...bounds])
  })
  return new Disj([new Conj([new Disj([isDynType(rhs1), isDynType(rhs2)]), isDynType(res)]), ...alternatives])
}

const sizeBound: Rule<DGreatestUpperBound> = ({ res, rhs1, rhs2 }) =>
  new Disj([
    new Conj([isUnknown(rhs1), sameSize(res, rhs2)]),
    new Conj([isUnknown(rhs2), sameSize(res, rhs1)]),
    new Conj([sameSize(rhs2, rhs1), sameSize(res, rhs1)]),
  ])

/** The last two sizes of a convolution's or a pooling's result: `(n + 2p - d(k - 1) - 1) / s + 1`. PyTorch's calc_last_two_dims. */
function calcLastTwoDims({ matchingConstraint, padding, kernel, stride, dilation }: CalcConv | CalcMaxPool, result: readonly Size[]): Disj[] {
  const at = (option: PerDimension, i: number): number => (typeof option === 'number' ? option : (option[i] ?? 0))
  return [0, 1].map((i) => {
    const [before, after] = [matchingConstraint[i + 2] ?? Dyn, result[i + 2] ?? Dyn]
    const padded = new BinConstraintD(before, new BinConstraintD(2, at(padding, i), opMul), opAdd)
    const window = new BinConstraintD(at(dilation, i), new BinConstraintD(at(kernel, i), 1, opSub), opMul)
    const room = new BinConstraintD(new BinConstraintD(padded, window, opSub), 1, opSub)
    const size = new BinConstraintD(new BinConstraintD(room, at(stride, i), opDiv), 1, opAdd)
    return new Disj([
      new Conj([isUnknown(after), isUnknown(before)]),
      new Conj([new Conj([isKnown(after), isKnown(before)]), new BinConstraintD(after, size, opEq)]),
    ])
  })
}

const convolution: Rule<CalcConv> = (constraint, fresh) => {
  const result = fresh.sizes(MAX_TENSOR_RANK)
  const [batch = Dyn, channels = Dyn] = result
  const outputs = new Conj([sameSize(channels, constraint.cOut), isKnown(channels)])
  const batches = sameSize(constraint.matchingConstraint[0] ?? Dyn, batch)
  const last = calcLastTwoDims(constraint, result)
  return new Conj([shapeOf(constraint.convResult, result), outputs, batches, ...last, new Conj(genNatConstraints(result))])
}

const maxPool: Rule<CalcMaxPool> = (constraint, fresh) => {
  const result = fresh.sizes(MAX_TENSOR_RANK)
  const [batch = Dyn, channels = Dyn] = result
  const [batchBefore = Dyn, channelsBefore = Dyn] = constraint.matchingConstraint
  const equal = [sameSize(channelsBefore, channels), sameSize(batchBefore, batch)]
  return new Conj([shapeOf(constraint.maxpoolResult, result), ...equal, ...calcLastTwoDims(constraint, result), new Conj(genNatConstraints(result))])
}

const calcProduct: Rule<CalcProduct> = ({ start, end, flattened, dimsToFlatten }, fresh) => {
  const isRange = start >= 0 && start < end && end <= dimsToFlatten.length
  const [before, middle, after] = [dimsToFlatten.slice(0, start), dimsToFlatten.slice(start, end), dimsToFlatten.slice(end)]
  const alternatives = generateAllIntDynDimPossibilities(middle).map((possibility) => {
    const joined = possibility.every(({ op }) => op === opNeq) ? fresh.size() : Dyn
    const result = [...before, joined, ...after]
    if (result.length > MAX_TENSOR_RANK) return new F()
    const product = joined === Dyn ? [] : [new Conj([new BinConstraintD(joined, new Prod(middle), opEq), isKnown(joined)])]
    return new Conj([shapeOf(flattened, result), ...product, ...possibility])
  })
  return new Conj([new Disj(alternatives), isRange ? new T() : new F()])
}

const canReshape: Rule<CanReshape> = ({ src, target }, fresh) => {
  const sizes = fresh.sizes(MAX_TENSOR_RANK)
  const wanted = sizesOf(target)
  const known = wanted.filter((size) => size !== Dyn)
  const alternatives = ranks.map((rank) => {
    const own = sizes.slice(0, rank)
    const [first = Dyn] = own
    const unknown = own.map(isUnknown)
    const fits =
      known.length === wanted.length
        ? rank === 1
          ? new Disj([isUnknown(first), new Conj([isKnown(first), new BinConstraintD(first, new Prod(wanted), opEq)])])
          : genAllReshapePossibilities(own, wanted)
        : // One size of the target is unknown.
          new Disj([
            ...(rank === 1 ? unknown : [new Disj(unknown)]),
            new Conj([...own.map(isKnown), isDimDivByTarget(known, rank === 1 ? first : new Prod(own))]),
          ])
    return new Conj([shapeOf(src, own), fits])
  })
  return new Conj([new Disj([isDynType(src), ...alternatives]), ...genNatConstraints(sizes)])
}

/** A rule, or null for constraints that it is not for. */
type ClassRule = (constraint: Constraint, fresh: Fresh) => Constraint | null

/** A rule for the constraints of a class. */
const of =
  <C extends Constraint>(kind: new (...args: never[]) => C, rule: Rule<C>): ClassRule =>
  (constraint, fresh) =>
    constraint instanceof kind ? rule(constraint, fresh) : null

const rules: readonly ClassRule[] = [
  of(BinConstraintT, typeConstraint),
  of(BinConstraintD, sizeConstraint),
  of(TGreatestUpperBound, tensorBound),
  of(DGreatestUpperBound, sizeBound),
  of(ApplyBroadcasting, generateBroadcasting),
  of(CalcConv, convolution),
  of(CalcMaxPool, maxPool),
  of(CalcProduct, calcProduct),
  of(CanReshape, canReshape),
  of(Transpose, transpose),
  of(IndexSelect, indexSelect),
  of(GetItem, getItem),
  of(GetItemTensor, getItemTensor),
]

/** The parts, transformed; the same array if none changed. */
function transformed(parts: readonly Constraint[], fresh: Fresh): readonly Constraint[] {
  const result = parts.map((part) => transform(part, fresh))
  return result.every((part, i) => part === parts[i]) ? parts : result
}

function transform(constraint: Constraint, fresh: Fresh): Constraint {
  if (constraint instanceof Conj) {
    const parts = transformed(constraint.conjuncts, fresh)
    return parts === constraint.conjuncts ? constraint : new Conj(parts)
  }
  if (constraint instanceof Disj) {
    const parts = transformed(constraint.disjuncts, fresh)
    return parts === constraint.disjuncts ? constraint : new Disj(parts)
  }
  for (const rule of rules) {
    const simpler = rule(constraint, fresh)
    if (simpler !== null) return simpler
  }
  return constraint
}

/**
 * One step: the constraint, or its parts, in simpler terms, and the counter after the variables that it needed. A constraint that is as simple as can be is returned as it
 * is. PyTorch's transform_constraint.
 * @throws UnsupportedError for an index that is neither null nor a full slice.
 */
export function transformConstraint(constraint: Constraint, counter: number): [constraint: Constraint, counter: number] {
  const fresh = new Fresh(counter)
  return [transform(constraint, fresh), fresh.counter]
}

/** Transforms a constraint until nothing changes. PyTorch's iterate_till_fixed_point. */
export function iterateTillFixedPoint(constraint: Constraint, counter: number): [constraint: Constraint, counter: number] {
  const fresh = new Fresh(counter)
  let [before, after] = [constraint, transform(constraint, fresh)]
  while (after !== before) [before, after] = [after, transform(after, fresh)]
  return [after, fresh.counter]
}

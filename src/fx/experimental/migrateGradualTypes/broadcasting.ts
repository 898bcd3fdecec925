// Broadcasting as equations between sizes: every rank, with and without missing dimensions. PyTorch's generate_broadcasting, of
// torch.fx.experimental.migrate_gradual_types.constraint_transformation.
import { Dyn } from '../gradualTypes/tensorType.ts'
import { BinConstraintD, Conj, Disj } from './constraint.ts'
import type { Constraint, DVar, Size, TVar } from './constraint.ts'
import type { ApplyBroadcasting } from './operatorConstraints.ts'
import { opEq, opNeq } from './operation.ts'
import { isDynType, isType, ranks, sameSize, shapeOf } from './ruleParts.ts'
import { Fresh, genNatConstraints } from './util.ts'

type Sizes = readonly Size[]

const listsOfDims = (tensors: number, rank: number, fresh: Fresh): DVar[][] => Array.from({ length: tensors }, () => fresh.sizes(rank))

/** New sizes for several tensors of a rank, and the counter after them. PyTorch's gen_lists_of_dims. */
export function genListsOfDims(tensors: number, rank: number, counter: number): [sizes: DVar[][], counter: number] {
  const fresh = new Fresh(counter)
  return [listsOfDims(tensors, rank, fresh), fresh.counter]
}

const at = (sizes: Sizes, i: number): Size => sizes[i] ?? Dyn

/** The size of the first is 1, or missing, and it takes that of the second. */
const broadcastDim = (first: Sizes | null, second: Sizes, result1: Sizes, result2: Sizes, i: number): Conj =>
  new Conj([
    ...(first === null ? [] : [sameSize(at(first, i), 1)]),
    sameSize(at(result1, i), at(result2, i)),
    sameSize(at(result2, i), at(second, i)),
  ])

/** Nothing is broadcast: both sizes are 1, or neither. */
function noBroadcastDim(first: Sizes, second: Sizes, result1: Sizes, result2: Sizes, i: number): Conj {
  const both = (op: typeof opEq | typeof opNeq): Conj => new Conj([new BinConstraintD(at(first, i), 1, op), new BinConstraintD(at(second, i), 1, op)])
  return new Conj([new Disj([both(opEq), both(opNeq)]), sameSize(at(first, i), at(result1, i)), sameSize(at(second, i), at(result2, i))])
}

/** All ways to broadcast tensors of the same rank, dimension by dimension. */
const allWays = (first: Sizes, second: Sizes, result1: Sizes, result2: Sizes): Conj =>
  new Conj(
    first.map(
      (_, i) =>
        new Disj([
          broadcastDim(first, second, result1, result2, i),
          broadcastDim(second, first, result2, result1, i),
          noBroadcastDim(first, second, result1, result2, i),
        ]),
    ),
  )

/** The types of the second operand and of the results, and their sizes. */
interface Others {
  readonly result1IsShape: Constraint
  readonly secondIsShape: Constraint
  readonly result2IsShape: Constraint
  readonly second: Sizes
  readonly result1: Sizes
  readonly result2: Sizes
}

/** The first operand has fewer dimensions than the second. PyTorch's apply_padding. */
function padding(first: TVar, others: Others, fresh: Fresh): Disj {
  const { second, result1, result2 } = others
  const alternatives = ranks.slice(0, second.length - 1).map((rank) => {
    const own = fresh.sizes(rank)
    const missing = second.length - rank
    const padded = Array.from({ length: missing }, (_, i) => broadcastDim(null, second, result1, result2, i))
    return new Conj([
      shapeOf(first, own),
      others.result1IsShape,
      others.secondIsShape,
      others.result2IsShape,
      ...padded,
      allWays(own, second.slice(missing), result1.slice(missing), result2.slice(missing)),
      ...genNatConstraints([...own, ...second, ...result1, ...result2]),
    ])
  })
  return new Disj(alternatives)
}

/** The rule of {@link ApplyBroadcasting}: one operand is Dyn, or both are tensors of the same rank, or the first or the second has fewer dimensions. */
export function generateBroadcasting({ res1, res2, input1, input2 }: ApplyBroadcasting, fresh: Fresh): Constraint {
  const [equal1, equal2] = [isType(input1, res1), isType(input2, res2)]
  const dyn = [input1, input2].map((input) => new Conj([isDynType(input), equal1, equal2]))
  const natural: Constraint[] = []
  const alternatives = ranks.flatMap((rank): Constraint[] => {
    const [first = [], second = [], result1 = [], result2 = []] = listsOfDims(4, rank, fresh)
    const [firstIs, result1Is] = [shapeOf(input1, first), shapeOf(res1, result1)]
    const [secondIs, result2Is] = [shapeOf(input2, second), shapeOf(res2, result2)]
    natural.push(...genNatConstraints([...first, ...second, ...result1, ...result2]))
    const same = new Conj([firstIs, result1Is, secondIs, result2Is, allWays(first, second, result1, result2)])
    const padded1 = padding(
      input1,
      { result1IsShape: result1Is, secondIsShape: secondIs, result2IsShape: result2Is, second, result1, result2 },
      fresh,
    )
    const swapped = {
      result1IsShape: result2Is,
      secondIsShape: firstIs,
      result2IsShape: result1Is,
      second: first,
      result1: result2,
      result2: result1,
    }
    const padded2 = padding(input2, swapped, fresh)
    return rank === 1 ? [same] : [same, padded1, padded2]
  })
  return new Conj([new Disj([...dyn, ...alternatives]), ...natural])
}

// How pruning chooses the elements of a parameter that become 0: the methods of PyTorch's torch.nn.utils.prune. A mask has 1 where an element stays.
import { ArgumentError, ShapeError } from '../../errors/index.ts'
import {
  abs,
  eq,
  gt,
  index,
  indexPut,
  kthvalue,
  maskedSelect,
  mul,
  norm,
  onesLike,
  rand,
  reshape,
  scatter,
  sum,
  to,
  topk,
  zerosLike,
} from '../../ops/index.ts'
import { checkCount, valueText } from '../../protocol/index.ts'
import { formatShape, sameShape, wrapDim } from '../../tensor/index.ts'
import type { Tensor } from '../../tensor/index.ts'

/** What a method sees of a tensor that is pruned already: the elements that are left, the slices that are left, or all. */
export type PruningType = 'unstructured' | 'structured' | 'global'

/** Chooses what to prune. Subclasses say `pruningType`, and compute a mask; those of type 'structured' have a `dim`. PyTorch's `prune.BasePruningMethod`. */
export abstract class BasePruningMethod {
  abstract readonly pruningType: PruningType
  /** The dimension whose slices a structured method prunes. */
  readonly dim?: number

  /**
   * The mask of `t`: 1 where an element stays, as many as `defaultMask` has at most. `t` are the values, or the scores that take their place; of an unstructured method and a tensor that is
   * pruned already, those that are left, in one dimension.
   */
  abstract computeMask(t: Tensor, defaultMask: Tensor): Tensor

  /** `t` with the pruned elements 0. PyTorch's `prune`. Throws ShapeError if scores or mask have another shape. */
  prune(t: Tensor, { defaultMask = onesLike(t), importanceScores = t }: PruneOptions = {}): Tensor {
    checkShape('prune', 'importanceScores', importanceScores, t)
    checkShape('prune', 'defaultMask', defaultMask, t)
    return mul(t, this.computeMask(importanceScores, defaultMask))
  }
}

/** Options of `BasePruningMethod.prune`. */
export interface PruneOptions {
  /** The mask so far; default: nothing is pruned. */
  readonly defaultMask?: Tensor
  /** What decides instead of the values. */
  readonly importanceScores?: Tensor
}

export function checkShape(where: string, name: string, given: Tensor, t: Tensor): void {
  if (!sameShape(given.sizes, t.sizes))
    throw new ShapeError(`${where}: ${name} must have the shape ${formatShape(t.sizes)} of the parameter, got ${formatShape(given.sizes)}.`)
}

/** Throws ArgumentError unless `amount` is a fraction from 0 to 1 or a whole number. */
function checkAmount(where: string, amount: unknown): void {
  if (typeof amount !== 'number' || !(amount >= 0) || (amount > 1 && !Number.isInteger(amount)))
    throw new ArgumentError(`${where}: amount=${valueText(amount)} should either be a fraction in the range [0, 1) or a non-negative integer.`)
}

/** To the nearest whole number, halves to the even one, as Python rounds. */
function rounded(value: number): number {
  const floor = Math.floor(value)
  const rest = value - floor
  return rest < 0.5 || (rest === 0.5 && floor % 2 === 0) ? floor : floor + 1
}

/** How many of `size` elements or slices to prune. Throws ArgumentError if there are fewer. */
function countOf(where: string, amount: number, size: number): number {
  if (!Number.isInteger(amount)) return rounded(amount * size)
  if (amount > size) throw new ArgumentError(`${where}: amount=${amount} should not be greater than the number of parameters to prune=${size}.`)
  return amount
}

/** The mask with 0 at these positions of its elements. */
const without = (mask: Tensor, positions: Tensor): Tensor => reshape(scatter(reshape(mask, [-1]), 0, positions, 0), mask.sizes)

/** Prunes nothing, so that a parameter has a mask. PyTorch's `prune.Identity`. */
export class Identity extends BasePruningMethod {
  readonly pruningType = 'unstructured'

  override computeMask(_: Tensor, defaultMask: Tensor): Tensor {
    return defaultMask.clone()
  }
}

/** A method that prunes single elements. */
abstract class Unstructured extends BasePruningMethod {
  readonly pruningType = 'unstructured'
  /** A fraction of the elements, or a whole number of them: 1 is one element. */
  readonly amount: number

  constructor(amount: number) {
    super()
    checkAmount(`prune.${new.target.name}`, amount)
    this.amount = amount
  }

  /** What the least elements of are pruned. */
  protected abstract scores(t: Tensor): Tensor

  override computeMask(t: Tensor, defaultMask: Tensor): Tensor {
    const count = countOf(`prune.${this.constructor.name}`, this.amount, t.numel)
    return count === 0 ? defaultMask.clone() : without(defaultMask, topk(reshape(this.scores(t), [-1]), count, -1, false)[1])
  }
}

/** Prunes elements at random. PyTorch's `prune.RandomUnstructured`. */
export class RandomUnstructured extends Unstructured {
  protected override scores(t: Tensor): Tensor {
    return rand(t.sizes)
  }
}

/** Prunes the elements of the least absolute values. PyTorch's `prune.L1Unstructured`. */
export class L1Unstructured extends Unstructured {
  protected override scores(t: Tensor): Tensor {
    return abs(t)
  }
}

/** A method that prunes slices along a dimension. */
abstract class Structured extends BasePruningMethod {
  readonly pruningType = 'structured'
  readonly amount: number
  override readonly dim: number

  constructor(amount: number, dim: number) {
    super()
    const where = `prune.${new.target.name}`
    checkAmount(where, amount)
    if (!Number.isInteger(dim)) throw new ArgumentError(`${where}: dim must be an integer, got ${valueText(dim)}.`)
    this.amount = amount
    this.dim = dim
  }

  /** 1 for each slice that stays. */
  protected abstract slices(t: Tensor, dim: number, size: number, count: number): Tensor

  override computeMask(t: Tensor, defaultMask: Tensor): Tensor {
    const where = `prune.${this.constructor.name}`
    if (t.ndim < 2) throw new ShapeError(`${where}: structured pruning is for tensors of several dimensions, got shape ${formatShape(t.sizes)}.`)
    const dim = wrapDim(where, this.dim, t.ndim)
    const size = t.size(dim)
    const count = countOf(where, this.amount, size)
    if (count === 0) return defaultMask.clone()
    const shape = t.sizes.map((_, d) => (d === dim ? size : 1))
    return mul(defaultMask, to(reshape(this.slices(t, dim, size, count), shape), defaultMask.dtype))
  }
}

/** Prunes slices along `dim` at random. PyTorch's `prune.RandomStructured`. */
export class RandomStructured extends Structured {
  constructor(amount: number, dim = -1) {
    checkCount('RandomStructured', arguments, 2)
    super(amount, dim)
  }

  protected override slices(_: Tensor, _dim: number, size: number, count: number): Tensor {
    const drawn = rand([size])
    return gt(drawn, kthvalue(drawn, count)[0])
  }
}

/** Prunes the slices along `dim` of the least `n`-norms. PyTorch's `prune.LnStructured`. */
export class LnStructured extends Structured {
  readonly n: number | 'fro' | 'nuc'

  constructor(amount: number, n: number | 'fro' | 'nuc', dim = -1) {
    checkCount('LnStructured', arguments, 3)
    super(amount, dim)
    this.n = n
  }

  protected override slices(t: Tensor, dim: number, size: number, count: number): Tensor {
    const others = t.sizes.flatMap((_, d) => (d === dim ? [] : [d]))
    const kept = topk(norm(t, this.n, others), size - count, -1, true)[1]
    return scatter(zerosLike(norm(t, this.n, others)), 0, kept, 1)
  }
}

/** Prunes what a given mask says. PyTorch's `prune.CustomFromMask`. */
export class CustomFromMask extends BasePruningMethod {
  readonly pruningType = 'global'
  readonly mask: Tensor

  constructor(mask: Tensor) {
    checkCount('CustomFromMask', arguments, 1)
    super()
    this.mask = mask
  }

  override computeMask(t: Tensor, defaultMask: Tensor): Tensor {
    checkShape('prune.CustomFromMask', 'mask', this.mask, t)
    return mul(defaultMask, to(this.mask, defaultMask.dtype))
  }
}

/** The mask of a tensor that has one already: the method sees what is left of it. */
export function combinedMask(method: BasePruningMethod, t: Tensor, mask: Tensor): Tensor {
  if (method.pruningType === 'global') return method.computeMask(t, mask)
  if (method.pruningType === 'unstructured') {
    const left = eq(mask, 1)
    return indexPut(mask, [left], to(method.computeMask(maskedSelect(t, left), maskedSelect(mask, left)), mask.dtype))
  }
  const { dim } = method
  if (dim === undefined)
    throw new ArgumentError(`prune: ${method.constructor.name} is structured, so it needs a property dim, the dimension of its slices.`)
  const at = wrapDim(`prune.${method.constructor.name}`, dim, t.ndim)
  const others = t.sizes.flatMap((_, d) => (d === at ? [] : [d]))
  const places = [...Array.from({ length: at }, () => null), gt(sum(mask, others), 0)]
  return indexPut(mask, places, to(method.computeMask(index(t, places), index(mask, places)), mask.dtype))
}

// Writing to positions: scatter and scatterReduce, and their primitive.
import { ArgumentError } from '../../errors/index.ts'
import { valueText } from '../../protocol/index.ts'
import { Tensor } from '../../tensor/index.ts'
import { fullLike, ones, zerosLike } from '../create/creation.ts'
import type { OpFunction } from '../define/declaration.ts'
import { defineOp } from '../define/defineOp.ts'
import { checkIndexRange } from './indices.ts'
import { div, mul } from '../pointwise/arithmetic.ts'
import { to } from '../pointwise/cast.ts'
import { eq, gt, logicalAnd } from '../pointwise/comparison.ts'
import { clamp, where } from '../pointwise/select.ts'
import { checkScatter, gather, scatterAdd, trimmed, widened, writeLines } from './indexing.ts'
import type { ScatterKind } from './indexing.ts'

const KINDS: readonly string[] = ['set', 'mul', 'min', 'max']
const isKind = (kind: string): kind is ScatterKind => KINDS.includes(kind)

/**
 * A copy of `self` into which the values of `src` are written ('set') or combined ('mul', 'min', 'max') at `index` along `dim`. Internal; PyTorch's `aten.scatter`.
 *
 * Shapes: `index` has as many dimensions as `self`; `src` is at least as large in every dimension. The result has the shape of `self`.
 *
 * @throws ShapeError if the shapes do not fit, DTypeError if `index` does not hold integers or the dtypes differ.
 * @throws ArgumentError if an index is out of range.
 * @example torch.ops.tensorfx.scatterValues(torch.zeros([3]), 0, torch.tensor([2]).long(), torch.tensor([5]), 'set').toArray() // [0, 0, 5]
 */
export const scatterValues: OpFunction<(self: Tensor, dim: number, index: Tensor, src: Tensor, kind: ScatterKind) => Tensor> = defineOp({
  schema: 'scatter_values(Tensor self, int dim, Tensor index, Tensor src, str kind) -> Tensor',
  namespace: 'torch.ops.tensorfx',
  halvesInFloat32: true,
  vmap: 'dimensions',
  onnx: 'scatterValues',
  autocast: 'as is',
  meta: (self, dim, index, src) => {
    checkScatter(self, dim, index, src, 'torch.scatter')
    return { shape: self.symSizes, dtype: self.dtype }
  },
  indices: { argument: 'index', check: (self, dim, index) => checkIndexRange('torch.scatter', 'index', index, self.sizes.at(dim) ?? 1) },
  kernel: (self, dim, index, src, kind) => {
    checkScatter(self, dim, index, src, 'torch.scatter')
    if (!isKind(kind)) throw new ArgumentError(`torch.scatter: unknown kind ${valueText(kind)}.`)
    return writeLines(kind, 'torch.scatter', self, dim, index, src)
  },
  derivative: ([g], { args: [self, dim, index, src, kind], outputs: [out], needs }) => {
    const part = trimmed(src, index, -1)
    if (kind === 'set')
      return [scatterValues(g, dim, index, zerosLike(part), 'set'), null, null, needs[3] ? widened(gather(g, dim, index), src) : null, null]
    if (kind === 'mul')
      return [productGradient(g, self, dim, index, part), null, null, widened(factorGradient(g, out, self, dim, index, part), src), null]
    // Equal extremes share the gradient.
    const own = eq(self, out)
    const hits = eq(part, gather(out, dim, index))
    const share = div(g, scatterAdd(to(own, g.dtype), dim, index, to(hits, g.dtype)))
    return [where(own, share, 0), null, null, widened(where(hits, gather(share, dim, index), 0), src), null]
  },
})

/** The gradient of `self` in its product with the values of `src`: that of the product of those values alone. */
function productGradient(g: Tensor, self: Tensor, dim: number, index: Tensor, src: Tensor): Tensor {
  return mul(g, scatterValues(fullLike(self, 1), dim, index, src, 'mul'))
}

/** The gradient of the factors: the product of the others, which is that of all divided by the factor, except where a single factor is 0. */
function factorGradient(g: Tensor, out: Tensor, self: Tensor, dim: number, index: Tensor, src: Tensor): Tensor {
  const isZero = eq(src, 0)
  const zeros = gather(scatterAdd(zerosLike(self), dim, index, to(isZero, self.dtype)), dim, index)
  const single = logicalAnd(isZero, eq(zeros, 1))
  const others = scatterValues(self, dim, index, where(single, 1, src), 'mul')
  const quotient = div(gather(mul(g, out), dim, index), where(isZero, 1, src))
  return where(gt(zeros, 1), 0, where(single, gather(mul(g, others), dim, index), quotient))
}

/** `src` as a tensor: a number stands for as many of it as there are indices. */
function valuesOf(op: string, self: Tensor, index: Tensor, src: unknown): Tensor {
  if (src instanceof Tensor) return src
  if (typeof src === 'number') return fullLike(index, src, { dtype: self.dtype })
  throw new ArgumentError(`${op}: argument 'src' must be a Tensor or a number, got ${valueText(src)}.`)
}

/**
 * A copy of `self` with the values of `src` (or one number) written at `index` along `dim`: out[index[i][j]][j] = src[i][j] for dim 0. With `reduce`, they are
 * added or multiplied instead. PyTorch's `torch.scatter`.
 *
 * Shapes: `index` as for {@link gather}; `src` is at least as large in every dimension. The result has the shape of `self`.
 *
 * @throws ShapeError if the shapes do not fit, DTypeError if `index` does not hold integers or the dtypes differ.
 * @throws ArgumentError if an index is out of range, or for an unknown `reduce`.
 * @example torch.scatter(torch.zeros([3]), 0, torch.tensor([2, 0]).long(), torch.tensor([5, 7])).toArray() // [7, 0, 5]
 */
export const scatter: OpFunction<
  (self: Tensor, dim: number, index: Tensor, src: Tensor | number, options?: { readonly reduce?: 'add' | 'multiply' | null }) => Tensor
> = defineOp({
  schema: 'scatter(Tensor self, int dim, Tensor index, any src, *, str? reduce=None) -> Tensor',
  method: true,
  inPlace: 'method',
  decompose: (self, dim, index, src, reduce) => {
    const values = valuesOf('torch.scatter', self, index, src)
    if (reduce === 'add') return scatterAdd(self, dim, index, values)
    if (reduce !== null && reduce !== 'multiply')
      throw new ArgumentError(`torch.scatter: reduce must be 'add' or 'multiply', got ${valueText(reduce)}.`)
    return scatterValues(self, dim, index, values, reduce === null ? 'set' : 'mul')
  },
})

export type ScatterReduction = 'sum' | 'prod' | 'mean' | 'amax' | 'amin'

/** What a reduction starts from where `self` does not count. */
const START: Readonly<Record<ScatterReduction, number>> = { sum: 0, mean: 0, prod: 1, amax: -Infinity, amin: Infinity }
const KIND_OF: Readonly<Record<string, ScatterKind>> = { prod: 'mul', amax: 'max', amin: 'min' }
const isReduction = (reduce: string): reduce is ScatterReduction => Object.hasOwn(START, reduce)

/**
 * A copy of `self` with the values of `src` reduced into it at `index` along `dim`; with `includeSelf: false`, the values of `self` there do not count. PyTorch's
 * `torch.scatter_reduce`.
 *
 * Shapes: as for {@link scatter}.
 *
 * @throws ShapeError if the shapes do not fit, DTypeError if `index` does not hold integers or the dtypes differ.
 * @throws ArgumentError if an index is out of range, or for an unknown `reduce`.
 * @example torch.scatterReduce(torch.ones([2]), 0, torch.tensor([0, 0]).long(), torch.tensor([5, 7]), 'amax').toArray() // [7, 1]
 */
export const scatterReduce: OpFunction<
  (
    self: Tensor,
    dim: number,
    index: Tensor,
    src: Tensor,
    reduce: ScatterReduction | { readonly reduce: ScatterReduction; readonly includeSelf?: boolean },
    options?: { readonly includeSelf?: boolean },
  ) => Tensor
> = defineOp({
  schema: 'scatter_reduce(Tensor self, int dim, Tensor index, Tensor src, str reduce, *, bool include_self=True) -> Tensor',
  method: true,
  inPlace: 'method',
  decompose: (self, dim, index, src, reduce, includeSelf) => {
    if (!isReduction(reduce))
      throw new ArgumentError(`torch.scatter_reduce: reduce must be one of ${Object.keys(START).join(', ')}, got ${valueText(reduce)}.`)
    const kind = KIND_OF[reduce]
    // Integers have no infinity to start from, but may start from any value that is reduced.
    const first = kind === 'min' || kind === 'max' ? !self.isFloatingPoint() : false
    const start = includeSelf
      ? self
      : scatterValues(self, dim, index, first ? trimmed(src, index, -1) : fullLike(index, START[reduce], { dtype: self.dtype }), 'set')
    if (kind !== undefined) return scatterValues(start, dim, index, src, kind)
    const total = scatterAdd(start, dim, index, src)
    if (reduce === 'sum') return total
    const counts = scatterAdd(fullLike(self, includeSelf ? 1 : 0), dim, index, ones(index.symSizes, { dtype: self.dtype }))
    return self.isFloatingPoint() ? div(total, clamp(counts, 1)) : div(total, clamp(counts, 1), { roundingMode: 'floor' })
  },
})

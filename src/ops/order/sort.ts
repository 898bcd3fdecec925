// Order along a dimension: topk, sort, argsort.
import { ArgumentError } from '../../errors/index.ts'
import type { ElementValue } from '../../kernels/index.ts'
import type { Size } from '../../protocol/index.ts'
import { sizeLess, wrapDim } from '../../tensor/index.ts'
import type { Tensor, TensorSpec } from '../../tensor/index.ts'
import { zeros } from '../create/creation.ts'
import type { OpFunction } from '../define/declaration.ts'
import { defineOp } from '../define/defineOp.ts'
import type { Op } from '../generated/signatures.ts'
import { orderedLines } from '../eager/order.ts'
import { scatterAdd } from '../view/indexing.ts'
import { transpose } from '../view/permute.ts'
import { clone, contiguous } from '../view/reshape.ts'

export interface TopkOptions {
  readonly dim?: number
  /** Whether the greatest values are wanted (default), or the least. */
  readonly largest?: boolean
  /** For PyTorch's programs: the values are in order in any case. */
  readonly sorted?: boolean
}

/** Values in ascending order; NaN, the only one that differs from itself, counts as the greatest, as in PyTorch. */
export function ascending(a: ElementValue, b: ElementValue): number {
  if (a !== a || b !== b) return Number(a !== a) - Number(b !== b)
  return a < b ? -1 : a > b ? 1 : 0
}

function topkSpec(self: Tensor, k: Size, dim: number): readonly [TensorSpec<Size>, TensorSpec<Size>] {
  const at = wrapDim('torch.topk', dim, self.ndim)
  const size = self.symSizes[at] ?? 1
  if (sizeLess(k, 0) || sizeLess(size, k))
    throw new ArgumentError(`torch.topk: k=${k.toString()} is out of range for dimension ${dim} of size ${size.toString()}.`)
  const shape = self.ndim === 0 ? [] : self.symSizes.with(at, k)
  return [
    { shape, dtype: self.dtype },
    { shape, dtype: 'int64' },
  ]
}

/**
 * The k greatest (or least) values along a dimension in order, and their indices: [values, indices]. PyTorch's `torch.topk`.
 *
 * Shapes: both have the shape of `self`, with size k in `dim`. The indices are int64.
 *
 * @throws ArgumentError if `k` is negative or exceeds the size of the dimension.
 * @throws ShapeError if `dim` is out of range.
 * @example torch.topk(torch.tensor([3, 9, 5]), 2).map((t) => t.toArray()) // [[9, 5], [1, 2]]
 */
export const topk: OpFunction<(self: Tensor, k: Size, dim?: number | TopkOptions, largest?: boolean, sorted?: boolean) => readonly [Tensor, Tensor]> =
  defineOp({
    schema: 'topk(Tensor self, SymInt k, int dim=-1, bool largest=True, bool sorted=True) -> (Tensor, Tensor)',
    method: true,
    vmap: 'dimensions',
    onnx: 'topk',
    autocast: 'as is',
    meta: topkSpec,
    kernel: (self, k, dim, largest): readonly [Tensor, Tensor] => {
      topkSpec(self, k, dim)
      if (self.ndim === 0) return [clone(self), zeros([], { dtype: 'int64' })]
      const at = wrapDim('torch.topk', dim, self.ndim)
      // Lines along the last dimension.
      const [values, indices] = orderedLines(contiguous(transpose(self, at, -1)), k, largest)
      return [contiguous(transpose(values, at, -1)), contiguous(transpose(indices, at, -1))]
    },
    derivative: ([g], { args: [self, , dim], outputs: [, indices] }) => [
      g === null ? null : scatterAdd(zeros(self.symSizes, { dtype: g.dtype }), dim, indices, g),
      null,
      null,
      null,
      null,
    ],
  })

export interface SortOptions {
  readonly dim?: number
  readonly descending?: boolean
  /** For PyTorch's programs: equal values keep their order in any case. */
  readonly stable?: boolean
}

/**
 * The values in order along a dimension, and their indices: [values, indices]. Equal values keep their order; NaN counts as the greatest. PyTorch's `torch.sort`.
 *
 * Shapes: both have the shape of `self`. The indices are int64.
 *
 * @throws ShapeError if `dim` is out of range.
 * @example torch.sort(torch.tensor([3, 9, 5])).map((t) => t.toArray()) // [[3, 5, 9], [0, 2, 1]]
 */
export const sort: OpFunction<
  (self: Tensor, dim?: number | SortOptions, descending?: boolean | SortOptions, options?: SortOptions) => readonly [Tensor, Tensor]
> = defineOp({
  schema: 'sort(Tensor self, int dim=-1, bool descending=False, *, bool stable=True) -> (Tensor, Tensor)',
  method: true,
  decompose: (self, dim, descending) => topk(self, self.symSizes[wrapDim('torch.sort', dim, self.ndim)] ?? 1, dim, descending),
})

/**
 * The indices that sort a dimension. PyTorch's `torch.argsort`.
 *
 * Shape: that of `self`. The result is int64.
 *
 * @throws ShapeError if `dim` is out of range.
 * @example torch.argsort(torch.tensor([3, 9, 5]), { descending: true }).toArray() // [1, 2, 0]
 */
export const argsort: OpFunction<(self: Tensor, dim?: number | SortOptions, descending?: boolean | SortOptions, options?: SortOptions) => Tensor> =
  defineOp({
    schema: 'argsort(Tensor self, int dim=-1, bool descending=False, *, bool stable=True) -> Tensor',
    method: true,
    decompose: (self, dim, descending) => sort(self, dim, descending)[1],
  })

/**
 * The values in order along dimension 0. PyTorch's `torch.msort`.
 *
 * Shape: that of `self`.
 *
 * @throws ArgumentError if `self` is not a Tensor.
 * @example torch.msort(torch.tensor([3, 9, 5])).toArray() // [3, 5, 9]
 */
export const msort: Op['msort'] = defineOp({
  schema: 'msort(Tensor self) -> Tensor',
  method: true,
  decompose: (self) => sort(self, 0)[0],
})

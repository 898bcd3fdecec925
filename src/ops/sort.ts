// Order along a dimension: topk, sort, argsort. Sorting works on a copy of the values in JavaScript.
import { ArgumentError } from '../errors/index.ts'
import { Tensor, tensorFromValues, wrapDim } from '../tensor/index.ts'
import type { TensorSpec } from '../tensor/index.ts'
import { defineOp } from './defineOp.ts'
import type { OpFunction } from './defineOp.ts'
import { zeros } from './creation.ts'
import { contiguous, scatterAdd, transpose } from './view/index.ts'

export interface TopkOptions {
  readonly dim?: number
  readonly largest?: boolean
}

/** Numbers in ascending order; NaN counts as the greatest, as in PyTorch. */
function ascending(a: number, b: number): number {
  if (Number.isNaN(a) || Number.isNaN(b)) return Number(Number.isNaN(a)) - Number(Number.isNaN(b))
  return a < b ? -1 : a > b ? 1 : 0
}

function topkSpec(self: Tensor, k: number, dim: number): readonly TensorSpec[] {
  const at = wrapDim('torch.topk', dim, self.ndim)
  const size = self.shape[at] ?? 1
  if (k < 0 || k > size) throw new ArgumentError(`torch.topk: k=${k} is out of range for dimension ${dim} of size ${size}.`)
  const shape = self.ndim === 0 ? [] : self.shape.with(at, k)
  return [
    { shape, dtype: self.dtype },
    { shape, dtype: 'int32' },
  ]
}

/** The k greatest (or least) values along a dimension in order, and their indices: [values, indices]. PyTorch's `torch.topk`. */
export const topk: OpFunction<(self: Tensor, k: number, dim?: number | TopkOptions, largest?: boolean) => readonly Tensor[]> = defineOp({
  schema: 'topk(Tensor self, int k, int dim=-1, bool largest=True) -> (Tensor, Tensor)',
  method: true,
  meta: topkSpec,
  kernel: (self: Tensor, k: number, dim: number, largest: boolean): readonly Tensor[] => {
    const [spec] = topkSpec(self, k, dim) as [TensorSpec]
    const at = wrapDim('torch.topk', dim, self.ndim)
    const n = self.shape[at] ?? 1
    const lines = contiguous(self.ndim === 0 ? self : transpose(self, at, -1)).toTypedArray()
    const count = n === 0 ? 0 : lines.length / n
    const values = new Float64Array(count * k)
    const indices = new Int32Array(count * k)
    const before = largest ? (a: number, b: number): number => ascending(b, a) : ascending
    for (let line = 0; line < count; line++) {
      const order = Array.from({ length: n }, (_, i) => i).sort(
        (x, y) => before(lines[line * n + x] as number, lines[line * n + y] as number) || x - y,
      )
      for (let i = 0; i < k; i++) {
        values[line * k + i] = lines[line * n + (order[i] as number)] as number
        indices[line * k + i] = order[i] as number
      }
    }
    const last = self.ndim - 1
    const turned = self.ndim === 0 ? [] : spec.shape.with(at, spec.shape[last] as number).with(last, k)
    const back = (t: Tensor): Tensor => (self.ndim === 0 ? t : contiguous(transpose(t, at, -1)))
    return [back(tensorFromValues(values, turned, self.dtype)), back(tensorFromValues(indices, turned, 'int32'))]
  },
  derivative: ([g], { args: [x, , dim], outputs: [, indices] }) => [
    g === null || g === undefined ? null : scatterAdd(zeros((x as Tensor).shape, { dtype: g.dtype }), dim as number, indices as Tensor, g),
    null,
    null,
    null,
  ],
})

export interface SortOptions {
  readonly dim?: number
  readonly descending?: boolean
}

/** Values in order along a dimension, and their indices: [values, indices]. Equal values keep their order. PyTorch's `torch.sort`. */
export const sort: OpFunction<(self: Tensor, dim?: number | SortOptions, descending?: boolean) => readonly Tensor[]> = defineOp({
  schema: 'sort(Tensor self, int dim=-1, bool descending=False) -> (Tensor, Tensor)',
  method: true,
  decompose: (self: Tensor, dim: number, descending: boolean): readonly Tensor[] =>
    topk(self, self.shape[wrapDim('torch.sort', dim, self.ndim)] ?? 1, dim, descending),
})

/** The indices that sort a dimension. int32. PyTorch's `torch.argsort`. */
export const argsort: OpFunction<(self: Tensor, dim?: number | SortOptions, descending?: boolean) => Tensor> = defineOp({
  schema: 'argsort(Tensor self, int dim=-1, bool descending=False) -> Tensor',
  method: true,
  decompose: (self: Tensor, dim: number, descending: boolean): Tensor => sort(self, dim, descending)[1] as Tensor,
})

declare module '../tensor/tensor.ts' {
  interface Tensor {
    topk(k: number, dim?: number | TopkOptions, largest?: boolean): readonly Tensor[]
    sort(dim?: number | SortOptions, descending?: boolean): readonly Tensor[]
    argsort(dim?: number | SortOptions, descending?: boolean): Tensor
  }
}

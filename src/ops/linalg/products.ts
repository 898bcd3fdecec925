// Products of vectors, matrices and tensors that are composed of matmul.
import type { Size } from '../../protocol/index.ts'
import { ArgumentError, ShapeError } from '../../errors/index.ts'
import { valueText } from '../../protocol/index.ts'
import { formatShape, sizeEq, wrapDim, sizeMul, sizeProduct } from '../../tensor/index.ts'
import type { ComplexNumber, Tensor } from '../../tensor/index.ts'
import type { OpFunction } from '../define/declaration.ts'
import { defineOp } from '../define/defineOp.ts'
import type { Op } from '../generated/signatures.ts'
import { mul } from '../pointwise/arithmetic.ts'
import { sum } from '../reduction/sum.ts'
import { sizeAt } from '../shared/shapes.ts'
import { permute } from '../view/permute.ts'
import { reshape } from '../view/reshape.ts'
import { blend, bmm } from './mm.ts'
import { dot, matmul, mv, outer } from './matmul.ts'

export interface BlendOptions {
  /** The factor of `self`. */
  readonly beta?: number | ComplexNumber
  /** The factor of the product. */
  readonly alpha?: number | ComplexNumber
}

/**
 * beta * self + alpha * (mat @ vec). PyTorch's `torch.addmv`.
 *
 * Shapes: `mat` [n, m], `vec` [m]; `self` broadcasts to [n].
 *
 * @throws ShapeError if the shapes do not fit.
 * @example torch.addmv(torch.tensor([1]), torch.tensor([[1, 2]]), torch.tensor([3, 4])).toArray() // [12]
 */
export const addmv: OpFunction<(self: Tensor, mat: Tensor, vec: Tensor, options?: BlendOptions) => Tensor> = defineOp({
  schema: 'addmv(Tensor self, Tensor mat, Tensor vec, *, Scalar beta=1, Scalar alpha=1) -> Tensor',
  method: true,
  inPlace: 'function',
  decompose: (self, mat, vec, beta, alpha) => blend(self, mv(mat, vec), beta, alpha),
})

/**
 * beta * self + alpha * the outer product of two vectors. PyTorch's `torch.addr`.
 *
 * Shapes: `vec1` [n], `vec2` [m]; `self` broadcasts to [n, m].
 *
 * @throws ShapeError if the shapes do not fit.
 * @example torch.addr(torch.tensor([[1, 1]]), torch.tensor([2]), torch.tensor([3, 4])).toArray() // [[7, 9]]
 */
export const addr: OpFunction<(self: Tensor, vec1: Tensor, vec2: Tensor, options?: BlendOptions) => Tensor> = defineOp({
  schema: 'addr(Tensor self, Tensor vec1, Tensor vec2, *, Scalar beta=1, Scalar alpha=1) -> Tensor',
  method: true,
  inPlace: 'method',
  decompose: (self, vec1, vec2, beta, alpha) => blend(self, outer(vec1, vec2), beta, alpha),
})

/**
 * beta * self + alpha * the sum of the products of matrices. PyTorch's `torch.addbmm`.
 *
 * Shapes: `batch1` [b, n, m], `batch2` [b, m, p]; `self` broadcasts to [n, p].
 *
 * @throws ShapeError if the shapes do not fit.
 * @example torch.addbmm(torch.tensor([[1]]), torch.tensor([[[2]], [[3]]]), torch.tensor([[[4]], [[5]]])).toArray() // [[24]]
 */
export const addbmm: OpFunction<(self: Tensor, batch1: Tensor, batch2: Tensor, options?: BlendOptions) => Tensor> = defineOp({
  schema: 'addbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> Tensor',
  method: true,
  inPlace: 'method',
  autocast: 'half',
  decompose: (self, batch1, batch2, beta, alpha) => blend(self, sum(bmm(batch1, batch2), [0]), beta, alpha),
})

/**
 * The dot product of two vectors of real numbers. PyTorch's `torch.vdot`.
 *
 * Shapes: [n] and [n] give [].
 *
 * @throws ShapeError unless both are vectors of the same length.
 * @example torch.vdot(torch.tensor([1, 2]), torch.tensor([3, 4])).item() // 11
 */
export const vdot: Op['vdot'] = defineOp({
  schema: 'vdot(Tensor self, Tensor other) -> Tensor',
  method: true,
  decompose: (self, other) => dot(self, other),
})

/**
 * The sums of products over the last dimensions of both tensors. PyTorch's `torch.inner`.
 *
 * Shapes: [.., n] and [.., n] give the dimensions of the first, then those of the second, without the last; a scalar multiplies.
 *
 * @throws ShapeError if the last sizes differ.
 * @example torch.inner(torch.tensor([1, 2]), torch.tensor([[3, 4], [5, 6]])).toArray() // [11, 17]
 */
export const inner: Op['inner'] = defineOp({
  schema: 'inner(Tensor self, Tensor other) -> Tensor',
  method: true,
  decompose: (self, other) => (self.ndim === 0 || other.ndim === 0 ? mul(self, other) : tensordot(self, other, [[-1], [-1]])),
})

const isList = (value: unknown): value is readonly number[] => Array.isArray(value) && value.every((v) => typeof v === 'number')

/** The dimensions to contract, one list for each tensor. */
function contracted(self: Tensor, other: Tensor, dims: unknown): readonly [readonly number[], readonly number[]] {
  const op = 'torch.tensordot'
  if (typeof dims === 'number' && Number.isInteger(dims) && dims >= 0 && dims <= Math.min(self.ndim, other.ndim)) {
    const list = Array.from({ length: dims }, (_, i) => i)
    return [list.map((i) => self.ndim - dims + i), list]
  }
  const [a, b]: readonly unknown[] = Array.isArray(dims) && dims.length === 2 ? dims : []
  if (!isList(a) || !isList(b) || a.length !== b.length)
    throw new ArgumentError(`${op}: dims must be a number of dimensions, or two lists of the same length, got ${valueText(dims)}.`)
  return [a.map((d) => wrapDim(op, d, self.ndim)), b.map((d) => wrapDim(op, d, other.ndim))]
}

/**
 * The sums of products over several dimensions: the last `dims` of `self` and the first of `other`, or those that two lists name. PyTorch's `torch.tensordot`.
 *
 * Shapes: the other dimensions of `self`, then those of `other`.
 *
 * @throws ArgumentError unless `dims` is a number of dimensions or two lists of the same length.
 * @throws ShapeError if the sizes of two such dimensions differ.
 * @example torch.tensordot(torch.tensor([[1, 2]]), torch.tensor([[3], [4]]), 1).toArray() // [[11]]
 */
export const tensordot: OpFunction<
  (
    self: Tensor,
    other: Tensor,
    dims?: number | readonly (readonly number[])[] | { readonly dims?: number | readonly (readonly number[])[] },
  ) => Tensor
> = defineOp({
  schema: 'tensordot(Tensor self, Tensor other, any dims=2) -> Tensor',
  decompose: (self, other, dims) => {
    const [a, b] = contracted(self, other, dims)
    const differ = a.flatMap((d, i) => (sizeEq(sizeAt(self.symSizes, d), sizeAt(other.symSizes, b[i] ?? 0)) ? [] : [i]))
    if (differ.some((i) => !sizeEq(sizeAt(self.symSizes, a[i] ?? 0), 1) && !sizeEq(sizeAt(other.symSizes, b[i] ?? 0), 1)))
      throw new ShapeError(
        `torch.tensordot: the sizes of the dimensions [${a.join(', ')}] of shape ${formatShape(self.symSizes)} and [${b.join(', ')}] of shape ${formatShape(other.symSizes)} differ.`,
      )
    // A size of 1 goes with all elements of the other tensor.
    if (differ.length > 0) {
      const summed = (t: Tensor, dims: readonly number[]): Tensor => {
        const longer = differ.map((i) => dims[i] ?? 0).filter((d) => !sizeEq(sizeAt(t.symSizes, d), 1))
        return longer.length === 0 ? t : sum(t, longer, true)
      }
      return tensordot(summed(self, a), summed(other, b), [a, b])
    }
    const free = (t: Tensor, used: readonly number[]): number[] => t.symSizes.map((_, d) => d).filter((d) => !used.includes(d))
    const [left, right] = [free(self, a), free(other, b)]
    const n = sizeProduct(a.map((d) => sizeAt(self.symSizes, d)))
    const product = matmul(reshape(permute(self, [...left, ...a]), [-1, n]), reshape(permute(other, [...b, ...right]), [n, -1]))
    return reshape(product, [...left.map((d) => sizeAt(self.symSizes, d)), ...right.map((d) => sizeAt(other.symSizes, d))])
  },
})

/**
 * The Kronecker product: every element of `self` times `other`, as blocks. PyTorch's `torch.kron`.
 *
 * Shape: the products of the sizes; missing dimensions count as 1.
 *
 * @throws ArgumentError if an argument is not a Tensor.
 * @example torch.kron(torch.tensor([1, 2]), torch.tensor([3, 4])).toArray() // [3, 4, 6, 8]
 */
export const kron: Op['kron'] = defineOp({
  schema: 'kron(Tensor self, Tensor other) -> Tensor',
  method: true,
  decompose: (self, other) => {
    const rank = Math.max(self.ndim, other.ndim)
    const sizes = (t: Tensor): readonly Size[] => [...Array.from({ length: rank - t.ndim }, () => 1), ...t.symSizes]
    const [a, b] = [sizes(self), sizes(other)]
    const product = mul(
      reshape(
        self,
        a.flatMap((size) => [size, 1]),
      ),
      reshape(
        other,
        b.flatMap((size) => [1, size]),
      ),
    )
    return reshape(
      product,
      a.map((size, d) => sizeMul(size, b[d] ?? 1)),
    )
  },
})

/** The product of a chain of matrices, in the order that needs the fewest multiplications. Vectors may stand at the ends. */
export function chained(op: string, given: readonly Tensor[]): Tensor {
  const [first] = given
  const last = given.at(-1)
  if (first === undefined || last === undefined) throw new ArgumentError(`${op}: expected at least one matrix.`)
  if (given.length === 1) return first
  const all = given.map((t, i) => (t.ndim === 1 && i === 0 ? reshape(t, [1, -1]) : t.ndim === 1 && i === given.length - 1 ? reshape(t, [-1, 1]) : t))
  for (const [i, t] of all.entries()) {
    const next = all[i + 1]
    if (t.ndim !== 2 || (next !== undefined && !sizeEq(next.symSizes[0], t.symSizes[1])))
      throw new ShapeError(
        `${op}: the shapes ${given.map((m) => formatShape(m.symSizes)).join(', ')} are not those of matrices that can be multiplied.`,
      )
  }
  const size = (i: number): Size => (i < all.length ? sizeAt(all[i]?.symSizes ?? [0], 0) : sizeAt(all[i - 1]?.symSizes ?? [0, 0], 1))
  const memo = new Map<string, { readonly cost: number; readonly split: number }>()
  const best = (i: number, j: number): { readonly cost: number; readonly split: number } => {
    if (i === j) return { cost: 0, split: i }
    const key = `${i},${j}`
    const known = memo.get(key)
    if (known !== undefined) return known
    let found = { cost: Infinity, split: i }
    for (let k = i; k < j; k++) {
      const cost = best(i, k).cost + best(k + 1, j).cost + Number(sizeProduct([size(i), size(k + 1), size(j + 1)]))
      if (cost < found.cost) found = { cost, split: k }
    }
    memo.set(key, found)
    return found
  }
  const product = (i: number, j: number): Tensor => {
    if (i === j) return all[i] ?? first
    const { split } = best(i, j)
    return matmul(product(i, split), product(split + 1, j))
  }
  const ends = [...(first.ndim === 1 ? [] : [size(0)]), ...(last.ndim === 1 ? [] : [size(all.length)])]
  return reshape(product(0, all.length - 1), ends)
}

/**
 * The product of a chain of matrices. PyTorch's `torch.chain_matmul`.
 *
 * Shapes: [n, m], [m, p], … give [n, ..].
 *
 * @throws ShapeError if the matrices cannot be multiplied.
 * @throws ArgumentError if there are none.
 * @example torch.chainMatmul([torch.tensor([[1, 2]]), torch.tensor([[3], [4]])]).toArray() // [[11]]
 */
export const chainMatmul: OpFunction<(...matrices: readonly (Tensor | readonly Tensor[])[]) => Tensor> = defineOp({
  schema: 'chain_matmul(Tensor[] matrices) -> Tensor',
  decompose: (matrices) => chained('torch.chain_matmul', matrices),
})

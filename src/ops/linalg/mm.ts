// The primitive matrix products: mm, bmm, linear, and addmm and baddbmm on top of them. Kernels are in product.ts, the broadcasting forms in matmul.ts.
import { DTypeError, ShapeError } from '../../errors/index.ts'
import { dtypeInfo } from '../../kernels/index.ts'
import type { Size } from '../../protocol/index.ts'
import { broadcastShapes, formatShape, numbersOf, sameShape, sizeEq, sizeProduct, Tensor } from '../../tensor/index.ts'
import type { ComplexNumber, TensorSpec } from '../../tensor/index.ts'
import type { OpFunction } from '../define/declaration.ts'
import { defineOp } from '../define/defineOp.ts'
import type { Op } from '../generated/signatures.ts'
import { add, mul } from '../pointwise/arithmetic.ts'
import { to } from '../pointwise/cast.ts'
import { sum } from '../reduction/sum.ts'
import { pairOf, sizeAt, tripleOf } from '../shared/shapes.ts'
import { transpose } from '../view/permute.ts'
import { reshape } from '../view/reshape.ts'
import { expand } from '../view/windows.ts'
import { runProduct } from './product.ts'

/** The factors of `torch.addmm` and `torch.baddbmm`: `beta * self + alpha * product`. */
export interface AddmmOptions {
  readonly beta?: number | ComplexNumber
  readonly alpha?: number | ComplexNumber
}

/** Throws DTypeError unless both operands of a product have the same dtype, and it is not bool. */
export function sameDType(op: string, firstName: string, first: Tensor, secondName: string, second: Tensor): void {
  if (first.dtype === second.dtype && first.dtype !== 'bool') return
  const fix =
    first.dtype === 'bool'
      ? 'Products of bool tensors are not defined; convert them first, e.g. x.float().'
      : `Convert one of them, e.g. ${secondName}.to('${first.dtype}').`
  throw new DTypeError(
    `${op}: ${firstName} has dtype ${first.dtype} and ${secondName} has dtype ${second.dtype}; they must be equal and numeric. ${fix}`,
  )
}

function mmMeta(self: Tensor, mat2: Tensor): TensorSpec<Size> {
  if (self.ndim !== 2 || mat2.ndim !== 2) {
    throw new ShapeError(
      `torch.mm: self and mat2 must be matrices (2 dimensions), got shapes ${formatShape(self.symSizes)} and ${formatShape(mat2.symSizes)}. Use torch.matmul for other ranks.`,
    )
  }
  const [m, k] = pairOf(self.symSizes)
  const [k2, n] = pairOf(mat2.symSizes)
  if (!sizeEq(k, k2)) {
    throw new ShapeError(
      `torch.mm: self has ${k.toString()} columns (shape ${formatShape(self.symSizes)}) but mat2 has ${k2.toString()} rows (shape ${formatShape(mat2.symSizes)}); they must be equal. Perhaps one of them needs t().`,
    )
  }
  sameDType('torch.mm', 'self', self, 'mat2', mat2)
  return { shape: [m, n], dtype: self.dtype }
}

/**
 * The product of two matrices. PyTorch's `torch.mm`.
 *
 * Shapes: [m, k] times [k, n] gives [m, n].
 *
 * @throws ShapeError unless both are matrices and the columns of the first equal the rows of the second.
 * @throws DTypeError unless the dtypes are equal and numeric.
 * @example torch.mm(torch.tensor([[1, 2], [3, 4]]), torch.tensor([[1], [10]])).toArray() // [[21], [43]]
 */
export const mm: Op['mm'] = defineOp({
  schema: 'mm(Tensor self, Tensor mat2) -> Tensor',
  method: true,
  tags: ['template'],
  vmap: 'product',
  onnx: { node: 'MatMul', inputs: ['self', 'mat2'] },
  autocast: 'half',
  meta: mmMeta,
  halvesInFloat32: true,
  kernel: (self, mat2) => {
    const spec = numbersOf(mmMeta(self, mat2))
    const out = Tensor.empty(spec.shape, spec.dtype)
    const [[m, k], [, n]] = [pairOf(self.sizes), pairOf(mat2.sizes)]
    runProduct({
      out,
      a: self,
      b: mat2,
      bias: null,
      batch: 1,
      m,
      n,
      k,
      aStrides: [0, ...pairOf(self.steps)],
      bStrides: [0, ...pairOf(mat2.steps)],
    })
    return out
  },
  derivative: ([g], { args: [self, mat2], needs }) => [
    needs[0] ? mm(g, transpose(mat2, 0, 1)) : null,
    needs[1] ? mm(transpose(self, 0, 1), g) : null,
  ],
})

function bmmMeta(self: Tensor, mat2: Tensor): TensorSpec<Size> {
  if (self.ndim !== 3 || mat2.ndim !== 3) {
    throw new ShapeError(
      `torch.bmm: self and mat2 must be batches of matrices (3 dimensions), got shapes ${formatShape(self.symSizes)} and ${formatShape(mat2.symSizes)}.`,
    )
  }
  const [b, m, k] = tripleOf(self.symSizes)
  const [b2, k2, n] = tripleOf(mat2.symSizes)
  if (!sizeEq(b, b2) || !sizeEq(k, k2)) {
    throw new ShapeError(
      `torch.bmm: self of shape ${formatShape(self.symSizes)} and mat2 of shape ${formatShape(mat2.symSizes)} do not fit: expected [b, m, k] and [b, k, n]; ` +
        (sizeEq(b, b2) ? `k is ${k.toString()} in self and ${k2.toString()} in mat2.` : `b is ${b.toString()} in self and ${b2.toString()} in mat2.`),
    )
  }
  sameDType('torch.bmm', 'self', self, 'mat2', mat2)
  return { shape: [b, m, n], dtype: self.dtype }
}

/**
 * The products of the matrices of two batches. PyTorch's `torch.bmm`.
 *
 * Shapes: [b, m, k] times [b, k, n] gives [b, m, n].
 *
 * @throws ShapeError unless both have 3 dimensions and their sizes fit.
 * @throws DTypeError unless the dtypes are equal and numeric.
 * @example torch.bmm(torch.ones([2, 1, 3]), torch.ones([2, 3, 1])).toArray() // [[[3]], [[3]]]
 */
export const bmm: Op['bmm'] = defineOp({
  schema: 'bmm(Tensor self, Tensor mat2) -> Tensor',
  method: true,
  tags: ['template'],
  vmap: 'product',
  onnx: { node: 'MatMul', inputs: ['self', 'mat2'] },
  autocast: 'half',
  meta: bmmMeta,
  halvesInFloat32: true,
  kernel: (self, mat2) => {
    const spec = numbersOf(bmmMeta(self, mat2))
    const out = Tensor.empty(spec.shape, spec.dtype)
    const [[batch, m, k], [, , n]] = [tripleOf(self.sizes), tripleOf(mat2.sizes)]
    runProduct({ out, a: self, b: mat2, bias: null, batch, m, n, k, aStrides: tripleOf(self.steps), bStrides: tripleOf(mat2.steps) })
    return out
  },
  derivative: ([g], { args: [self, mat2], needs }) => [
    needs[0] ? bmm(g, transpose(mat2, 1, 2)) : null,
    needs[1] ? bmm(transpose(self, 1, 2), g) : null,
  ],
})

const LINEAR = 'torch.nn.functional.linear'

function linearMeta(input: Tensor, weight: Tensor, bias: Tensor | null): TensorSpec<Size> {
  if (weight.ndim !== 2)
    throw new ShapeError(`${LINEAR}: weight must have 2 dimensions [outFeatures, inFeatures], got shape ${formatShape(weight.symSizes)}.`)
  const [outFeatures, inFeatures] = pairOf(weight.symSizes)
  const last = input.symSizes[input.ndim - 1]
  if (last === undefined) throw new ShapeError(`${LINEAR}: input must have at least 1 dimension, got a scalar.`)
  if (!sizeEq(last, inFeatures)) {
    throw new ShapeError(
      `${LINEAR}: input has ${last.toString()} features in its last dimension (shape ${formatShape(input.symSizes)}) but weight expects ${inFeatures.toString()} ` +
        `(shape ${formatShape(weight.symSizes)}); the last dimension of input must equal the last of weight.`,
    )
  }
  sameDType(LINEAR, 'input', input, 'weight', weight)
  if (bias !== null) {
    if (bias.ndim !== 1 || !sizeEq(bias.symSizes[0], outFeatures)) {
      throw new ShapeError(
        `${LINEAR}: bias has shape ${formatShape(bias.symSizes)} but weight (shape ${formatShape(weight.symSizes)}) has ${outFeatures.toString()} output features; expected [${outFeatures.toString()}].`,
      )
    }
    sameDType(LINEAR, 'input', input, 'bias', bias)
  }
  return { shape: [...input.symSizes.slice(0, -1), outFeatures], dtype: input.dtype }
}

/** A tensor seen as a matrix whose rows are its last dimension. */
function asRows(t: Tensor): Tensor {
  if (t.ndim === 2) return t
  // The number of rows does not follow from the number of elements where rows have none.
  return reshape(t, [sizeProduct(t.symSizes.slice(0, -1)), sizeAt(t.symSizes, -1)])
}

/**
 * `input @ weight^T + bias`. PyTorch's `F.linear`.
 *
 * Shapes: input [.., inFeatures], weight [outFeatures, inFeatures] and bias [outFeatures] give [.., outFeatures].
 *
 * @throws ShapeError if the sizes do not fit.
 * @throws DTypeError unless the dtypes are equal and numeric.
 * @example F.linear(torch.tensor([1, 2]), torch.tensor([[1, 0], [1, 1]]), torch.tensor([10, 20])).toArray() // [11, 23]
 */
export const linear: Op['linear'] = defineOp({
  schema: 'linear(Tensor input, Tensor weight, Tensor? bias=None) -> Tensor',
  namespace: 'torch.nn.functional',
  // addmm(bias, input, weight)
  tags: ['template', 'lastGradientFirst'],
  vmap: 'linear',
  onnx: 'linear',
  autocast: 'half',
  meta: linearMeta,
  halvesInFloat32: true,
  kernel: (input, weight, bias) => {
    const spec = numbersOf(linearMeta(input, weight, bias))
    const out = Tensor.empty(spec.shape, spec.dtype)
    const [n, k] = pairOf(weight.sizes)
    const [w0, w1] = pairOf(weight.steps)
    const rows = input.ndim === 2 || k === 0 || input.numel === 0 ? input : asRows(input)
    const [a0, a1] = rows.ndim === 2 ? pairOf(rows.steps) : [k, 1]
    const m = n === 0 ? 0 : out.numel / n
    runProduct({ out, a: rows, b: weight, bias, batch: 1, m, n, k, aStrides: [0, a0, a1], bStrides: [0, w1, w0] })
    return out
  },
  derivative: ([g], { args: [input, weight], needs }) => {
    const flat = asRows(g)
    const gi = needs[0] ? mm(flat, weight) : null
    return [
      gi === null || input.ndim === 2 ? gi : reshape(gi, input.symSizes),
      needs[1] ? mm(transpose(flat, 0, 1), asRows(input)) : null,
      needs[2] ? sum(flat, [0]) : null,
    ]
  },
})

/** A factor of integers is an integer too, and of bools a bool. */
function scaled(t: Tensor, factor: number): Tensor {
  if (dtypeInfo[t.dtype].differentiable) return factor === 1 ? t : mul(t, factor)
  const whole = Math.trunc(factor)
  return whole === 1 ? t : to(mul(t, whole), t.dtype)
}

/** beta * self + alpha * product; a self with the factor 0 does not count, even if it is NaN. */
export const blend = (self: Tensor, product: Tensor, beta: number, alpha: number): Tensor => {
  const right = scaled(product, alpha)
  if (beta !== 0) return add(scaled(self, beta), right)
  const shape = broadcastShapes('torch.add', self.symSizes, product.symSizes)
  return sameShape(shape, right.symSizes) ? right : expand(right, shape)
}

/**
 * `beta * self + alpha * (mat1 @ mat2)`. PyTorch's `torch.addmm`.
 *
 * Shapes: mat1 [m, k] times mat2 [k, n] gives [m, n], to which `self` broadcasts.
 *
 * @throws ShapeError if the sizes do not fit.
 * @throws DTypeError unless the dtypes of the matrices are equal and numeric.
 * @example torch.addmm(torch.tensor([1]), torch.tensor([[1, 2]]), torch.tensor([[3], [4]]), { alpha: 2 }).toArray() // [[23]]
 */
export const addmm: OpFunction<(self: Tensor, mat1: Tensor, mat2: Tensor, options?: AddmmOptions) => Tensor> = defineOp({
  schema: 'addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor',
  method: true,
  inPlace: 'method',
  autocast: 'half',
  meta: (_self, mat1, mat2) => mmMeta(mat1, mat2),
  decompose: (self, mat1, mat2, beta, alpha) => blend(self, mm(mat1, mat2), beta, alpha),
})

/**
 * `beta * self + alpha * bmm(batch1, batch2)`. PyTorch's `torch.baddbmm`.
 *
 * Shapes: batch1 [b, m, k] times batch2 [b, k, n] gives [b, m, n], to which `self` broadcasts.
 *
 * @throws ShapeError if the sizes do not fit.
 * @throws DTypeError unless the dtypes of the batches are equal and numeric.
 * @example torch.baddbmm(torch.tensor([1]), torch.ones([1, 1, 2]), torch.ones([1, 2, 1]), { beta: 3 }).toArray() // [[[5]]]
 */
export const baddbmm: OpFunction<(self: Tensor, batch1: Tensor, batch2: Tensor, options?: AddmmOptions) => Tensor> = defineOp({
  schema: 'baddbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> Tensor',
  method: true,
  inPlace: 'method',
  autocast: 'half',
  meta: (_self, batch1, batch2) => bmmMeta(batch1, batch2),
  decompose: (self, batch1, batch2, beta, alpha) => blend(self, bmm(batch1, batch2), beta, alpha),
})

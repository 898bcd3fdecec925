// The primitive matrix products: mm, bmm, linear, and addmm/baddbmm on top of them. Kernels are in product.ts; matmul.ts has the broadcasting forms.
import { DTypeError, ShapeError } from '../../errors/index.ts'
import { dtypeInfo } from '../../kernels/index.ts'
import { formatShape, Tensor } from '../../tensor/index.ts'
import type { TensorSpec } from '../../tensor/index.ts'
import { defineOp } from '../defineOp.ts'
import type { OpFunction } from '../defineOp.ts'
import { add, mul } from '../pointwise/arithmetic.ts'
import { sum } from '../reduction/sum.ts'
import { reshape, transpose } from '../view/index.ts'
import { runProduct } from './product.ts'

/** Options of addmm and baddbmm: `beta * self + alpha * product`. */
export interface AddmmOptions {
  readonly beta?: number
  readonly alpha?: number
}

function sameDType(op: string, firstName: string, first: Tensor, secondName: string, second: Tensor): void {
  if (first.dtype === second.dtype && first.dtype !== 'bool') return
  const fix =
    first.dtype === 'bool'
      ? 'Products of bool tensors are not defined; convert them first, e.g. x.float().'
      : `Convert one of them, e.g. ${secondName}.to('${first.dtype}').`
  throw new DTypeError(
    `${op}: ${firstName} has dtype ${first.dtype} and ${secondName} has dtype ${second.dtype}; they must be equal and numeric. ${fix}`,
  )
}

function mmMeta(self: Tensor, mat2: Tensor): TensorSpec {
  if (self.ndim !== 2 || mat2.ndim !== 2) {
    throw new ShapeError(
      `torch.mm: self and mat2 must be matrices (2 dimensions), got shapes ${formatShape(self.shape)} and ${formatShape(mat2.shape)}. Use torch.matmul for other ranks.`,
    )
  }
  const [m, k] = self.shape as [number, number]
  const [k2, n] = mat2.shape as [number, number]
  if (k !== k2) {
    throw new ShapeError(
      `torch.mm: self has ${k} columns (shape ${formatShape(self.shape)}) but mat2 has ${k2} rows (shape ${formatShape(mat2.shape)}); they must be equal. Perhaps one of them needs t().`,
    )
  }
  sameDType('torch.mm', 'self', self, 'mat2', mat2)
  return { shape: [m, n], dtype: self.dtype }
}

/** The product of two matrices, [m, k] by [k, n]. PyTorch's `torch.mm`. */
export const mm: OpFunction<(self: Tensor, mat2: Tensor) => Tensor> = defineOp({
  schema: 'mm(Tensor self, Tensor mat2) -> Tensor',
  method: true,
  tags: ['template'],
  template: 'mm',
  meta: mmMeta,
  kernel: (self: Tensor, mat2: Tensor): Tensor => {
    const spec = mmMeta(self, mat2)
    const [m, n] = spec.shape as [number, number]
    const out = Tensor.empty(spec.shape, spec.dtype)
    const [a0, a1] = self.strides as [number, number]
    const [b0, b1] = mat2.strides as [number, number]
    runProduct({ out, a: self, b: mat2, bias: null, batch: 1, m, n, k: self.shape[1] as number, aStrides: [0, a0, a1], bStrides: [0, b0, b1] })
    return out
  },
  derivative: ([g], { args, needs }) => {
    const [self, mat2] = args as [Tensor, Tensor]
    const grad = g as Tensor
    return [needs[0] === true ? mm(grad, transpose(mat2, 0, 1)) : null, needs[1] === true ? mm(transpose(self, 0, 1), grad) : null]
  },
})

function bmmMeta(self: Tensor, mat2: Tensor): TensorSpec {
  if (self.ndim !== 3 || mat2.ndim !== 3) {
    throw new ShapeError(
      `torch.bmm: self and mat2 must be batches of matrices (3 dimensions), got shapes ${formatShape(self.shape)} and ${formatShape(mat2.shape)}.`,
    )
  }
  const [b, m, k] = self.shape as [number, number, number]
  const [b2, k2, n] = mat2.shape as [number, number, number]
  if (b !== b2 || k !== k2) {
    throw new ShapeError(
      `torch.bmm: self of shape ${formatShape(self.shape)} and mat2 of shape ${formatShape(mat2.shape)} do not fit: expected [b, m, k] and [b, k, n]; ` +
        (b === b2 ? `k is ${k} in self and ${k2} in mat2.` : `b is ${b} in self and ${b2} in mat2.`),
    )
  }
  sameDType('torch.bmm', 'self', self, 'mat2', mat2)
  return { shape: [b, m, n], dtype: self.dtype }
}

/** Products of the matrices of two batches, [b, m, k] by [b, k, n]. PyTorch's `torch.bmm`. */
export const bmm: OpFunction<(self: Tensor, mat2: Tensor) => Tensor> = defineOp({
  schema: 'bmm(Tensor self, Tensor mat2) -> Tensor',
  method: true,
  tags: ['template'],
  template: 'bmm',
  meta: bmmMeta,
  kernel: (self: Tensor, mat2: Tensor): Tensor => {
    const spec = bmmMeta(self, mat2)
    const [batch, m, n] = spec.shape as [number, number, number]
    const out = Tensor.empty(spec.shape, spec.dtype)
    runProduct({
      out,
      a: self,
      b: mat2,
      bias: null,
      batch,
      m,
      n,
      k: self.shape[2] as number,
      aStrides: self.strides as [number, number, number],
      bStrides: mat2.strides as [number, number, number],
    })
    return out
  },
  derivative: ([g], { args, needs }) => {
    const [self, mat2] = args as [Tensor, Tensor]
    const grad = g as Tensor
    return [needs[0] === true ? bmm(grad, transpose(mat2, 1, 2)) : null, needs[1] === true ? bmm(transpose(self, 1, 2), grad) : null]
  },
})

const LINEAR = 'torch.nn.functional.linear'

function linearMeta(input: Tensor, weight: Tensor, bias: Tensor | null): TensorSpec {
  if (weight.ndim !== 2)
    throw new ShapeError(`${LINEAR}: weight must have 2 dimensions [outFeatures, inFeatures], got shape ${formatShape(weight.shape)}.`)
  const [outFeatures, inFeatures] = weight.shape as [number, number]
  const last = input.shape[input.ndim - 1]
  if (last === undefined) throw new ShapeError(`${LINEAR}: input must have at least 1 dimension, got a scalar.`)
  if (last !== inFeatures) {
    throw new ShapeError(
      `${LINEAR}: input has ${last} features in its last dimension (shape ${formatShape(input.shape)}) but weight expects ${inFeatures} ` +
        `(shape ${formatShape(weight.shape)}); the last dimension of input must equal the last of weight.`,
    )
  }
  sameDType(LINEAR, 'input', input, 'weight', weight)
  if (bias !== null) {
    if (bias.ndim !== 1 || bias.shape[0] !== outFeatures) {
      throw new ShapeError(
        `${LINEAR}: bias has shape ${formatShape(bias.shape)} but weight (shape ${formatShape(weight.shape)}) has ${outFeatures} output features; expected [${outFeatures}].`,
      )
    }
    sameDType(LINEAR, 'input', input, 'bias', bias)
  }
  return { shape: [...input.shape.slice(0, -1), outFeatures], dtype: input.dtype }
}

/** Rows of a tensor's last dimension as a matrix: [the other dimensions multiplied, last]. */
const asRows = (t: Tensor): Tensor =>
  t.ndim === 2 ? t : reshape(t, [t.numel / Math.max(1, t.shape[t.ndim - 1] as number), t.shape[t.ndim - 1] as number])

/** `input @ weight.T + bias`; input [..., inFeatures], weight [outFeatures, inFeatures], bias [outFeatures]. PyTorch's `F.linear`. */
export const linear: OpFunction<(input: Tensor, weight: Tensor, bias?: Tensor | null) => Tensor> = defineOp({
  schema: 'linear(Tensor input, Tensor weight, Tensor? bias=None) -> Tensor',
  namespace: 'torch.nn.functional',
  tags: ['template'],
  template: 'linear',
  meta: linearMeta,
  kernel: (input: Tensor, weight: Tensor, bias: Tensor | null): Tensor => {
    const spec = linearMeta(input, weight, bias)
    const out = Tensor.empty(spec.shape, spec.dtype)
    const [n, k] = weight.shape as [number, number]
    const [w0, w1] = weight.strides as [number, number]
    let rows = input
    if (input.ndim !== 2) rows = k === 0 || input.numel === 0 ? input : asRows(input)
    const m = n === 0 ? 0 : out.numel / n
    const [a0, a1] = rows.ndim === 2 ? (rows.strides as [number, number]) : [k, 1]
    runProduct({ out, a: rows, b: weight, bias, batch: 1, m, n, k, aStrides: [0, a0, a1], bStrides: [0, w1, w0] })
    return out
  },
  derivative: ([g], { args, needs }) => {
    const [input, weight] = args as [Tensor, Tensor]
    const grad = g as Tensor
    const flat = asRows(grad)
    const gi = needs[0] === true ? mm(flat, weight) : null
    return [
      gi === null || input.ndim === 2 ? gi : reshape(gi, input.shape),
      needs[1] === true ? mm(transpose(flat, 0, 1), asRows(input)) : null,
      needs[2] === true ? sum(flat, [0]) : null,
    ]
  },
})

const scaled = (t: Tensor, factor: number): Tensor => (factor === 1 ? t : mul(t, factor))

/** `beta * self + alpha * (mat1 @ mat2)`; self broadcasts. PyTorch's `torch.addmm`. */
export const addmm: OpFunction<(self: Tensor, mat1: Tensor, mat2: Tensor, options?: AddmmOptions) => Tensor> = defineOp({
  schema: 'addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor',
  method: true,
  meta: (_self: Tensor, mat1: Tensor, mat2: Tensor): TensorSpec => mmMeta(mat1, mat2),
  decompose: (self: Tensor, mat1: Tensor, mat2: Tensor, beta: number, alpha: number): Tensor =>
    add(scaled(self, beta), scaled(mm(mat1, mat2), alpha)),
})

/** `beta * self + alpha * bmm(batch1, batch2)`; self broadcasts. PyTorch's `torch.baddbmm`. */
export const baddbmm: OpFunction<(self: Tensor, batch1: Tensor, batch2: Tensor, options?: AddmmOptions) => Tensor> = defineOp({
  schema: 'baddbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> Tensor',
  method: true,
  meta: (_self: Tensor, batch1: Tensor, batch2: Tensor): TensorSpec => bmmMeta(batch1, batch2),
  decompose: (self: Tensor, batch1: Tensor, batch2: Tensor, beta: number, alpha: number): Tensor =>
    add(scaled(self, beta), scaled(bmm(batch1, batch2), alpha)),
})

declare module '../../tensor/tensor.ts' {
  interface Tensor {
    /** {@link mm} */
    mm(mat2: Tensor): Tensor
    /** {@link bmm} */
    bmm(mat2: Tensor): Tensor
    /** {@link addmm} */
    addmm(mat1: Tensor, mat2: Tensor, options?: AddmmOptions): Tensor
    /** {@link baddbmm} */
    baddbmm(batch1: Tensor, batch2: Tensor, options?: AddmmOptions): Tensor
  }
}

/** Whether a tensor has a floating dtype. */
export const isFloating = (t: Tensor): boolean => dtypeInfo[t.dtype].floating

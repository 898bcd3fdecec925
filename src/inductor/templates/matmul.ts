// Matrix products of float32: mm, bmm and linear, by the schedules of kernels/.
import { InternalError } from '../../errors/index.ts'
import { SMALLEST_SCRATCH, compileProduct, knownScratchBytes, packedProduct, spareProduct } from '../../kernels/index.ts'
import type { ScheduledKernel } from '../../kernels/index.ts'
import { add, bmm, linear as linearFunction, mm, reshape } from '../../ops/index.ts'
import type { Tensor } from '../../tensor/index.ts'
import type { BufferView, TemplateIo } from '../ir.ts'
import { product } from '../spaces.ts'
import { isFloat32, productOf } from './gemm.ts'
import { defineTemplate } from './template.ts'
import type { Template, TemplateSpec } from './template.ts'

/** A matrix, or a batch of them. */
interface Matrices {
  readonly view: BufferView
  /** Empty for a single matrix. */
  readonly batch: readonly number[]
  readonly rows: number
  readonly cols: number
  readonly layout: { readonly rowStride: number; readonly colStride: number; readonly batchStrides: readonly number[] }
}

interface Product {
  readonly left: Matrices
  readonly right: Matrices
}

function matricesOf(view: BufferView): Matrices {
  const [cols, rows, ...batch] = view.shape.toReversed()
  const [colStride, rowStride, ...batchStrides] = view.strides.toReversed()
  if (rows === undefined || cols === undefined || rowStride === undefined || colStride === undefined || batch.length > 1)
    throw new InternalError(`inductor: a matrix product needs operands of 2 or 3 dimensions, got ${view.shape.length}`)
  return { view, batch, rows, cols, layout: { rowStride, colStride, batchStrides } }
}

function specOf({ left, right }: Product): TemplateSpec {
  const shape = [...left.batch, left.rows, right.cols]
  return { out: { shape, dtype: 'float32' }, iter: shape, reads: [left.view, right.view], depth: left.cols, sum: { kind: 'matrices' } }
}

function emit({ left, right }: Product, io: TemplateIo): ScheduledKernel {
  const spec = productOf(io, { depth: left.cols, a: left.layout, b: right.layout })
  const { compiled } = compileProduct(spec)
  const scratchBytes = knownScratchBytes(compiled)
  const kernel = { compiled, scratchBytes, packed: packedProduct(spec) }
  return scratchBytes <= SMALLEST_SCRATCH ? kernel : { ...kernel, spare: spareProduct(spec) }
}

export const matmul: Template = defineTemplate<Product>({
  name: 'matmul',
  ops: [mm, bmm],
  match: (call, viewOf) =>
    isFloat32(call) ? { left: matricesOf(viewOf(call.tensor('self'))), right: matricesOf(viewOf(call.tensor('mat2'))) } : null,
  spec: specOf,
  emit,
})

interface Linear extends Product {
  readonly bias: Tensor | null
  /** Shape of the operator's result. */
  readonly shape: readonly number[]
}

/** x @ weight.T + bias; the leading dimensions of x are rows. */
export const linear: Template = defineTemplate<Linear>({
  name: 'linear',
  ops: [linearFunction],
  match: (call, viewOf) => {
    if (!isFloat32(call)) return null
    const x = viewOf(call.tensor('input'))
    const weight = matricesOf(viewOf(call.tensor('weight')))
    const rows = x.shape.slice(0, -1)
    const { rowStride, colStride } = weight.layout
    // It must be possible to walk the leading dimensions as one.
    const step = x.strides.at(-2) ?? weight.cols
    let expected = step
    for (let i = rows.length - 1; i >= 0; i--) {
      const size = rows[i] ?? 1
      if (size !== 1 && x.strides[i] !== expected) return null
      expected *= size
    }
    const flat: BufferView = { ...x, shape: [product(rows), weight.cols], strides: [step, x.strides.at(-1) ?? 1] }
    const turned: BufferView = { ...weight.view, shape: [weight.cols, weight.rows], strides: [colStride, rowStride] }
    return { left: matricesOf(flat), right: matricesOf(turned), bias: call.optionalTensor('bias'), shape: [...rows, weight.rows] }
  },
  spec: (problem) => {
    const { bias, shape } = problem
    const finish = (result: Tensor): Tensor => {
      const shaped = shape.length === 2 ? result : reshape(result, shape)
      return bias === null ? shaped : add(shaped, bias)
    }
    return { ...specOf(problem), finish }
  },
  emit,
})

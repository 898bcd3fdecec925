// Matrix products on real tensors: picks a kernel (the register-tiled float32 template, or plain loops for other dtypes) and launches it.
// It is below the operators: no autograd, no modes, no checks.
import {
  accumulate,
  at,
  bufferParam,
  call,
  compileKernel,
  constant,
  declare,
  forLoop,
  load,
  local,
  loopVar,
  read,
  sizeParam,
  store,
} from '../../kernels/index.ts'
import type { CompiledKernel, DType } from '../../kernels/index.ts'
import type { Tensor } from '../../tensor/index.ts'
import { launch } from '../eager/launch.ts'
import { float32Product } from './gemm.ts'

/** out[batch, i, j] = sum over k of a[batch, i, k] * b[batch, k, j] + bias[j]. Strides are in elements; `out` is contiguous. */
export interface Product {
  readonly out: Tensor
  readonly a: Tensor
  readonly b: Tensor
  readonly bias: Tensor | null
  readonly batch: number
  readonly m: number
  readonly n: number
  readonly k: number
  /** [batch, row, column] strides. */
  readonly aStrides: readonly [number, number, number]
  readonly bStrides: readonly [number, number, number]
}

const loopKernels = new Map<string, CompiledKernel>()

function loopKernel(dtype: DType, hasBias: boolean): CompiledKernel {
  const key = `${dtype}${hasBias}`
  let kernel = loopKernels.get(key)
  if (kernel !== undefined) return kernel
  const out = bufferParam('out', dtype, 'write')
  const a = bufferParam('a', dtype)
  const b = bufferParam('b', dtype)
  const bias = bufferParam('bias', dtype)
  const sizes = ['batch', 'm', 'n', 'k', 'a0', 'a1', 'a2', 'b0', 'b1', 'b2', 'o0', 'o1', 'biasStride'].map(sizeParam)
  const [nb, m, n, k, a0, a1, a2, b0, b1, b2, o0, o1, biasStride] = sizes as [
    (typeof sizes)[0],
    (typeof sizes)[0],
    (typeof sizes)[0],
    (typeof sizes)[0],
    (typeof sizes)[0],
    (typeof sizes)[0],
    (typeof sizes)[0],
    (typeof sizes)[0],
    (typeof sizes)[0],
    (typeof sizes)[0],
    (typeof sizes)[0],
    (typeof sizes)[0],
    (typeof sizes)[0],
  ]
  const [lb, li, lj, lk] = [loopVar('batch', nb), loopVar('i', m), loopVar('j', n), loopVar('k', k)] as const
  const sum = local('sum', dtype)
  const product = call('mul', load(a, at([lb, a0], [li, a1], [lk, a2])), load(b, at([lb, b0], [lk, b1], [lj, b2])))
  kernel = compileKernel({
    name: 'matmul_loops',
    params: [out, a, b, ...(hasBias ? [bias] : []), ...sizes],
    body: [
      forLoop(lb, 'serial', [
        forLoop(li, 'serial', [
          forLoop(lj, 'serial', [
            declare(sum, hasBias ? load(bias, at([lj, biasStride])) : constant(dtype, 0)),
            forLoop(lk, 'serial', [accumulate(sum, 'add', product)]),
            store(out, at([lb, o0], [li, o1], [lj, 1]), read(sum)),
          ]),
        ]),
      ]),
    ],
  })
  loopKernels.set(key, kernel)
  return kernel
}

/** Computes the product into `out`. */
export function runProduct(p: Product): void {
  if (p.batch === 0 || p.m === 0 || p.n === 0) return
  if (p.out.dtype === 'float32') {
    float32Product(p)
    return
  }
  const { aStrides: sa, bStrides: sb } = p
  const buffers = p.bias === null ? [p.out, p.a, p.b] : [p.out, p.a, p.b, p.bias]
  launch(loopKernel(p.out.dtype, p.bias !== null), buffers, [p.batch, p.m, p.n, p.k, ...sa, ...sb, p.m * p.n, p.n, p.bias?.strides[0] ?? 0])
}

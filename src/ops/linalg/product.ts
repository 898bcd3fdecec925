// Matrix products on real tensors: the register-tiled template for float32, plain loops for other dtypes. This is below the operators: no autograd, no modes,
// no checks.
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
  serialLoops,
  sizeParam,
  store,
} from '../../kernels/index.ts'
import type { CompiledKernel, DType } from '../../kernels/index.ts'
import { kernelCache, launch } from '../eager/launch.ts'
import { float32Product } from './gemm.ts'
import type { Product } from './gemm.ts'

const loopKernel = kernelCache((dtype: DType, hasBias: boolean): CompiledKernel => {
  const out = bufferParam('out', dtype, 'write')
  const a = bufferParam('a', dtype)
  const b = bufferParam('b', dtype)
  const bias = bufferParam('bias', dtype)
  const [batch, m, n, k] = [sizeParam('batch'), sizeParam('m'), sizeParam('n'), sizeParam('k')]
  const [a0, a1, a2] = [sizeParam('a0'), sizeParam('a1'), sizeParam('a2')]
  const [b0, b1, b2] = [sizeParam('b0'), sizeParam('b1'), sizeParam('b2')]
  const [o0, o1, biasStride] = [sizeParam('o0'), sizeParam('o1'), sizeParam('biasStride')]
  const [lb, li, lj, lk] = [loopVar('batch', batch), loopVar('i', m), loopVar('j', n), loopVar('k', k)]
  const sum = local('sum', dtype)
  const product = call('mul', load(a, at([lb, a0], [li, a1], [lk, a2])), load(b, at([lb, b0], [lk, b1], [lj, b2])))
  return compileKernel({
    name: 'matmul_loops',
    params: [out, a, b, ...(hasBias ? [bias] : []), batch, m, n, k, a0, a1, a2, b0, b1, b2, o0, o1, biasStride],
    body: serialLoops(
      [lb, li, lj],
      [
        declare(sum, hasBias ? load(bias, at([lj, biasStride])) : constant(dtype, 0)),
        forLoop(lk, 'serial', [accumulate(sum, 'add', product)]),
        store(out, at([lb, o0], [li, o1], [lj, 1]), read(sum)),
      ],
    ),
  })
})

/** Computes the product into `out`. */
export function runProduct(p: Product): void {
  if (p.batch === 0 || p.m === 0 || p.n === 0) return
  if (p.out.dtype === 'float32') {
    float32Product(p)
    return
  }
  const { aStrides: sa, bStrides: sb } = p
  const buffers = p.bias === null ? [p.out, p.a, p.b] : [p.out, p.a, p.b, p.bias]
  launch(loopKernel(p.out.dtype, p.bias !== null), buffers, [p.batch, p.m, p.n, p.k, ...sa, ...sb, p.m * p.n, p.n, p.bias?.steps[0] ?? 0])
}

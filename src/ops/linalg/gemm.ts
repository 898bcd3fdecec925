// The float32 matrix product by the register-tiled template, with run-time sizes: one kernel for all shapes.
import { PerEngine, at, bufferParam, call, compileGemm, gemmScratchBytes, load, loopVar, store } from '../../kernels/index.ts'
import type { CompiledKernel, Expr, Stmt } from '../../kernels/index.ts'
import type { Tensor } from '../../tensor/index.ts'
import { launch, scratchMemory } from '../eager/launch.ts'
import { sizeParams } from '../eager/sizes.ts'

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

function build(hasBias: boolean): CompiledKernel {
  // In the order in which float32Product passes them.
  const s = sizeParams(['batch', 'm', 'n', 'k', 'a0', 'a1', 'a2', 'b0', 'b1', 'b2', 'o0', 'biasStride'])
  const out = bufferParam('out', 'float32', 'write')
  const a = bufferParam('a', 'float32')
  const b = bufferParam('b', 'float32')
  const bias = bufferParam('bias', 'float32')
  const [batch, rows, cols] = [loopVar('batch', s.batch), loopVar('i', s.m), loopVar('j', s.n)]
  const epilogue = (acc: Expr): readonly Stmt[] => [
    store(out, at([batch, s.o0], [rows, s.n], [cols, 1]), hasBias ? call('add', acc, load(bias, at([cols, s.biasStride]))) : acc),
  ]
  return compileGemm({
    name: hasBias ? 'matmul_bias' : 'matmul',
    batch: [batch],
    rows,
    cols,
    depth: s.k,
    a: { buffer: a, rowStride: s.a1, colStride: s.a2, batchStrides: [s.a0] },
    b: { buffer: b, rowStride: s.b1, colStride: s.b2, batchStrides: [s.b0] },
    reduceBatch: 0,
    epilogue,
    params: [out, a, b, ...(hasBias ? [bias] : []), ...Object.values(s), bufferParam('scratch', 'float32', 'readwrite')],
  })
}

const kernels = new PerEngine((): { plain: CompiledKernel | null; withBias: CompiledKernel | null } => ({ plain: null, withBias: null }))

/** Computes a float32 product into `p.out`. */
export function float32Product(p: Product): void {
  const { aStrides: sa, bStrides: sb } = p
  const scratch = scratchMemory(gemmScratchBytes(p.m, p.n, p.k))
  const sizes = [p.batch, p.m, p.n, p.k, sa[0], sa[1], sa[2], sb[0], sb[1], sb[2], p.m * p.n, p.bias?.steps[0] ?? 0, scratch]
  if (p.bias === null) {
    kernels.current.plain ??= build(false)
    launch(kernels.current.plain, [p.out, p.a, p.b], sizes)
  } else {
    kernels.current.withBias ??= build(true)
    launch(kernels.current.withBias, [p.out, p.a, p.b, p.bias], sizes)
  }
}

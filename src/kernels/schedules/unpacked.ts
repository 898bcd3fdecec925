// Products of matrices as a loop over their elements, which takes no memory beside its operands: for calls that have no room to pack them. Sums are in the order of the depth, as those of
// the product schedule are.
import type { GemmSpec, MatrixOperand } from './gemmSpec.ts'
import { assign, at, call, constant, declare, load, local, loopVar, read, serialLoops } from '../ir/loopIr.ts'
import type { Expr, Kernel } from '../ir/loopIr.ts'
import type { Terms } from './notation.ts'

/** The kernel of a product. It has the parameters of the product, but that for scratch memory. */
export function unpackedProduct({ name, batch, rows, cols, depth, a, b, reduceBatch, epilogue, params }: GemmSpec): Kernel {
  const kept = batch.slice(0, batch.length - reduceBatch)
  const k = loopVar('k', depth)
  const sum = local('sum', 'float32')
  const element = ({ buffer, batchStrides }: MatrixOperand, ...inner: Terms): Expr => {
    const outer: Terms = batch.map((loop, i) => [loop, batchStrides[i] ?? 0])
    return load(buffer, at(...outer, ...inner))
  }
  const [left, right] = [element(a, [rows, a.rowStride], [k, a.colStride]), element(b, [k, b.rowStride], [cols, b.colStride])]
  const added = serialLoops([...batch.slice(kept.length), k], [assign(sum, call('mulAdd', left, right, read(sum)))])
  const body = [declare(sum, constant('float32', 0)), ...added, ...epilogue(read(sum))]
  return { name: `${name}_unpacked`, params: params.slice(0, -1), body: serialLoops([...kept, rows, cols], body) }
}

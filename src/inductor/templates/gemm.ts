// What the templates of convolutions and matrix products share: how a template's loops and parameters become a matrix product of kernels/.
import { InternalError } from '../../errors/index.ts'
import type { GemmSpec, MatrixOperand } from '../../kernels/index.ts'
import type { TemplateIo } from '../ir.ts'
import type { OpCall } from '../opCall.ts'

/** A matrix operand without its buffer. */
type OperandLayout = Omit<MatrixOperand, 'buffer'>

/** Whether all tensors of a call are float32, the only dtype that products support. */
export const isFloat32 = (call: OpCall): boolean => call.tensors.every((tensor) => tensor.dtype === 'float32')

/** A product of the first two buffers of a template; its last two loops are rows and columns, and those before are a batch. */
export interface ProductProblem {
  readonly depth: number
  readonly a: OperandLayout
  readonly b: OperandLayout
}

export function productOf(io: TemplateIo, { depth, a, b }: ProductProblem): GemmSpec {
  const [left, right] = io.buffers
  const [cols, rows, ...batch] = io.loops.toReversed()
  if (left === undefined || right === undefined || rows === undefined || cols === undefined)
    throw new InternalError(`inductor: the template of ${io.name} needs two operands, and loops over rows and columns`)
  return {
    name: io.name,
    batch: batch.reverse(),
    rows,
    cols,
    depth,
    a: { ...a, buffer: left },
    b: { ...b, buffer: right },
    reduceBatch: 0,
    epilogue: io.epilogue,
    params: [...io.params, io.scratch],
  }
}

// Numbers among arguments: which of them may differ from call to call of one compiled kernel or graph.
import { dtypeInfo } from '../kernels/index.ts'
import { Tensor } from '../tensor/index.ts'
import type { Arg, OpDef } from './op.ts'

/** Whether a number is one of int32. */
export const isInt32 = (value: number): boolean => (value | 0) === value && !Object.is(value, -0)

/** The kind of a number that may differ from call to call in one compiled graph; null if the number is a constant of the graph. */
export function numberKind(op: OpDef, args: readonly Arg[], position: number): 'any' | 'int32' | null {
  const arg = op.schema.args[position]
  const value = args[position]
  if (arg === undefined || typeof value !== 'number' || op.tags.has('custom') || op.pointwise?.baked?.includes(arg.name) === true) return null
  if (op.dynamicScalars.includes(arg.name)) return 'any'
  const { base } = arg.type
  if (base !== 'Scalar' && base !== 'float' && !(base === 'Tensor' && op.tags.has('pointwise'))) return null
  // Beside integers, whether a number is whole decides the dtype of the result, and kernels get it in the tensors' own dtype.
  const dtypes = args.flatMap((a) => (a instanceof Tensor ? [a.dtype] : []))
  if (dtypes.some((dtype) => dtypeInfo[dtype].floating)) return 'any'
  return isInt32(value) && dtypes.every((dtype) => dtype === 'int32') ? 'int32' : null
}

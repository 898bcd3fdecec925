// Tensors as backends take them, and what becomes of the results.
import { noGrad } from '../autograd/index.ts'
import { ArgumentError } from '../errors/index.ts'
import { dtypeInfo } from '../kernels/index.ts'
import type { DType } from '../kernels/index.ts'
import { valueText } from '../protocol/index.ts'
import { Tensor } from '../tensor/index.ts'
import { checkReduceOp } from './collective.ts'
import type { BackendReduceOp, ReduceOp } from './collective.ts'

/** A tensor as backends take it: contiguous, real, and without history. */
export function contiguous(where: string, name: string, tensor: unknown): Tensor {
  if (!(tensor instanceof Tensor)) throw new ArgumentError(`${where}: ${name} must be a Tensor, got ${valueText(tensor)}.`)
  if (tensor.isFake) throw new ArgumentError(`${where}: ${name} is fake (it has a shape and no data), so it cannot be sent.`)
  const storage = tensor.realize()
  // The usual case, without operators: small collectives take less time than these.
  if (tensor.contiguousLayout) return new Tensor(tensor.sizes, tensor.dtype, storage, undefined, undefined, tensor)
  return noGrad(() => tensor.detach().contiguous())
}

/** What to do at the end with a result that was computed in `from`: write it to `to`, unless that is where it is. */
export function copyBack(from: Tensor, to: Tensor): (() => void) | null {
  if (from.storage === to.storage && from.offset === to.offset && to.contiguousLayout) return () => raise(to)
  return () => noGrad(() => void to.detach().copy_(from))
}

/** Another rank's data was written to the tensor. */
function raise(tensor: Tensor): void {
  const { storage } = tensor
  if (storage !== null) storage.version++
}

/** The operator that backends run, the tensor that they reduce, and what follows: averages are divided, halves are reduced in float32. */
export function reduction(
  where: string,
  data: Tensor,
  op: ReduceOp,
  size: number,
): { readonly op: BackendReduceOp; readonly dtype: DType; readonly after: (result: Tensor) => void } {
  checkReduceOp(where, op, data.dtype)
  const { compute, floating } = dtypeInfo[data.dtype]
  const after = (result: Tensor): void => {
    if (op === 'avg') noGrad(() => result.div_(size))
  }
  return { op: op === 'avg' ? 'sum' : op, dtype: floating ? compute : data.dtype, after }
}

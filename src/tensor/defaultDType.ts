// The default dtype: that of floating-point tensors made from numbers without saying which dtype.
import { checkCount } from '../protocol/index.ts'
import { DTypeError } from '../errors/index.ts'
import { dtypeInfo, isDType } from '../kernels/index.ts'
import type { DType } from '../kernels/index.ts'
import { notADType } from './dtypeNames.ts'

let current: DType = 'float32'

/** The dtype of tensors made from numbers, and of integers that an operator turns into floats. PyTorch's `torch.get_default_dtype`. */
export const getDefaultDtype = (): DType => current

/** Runs `fn` under another default dtype. */
export function withDefaultDtype<T>(dtype: DType, fn: () => T): T {
  const outer = current
  current = dtype
  try {
    return fn()
  } finally {
    current = outer
  }
}

/**
 * Sets the dtype of tensors made from numbers, and of integers that an operator turns into floats. PyTorch's `torch.set_default_dtype`.
 *
 * @throws DTypeError unless `dtype` is float16, bfloat16, float32 or float64.
 * @example
 * torch.setDefaultDtype('float64')
 * torch.tensor([1, 2]).dtype // 'float64'
 */
export function setDefaultDtype(dtype: DType): void {
  checkCount('torch.setDefaultDtype', arguments, 1)
  if (!isDType(dtype)) throw new DTypeError(`torch.set_default_dtype: ${notADType(dtype)}`)
  if (!dtypeInfo[dtype].floating)
    throw new DTypeError(`torch.set_default_dtype: only float16, bfloat16, float32 and float64 can be the default dtype, got ${dtype}.`)
  current = dtype
}

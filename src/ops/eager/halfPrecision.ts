// Kernels that are written for float32 and float64, on float16 and bfloat16: they run on float32 copies, and their results are rounded once.
import type { Arg, OpDef, Result } from '../../dispatch/index.ts'
import type { DType } from '../../kernels/index.ts'
import { Tensor } from '../../tensor/index.ts'
import { copyInto } from './copy.ts'

type Kernel = NonNullable<OpDef['kernel']>

function cast(tensor: Tensor, dtype: DType): Tensor {
  const out = Tensor.empty(tensor.sizes, dtype)
  if (out.numel > 0) copyInto(tensor, out)
  return out
}

const isHalf = (arg: Arg): arg is Tensor => arg instanceof Tensor && (arg.dtype === 'float16' || arg.dtype === 'bfloat16')

/**
 * The kernel with float32 copies of the float16 and bfloat16 tensors among its arguments; its results are cast to the dtypes that `meta` says. The copies
 * would hide arguments of different dtypes from the kernel's checks, so `meta` checks the arguments themselves.
 */
export function inFloat32(kernel: Kernel, meta: OpDef['meta']): Kernel {
  return (...args) => {
    if (!args.some(isHalf)) return kernel(...args)
    const spec = meta(...args)
    const specs = 'shape' in spec ? [spec] : spec
    const result: Result = kernel(...args.map((arg) => (isHalf(arg) ? cast(arg, 'float32') : arg)))
    const back = (tensor: Tensor, i: number): Tensor => {
      const dtype = specs[i]?.dtype ?? tensor.dtype
      return tensor.dtype === dtype ? tensor : cast(tensor, dtype)
    }
    return result instanceof Tensor ? back(result, 0) : result.map(back)
  }
}

// FakeTensorMode: operators compute shapes, dtypes and layouts, never data. PyTorch's FakeTensorMode.
import { checkArgument } from '../protocol/index.ts'
import { InternalError } from '../errors/index.ts'
import { Tensor } from '../tensor/index.ts'
import type { TensorSpec } from '../tensor/index.ts'
import type { DispatchMode } from './dispatch.ts'
import type { Arg, OpDef, Result } from './op.ts'
import { markView } from './views.ts'

/** A tensor of the same shape, strides, dtype and requiresGrad, without data. */
export function fakeLike(tensor: Tensor): Tensor {
  checkArgument(tensor instanceof Tensor, 'fakeLike', 'tensor', 'a Tensor', tensor)
  const fake = Tensor.fake({ shape: tensor.sizes, dtype: tensor.dtype, strides: tensor.steps, offset: tensor.offset })
  fake.requiresGrad = tensor.requiresGrad
  fake.isParameter = tensor.isParameter
  return fake
}

/** Under this mode every operator returns fake tensors. Arguments may be real; their data is not read. Throws what the operators' own checks throw. */
export class FakeTensorMode implements DispatchMode {
  readonly name = 'FakeTensorMode'

  handle(op: OpDef, args: readonly Arg[]): Result {
    const spec = op.meta(...args)
    const [self] = args
    if (op.tags.has('mutates') && self instanceof Tensor) return self
    const isView = op.tags.has('view')
    const one = (s: TensorSpec): Tensor => {
      const out = Tensor.fake(s)
      if (isView) {
        if (!(self instanceof Tensor)) throw new InternalError(`view operator ${op.qualname} was called without a tensor`)
        markView(out, self, op)
      }
      return out
    }
    return 'shape' in spec ? one(spec) : spec.map(one)
  }
}

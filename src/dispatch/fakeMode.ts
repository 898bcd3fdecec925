// FakeTensorMode: operators compute shapes, dtypes and layouts, never data. PyTorch's FakeTensorMode.
import { checkArgument } from '../protocol/index.ts'
import type { Size } from '../protocol/index.ts'
import { InternalError } from '../errors/index.ts'
import { NumbersNeeded, Tensor, asRule, makeFake } from '../tensor/index.ts'
import type { TensorSpec } from '../tensor/index.ts'
import { withoutShapeRule } from './decomposed.ts'
import type { DispatchMode } from './dispatch.ts'
import type { Arg, OpDef, Result, ResultSpec } from './op.ts'
import { markView } from './views.ts'

/** A tensor of the same shape, strides, dtype and requiresGrad, without data. */
export function fakeLike(tensor: Tensor): Tensor {
  checkArgument(tensor instanceof Tensor, 'fakeLike', 'tensor', 'a Tensor', tensor)
  const fake = Tensor.fake({ shape: tensor.sizes, dtype: tensor.dtype, strides: tensor.steps, offset: tensor.offset })
  fake.requiresGrad = tensor.requiresGrad
  fake.isParameter = tensor.isParameter
  return fake
}

/** What {@link FakeTensorMode} asks of a ShapeEnv: symbols for the sizes and strides of a tensor. */
export interface SymbolicShapes<O = object> {
  createSymbolicLayout(
    sizes: readonly number[],
    strides: readonly number[],
    options?: O,
  ): { readonly sizes: readonly Size[]; readonly strides: readonly Size[]; readonly storageOffset: Size }
}

export interface FakeTensorModeOptions<O = object> {
  /** Gives the tensors of {@link FakeTensorMode.fromTensor} sizes that are symbols. Default: sizes are numbers. */
  readonly shapeEnv?: SymbolicShapes<O> | null
}

/**
 * Under this mode every operator returns fake tensors. Arguments may be real; their data is not read. Throws what the operators' own checks throw, and UnsupportedError
 * for an operator that has no rule for symbolic sizes. PyTorch's `FakeTensorMode`.
 *
 *     const mode = new FakeTensorMode({ shapeEnv: new ShapeEnv() })
 *     const x = mode.fromTensor(torch.zeros([3, 4])) // of the sizes s0 and s1
 *     withMode(mode, () => torch.cat([x, x])) // of the sizes 2*s0 and s1
 */
export class FakeTensorMode<O = object> implements DispatchMode {
  readonly name = 'FakeTensorMode'
  readonly shapeEnv: SymbolicShapes<O> | null

  constructor({ shapeEnv = null }: FakeTensorModeOptions<O> = {}) {
    this.shapeEnv = shapeEnv
  }

  /** A fake tensor like `tensor`, with symbolic sizes if the mode has a ShapeEnv; `options` are those of its `createSymbolicLayout`. PyTorch's `from_tensor`. */
  fromTensor(tensor: Tensor, options?: O): Tensor {
    if (this.shapeEnv === null) return fakeLike(tensor)
    const { sizes, strides, storageOffset } = this.shapeEnv.createSymbolicLayout(tensor.sizes, tensor.steps, options)
    const fake = makeFake({ shape: sizes, dtype: tensor.dtype, strides, offset: storageOffset })
    fake.requiresGrad = tensor.requiresGrad
    fake.isParameter = tensor.isParameter
    return fake
  }

  handle(op: OpDef, args: readonly Arg[]): Result {
    const spec = specsOf(op, args)
    const [self] = args
    if (op.tags.has('mutates') && self instanceof Tensor) return self
    const isView = op.tags.has('view')
    const one = (s: TensorSpec<Size>): Tensor => {
      const out = makeFake(s)
      if (isView) {
        if (!(self instanceof Tensor)) throw new InternalError(`view operator ${op.qualname} was called without a tensor`)
        markView(out, self, op)
      }
      return out
    }
    return 'shape' in spec ? one(spec) : spec.map(one)
  }
}

/** What `meta` says, and of which operator it is that there is no rule for symbols. */
export function specsOf(op: OpDef, args: readonly Arg[]): ResultSpec {
  try {
    return asRule(() => op.meta(...args))
  } catch (error) {
    throw error instanceof NumbersNeeded ? withoutShapeRule(op.qualname, error) : error
  }
}

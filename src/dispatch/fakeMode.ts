// FakeTensorMode: operators compute shapes, dtypes and layouts, never data. PyTorch's FakeTensorMode.
import { checkArgument } from '../protocol/index.ts'
import type { Size, SymbolicKind, SymbolicValue } from '../protocol/index.ts'
import { InternalError } from '../errors/index.ts'
import { dtypeInfo } from '../kernels/index.ts'
import type { DTypeKind } from '../kernels/index.ts'
import { NumbersNeeded, Tensor, asRule, awayFromCpu, makeFake, sizeMustEq, withDataSizes } from '../tensor/index.ts'
import type { TensorSpec } from '../tensor/index.ts'
import { withoutShapeRule } from './decomposed.ts'
import { deviceOfResults } from './devices.ts'
import type { DispatchMode } from './dispatch.ts'
import type { Arg, OpDef, Result, ResultSpec } from './op.ts'
import { markView } from './views.ts'

/** A tensor of the same shape, strides, dtype, device and requiresGrad, without data. */
export function fakeLike(tensor: Tensor): Tensor {
  checkArgument(tensor instanceof Tensor, 'fakeLike', 'tensor', 'a Tensor', tensor)
  const { sizes, dtype, steps, offset, device } = tensor
  const fake = Tensor.fake({ shape: sizes, dtype, strides: steps, offset, device })
  fake.requiresGrad = tensor.requiresGrad
  fake.isParameter = tensor.isParameter
  return fake
}

/** Makes symbols of what only the data tells. */
export interface DataSymbols {
  /** A size from 0 to `most`. */
  createDataSize(most: Size): Size
  /** The number or truth value of an element. */
  createDataValue(kind: SymbolicKind): SymbolicValue
}

/** What kind of symbol stands for an element; null for complex numbers. */
const KINDS: Readonly<Record<DTypeKind, SymbolicKind | null>> = { bool: 'bool', integer: 'int', floating: 'float', complex: null }

/** The symbol of the only element of `tensor`. Undefined if it has, or may have, another number of elements, or a complex one. */
export function dataValue(symbols: DataSymbols, tensor: Tensor): SymbolicValue | undefined {
  const kind = KINDS[dtypeInfo[tensor.dtype].kind]
  return kind !== null && sizeMustEq(tensor.symNumel, 1) ? symbols.createDataValue(kind) : undefined
}

/** What {@link FakeTensorMode} asks of a ShapeEnv: symbols for the sizes and strides of a tensor, and for what depends on data. */
export interface SymbolicShapes<O = object> extends DataSymbols {
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
 * Under this mode every operator returns fake tensors, on the device that its results would be on. Arguments may be real; their data is not read. Throws what the operators' own checks throw, and UnsupportedError
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
    const fake = makeFake({ shape: sizes, dtype: tensor.dtype, strides, offset: storageOffset, ...awayFromCpu(tensor) })
    fake.requiresGrad = tensor.requiresGrad
    fake.isParameter = tensor.isParameter
    return fake
  }

  /** The symbol of the element of a tensor, if the mode has a ShapeEnv. */
  read(tensor: Tensor, whole: boolean): unknown {
    return this.shapeEnv === null || whole ? undefined : dataValue(this.shapeEnv, tensor)
  }

  handle(op: OpDef, args: readonly Arg[]): Result {
    const spec = specsOf(op, args, this.shapeEnv)
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

/** What `meta` says, with the device of the results, and of which operator it is that there is no rule for symbols. `symbols` makes the sizes that depend on data. */
export function specsOf(op: OpDef, args: readonly Arg[], symbols: DataSymbols | null = null): ResultSpec {
  const spec = layoutsOf(op, args, symbols)
  const device = deviceOfResults(args)
  if (device === 'cpu') return spec
  return 'shape' in spec ? { device, ...spec } : spec.map((one) => ({ device, ...one }))
}

function layoutsOf(op: OpDef, args: readonly Arg[], symbols: DataSymbols | null): ResultSpec {
  try {
    return asRule(() =>
      symbols === null
        ? op.meta(...args)
        : withDataSizes(
            (most) => symbols.createDataSize(most),
            () => op.meta(...args),
          ),
    )
  } catch (error) {
    throw error instanceof NumbersNeeded ? withoutShapeRule(op.qualname, error) : error
  }
}

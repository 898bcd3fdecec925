// In-place operators: the functional operator, its result written into the first argument's memory.
import { runKernel } from '../../dispatch/index.ts'
import type { Arg, OpDef } from '../../dispatch/index.ts'
import { ArgumentError, DTypeError, ShapeError } from '../../errors/index.ts'
import { dtypeInfo } from '../../kernels/index.ts'
import { Tensor, formatShape, sameShape } from '../../tensor/index.ts'
import type { TensorSpec } from '../../tensor/index.ts'
import { launchPointwise } from './pointwise.ts'
import { copyInto } from './copy.ts'

/** The layout of `args[0]`, after checking that the functional operator's result fits into it. Throws when shape or dtype do not. */
export function inPlaceSpec(op: OpDef, functional: OpDef, args: readonly Arg[]): TensorSpec {
  const self = args[0] as Tensor
  const spec = (functional.meta as (...a: readonly Arg[]) => TensorSpec)(...args)
  if (!sameShape(spec.shape, self.shape)) {
    throw new ShapeError(
      `${op.qualname}: the result has shape ${formatShape(spec.shape)}, which does not fit into self of shape ${formatShape(self.shape)}; the other operands must broadcast to self's shape.`,
    )
  }
  if (spec.dtype !== self.dtype && dtypeInfo[spec.dtype].floating && !dtypeInfo[self.dtype].floating) {
    throw new DTypeError(
      `${op.qualname}: the result has dtype ${spec.dtype}, which cannot be stored in self of dtype ${self.dtype}; use the operator without underscore.`,
    )
  }
  if (self.strides.some((s, i) => s === 0 && (self.shape[i] as number) > 1)) {
    throw new ArgumentError(`${op.qualname}: self is an expanded view, several of whose elements share one memory location; clone() it first.`)
  }
  return { shape: self.shape, dtype: self.dtype, strides: self.strides, offset: self.offset }
}

/** Runs `functional` on the arguments and stores the result in `args[0]`. Throws when shape or dtype do not fit; then nothing is written. */
export function writeInPlace(op: OpDef, functional: OpDef, args: readonly Arg[]): Tensor {
  const self = args[0] as Tensor
  inPlaceSpec(op, functional, args)
  // Reading and writing the same elements one by one is safe; an operand that overlaps self in another layout is not.
  if (functional.pointwise !== null && !overlapsOtherwise(self, args)) launchPointwise(functional, args, self)
  else copyInto(runKernel(functional, args) as Tensor, self)
  self.realize().version++
  return self
}

function overlapsOtherwise(self: Tensor, args: readonly Arg[]): boolean {
  return args.some((a, i) => {
    if (i === 0 || !(a instanceof Tensor)) return false
    const t = a
    return (
      t.storage !== null &&
      t.storage === self.storage &&
      !(t.offset === self.offset && sameShape(t.shape, self.shape) && sameShape(t.strides, self.strides))
    )
  })
}

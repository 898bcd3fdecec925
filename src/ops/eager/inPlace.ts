// In-place operators: the result of the functional operator, written into the memory of argument 0.
import { runKernel, tensorAt } from '../../dispatch/index.ts'
import type { Arg, OpDef } from '../../dispatch/index.ts'
import { ArgumentError, DTypeError, InternalError, ShapeError } from '../../errors/index.ts'
import type { Size } from '../../protocol/index.ts'
import { formatShape, hasNoElements, sameShape, sizeEq, sizeLess, Tensor } from '../../tensor/index.ts'
import type { TensorSpec } from '../../tensor/index.ts'
import { copyInto } from './copy.ts'
import { launchPointwise } from './pointwise.ts'
import { canCast } from './promotion.ts'

/** Throws ShapeError, DTypeError or ArgumentError if a result of that shape and dtype does not fit into `self`. */
export function checkFits(qualname: string, result: Pick<TensorSpec<Size>, 'shape' | 'dtype'>, self: Tensor): void {
  if (!sameShape(result.shape, self.symSizes)) {
    throw new ShapeError(
      `${qualname}: the result has shape ${formatShape(result.shape)}, which does not fit into self of shape ${formatShape(self.symSizes)}; the other operands must broadcast to self's shape.`,
    )
  }
  if (!canCast(result.dtype, self.dtype)) {
    throw new DTypeError(
      `${qualname}: the result has dtype ${result.dtype}, which can't be cast to ${self.dtype}, the dtype of self; use the operator without underscore.`,
    )
  }
  if (isExpanded(self)) {
    throw new ArgumentError(`${qualname}: self is an expanded view, several of whose elements share one memory location; clone() it first.`)
  }
}

/** Whether several elements of a tensor share one place of its memory since a dimension was repeated. */
const isExpanded = (self: Tensor): boolean =>
  self.symSteps.some((stride, i) => sizeEq(stride, 0) && sizeLess(1, self.symSizes[i] ?? 1)) && !hasNoElements(self.symSizes)

/** The layout of `args[0]`, after checking that the functional operator's result fits into it. Throws ShapeError, DTypeError or ArgumentError if it does not. */
export function inPlaceSpec(qualname: string, functional: OpDef, args: readonly Arg[]): TensorSpec<Size> {
  const self = tensorAt(args, 0)
  const spec = functional.meta(...args)
  if (!('shape' in spec)) throw new InternalError(`${functional.qualname} returns several tensors and cannot have an in-place form`)
  checkFits(qualname, spec, self)
  return { shape: self.symSizes, dtype: self.dtype, strides: self.symSteps, offset: self.symOffset }
}

/** Runs `functional` on the arguments and stores the result in `args[0]`. Throws if shape or dtype do not fit, and then nothing is written. */
export function writeInPlace(qualname: string, functional: OpDef, args: readonly Arg[]): Tensor {
  const self = tensorAt(args, 0)
  // Reading and writing the same elements one by one is safe; an operand that overlaps self in another layout is not.
  if (functional.pointwise !== null && !overlapsInAnotherLayout(self, args)) {
    // Its watchers keep what the memory holds now, so they may hear of a call that is refused, too.
    self.realize().announceWrite()
    launchPointwise(functional, args, self, () => inPlaceSpec(qualname, functional, args))
  } else {
    inPlaceSpec(qualname, functional, args)
    self.realize().announceWrite()
    const result = runKernel(functional, args)
    if (!(result instanceof Tensor)) throw new InternalError(`${functional.qualname} returned several tensors`)
    copyInto(result, self)
  }
  self.realize().version++
  return self
}

function overlapsInAnotherLayout(self: Tensor, args: readonly Arg[]): boolean {
  const { storage } = self
  if (storage === null) return false
  for (let i = 1; i < args.length; i++) {
    const arg = args[i]
    if (!(arg instanceof Tensor) || arg.storage !== storage || arg === self) continue
    if (arg.offset !== self.offset || !sameShape(arg.symSizes, self.symSizes) || !sameShape(arg.steps, self.steps)) return true
  }
  return false
}

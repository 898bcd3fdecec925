// Reading normalized arguments.
import { InternalError } from '../errors/index.ts'
import { isComplexDType } from '../kernels/index.ts'
import { Tensor } from '../tensor/index.ts'
import type { Arg } from './op.ts'

/** Whether an argument is a list: of numbers, or of tensors. */
export function isArgList(arg: Arg | undefined): arg is readonly Arg[] {
  return Array.isArray(arg)
}

/** The argument at `index`, which the schema says is a tensor. Throws InternalError if it is not. */
export function tensorAt(args: readonly Arg[], index: number): Tensor {
  const arg = args[index]
  if (arg instanceof Tensor) return arg
  throw new InternalError(`argument ${index} must be a tensor`)
}

/** Whether a list holds a tensor, as opposed to sizes. */
export const anyTensor = (list: readonly Arg[]): boolean => list.some((item) => item instanceof Tensor)

/** Whether there is a complex tensor, or the name of a complex dtype, among the arguments or in their lists. */
export function anyComplex(args: readonly Arg[]): boolean {
  for (let i = 0; i < args.length; i++) {
    const arg = args[i]
    if (arg instanceof Tensor) {
      if (isComplexDType(arg.dtype)) return true
    } else if (isArgList(arg) ? anyComplex(arg) : isComplexDType(arg)) return true
  }
  return false
}

/** Whether any tensor among the arguments, or in their lists, requires grad. */
export function anyRequiresGrad(args: readonly Arg[]): boolean {
  for (let i = 0; i < args.length; i++) {
    const arg = args[i]
    if (arg instanceof Tensor) {
      if (arg.requiresGrad) return true
    } else if (isArgList(arg) && anyRequiresGrad(arg)) return true
  }
  return false
}

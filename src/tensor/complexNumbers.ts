// Complex numbers as tensors hold them: two floating-point numbers each, the real part and the imaginary one after it.
import { isComplexDType, isDType, realDType } from '../kernels/index.ts'
import type { DType } from '../kernels/index.ts'
import { isObject } from '../protocol/index.ts'
import { Tensor } from './tensor.ts'

/** A complex number in JavaScript: what `toArray` and `item` return for complex tensors, and `torch.tensor` takes. */
export interface ComplexNumber {
  readonly re: number
  readonly im: number
}

/** Whether a value is `{ re, im }` of two numbers. */
export const isComplexNumber = (value: unknown): value is ComplexNumber =>
  isObject(value) && typeof Reflect.get(value, 're') === 'number' && typeof Reflect.get(value, 'im') === 'number'

/**
 * Whether the program has had complex tensors. Until then the dispatcher does not look for them, so that programs on real numbers lose no time.
 */
export const complexUse: { begun: boolean } = { begun: false }

/** The dtype, noted if it is complex: called wherever a tensor of it may come from other than complex tensors. */
export function noted<D extends DType>(dtype: D): D {
  if (isComplexDType(dtype)) complexUse.begun = true
  return dtype
}

/** Whether `value` names a dtype; a complex one is noted. */
export const namesDType = (value: unknown): value is DType => isDType(value) && noted(value) === value

/** The numbers of a complex tensor as a real tensor on the same memory, with a last dimension of two. */
export function pairsOf(tensor: Tensor): Tensor {
  const { sizes, steps, offset, dtype } = tensor
  return new Tensor([...sizes, 2], realDType(dtype), tensor.realize(), [...steps.map((step) => 2 * step), 1], 2 * offset)
}

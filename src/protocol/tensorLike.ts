// Marks by which rooms that know no tensors (module/, fx/) recognise them and the parameters among them.

/** Present (true) on every tensor. */
export const TENSOR: unique symbol = Symbol.for('tensorfx.tensor') as never

/** Present (true) on the prototype of layers that a Tracer does not look into; the layers of nn/ carry it. */
export const LEAF_MODULE: unique symbol = Symbol.for('tensorfx.leafModule') as never

/** On the accessor by which a tracer replaces a tensor of a module: the tensor. */
export const STANDS_FOR: unique symbol = Symbol.for('tensorfx.standsFor') as never

/** What module/ and fx/ use of a tensor. */
export interface TensorLike {
  readonly [TENSOR]: true
  readonly isParameter: boolean
  readonly shape: readonly number[]
  readonly dtype: string
  requiresGrad: boolean
  grad: unknown
}

/** Whether `value` is a tensor. */
export function isTensorLike(value: unknown): value is TensorLike {
  return typeof value === 'object' && value !== null && (value as Partial<TensorLike>)[TENSOR] === true
}

/** Whether `value` is a tensor that a module owns and an optimizer trains; PyTorch's nn.Parameter. */
export function isParameter(value: unknown): value is TensorLike {
  return isTensorLike(value) && value.isParameter
}

// Marks by which rooms that do not import tensors (module/, fx/) recognise them, and the parameters among them.

/** true on every tensor. */
export const TENSOR: unique symbol = Symbol.for('tensorfx.tensor')

/** true on layers that a Tracer does not look into: those of nn/. */
export const LEAF_MODULE: unique symbol = Symbol.for('tensorfx.leafModule')

/** The tensor, on the accessor by which a tracer replaces a module's tensor. */
export const STANDS_FOR: unique symbol = Symbol.for('tensorfx.standsFor')

/** The part of a tensor that module/ and fx/ use. */
export interface TensorLike {
  readonly [TENSOR]: true
  readonly isParameter: boolean
  readonly shape: readonly number[]
  readonly dtype: string
  requiresGrad: boolean
  grad: unknown
}

/** The classes of tensors and parameters, by name. The rooms that define them add them here, so that modules have the types of what they hold. */
// oxlint-disable-next-line typescript/no-empty-object-type, typescript/no-empty-interface -- other files add to it
export interface TensorClasses {}

/** A buffer of a module: a Tensor, in programs that have them. */
export type ModuleTensor = TensorClasses extends { readonly tensor: infer T } ? T : TensorLike

/** A parameter of a module: a Parameter, in programs that have them. */
export type ModuleParameter = TensorClasses extends { readonly parameter: infer P } ? P : TensorLike

const hasMark = (value: { readonly [TENSOR]?: unknown }): boolean => value[TENSOR] === true

/** Whether `value` is a tensor. */
export function isTensorLike(value: unknown): value is TensorLike {
  return typeof value === 'object' && value !== null && hasMark(value)
}

/** Set on a tensor that becomes a buffer of the module that it is assigned to: whether it is persistent. PyTorch's nn.Buffer. */
export const BUFFER: unique symbol = Symbol('buffer')

/** Whether `value` is a parameter: a tensor that a module owns and an optimizer trains. PyTorch's nn.Parameter. */
export function isParameter(value: unknown): value is ModuleParameter {
  return isTensorLike(value) && value.isParameter
}

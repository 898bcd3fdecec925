// Values that must be tensors, checked where other rooms hand them over as unknown.
import { InternalError } from '../errors/index.ts'
import { checkArgument } from '../protocol/index.ts'
import { Tensor } from './tensor.ts'

/** The value, if it is a tensor. Throws InternalError, which says `what` it is, for anything else. */
export function asTensor(value: unknown, what: string): Tensor {
  if (value instanceof Tensor) return value
  throw new InternalError(`${what} must be a tensor, got ${value === null ? 'null' : typeof value}`)
}

/** Throws ArgumentError unless an argument of a public function is a Tensor. `where` is the function, `name` its argument. */
export const checkTensor = (where: string, name: string, value: unknown): void =>
  checkArgument(value instanceof Tensor, where, name, 'a Tensor', value)

/** The values, if all of them are tensors. Throws InternalError like {@link asTensor}. */
export function asTensors(values: unknown, what: string): readonly Tensor[] {
  if (!Array.isArray(values)) throw new InternalError(`${what} must be an array of tensors, got ${typeof values}`)
  return values.map((value) => asTensor(value, what))
}

/** Whether all values are tensors. A plain loop: it runs at every call of a compiled function. */
export function areTensors(values: readonly unknown[]): values is readonly Tensor[] {
  for (const value of values) if (!(value instanceof Tensor)) return false
  return true
}

// What an argument error adds for values that users of PyTorch and JavaScript often pass: how to write it here.
import { isFunction, isPlainObject, uncalledHint } from '../../protocol/index.ts'
import type { SchemaType } from '../../protocol/index.ts'
import { sizeEq, Tensor } from '../../tensor/index.ts'

/** What to do about options that are not last. */
export const optionsHint = (name: string): string => ` Options are the last argument: ${name}(…, { … }).`

/** The end of the message about `value`, which the function `name` got for an argument of this type. */
export function argumentHint(name: string, type: SchemaType, value: unknown): string {
  if (isPlainObject(value)) return optionsHint(name)
  if (isFunction(value)) return uncalledHint(value)
  const isData = Array.isArray(value) || ArrayBuffer.isView(value)
  if (type.base === 'Tensor' && type.list) return value instanceof Tensor ? ` Put the tensors into an array: ${name}([x, y]).` : ''
  if (typeof value === 'bigint' && Number.isSafeInteger(Number(value))) return ` Write it as a number: ${value}.`
  if (type.base === 'Tensor' && typeof value === 'bigint') return ` Make a tensor of it: torch.tensor(${value}n).`
  if (type.base === 'Tensor' && isData) return ' Make a tensor of it: torch.tensor(data).'
  if (type.base === 'Tensor' && typeof value === 'number') return ' Make a tensor of it: torch.tensor(number).'
  if ((type.base === 'int' || type.base === 'Scalar' || type.base === 'float') && value instanceof Tensor && sizeEq(value.symNumel, 1))
    return ' Read its number: x.item().'
  return ''
}

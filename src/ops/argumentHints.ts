// What an argument error adds for values that users of PyTorch and JavaScript often pass: how to write it here.
import { dtypeInfo, isDType } from '../kernels/index.ts'
import type { SchemaType } from '../protocol/index.ts'
import { nearest } from '../protocol/index.ts'
import { Tensor } from '../tensor/index.ts'

/** PyTorch's other names of dtypes, best first. */
const ALIASES: Readonly<Record<string, readonly string[]>> = {
  float: ['float32'],
  double: ['float64'],
  half: ['float16', 'float32'],
  bfloat16: ['float32'],
  float16: ['float32'],
  number: ['float32'],
  int: ['int32'],
  integer: ['int32'],
  long: ['int64', 'int32'],
  int64: ['int32'],
  short: ['int16', 'int32'],
  boolean: ['bool'],
}

/** All dtypes, for messages: `'bool', 'int32', …`. */
export const dtypeNames = (): string =>
  Object.keys(dtypeInfo)
    .map((name) => `'${name}'`)
    .join(', ')

/** ` Did you mean 'float32'?` for a value that was given as a dtype; '' if it resembles none. */
export function dtypeHint(value: unknown): string {
  if (typeof value !== 'string') return ''
  const name = value.replace(/^torch\./, '')
  const meant = isDType(name) ? name : (ALIASES[name]?.find(isDType) ?? nearest(name, Object.keys(dtypeInfo)))
  return meant === null || meant === undefined ? '' : ` Did you mean '${meant}'?`
}

/** The end of the message about `value`, which the function `name` got for an argument of this type. */
export function argumentHint(name: string, type: SchemaType, value: unknown): string {
  const isData = Array.isArray(value) || ArrayBuffer.isView(value)
  if (type.base === 'ScalarType') return dtypeHint(value)
  if (type.base === 'Tensor' && type.list) return value instanceof Tensor ? ` Put the tensors into an array: ${name}([x, y]).` : ''
  if (type.base === 'Tensor' && isData) return ' Make a tensor of it: torch.tensor(data).'
  if (type.base === 'Tensor' && typeof value === 'number') return ' Make a tensor of it: torch.tensor(number).'
  if ((type.base === 'int' || type.base === 'Scalar' || type.base === 'float') && value instanceof Tensor && value.numel === 1)
    return ' Read its number: x.item().'
  return ''
}

// Names of dtypes: those that PyTorch has besides the canonical ones, and the error for an unknown name.
import { dtypeInfo } from '../kernels/index.ts'
import type { DType } from '../kernels/index.ts'
import { nearest, uncalledHint, valueText } from '../protocol/index.ts'

/** PyTorch's other names of dtypes. */
export const dtypeAliases = {
  half: 'float16',
  float: 'float32',
  double: 'float64',
  short: 'int16',
  int: 'int32',
  long: 'int64',
  cfloat: 'complex64',
  cdouble: 'complex128',
} as const satisfies Readonly<Record<string, DType>>

/** All dtypes, in the order in which messages list them. */
export const dtypes: readonly DType[] = Object.keys(dtypeInfo).filter((name): name is DType => name in dtypeInfo)

/** Names that other libraries have for a dtype, and those above. */
const OTHER_NAMES: Readonly<Record<string, DType>> = {
  ...dtypeAliases,
  bfloat: 'bfloat16',
  boolean: 'bool',
  byte: 'uint8',
  char: 'int8',
  integer: 'int32',
  bigint: 'int64',
  number: 'float32',
}

/** The dtype that a misspelt name probably means, or null. */
function probable(name: string): DType | null {
  const plain = name.toLowerCase().replace(/^torch\./, '')
  const other = Object.hasOwn(OTHER_NAMES, plain) ? OTHER_NAMES[plain] : undefined
  return other ?? dtypes.find((dtype) => dtype === nearest(plain, dtypes)) ?? null
}

/** What is wrong with a value that should be a dtype but is not: `expected a dtype, got 'flaot32'; did you mean 'float32'?` */
export function notADType(value: unknown): string {
  const all = `A dtype is one of ${dtypes.join(', ')}.`
  if (value === undefined) return `expected a dtype, got undefined; perhaps the name of a member of torch is misspelt. ${all}`
  if (typeof value !== 'string') return `expected a dtype, got ${valueText(value)}.${uncalledHint(value)} ${all}`
  const meant = probable(value)
  return `expected a dtype, got '${value}'${meant === null ? `. ${all}` : `; did you mean '${meant}'?`}`
}

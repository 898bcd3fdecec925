// The dtypes that operators take: by the rules of their declarations, and where these say nothing, what a test found by calling the operators.
import type { OpDef } from '../dispatch/index.ts'
import { MEASURED } from './measuredDtypes.ts'

/** What the words for dtypes mean, beside 'all'. */
export const DTYPE_WORDS: Readonly<Record<string, string>> = {
  numeric: 'all but bool',
  floating: 'float16, bfloat16, float32 and float64',
  integral: 'integers and bool',
  integer: 'integers',
  chosen: 'the operator takes no tensors, and its caller chooses the dtype of the result',
}

const measured: ReadonlyMap<string, string> = new Map(
  Object.entries(MEASURED).flatMap(([word, names]) => names.split(' ').map((name): [string, string] => [name, word])),
)

const takesTensors = (op: OpDef): boolean => op.schema.args.some(({ type }) => type.base === 'Tensor' || type.base === 'any')

/** The dtypes by the declaration alone. */
export function declaredDtypes(op: OpDef): string {
  const like = op.functional ?? op.aliasOf
  if (like !== null) return dtypesOf(like)
  if (!takesTensors(op)) return 'chosen'
  return op.pointwise?.dtypes ?? op.reduction?.dtypes ?? 'all'
}

/** 'all', 'int32' or a word of {@link DTYPE_WORDS}. */
export const dtypesOf = (op: OpDef): string => measured.get(op.qualname) ?? declaredDtypes(op)

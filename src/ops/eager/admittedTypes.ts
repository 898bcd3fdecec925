// For which dtypes an operator is defined.
import type { DTypeSet } from '../../dispatch/index.ts'
import { DTypeError } from '../../errors/index.ts'
import { dtypeInfo } from '../../kernels/index.ts'
import type { DType } from '../../kernels/index.ts'

const SETS: Readonly<Record<DTypeSet, { readonly admits: (dtype: DType) => boolean; readonly words: string }>> = {
  numeric: { admits: (dtype) => dtype !== 'bool', words: 'numbers, not bools' },
  integral: { admits: (dtype) => !dtypeInfo[dtype].floating, words: 'integers or bools' },
  integer: { admits: (dtype) => dtypeInfo[dtype].kind === 'integer', words: 'integers' },
  floating: { admits: (dtype) => dtypeInfo[dtype].floating, words: 'floating-point numbers' },
  int32: { admits: (dtype) => dtype === 'int32', words: 'int32 only' },
}

/** What to write in order to get a dtype of each set. */
const FIXES: Readonly<Record<DTypeSet, string>> = {
  numeric: 'x.int()',
  integral: 'x.long()',
  integer: 'x.long()',
  floating: 'x.float()',
  int32: 'x.int()',
}

/** Whether a set of dtypes has `dtype`. No set means all dtypes. */
export const admits = (set: DTypeSet | undefined, dtype: DType): boolean => set === undefined || SETS[set].admits(dtype)

/** Throws DTypeError, which names the operator, unless it is defined for `dtype`. */
export function checkAdmits(qualname: string, set: DTypeSet | undefined, dtype: DType): void {
  if (set === undefined || SETS[set].admits(dtype)) return
  const fix = FIXES[set]
  throw new DTypeError(`${qualname}: not implemented for ${dtype}; it takes ${SETS[set].words}. Convert first, e.g. ${fix}.`)
}

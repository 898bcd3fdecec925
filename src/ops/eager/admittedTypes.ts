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
}

/** Whether a set of dtypes has `dtype`. No set means all dtypes. */
export const admits = (set: DTypeSet | undefined, dtype: DType): boolean => set === undefined || SETS[set].admits(dtype)

/** Throws DTypeError, which names the operator, unless it is defined for `dtype`. */
export function checkAdmits(qualname: string, set: DTypeSet | undefined, dtype: DType): void {
  if (set === undefined || SETS[set].admits(dtype)) return
  const fix = set === 'integral' || set === 'integer' ? 'x.long()' : dtype === 'bool' && set === 'numeric' ? 'x.int()' : 'x.float()'
  throw new DTypeError(`${qualname}: not implemented for ${dtype}; it takes ${SETS[set].words}. Convert first, e.g. ${fix}.`)
}

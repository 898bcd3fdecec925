// The operators of tensorfx itself. The table also has those that other tests of the same process register.
import { allOps } from 'tensorfx/ops'
import type { OpDef } from 'tensorfx/dispatch'

export const builtInOps = (): readonly OpDef[] => allOps().filter(({ qualname }) => /^torch\.(?!ops\.(?!tensorfx\.))/.test(qualname))

const OF_COMPLEX =
  /^torch\.(?:fft\.\w+|linalg\.eig(?:vals)?|i?stft|(?:ops\.tensorfx\.)?(?:view_as_real|view_as_complex|complex\w*|polar|real|imag|conj\w*|resolve_conj|resolve_neg|angle|fft_lines)|Tensor\.(?:cfloat|cdouble))$/

/** Whether an operator has value cases: those on complex numbers have no plain values, and are judged by complex.test.ts and test/pytorch/complexCalls.test.ts. */
export const hasPlainValues = ({ qualname }: OpDef): boolean => !OF_COMPLEX.test(qualname)

// The call of an operator on complex numbers: by its rule, or refused.
import { anyComplex, decomposed, dispatch, dispatchState, isArgList, tensorAt } from '../../dispatch/index.ts'
import type { Arg, OpDef, Result } from '../../dispatch/index.ts'
import { DTypeError } from '../../errors/index.ts'
import { complexDType, realDType } from '../../kernels/index.ts'
import type { ComplexDType } from '../../kernels/index.ts'
import { Tensor } from '../../tensor/index.ts'
import type { ComplexNumber } from '../../tensor/index.ts'
import { scalarTensor } from '../create/creation.ts'
import { checkFits } from '../eager/inPlace.ts'
import { complexCopy_ } from '../generated/inPlace.ts'
import { opByName } from '../define/table.ts'
import { arithmeticRules } from './arithmetic.ts'
import { exponentialRules } from './exponentials.ts'
import { linalgRules } from './linalg.ts'
import { fromParts, isComplex, toComplex } from './parts.ts'
import type { ComplexRules } from './rule.ts'
import { structureRules } from './structure.ts'

/** The rules of all operators that take complex numbers. */
export const complexRules: ComplexRules = { ...arithmeticRules, ...structureRules, ...exponentialRules, ...linalgRules }

/** The name of the complex dtype of an argument. */
function dtypeAmong(args: readonly Arg[]): string {
  for (const arg of args) {
    if (isComplex(arg)) return arg.dtype
    if (typeof arg === 'string' && anyComplex([arg])) return arg
    if (isArgList(arg) && anyComplex(arg)) return dtypeAmong(arg)
  }
  return 'complex numbers'
}

const refused = (op: OpDef, args: readonly Arg[]): DTypeError =>
  new DTypeError(
    `${op.qualname}: not implemented for ${dtypeAmong(args)}; it takes real numbers. Compute with torch.real(x), torch.imag(x), torch.abs(x) or torch.viewAsReal(x).`,
  )

/** The operator that an in-place one writes the result of; undefined if there is none. */
const functionalOf = (op: OpDef): OpDef | undefined =>
  op.functional ??
  (op.tags.has('mutates') && op.name.endsWith('_')
    ? (opByName(op.qualname.slice(0, -1)) ?? opByName(`torch.${op.name.slice(0, -1)}`) ?? opByName(`torch.Tensor.${op.name.slice(0, -1)}`))
    : undefined)

function writeInPlace(op: OpDef, functional: OpDef, args: readonly Arg[]): Result {
  const self = tensorAt(args, 0)
  const result = dispatch(functional, args)
  if (!(result instanceof Tensor)) throw refused(op, args)
  checkFits(op.qualname, { shape: result.symSizes, dtype: result.dtype }, self)
  return complexCopy_(self, toComplex(result, complexDType(self.dtype)))
}

function call(op: OpDef, given: readonly Arg[]): Result {
  const own = Object.hasOwn(complexRules, op.qualname) ? complexRules[op.qualname] : undefined
  const rule = own ?? (op.aliasOf === null ? undefined : 'decomposed')
  if (rule === 'as is') return dispatch(op, given, true)
  const args = op.prepare === null ? given : op.prepare(given)
  if (rule === 'decomposed') {
    if (op.decompose === null) throw refused(op, args)
    return decomposed(op.qualname, op.decompose, args)
  }
  if (rule !== undefined) return decomposed(op.qualname, (...values) => rule(values, op), args)
  const functional = functionalOf(op)
  if (functional !== undefined) return writeInPlace(op, functional, args)
  throw refused(op, args)
}

/** Calls an operator with complex numbers, or a complex dtype, among its arguments. Autocast leaves them as they are, as in PyTorch. */
export function complexCall(op: OpDef, args: readonly Arg[]): Result {
  const outer = dispatchState.autocast
  dispatchState.autocast = null
  try {
    return call(op, args)
  } finally {
    dispatchState.autocast = outer
  }
}

/** A complex number as a tensor without dimensions; made by operators, so that captures see it. */
function complexNumber({ re, im }: ComplexNumber, dtype: ComplexDType): Tensor {
  const part = (value: number): Tensor => scalarTensor(value, { dtype: realDType(dtype) })
  return fromParts(part(re), part(im))
}

/** Lets the dispatcher call operators on complex numbers, and take `{ re, im }` for a number. */
export function installComplex(): void {
  dispatchState.complex = complexCall
  dispatchState.complexNumber = complexNumber
}

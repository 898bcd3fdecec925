// Type promotion: the dtype that operands have in common.
import { checkCount } from '../../protocol/index.ts'
import type { SymbolicKind } from '../../protocol/index.ts'
import { ArgumentError } from '../../errors/index.ts'
import { complexDType, dtypeInfo, isComplexDType, isDType, kindRank, promoteTypes } from '../../kernels/index.ts'
import type { DType } from '../../kernels/index.ts'
import { getDefaultDtype, notADType, Tensor } from '../../tensor/index.ts'

const rank = (dtype: DType): number => kindRank[dtypeInfo[dtype].kind]

function checkDType(where: string, name: string, dtype: DType): void {
  if (!isDType(dtype)) throw new ArgumentError(`${where}: argument '${name}': ${notADType(dtype)}`)
}

/** The dtype of operands of which the first come before the second: the second ones count only if theirs is a later kind (bool, integer, floating). */
function combined(first: DType | null, second: DType | null): DType | null {
  if (first === null || second === null) return first ?? second
  if (rank(second) <= rank(first)) return first
  // Complex numbers have the precision of the floating-point ones that they meet.
  return isComplexDType(second) && dtypeInfo[first].floating ? complexDType(first) : second
}

/**
 * Whether an operator may store results of the dtype `from` in a tensor of the dtype `to`: not floats as integers, nor numbers as bools. PyTorch's
 * `torch.can_cast`.
 *
 * @example torch.canCast('float64', 'int64') // false
 */
export function canCast(from: DType, to: DType): boolean {
  checkCount('torch.canCast', arguments, 2)
  checkDType('torch.canCast', 'from', from)
  checkDType('torch.canCast', 'to', to)
  return rank(from) <= rank(to)
}

const joined = (known: DType | null, next: DType): DType => (known === null ? next : promoteTypes(known, next))

/**
 * Collects operands, and says what dtype they have in common: that of the tensors with dimensions, unless a tensor without dimensions, or else a number, is of
 * a later kind. A whole number is an int64, a fraction has the default dtype. PyTorch's `torch.result_type`.
 */
export class CommonType {
  #dims: DType | null = null
  #zero: DType | null = null
  #number: DType | null = null

  addTensor(tensor: Tensor): void {
    const { dtype, ndim } = tensor
    if (ndim > 0) this.#dims = joined(this.#dims, dtype)
    else this.#zero = joined(this.#zero, dtype)
  }

  addNumber(value: number | boolean): void {
    this.#number = joined(this.#number, typeof value === 'boolean' ? 'bool' : Number.isInteger(value) ? 'int64' : getDefaultDtype())
  }

  /** A number that a symbolic trace knows by its kind only. */
  addSymbolic(kind: SymbolicKind): void {
    this.#number = joined(this.#number, kind === 'bool' ? 'bool' : kind === 'int' ? 'int64' : getDefaultDtype())
  }

  get dtype(): DType {
    return combined(this.#dims, combined(this.#zero, this.#number)) ?? getDefaultDtype()
  }
}

/** A floating-point or complex dtype for values of `dtype`: integers and bools have the default one. */
export const asFloating = (dtype: DType): DType => (dtypeInfo[dtype].differentiable ? dtype : getDefaultDtype())

/**
 * The dtype that arithmetic on `dtype` is computed in. Bools are int32, and the result is cast to bool at the end: true + true is 2, then true. float16 and
 * bfloat16 are float32, so that an operator rounds once.
 */
export const computedIn = (dtype: DType): DType => (dtype === 'bool' ? 'int32' : accumulatedIn(dtype))

/** The dtype in which values of `dtype` are combined: float32 for float16 and bfloat16, so that the result rounds once. */
export const accumulatedIn = (dtype: DType): DType => (dtypeInfo[dtype].floating ? dtypeInfo[dtype].compute : dtype)

/**
 * The dtype that an arithmetic operator on two tensors or numbers returns. PyTorch's `torch.result_type`.
 *
 * @throws ArgumentError for anything but tensors, numbers and booleans.
 * @example torch.resultType(torch.tensor([1], { dtype: 'int32' }), 2.5) // 'float32'
 */
export function resultType(a: Tensor | number | boolean, b: Tensor | number | boolean): DType {
  checkCount('torch.resultType', arguments, 2)
  const operands = new CommonType()
  for (const operand of [a, b]) {
    if (operand instanceof Tensor) operands.addTensor(operand)
    else if (typeof operand === 'number' || typeof operand === 'boolean') operands.addNumber(operand)
    else throw new ArgumentError(`torch.result_type: expected tensors or numbers, got ${operand === null ? 'null' : typeof operand}.`)
  }
  return operands.dtype
}

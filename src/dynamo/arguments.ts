// Comparing the arguments of a call with those of a recorded one.
import type { Arg, OpDef } from '../dispatch/index.ts'
import { changeOf, metTensorState, metValues, operatorState } from '../guards/index.ts'
import { dtypeInfo } from '../kernels/index.ts'
import { Tensor } from '../tensor/index.ts'
import type { ArgStep, NumberKind, Step } from './traceTree.ts'

const isInt32 = (value: number): boolean => (value | 0) === value && !Object.is(value, -0)

/** Whether a number is of the kind that a graph was compiled for. */
export const isOfKind = (value: unknown, kind: NumberKind): boolean => typeof value === 'number' && (kind === 'any' || isInt32(value))

/** The kind of a number that may differ from call to call in one compiled graph; null if the number is a constant of the graph. */
export function numberKind(op: OpDef, args: readonly Arg[], position: number): NumberKind | null {
  const arg = op.schema.args[position]
  const value = args[position]
  if (arg === undefined || typeof value !== 'number' || op.tags.has('custom') || op.pointwise?.baked?.includes(arg.name) === true) return null
  if (op.dynamicScalars.includes(arg.name)) return 'any'
  const { base } = arg.type
  if (base !== 'Scalar' && base !== 'float' && !(base === 'Tensor' && op.tags.has('pointwise'))) return null
  // Beside integers, whether a number is whole decides the dtype of the result, and kernels get it in the tensors' own dtype.
  const dtypes = args.flatMap((a) => (a instanceof Tensor ? [a.dtype] : []))
  if (dtypes.some((dtype) => dtypeInfo[dtype].floating)) return 'any'
  return isInt32(value) && dtypes.every((dtype) => dtype === 'int32') ? 'int32' : null
}

/** Equality of constants: Object.is, and arrays element by element. */
export function sameConstant(a: Arg | undefined, b: Arg | undefined): boolean {
  if (Object.is(a, b)) return true
  return Array.isArray(a) && Array.isArray(b) && a.length === b.length && a.every((v, i) => sameConstant(v, b[i]))
}

/** Whether the argument differs from the recorded one in a number at most. */
export function sameButForNumbers(r: ArgStep, arg: Arg | undefined): boolean {
  if (r.kind === 'slot' || r.kind === 'input') return arg instanceof Tensor
  if (r.kind === 'list') return Array.isArray(arg) && arg.length === r.items.length
  return typeof arg === 'number' ? r.kind === 'scalar' || typeof r.value === 'number' : r.kind === 'const' && sameConstant(r.value, arg)
}

/** What a call was expected to be, and what it is. */
export interface Mismatch {
  readonly expected: string
  readonly actual: string
  /** Both in a sentence. */
  readonly text: string
}

const mismatch = (expected: string, actual: string, text: string): Mismatch => ({ expected, actual, text })

/** Why a new path is recorded: how a call differs from the recorded step. */
export function describeDifference(other: Step, op: OpDef, args: readonly Arg[]): Mismatch {
  const recorded = other.op?.qualname ?? 'nothing'
  if (other.op !== op) return mismatch(recorded, op.qualname, `expected ${recorded}, got ${op.qualname}`)
  const change = changeOf(operatorState, null, other.state)
  if (change !== null) return mismatch(change.expected, change.actual, `${op.qualname} ${change.text}`)
  const name = (i: number): string => `argument '${op.schema.args[i]?.name ?? i}' of ${op.qualname}`
  for (const [i, r] of other.args.entries()) {
    const arg = args[i]
    if (r.kind !== 'const' || sameConstant(r.value, arg)) continue
    const [was, is] = [String(JSON.stringify(r.value)), arg instanceof Tensor ? 'a tensor' : String(JSON.stringify(arg))]
    return mismatch(was, is, `${name(i)} was ${was}, is now ${is}`)
  }
  for (const [i, r] of other.args.entries()) {
    const arg = args[i]
    if (r.kind !== 'input' || !(arg instanceof Tensor)) continue
    const found = changeOf(metTensorState, arg, metValues(r.spec.state))
    if (found !== null) return mismatch(found.expected, found.actual, `${name(i)} ${found.text}`)
  }
  return mismatch('the recorded operands', 'other ones', `other operands of ${op.qualname}`)
}

// The table of scalar operations that this program has. The verifier, the printer, the reference interpreter, the emitter and the schedulers read it. It begins with those of
// commonOps.ts; the composition root adds rareOps.ts where operators need them, so that pages on tensorfx/core do without.
import { InternalError } from '../../errors/index.ts'
import { commonOps } from './commonOps.ts'
import { DTYPES, dtypeInfo, isNarrow } from '../numbers/dtype.ts'
import type { DType, ElementValue } from '../numbers/dtype.ts'
import { rounded } from '../numbers/numbers.ts'
import type { ScalarOp } from './scalarOpNames.ts'
import { FUNCTION } from './scalarOpRecord.ts'
import type { ScalarOpRecord } from './scalarOpRecord.ts'
import type { HostFunction } from '../wasm/moduleFunctions.ts'

export type { ScalarOp } from './scalarOpNames.ts'

const table = new Map<string, ScalarOpRecord>()
const hosts: Record<string, HostFunction['run']> = {}

/** The JavaScript functions that modules may import as `math.*`, by name. */
export const hostFunctions: Readonly<Record<string, HostFunction['run']>> = hosts

/** Adds operations to the table. */
export function addScalarOps(ops: Readonly<Partial<Record<ScalarOp, ScalarOpRecord>>>): void {
  for (const [op, record] of Object.entries(ops)) {
    table.set(op, record)
    for (const code of Object.values(record.wasm)) if (typeof code !== 'string' && code.host !== null) hosts[code.host.name] = code.host.run
  }
}

addScalarOps(commonOps)

/** The facts about an operation. Throws InternalError if this program does not have it. */
export function scalarOp(op: ScalarOp): ScalarOpRecord {
  const record = table.get(op)
  if (record === undefined)
    throw new InternalError(`this program does not have the scalar operation ${op}; write import 'tensorfx/kernels', which adds it`)
  return record
}

/** Whether an operation is defined for operands of a dtype. */
export function isDefinedFor(op: ScalarOp, dtype: DType): boolean {
  const { dtypes, narrow } = scalarOp(op)
  return dtypes.includes(dtypeInfo[dtype].compute) && (narrow !== 'none' || !isNarrow(dtype))
}

/** The dtypes that an operation is defined for. */
export const dtypesOf = (op: ScalarOp): readonly DType[] => DTYPES.filter((dtype) => isDefinedFor(op, dtype))

/**
 * The result of an operation on values of a dtype, as emitted code must compute it. Bools are 0 and 1, and values of int64 are bigints. Throws InternalError if
 * the operation is not defined for int64.
 */
export function scalarOperation(op: ScalarOp, dtype: Exclude<DType, 'int64'>, operands: readonly number[]): number
export function scalarOperation(op: ScalarOp, dtype: DType, operands: readonly ElementValue[]): ElementValue
export function scalarOperation(op: ScalarOp, dtype: DType, operands: readonly ElementValue[]): ElementValue {
  const { reference, bigint, yieldsBool } = scalarOp(op)
  const { compute } = dtypeInfo[dtype]
  if (compute === 'int64') {
    if (bigint === null) throw new InternalError(`the operation ${op} is not defined for int64`)
    const [a = 0n, b = 0n, c = 0n] = operands.map(BigInt)
    const value = bigint(a, b, c)
    return typeof value === 'boolean' ? Number(value) : BigInt.asIntN(64, value)
  }
  const [a = NaN, b = NaN, c = NaN] = operands.map(Number)
  const value = reference(compute, a, b, c)
  return yieldsBool ? value : rounded(dtype, value)
}

/** Whether an operation is more expensive to compute than to store and load again. */
export const isExpensive = (op: ScalarOp): boolean => scalarOp(op).cost >= FUNCTION

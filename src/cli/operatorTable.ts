// The operator table as the `tensorfx ops` command and docs/operators.md show it: a row for each operator, read from its declaration.
import type { OpDef } from '../dispatch/index.ts'
import { allOps } from '../ops/index.ts'
import { loweringWayOf } from '../inductor/loweringWay.ts'
import type { LoweringWay } from '../inductor/loweringWay.ts'
import { camelCase } from '../protocol/index.ts'
import { dtypesOf } from './operatorDtypes.ts'

/** What is known about an operator. */
export interface OperatorRow {
  /** As it is called here: torch.logSoftmax. */
  readonly name: string
  /** PyTorch's name, which graphs show: torch.log_softmax. */
  readonly torchName: string
  /** How the eager operator is computed. */
  readonly how: string
  /** Whether it has a gradient. */
  readonly gradient: string
  /** What `compile` makes of it. */
  readonly compiled: string
  /** The dtypes of its tensors. */
  readonly dtypes: string
  readonly schema: string
}

/** What computes an operator. */
function implementationOf(op: OpDef): string {
  if (op.aliasOf !== null) return `as ${op.aliasOf.qualname}`
  if (op.functional !== null) return 'in place'
  if (op.pointwise !== null) return 'pointwise'
  if (op.reduction !== null) return 'reduction'
  if (op.tags.has('view')) return 'view'
  return op.kernel !== null ? 'kernel' : 'composite'
}

/** Whether an operator has a gradient. */
function gradientOf(op: OpDef): string {
  if (op.aliasOf !== null) return gradientOf(op.aliasOf)
  if (op.derivative !== null || (op.functional !== null && op.functional.derivative !== null)) return 'yes'
  return implementationOf(op) === 'composite' ? 'through its parts' : 'no'
}

const COMPILED: Readonly<Record<LoweringWay['kind'], string>> = {
  pointwise: 'fused',
  reduction: 'fused',
  fill: 'fused',
  view: 'view',
  parts: 'its parts',
  extern: 'eager kernel',
}

/** What the lowering does with an operator. */
function compiledOf(op: OpDef): string {
  const like = op.functional ?? op.aliasOf
  if (like !== null) return compiledOf(like)
  return op.tags.has('template') ? 'template' : COMPILED[loweringWayOf(op).kind]
}

const rowOf = (op: OpDef, dtypes: string): OperatorRow => ({
  name: camelCase(op.qualname),
  torchName: op.qualname,
  how: implementationOf(op),
  gradient: gradientOf(op),
  compiled: compiledOf(op),
  dtypes,
  schema: op.schema.text,
})

/** The rows, in the order of the table. `dtypes` says what an operator takes. */
export const operatorRows = (dtypes: (op: OpDef) => string = dtypesOf): readonly OperatorRow[] => allOps().map((op) => rowOf(op, dtypes(op)))

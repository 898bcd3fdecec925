// tensorfx/ops: the operator table, and what adds operators to it.
import { installTensors } from '../install/tensors.ts'
export { defineCustomOp as defineOp } from '../ops/define/defineOp.ts'
export { allOps, opByName, opOf, registerOp } from '../ops/define/table.ts'
export type { OpDeclaration, OpFunction } from '../ops/define/declaration.ts'
export type {
  Arg,
  AutocastClass,
  BatchRule,
  Derivative,
  DerivativeContext,
  NoRule,
  OnnxRule,
  OpDef,
  OpTag,
  PointwiseRule,
  PromotionRule,
  ReductionRule,
  Result,
} from '../dispatch/index.ts'
export type { FunctionSchema, SchemaArgument, SchemaDefault, SchemaType } from '../protocol/index.ts'
export type { TensorSpec } from '../tensor/index.ts'

installTensors()

// Shapes as constraints, decided by a solver. PyTorch's torch.fx.experimental.migrate_gradual_types.
export * from './operation.ts'
export {
  BVar,
  BinConstraintD,
  BinConstraintT,
  Conj,
  Constraint,
  DVar,
  Disj,
  F,
  Prod,
  T,
  TVar,
  isAlgebraicExpression,
  isBoolExpr,
  isDim,
} from './constraint.ts'
export type { Size, SizeTerm, TensorTerm } from './constraint.ts'
export * from './operatorConstraints.ts'
export { Fresh, genBvar, genDvar, genNatConstraints, genTensorDims, genTvar } from './util.ts'
export { ConstraintGenerator, registerInferenceRule } from './constraintGenerator.ts'
export { MAX_TENSOR_RANK, addLayerNormConstraints, addLinearConstraints, rangeCheck } from './ruleParts.ts'
export type { ConstraintRule, RuleInput, SymbolTable } from './ruleParts.ts'
export {
  genAllReshapePossibilities,
  generateAllIntDynDimPossibilities,
  isDimDivByTarget,
  isTargetDivByDim,
  iterateTillFixedPoint,
  transformConstraint,
  validIndex,
  validIndexTensor,
} from './constraintTransformation.ts'
export { genListsOfDims } from './broadcasting.ts'
export { evaluateConditionalWithConstraints, transformAllConstraints, transformAllConstraintsTraceTime, transformToZ3 } from './transformToZ3.ts'
export type { ConditionalResult, DimensionDict } from './transformToZ3.ts'
export { Solver, hasZ3, solve } from './solver/solver.ts'
export type { SolverChoice, SolverOptions, SolverResult } from './solver/solver.ts'
export { Model } from './solver/model.ts'
export { toSmtLib } from './solver/smtLib.ts'
export { And, Const, D, Int, Not, Or, compare, formulaText, intText, sameInt, sameTensor, tensor, tensorText, z3Dyn } from './z3Types.ts'
export type { DimTerm, Formula, IntTerm, TensorTermZ3 } from './z3Types.ts'

// ops/: the operator table. Every operator under the name of its constant, what defines and registers operators, and the few functions on tensors that are
// not operators. The index of operators is generated (npm run generate).
export * from './generated/operators.ts'
export { allclose, equal } from './compare.ts'
export type { AllcloseOptions } from './compare.ts'
export type { OpDeclaration, OpFunction } from './declaration.ts'
export { defineOp } from './defineOp.ts'
export { pointwiseDTypes, pointwiseSpec } from './eager/pointwiseTypes.ts'
export type { Pair } from './nn/windows.ts'
export { allOps, opByName, opOf, registerOp } from './table.ts'
export { tensor } from './tensor.ts'
export type { TensorData } from './tensor.ts'
export { getitem } from './view/getitem.ts'
export type { IndexItem, SliceLike } from './view/getitem.ts'

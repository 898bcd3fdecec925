// Operators: one declaration each, with everything that the library knows about it. The index of them is generated from the declarations (npm run generate). The first three rooms
// know no operator; the others are families, which build on each other.
//
//   shared/     shapes and memory formats, as operators read them
//   eager/      kernels that declarations ask for: pointwise, reductions, order; promotion of types
//   define/     defineOp: from a declaration to a function, its types, its argument checks and the operator table
//   create/ random/ join/ order/ pointwise/ reduction/ view/ linalg/ fft/ complex/
//   nn/         torch.nn.functional: activation, attention, conv, embedding, loss, norm, pool, sample
//   names/      other names of operators, in-place forms, the namespaces that programs see
//   testing/    functions that read data and answer with booleans: not operators
export * from './generated/operators.ts'
export { assertClose } from './testing/assertClose.ts'
export type { AssertCloseOptions } from './testing/assertClose.ts'
export { allclose, equal } from './testing/compare.ts'
export type { AllcloseOptions } from './testing/compare.ts'
export { histogramdd } from './order/histograms.ts'
export type { HistogramddOptions } from './order/histograms.ts'
export type { OpDeclaration, OpFunction } from './define/declaration.ts'
export { defineCustomOp, defineOp, isOwnOp, makeOp } from './define/defineOp.ts'
export type { UntypedDeclaration } from './define/defineOp.ts'
export type { BackwardContext, BackwardOf, CallOf, GradientsOf, InputsOf } from './define/schemaCalls.ts'
export type { ArgumentsOf, KernelArgumentsOf, ResultOf, TupleHint } from './define/schemaTypes.ts'
export { accumulatedIn, canCast, computedIn, resultType } from './eager/promotion.ts'
export { admits } from './eager/admittedTypes.ts'
export { pointwiseDTypes, pointwiseSpec } from './eager/pointwiseTypes.ts'
export type { Pair } from './nn/windows.ts'
export { lateOperator } from './define/late.ts'
export { allOps, opByName, opOf, registerOp } from './define/table.ts'
export { asTensor, tensor } from './create/tensor.ts'
export type { TensorArray, TensorData } from './create/tensor.ts'
export { getitem } from './view/getitem.ts'
export type { IndexItem, SliceLike } from './view/getitem.ts'
export { coveringOrder, windowCopy, windowPlaces, windowSpec } from './view/strided.ts'

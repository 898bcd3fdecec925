// dispatch/: the dispatcher, and modes that see every operator call.
export { anyComplex, anyRequiresGrad, anyTensor, isArgList, tensorAt } from './args.ts'
export { dispatch, dispatchBelowAutograd, dispatchState, isWatched, runKernel, withChangingNumbers, withMode, withoutModes } from './dispatch.ts'
export type { AutocastHandler, AutogradHandler, ComplexHandler, DispatchMode } from './dispatch.ts'
export { decomposed } from './decomposed.ts'
export { checkDevice, devices, isDevice, isOnDevice, moved, noDevice, withDevice } from './devices.ts'
export type { DeviceOperators } from './devices.ts'
export { FakeTensorMode, dataValue, fakeLike, specsOf } from './fakeMode.ts'
export type { DataSymbols } from './fakeMode.ts'
export { disposeData, freeStorage, freeingMethods } from './freeing.ts'
export { isInt32, numberKind } from './numbers.ts'
export { observed } from './observed.ts'
export type { ObservedKernel, OperatorObserver } from './observed.ts'
export { RecordMode } from './recordMode.ts'
export type { RecordedCall } from './recordMode.ts'
export { becomeView, isDetached, isViewOfDetached, markView, viewChanges } from './views.ts'
export type { AutocastClass, BatchRule, NoRule, OnnxRule } from './facts.ts'
export type {
  Arg,
  DTypeSet,
  Derivative,
  DerivativeContext,
  Gradients,
  IndexRule,
  OpDef,
  OpTag,
  PointwiseArg,
  PointwiseRule,
  PromotionRule,
  ReductionRule,
  Result,
  ResultSpec,
} from './op.ts'

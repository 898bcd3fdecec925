export { dispatch, dispatchBelowAutograd, dispatchState, runKernel, withMode, withoutModes } from './dispatch.ts'
export type { AutogradHandler, DispatchMode } from './dispatch.ts'
export type { Arg, Derivative, DerivativeContext, OpDef, OpTag, PointwiseRule, PromotionRule, ReductionRule, Result } from './op.ts'

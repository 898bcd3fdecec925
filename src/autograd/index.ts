// autograd: the tape, the engine, grad modes, custom functions.
export { anomaly, detectAnomaly, hasNaN, nanError, nanErrorAt, notingPlaces, placeOf, setDetectAnomaly } from './anomaly.ts'
export {
  autocast,
  autocastText,
  clearAutocastCache,
  customBwd,
  customFwd,
  getAutocastDtype,
  isAutocastCacheEnabled,
  isAutocastEnabled,
  underAutocastOfNow,
} from './autocast.ts'
export type { AutocastDtype, AutocastOptions } from './autocast.ts'
export { AutogradError, walkedBefore } from './errors.ts'
export { backward, grad, gradBetween, queueBackwardCallback } from './engine.ts'
export type { BackwardOptions } from './engine.ts'
export { backwardState, nodesBehind } from './walk.ts'
export { allowTracing, attachGradNode, tracingFunctions, Function, FunctionContext, FunctionNode } from './function.ts'
export type { AttachOptions, BackwardFn } from './function.ts'
export { enableGrad, inferenceMode, isGradEnabled, noGrad, setGradEnabled } from './gradMode.ts'
export { hookState, registerHook, registerPostAccumulateGradHook, retainGrad } from './hooks.ts'
export type { AccumulatedHook, RemovableHandle } from './hooks.ts'
export { GradNode, isNode, producerOf, setGradFn, upcomingSeq } from './node.ts'
export type { Edge, GradHook } from './node.ts'
export { OpNode } from './opNode.ts'
export { isAsSaved, laidAt, raiseVersion, versionOf } from './versions.ts'
export { autogradMethods } from './methods.ts'
export { installAutograd } from './record.ts'

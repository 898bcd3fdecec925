// tensorfx/fx/experimental
import { installFx } from '../../install/fx.ts'
export * from '../../fx/experimental/index.ts'
export { ShapeReport, checkShapes } from '../../aot/run/checkShapes.ts'
export type { InputShape, NamedSize, ShapeIssue } from '../../aot/run/checkShapes.ts'
export { inferShape } from '../../aot/run/inferShape.ts'
export type { InferredShapes } from '../../aot/run/inferShape.ts'
export {
  ConstraintViolationError,
  GuardOnDataDependentError,
  GuardOnDataDependentError as GuardOnDataDependentSymNode,
  NotEqualError,
  RecordingShapeEnv,
  ShapeEnv,
  SymBool,
  SymFloat,
  SymInt,
  constrainRange,
  constrainUnify,
  freeSymbolsOf,
  freeUnbackedSymbols,
  guardOrFalse,
  guardOrTrue,
  guardSizeOblivious,
  hasFreeSymbols,
  inferSymbolValues,
  produceGuards,
  replayShapeEnvEvents,
  shapeEnvCheckStateEqual,
  staticallyKnownFalse,
  staticallyKnownTrue,
} from '../../symbols/index.ts'
export type { ShapeEnvEvent } from '../../symbols/index.ts'

installFx()

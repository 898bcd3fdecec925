// Guards: what the answer to a recorded call relies on besides its arguments' data, as one list, and the comparison with the state of a later call.
export { GuardedCache, guardedCall } from './guardedCache.ts'
export type { GuardedCall } from './guardedCache.ts'
export { Guards } from './guards.ts'
export type { Used } from './guards.ts'
export {
  agreesWith,
  allState,
  callState,
  changeOf,
  inputState,
  keyOf,
  metTensorState,
  moduleState,
  operatorState,
  outerState,
  processState,
  readState,
  segmentState,
  structureState,
  tapeState,
  tensorState,
  tensorsState,
  valueState,
} from './kinds.ts'
export type { Change, Moment, SegmentKind, StateKind, Together } from './kinds.ts'
export { modulesBelow, watchingModules } from './moduleWatch.ts'

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
  historyOwnerOf,
  keyOf,
  metTensorState,
  operatorState,
  processState,
  readState,
  segmentState,
  structureState,
  tapeState,
  tensorState,
} from './kinds.ts'
export type { Change, Moment, SegmentKind, StateKind, Together } from './kinds.ts'
export { modulesBelow, watchingModules } from './moduleWatch.ts'
export { agreesAsMet, agreesAtOperator, agreesInSegment, callKey, metKey, metStateOf, metValues } from './quick.ts'
export type { MetState } from './quick.ts'

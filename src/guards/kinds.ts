// What the results of a recorded call depend on besides its arguments' data: the one list of kinds of state. compile compares some of them where its program meets them; what answers a
// call without running its program (aotFunction, skipReplay, a cache of makeFx's graphs) compares all of them, see guards.ts. A kind that is added here is compared by all of these,
// named in their reports, listed in the guide, and demands a planted change in test/guards.
import { structureState, tensorsState, valueState } from './argumentState.ts'
import { moduleState } from './moduleState.ts'
import { inputState, operatorState, processState } from './processState.ts'
import type { Moment } from './stateKind.ts'
import { tapeState } from './tapeState.ts'
import { outerState } from './tensorState.ts'

/** All kinds, by what has them. The guide's table. */
export const allState: readonly { readonly of: string; readonly kinds: readonly { readonly name: string; readonly compile: Moment }[] }[] = [
  { of: 'the process', kinds: [...processState, ...operatorState, ...inputState] },
  { of: 'a tensor', kinds: outerState },
  { of: 'the arguments', kinds: [...structureState, ...valueState, ...tensorsState] },
  { of: 'a module', kinds: moduleState },
  { of: 'the tape', kinds: tapeState },
]

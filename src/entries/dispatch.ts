// tensorfx/dispatch: modes that see every operator call, and the dispatcher below them.
import { installTensors } from '../install/tensors.ts'
export { FakeTensorMode, RecordMode, dispatch, dispatchBelowAutograd, fakeLike, withMode, withoutModes } from '../dispatch/index.ts'
export type { Arg, DispatchMode, OpDef, RecordedCall, Result } from '../dispatch/index.ts'

installTensors()

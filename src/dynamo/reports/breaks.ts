// Graph breaks: why a graph ended before its function did, and the causes that there are.
import { agreesWith, segmentState } from '../../guards/index.ts'
import type { CapturedStack } from '../../provenance/index.ts'

/** Why a graph ended before the function did. */
export interface BreakReason {
  /** Which of the causes it was: `read`, `disabled`, `graphBreak`, … */
  readonly code: string
  readonly reason: string
  readonly userStack: CapturedStack
}

/** Why a graph has to end: a short name, and what explain and the logs say. */
export type BreakCause = Pick<BreakReason, 'code' | 'reason'>

const cause = (code: string, reason: string): BreakCause => ({ code, reason })

export const breakCauses: Readonly<
  Record<'read' | 'indices' | 'move' | 'rejectsData' | 'dataShape' | 'window' | 'sharedMemory' | 'viewChange' | 'standIn' | 'graphBreak', BreakCause>
> = {
  read: cause('read', 'the value of a tensor is read (item(), toArray(), printing)'),
  indices: cause('indices', 'indices that the graph computes are checked'),
  move: cause('move', 'a tensor is copied from one device to another'),
  rejectsData: cause('rejectsData', 'an operator that rejects some data is computed where it is called'),
  dataShape: cause('dataShape', 'the shape of a result depends on data'),
  window: cause('window', 'as_strided sees memory beyond its argument'),
  sharedMemory: cause('sharedMemory', 'an in-place operator on memory that several tensors share'),
  viewChange: cause('viewChange', 'an operator gives a tensor another shape in place (transpose_ of an argument, resize_)'),
  standIn: cause('standIn', 'an operator gets a tensor that was overwritten after it was saved'),
  graphBreak: cause('graphBreak', 'graphBreak()'),
}

/** The cause where a program calls a function that `disable` returned. */
export const disabledCall = (name: string): BreakCause => cause('disabled', `call of a disabled function (${name === '' ? 'anonymous' : name})`)

/** The cause where the state has changed that a graph belongs to; `values`: those of the graph. */
export function stateChange(values: readonly unknown[]): BreakCause {
  const kind = segmentState.find((known, i) => !agreesWith([known], null, [values[i]]))
  return cause(kind?.code ?? 'state', `${kind?.name ?? 'the state'} was changed`)
}

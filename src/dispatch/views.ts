// What a view knows of the tensor that it is a view of.
import type { Tensor } from '../tensor/index.ts'
import { dispatchState } from './dispatch.ts'
import type { OpDef } from './op.ts'

const detached = new WeakSet<Tensor>()
const viewsOfDetached = new WeakSet<Tensor>()

/** Whether a tensor is a result of detach: it shares memory, and no history, with what it was made of. */
export const isDetached = (tensor: Tensor): boolean => tensor.ownHistory !== false && detached.has(tensor)

/** Whether the tensor behind a view is known by its memory only, and not as a tensor that could have a history. */
export const isViewOfDetached = (tensor: Tensor): boolean => viewsOfDetached.has(tensor)

/** Makes `view`, a result of the view operator `op`, a view of `self`. Views that are made under noGrad, by detach, and of such views never get the history of their base. */
export function markView(view: Tensor, self: Tensor, op: Pick<OpDef, 'name'>): void {
  const isDetach = op.name === 'detach'
  if (isDetach) detached.add(view)
  if (self.viewBase === null) view.viewBase = self
  else {
    view.viewBase = self.viewBase
    if (!isDetach && (detached.has(self) || viewsOfDetached.has(self))) viewsOfDetached.add(view)
    if (self.ownHistory === null) view.ownHistory = null
  }
  if (isDetach || !dispatchState.gradEnabled) view.ownHistory = null
}

// What a view knows of the tensor that it is a view of.
import { becomeLaidAs, twinOf } from '../tensor/index.ts'
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

const isViewOf = (view: Tensor, self: Tensor): boolean => view.viewBase !== null && (view.viewBase === self || isViewOf(view.viewBase, self))

/** What autograd does where a tensor becomes a view of itself: computes the view, and calls `take`, which gives the tensor its layout and memory. Set when autograd is installed. */
export const viewChanges: {
  record: ((qualname: string, self: Tensor, view: (self: Tensor) => Tensor, take: (becomes: Tensor) => void) => void) | null
} = { record: null }

/**
 * Makes `self` what `view` returns for it, a tensor of the same dtype: the operators of PyTorch's tag inplace_view, such as `transpose_`. A view stays a view of the same base, and a base
 * stays a base. Modes hear that another tensor stands for what `self` was. Throws what `view` throws, and AutogradError if autograd does not allow it; then nothing has changed.
 * `ofItself`: whether it is a view of what it was, and not of other or of more memory.
 */
export function becomeView(qualname: string, self: Tensor, view: (self: Tensor) => Tensor, ofItself = true): Tensor {
  const take = (becomes: Tensor): void => {
    if (becomes === self) return
    const former = twinOf(self)
    const { ownHistory, gradFn, outputNr, viewBase, captureStamp, captureSlot } = self
    Object.assign(former, { ownHistory, gradFn, outputNr, viewBase, captureStamp, captureSlot })
    if (detached.has(self)) detached.add(former)
    for (const mode of dispatchState.modes) mode.rename?.(self, former)
    becomeLaidAs(self, becomes)
    // The memory of another tensor, without its history.
    if (detached.has(becomes)) {
      detached.add(self)
      self.viewBase = isViewOf(becomes, self) ? null : becomes.viewBase
      self.ownHistory ||= null
    }
    for (const mode of dispatchState.modes) mode.rename?.(becomes, self)
  }
  const change = (): Tensor => {
    if (viewChanges.record === null) take(view(self))
    else viewChanges.record(qualname, self, view, take)
    return self
  }
  const { mode } = dispatchState
  return mode?.changeView === undefined ? change() : mode.changeView(qualname, self, change, ofItself)
}

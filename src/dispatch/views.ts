// What a view knows of the tensor that it is a view of.
import type { Tensor } from '../tensor/index.ts'
import { dispatchState } from './dispatch.ts'
import type { OpDef } from './op.ts'

/** Makes `view`, a result of the view operator `op`, a view of `self`. Views that are made under noGrad, by detach, and of such views never get the history of their base. */
export function markView(view: Tensor, self: Tensor, op: Pick<OpDef, 'name'>): void {
  view.viewBase = self.viewBase ?? self
  if (!dispatchState.gradEnabled || op.name === 'detach' || (self.viewBase !== null && self.ownHistory === null)) view.ownHistory = null
}

// Versions of tensors, by which autograd notices that a saved tensor was overwritten between forward and backward.
// A storage counts its own writes. Writes to fake tensors, which have none, are counted here, per base.
import { awayFromCpu, makeFake, hasNumbers, Tensor } from '../tensor/index.ts'
import type { LayoutSpec } from '../tensor/index.ts'
import type { Size } from '../protocol/index.ts'
import { upcomingSeq } from './node.ts'

const writesToFakes = new WeakMap<Tensor, number>()

const baseOf = (tensor: Tensor): Tensor => {
  let base = tensor
  while (base.viewBase !== null) base = base.viewBase
  return base
}

/** A fake view may lead to a real tensor: one that is not an argument of what is traced. */
const memoryOf = (tensor: Tensor): Tensor['storage'] => tensor.storage ?? baseOf(tensor).storage

/** The number of in-place writes to the tensor's memory, recorded ones included. */
export function versionOf(tensor: Tensor): number {
  return memoryOf(tensor)?.version ?? writesToFakes.get(baseOf(tensor)) ?? 0
}

/** Counts a write that a mode has recorded. A mode that performs it later must not raise the version again. */
export function raiseVersion(tensor: Tensor): void {
  const memory = memoryOf(tensor)
  if (memory === null) writesToFakes.set(baseOf(tensor), versionOf(tensor) + 1)
  else memory.version++
}

/** How a tensor lay until a node of the tape was made. */
interface FormerLayout {
  /** Nodes before this one have seen it. */
  readonly until: number
  readonly layout: LayoutSpec<Size>
}

/** The layouts that tensors had before operators such as `transpose_`, oldest first. */
const formerLayouts = new WeakMap<Tensor, FormerLayout[]>()
let lastChange = -1

/** Of a tensor whose layout changes in a loop, this many layouts are known; nodes that are older than these can no longer be differentiated. */
const MOST_LAYOUTS = 1024

/** Notes the layout of a tensor before it changes. */
export function noteLayout(tensor: Tensor): void {
  const { symSizes: shape, symSteps: strides, symOffset: offset, dtype } = tensor
  const known = formerLayouts.get(tensor) ?? []
  formerLayouts.set(tensor, known)
  if (known.length === MOST_LAYOUTS) known.shift()
  lastChange = upcomingSeq()
  known.push({ until: lastChange, layout: { shape, strides, offset, dtype } })
}

/** The layout that a tensor had for the node numbered `seq`; null if it still has that. */
export function layoutAt(tensor: Tensor, seq: number): LayoutSpec<Size> | null {
  if (seq >= lastChange) return null
  return formerLayouts.get(tensor)?.find(({ until }) => seq < until)?.layout ?? null
}

/** A tensor as it lay for the node numbered `seq`. */
export function laidAt(tensor: Tensor, seq: number): Tensor {
  const layout = layoutAt(tensor, seq)
  if (layout === null) return tensor
  return hasNumbers(layout)
    ? new Tensor(layout.shape, tensor.dtype, tensor.storage, layout.strides, layout.offset)
    : makeFake({ ...layout, ...awayFromCpu(tensor) })
}

/** Whether a tensor is as it was when a node saved it: the node's number, and the version of then. */
export const isAsSaved = (tensor: Tensor, version: number, seq: number): boolean => versionOf(tensor) === version && layoutAt(tensor, seq) === null

// Versions of tensors, by which autograd notices that a saved tensor was overwritten between forward and backward.
// A storage counts its own writes. Writes to fake tensors, which have none, are counted here, per base.
import type { Tensor } from '../tensor/index.ts'

const writesToFakes = new WeakMap<Tensor, number>()

const baseOf = (tensor: Tensor): Tensor => {
  let base = tensor
  while (base.viewBase !== null) base = base.viewBase
  return base
}

/** The number of in-place writes to the tensor's memory, recorded ones included. */
export function versionOf(tensor: Tensor): number {
  if (tensor.storage !== null) return tensor.storage.version
  // A fake view may lead to a real tensor: one that is not an argument of what is traced.
  const base = baseOf(tensor)
  return base.storage === null ? (writesToFakes.get(base) ?? 0) : base.storage.version
}

/** Counts a write that a mode has recorded. A mode that performs it later must not raise the version again. */
export function raiseVersion(tensor: Tensor): void {
  const { storage } = tensor
  if (storage !== null) {
    storage.version++
    return
  }
  const base = baseOf(tensor)
  if (base.storage === null) writesToFakes.set(base, (writesToFakes.get(base) ?? 0) + 1)
  else base.storage.version++
}

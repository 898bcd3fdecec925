// Versions of tensors, by which autograd notices that a saved tensor was overwritten between forward and backward.
// A storage counts its own writes. Writes to tensors without storage (fake, or pending in a capture) are counted here, per base.
import type { Tensor } from '../tensor/index.ts'

const writesWithoutStorage = new WeakMap<Tensor, number>()
let anyWriteWithoutStorage = false

const baseOf = (tensor: Tensor): Tensor => {
  let base = tensor
  while (base.viewBase !== null) base = base.viewBase
  return base
}

/** The number of in-place writes to the tensor's memory. */
export function versionOf(tensor: Tensor): number {
  // A view that a capture has not made yet will have the storage of its base.
  const storage = tensor.storage ?? baseOf(tensor).storage
  const stored = storage === null ? 0 : storage.version
  // Writes that were recorded before the data was computed: the storage that a pending tensor gets later starts at 0.
  return anyWriteWithoutStorage ? stored + (writesWithoutStorage.get(baseOf(tensor)) ?? 0) : stored
}

/** Counts a write that a mode has recorded but not performed. A mode that performs it later must not raise the version again. */
export function raiseVersion(tensor: Tensor): void {
  if (tensor.storage !== null) {
    tensor.storage.version++
    return
  }
  anyWriteWithoutStorage = true
  const base = baseOf(tensor)
  writesWithoutStorage.set(base, (writesWithoutStorage.get(base) ?? 0) + 1)
}

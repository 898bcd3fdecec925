// Versions of tensors, by which autograd notices that a saved tensor was overwritten between forward and backward.
// A storage counts its own writes. Writes to fake tensors, which have none, are counted here, per base.
import type { Tensor } from '../tensor/index.ts'

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

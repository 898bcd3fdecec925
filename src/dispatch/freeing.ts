// Frees the memory of tensors before the garbage collector does.
/// <reference lib="esnext.disposable" preserve="true" />
import { disposeBlock } from '../kernels/index.ts'
import { checkMethod } from '../protocol/index.ts'
import type { Storage, Tensor } from '../tensor/index.ts'
import { dispatchState } from './dispatch.ts'

declare module '../tensor/tensor.ts' {
  interface Tensor {
    /** Frees the memory now, which its views share; in a compiled function, once the graph that reads it has run. Never needed: unreachable tensors are collected. */
    dispose(): void
    [Symbol.dispose](): void
  }
}

/** Frees the memory of `storage`. With `mayWait`, a mode that reads it later frees it then. */
export function freeStorage(storage: Storage, mayWait: boolean): void {
  let waits = false
  for (const mode of dispatchState.modes) waits = mode.beforeFree?.(storage, mayWait) === true || waits
  if (!waits) disposeData(storage)
}

/** Frees the memory of `storage`; what is not here yet, when it comes. */
export function disposeData(storage: Storage): void {
  const { lateData } = storage
  const free = (): void => disposeBlock(storage.block)
  if (lateData === null) free()
  else if (lateData.onDevice !== undefined) lateData.onDevice.free()
  else lateData.arrive().then(free, () => undefined)
}

function dispose(this: Tensor): void {
  checkMethod(this, 'dispose', [], 0)
  if (this.storage !== null) freeStorage(this.storage, true)
}

export const freeingMethods: Record<string | symbol, (this: Tensor) => void> = { dispose }
// Node 20 has Symbol.dispose; browsers that lack it have no `using`.
if (typeof Symbol.dispose === 'symbol') freeingMethods[Symbol.dispose] = dispose

// Errors of the GPU.
import { TensorfxError } from '../errors/index.ts'

/**
 * the GPU refused a kernel: its shader does not compile, a dispatch is not valid, or memory ran out. The message names the kernel and the nodes of the graph that it computes. No result is
 * returned: memory that the kernel should have written is never read.
 *
 * Fix: if memory ran out, compile smaller graphs or batches. Otherwise it is a bug in tensorfx or in the driver: `compareBackends(gm, inputs, { backends: ['webgpu'] })` finds the smallest graph that shows it; report that.
 */
export class DeviceError extends TensorfxError {
  /** The graph nodes of the kernel; none if it is not known which kernel failed. */
  readonly nodes: readonly string[]

  constructor(message: string, nodes: readonly string[] = [], options?: { cause?: unknown }) {
    super('TFX_DEVICE', message, options)
    this.nodes = nodes
  }
}

/**
 * the GPU was lost: the driver was reset, the page went to the background, a kernel took too long, or the device was destroyed. What lay on it is gone, and with it the tensors whose device is 'webgpu'.
 *
 * Fix: repeat the call, which asks for the GPU again, and make such tensors again. If it happens again with the same kernels, which the message names, these take too long: compile smaller graphs.
 */
export class DeviceLostError extends TensorfxError {
  /** Why, as the browser or the driver says it, 'destroyed' or 'unknown'; 'timeout' if the GPU's thread did not answer. */
  readonly reason: string

  constructor(message: string, reason: string, options?: { cause?: unknown }) {
    super('TFX_DEVICE_LOST', message, options)
    this.reason = reason
  }
}

/**
 * A value is on the GPU, and this thread cannot wait for it: a browser's page can only `await`, and so can a program that called `init({ thread: false })`.
 *
 * Fix: `await y.itemAsync()`, `await y.toArrayAsync()` or `await y.toTypedArrayAsync()`; after one of them, operators and other reads of that tensor work, too. In Node call `init()` without `thread: false`.
 */
export class DeviceReadError extends TensorfxError {
  constructor(message: string) {
    super('TFX_DEVICE_READ', message)
  }
}

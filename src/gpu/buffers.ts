// Buffers on the GPU, counted.
import { OutOfMemoryError } from '../kernels/index.ts'
import { count, countsNow } from './device.ts'
import type { Device } from './device.ts'

/** What buffers are for. */
export const USAGE = { mapRead: 1, copySource: 4, copyTarget: 8, uniform: 64, storage: 128 } as const

/** Runs `body`; resolves to what the GPU reports of it, null if that is nothing. */
export async function inScopes(gpu: GPUDevice, body: () => void): Promise<string | null> {
  for (const kind of ['validation', 'out-of-memory', 'internal'] as const) gpu.pushErrorScope(kind)
  body()
  const errors = await Promise.all([gpu.popErrorScope(), gpu.popErrorScope(), gpu.popErrorScope()])
  return errors.find((error) => error !== null)?.message ?? null
}

/** Takes memory. Throws OutOfMemoryError if there is none. */
export async function newBuffer(device: Device, size: number, usage: number): Promise<GPUBuffer> {
  const { gpu, limits } = device
  let buffer: GPUBuffer | null = null
  const failure = await inScopes(gpu, () => {
    buffer = gpu.createBuffer({ size: Math.ceil(size / 16) * 16, usage })
  })
  device.check()
  if (failure !== null || buffer === null)
    throw noRoom(size, `the GPU has no memory for a buffer of ${size} bytes: ${failure ?? ''}`, limits.bytes, countsNow().bytes)
  const made: GPUBuffer = buffer
  count({ buffers: 1, bytes: made.size })
  return made
}

/** Gives memory back. */
export function freeBuffer(buffer: GPUBuffer): void {
  count({ buffers: -1, bytes: -buffer.size })
  buffer.destroy()
}

/** That there is no memory on the GPU: what was asked for, why there is none, and how much there may be and is. */
export const noRoom = (bytes: number, why: string, limit: number, allocated: number): OutOfMemoryError =>
  new OutOfMemoryError(bytes, 'the GPU', {
    message: `WebGPU: ${why}. Release tensors with dispose(), or compute on smaller ones.`,
    limit,
    allocated,
  })

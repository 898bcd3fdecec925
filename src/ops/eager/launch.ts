// Launches a compiled kernel on tensors: their byte addresses become the kernel's arguments.
import { OutOfMemoryError, PerEngine, ScratchMemory, dtypeInfo, kernelBytes, kernelsByCall, withPointers } from '../../kernels/index.ts'
import type { CompiledKernel } from '../../kernels/index.ts'
import { Storage, Tensor, numelOf } from '../../tensor/index.ts'
import { launches } from './launchLog.ts'

/** The offset of a tensor's first element from the start of its storage, in bytes. */
export const byteOffset = (tensor: Tensor): number => tensor.offset * dtypeInfo[tensor.dtype].size

/** The addresses of tensors; null if one of them is off the heap. */
export function addressesOf(tensors: readonly Tensor[]): number[] | null {
  const addresses: number[] = []
  for (const tensor of tensors) {
    const { ptr } = tensor.realize().block
    if (ptr === 0) return null
    addresses.push(ptr + byteOffset(tensor))
  }
  return addresses
}

/**
 * Runs `kernel` on real tensors. The kernel's parameters are the buffers, in the order of `tensors`, then the numbers.
 * A tensor's address is that of its first element. Nothing is checked here.
 */
export function launch(kernel: CompiledKernel, tensors: readonly Tensor[], numbers: readonly number[]): void {
  const args = addressesOf(tensors)
  if (args !== null) {
    launches.listener?.launched(kernel.run, tensors, numbers)
    for (const number of numbers) args.push(number)
    kernel.run(...args)
  } else {
    const { params } = kernel.kernel
    const written = tensors.map((_, i) => {
      const param = params[i]
      return param?.kind === 'buffer' && param.access !== 'read'
    })
    launchSpilled(kernel.run, tensors, written, numbers)
  }
}

/** Runs a kernel on tensors of which some are off the heap: their data is brought there for the call. */
export function launchSpilled(run: CompiledKernel['run'], tensors: readonly Tensor[], written: readonly boolean[], numbers: readonly number[]): void {
  launches.listener?.runsOnCopies()
  const blocks = tensors.map((tensor) => tensor.realize().block)
  const offsets = tensors.map(byteOffset)
  withPointers(blocks, written, (pointers) => run(...pointers.map((pointer, i) => pointer + (offsets[i] ?? 0)), ...numbers))
}

let owners = 0

/** The first part of all keys of one owner in the caches of eager calls. */
export const cacheKey = (): string => String(owners++)

const joined = (key: readonly unknown[]): string => key.join(' ')

/** A function that builds the kernel for a key at the first call, and returns the same one from then on. `textOf` writes keys that have other parts than texts, numbers and flags. */
export function kernelCache<K extends readonly (string | number | boolean)[]>(build: (...key: K) => CompiledKernel): (...key: K) => CompiledKernel
export function kernelCache<K extends readonly unknown[]>(
  build: (...key: K) => CompiledKernel,
  textOf: (key: K) => string,
): (...key: K) => CompiledKernel
export function kernelCache<K extends readonly unknown[]>(
  build: (...key: K) => CompiledKernel,
  textOf: (key: K) => string = joined,
): (...key: K) => CompiledKernel {
  const owner = new PerEngine(cacheKey)
  return (...key) => {
    const text = `${owner.current} ${textOf(key)}`
    let kernel = kernelsByCall.get(text)
    if (kernel === undefined) {
      kernel = build(...key)
      kernelsByCall.set(text, kernel, kernelBytes(kernel))
    }
    return kernel
  }
}

/** New memory for a tensor of `shape`, with room for `elements` elements: kernels may write past its end. */
export function emptyPadded(shape: readonly number[], dtype: Tensor['dtype'], elements: number): Tensor {
  const { size } = dtypeInfo[dtype]
  return new Tensor(shape, dtype, Storage.allocate(numelOf(shape) * size, shape, dtype, elements * size))
}

const scratch = new ScratchMemory('packed operands')

/** The address of at least `bytes` bytes that stay valid until the next call of this function: for kernels that pack their operands. */
export function scratchMemory(bytes: number): number {
  const address = scratch.reserve(bytes)
  launches.listener?.reserved(address, bytes)
  return address
}

/** The same; null where there is no room. */
export function scratchIfRoom(bytes: number): number | null {
  try {
    return scratchMemory(bytes)
  } catch (error) {
    if (error instanceof OutOfMemoryError) return null
    throw error
  }
}

// Calls a compiled kernel on tensors: turns tensors into byte addresses.
import { allocate, dtypeInfo, free, withPointers } from '../../kernels/index.ts'
import type { CompiledKernel } from '../../kernels/index.ts'
import { Storage, Tensor } from '../../tensor/index.ts'

/**
 * Runs `kernel` on real tensors. The kernel's parameters are the buffers, in the order of `tensors`, then the numbers.
 * A tensor's address is that of its first element; nothing is checked here.
 */
export function launch(kernel: CompiledKernel, tensors: readonly Tensor[], numbers: readonly number[]): void {
  const args = new Array<number>(tensors.length + numbers.length)
  let resident = true
  for (let i = 0; i < tensors.length; i++) {
    const tensor = tensors[i] as Tensor
    const { ptr } = tensor.realize().block
    if (ptr === 0) resident = false
    args[i] = ptr + tensor.offset * dtypeInfo[tensor.dtype].size
  }
  for (let i = 0; i < numbers.length; i++) args[tensors.length + i] = numbers[i] as number
  if (resident) {
    kernel.run(...args)
    return
  }
  // Some data was moved off the heap: bring it there for the time of the call.
  const { params } = kernel.kernel
  const blocks = tensors.map((t) => t.realize().block)
  const writes = tensors.map((_, i) => {
    const param = params[i]
    return param?.kind === 'buffer' && param.access !== 'read'
  })
  withPointers(blocks, writes, (pointers) => {
    for (let i = 0; i < tensors.length; i++) {
      const tensor = tensors[i] as Tensor
      args[i] = (pointers[i] as number) + tensor.offset * dtypeInfo[tensor.dtype].size
    }
    kernel.run(...args)
  })
}

/** Gives the kernel for a key, building it at the first call. */
export type KernelCache = (...key: (string | number | boolean)[]) => CompiledKernel

/** A compiled-kernel cache keyed by a string. */
export function kernelCache(build: (...key: never[]) => CompiledKernel): KernelCache {
  const cache = new Map<string, CompiledKernel>()
  return (...key) => {
    const text = key.join(' ')
    let kernel = cache.get(text)
    if (kernel === undefined) {
      kernel = (build as (...k: (string | number | boolean)[]) => CompiledKernel)(...key)
      cache.set(text, kernel)
    }
    return kernel
  }
}

/** New memory of `elements` elements for a tensor of `shape`, which may need fewer: kernels may write past its end. */
export function emptyPadded(shape: readonly number[], dtype: Tensor['dtype'], elements: number): Tensor {
  return new Tensor(shape, dtype, Storage.allocate(elements * dtypeInfo[dtype].size))
}

let scratchPointer = 0
let scratchSize = 0

/** Address of at least `bytes` bytes that hold until the next call: for kernels that pack their operands. */
export function scratchMemory(bytes: number): number {
  if (bytes > scratchSize) {
    if (scratchPointer !== 0) free(scratchPointer, scratchSize)
    scratchSize = Math.max(bytes, 65536)
    scratchPointer = allocate(scratchSize)
  }
  return scratchPointer
}

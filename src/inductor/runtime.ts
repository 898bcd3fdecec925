// What compiled programs use while they run: the arena of their temporaries, and addresses of tensors.
import { Block, BlockCopies, OutOfMemoryError, ScratchMemory, allocating, dtypeInfo } from '../kernels/index.ts'
import type { CompiledKernel, DType } from '../kernels/index.ts'
import { Storage, Tensor } from '../tensor/index.ts'

/** The arenas: one per level of nesting. A program runs inside another if the other calls an operator that a user wrote, which runs a compiled function. */
const arenas: ScratchMemory[] = []

/**
 * The inputs of the running programs, and the results of their eager kernels. Kernels know only their addresses, so that the collector would free them at the
 * next allocation.
 */
const running: unknown[][] = []

/** What compiled programs are called as the makers of tensors. */
const COMPILED = { qualname: 'a compiled function' }

/** Starts a program. Must be paired with {@link end}. */
export function begin(inputs: readonly unknown[]): BlockCopies {
  allocating.operator = COMPILED
  running.push([inputs])
  return new BlockCopies()
}

/** Ends the program that was started last, whether it failed or not. */
export function end(copies: BlockCopies): void {
  running.pop()
  copies.discard()
}

/** Whether a program is running. */
export const isRunning = (): boolean => running.length > 0

/** Keeps the results of an eager kernel until the program ends. */
export function keep<T>(results: T): T {
  running.at(-1)?.push(results)
  return results
}

/**
 * The address of the running program's arena, which has at least `bytes` bytes, or, where memory runs out, `least`. Programs share it: none of them leaves values in it between calls.
 * Throws OutOfMemoryError where there is not even room for `least`.
 */
export function arena(bytes: number, least: number = bytes): number {
  const memory = arenaOf(running.length - 1)
  try {
    return memory.reserve(bytes)
  } catch (error) {
    if (least === bytes || !(error instanceof OutOfMemoryError)) throw error
    return memory.reserve(least)
  }
}

/** A kernel that is the one of `compile` in calls whose arena has less than `bytes` bytes. */
export function whereRoom(bytes: number, kernel: CompiledKernel, compile: () => CompiledKernel): CompiledKernel {
  let spare: CompiledKernel | null = null
  let last = kernel
  const run = (...args: number[]): void => {
    last = hasRoom(bytes) ? kernel : (spare ??= compile())
    last.run(...args)
  }
  return { ...kernel, run, computedBy: () => last.computedBy() }
}

/** Whether the running program's arena has at least `bytes` bytes. */
export const hasRoom = (bytes: number): boolean => arenaOf(running.length - 1).bytes >= bytes

const arenaOf = (level: number): ScratchMemory =>
  (arenas[level] ??= new ScratchMemory('the temporaries of compiled programs', () => running.length <= level))

/** A tensor over a temporary in the arena, as an argument of an eager kernel. It must not outlive the call. */
export const temporary = (address: number, shape: readonly number[], dtype: DType, strides: readonly number[], offset: number): Tensor =>
  new Tensor(shape, dtype, new Storage(new Block(address, 0, null), 0), strides, offset)

/** The byte address of a tensor's first element; that of a copy if the tensor is spilled. */
export function addressOf(tensor: Tensor, copies: BlockCopies): number {
  const { block } = tensor.storage ?? tensor.realize()
  return (block.ptr === 0 ? copies.address(block) : block.ptr) + tensor.offset * dtypeInfo[tensor.dtype].size
}

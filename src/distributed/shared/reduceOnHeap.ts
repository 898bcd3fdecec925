// Reduces the operands of several ranks: what others have posted is brought to the heap in small pieces, and combined there by compiled kernels.
import {
  ScratchMemory,
  at,
  bufferParam,
  call,
  cast,
  compileKernel,
  dtypeInfo,
  forLoop,
  heapBytes,
  load,
  loopVar,
  sizeParam,
  store,
} from '../../kernels/index.ts'
import type { DType, ScalarOp } from '../../kernels/index.ts'
import type { Tensor } from '../../tensor/index.ts'
import { tensorBytes } from '../bytes.ts'
import { OF_BOOLEANS } from '../collective.ts'
import type { BackendReduceOp } from '../collective.ts'

const OPERATIONS: Readonly<Record<BackendReduceOp, ScalarOp>> = {
  sum: 'add',
  product: 'mul',
  min: 'min',
  max: 'max',
  band: 'bitAnd',
  bor: 'bitOr',
  bxor: 'bitXor',
}

/** Combines `count` elements of `a` and `b` in `out`, which may be either of them. All are addresses on the heap. */
type ReduceKernel = (out: number, a: number, b: number, count: number) => void

const kernels = new Map<string, ReduceKernel>()

function kernelFor(op: BackendReduceOp, dtype: DType): ReduceKernel {
  const key = `${op} ${dtype}`
  let kernel = kernels.get(key)
  if (kernel === undefined) {
    const { compute } = dtypeInfo[dtype]
    const count = sizeParam('count')
    const i = loopVar('i', count)
    const [out, a, b] = [bufferParam('out', dtype, 'write'), bufferParam('a', dtype), bufferParam('b', dtype)]
    const index = at([i, 1])
    const operation = OPERATIONS[dtype === 'bool' ? OF_BOOLEANS[op] : op]
    const value = cast(call(operation, cast(load(a, index), compute), cast(load(b, index), compute)), dtype)
    kernel = compileKernel({ name: `ranks_${op}`, params: [out, a, b, count], body: [forLoop(i, 'simd', [store(out, index, value)])] }).run
    kernels.set(key, kernel)
  }
  return kernel
}

/** Bytes that are reduced at a time: what is brought to the heap for it stays in the processor's nearest cache. */
const CHUNK_BYTES = 2 ** 14

const scratch = new ScratchMemory('reductions of ranks')

/** Below this many bytes a loop takes less time than to make the array that a copy by the engine needs. */
const LOOP_BYTES = 64

/** Copies bytes between arrays that do not overlap. */
export function copyBytes(to: Uint8Array, toAt: number, from: Uint8Array, fromAt: number, bytes: number): void {
  if (bytes > LOOP_BYTES) to.set(from.subarray(fromAt, fromAt + bytes), toAt)
  else for (let i = 0; i < bytes; i++) to[toAt + i] = from[fromAt + i] ?? 0
}

/** Copies bytes of a contiguous tensor, from its byte `start` on. */
export function copyFromTensor(to: Uint8Array, toAt: number, tensor: Tensor, start: number, bytes: number): void {
  if (bytes === 0) return
  const address = heapAddress(tensor)
  if (address === 0) to.set(tensorBytes(tensor).subarray(start, start + bytes), toAt)
  else copyBytes(to, toAt, heapBytes(), address + start, bytes)
}

/** Copies bytes to a contiguous tensor, from its byte `start` on. */
export function copyToTensor(tensor: Tensor, start: number, from: Uint8Array, fromAt: number, bytes: number): void {
  if (bytes === 0) return
  const address = heapAddress(tensor)
  if (address === 0) tensorBytes(tensor).set(from.subarray(fromAt, fromAt + bytes), start)
  else copyBytes(heapBytes(), address + start, from, fromAt, bytes)
}

/** Copies bytes of a contiguous tensor to another one, which does not overlap. */
export function copyBetweenTensors(to: Tensor, toAt: number, from: Tensor, fromAt: number, bytes: number): void {
  if (bytes === 0) return
  const address = heapAddress(from)
  if (address === 0) copyToTensor(to, toAt, tensorBytes(from), fromAt, bytes)
  else copyToTensor(to, toAt, heapBytes(), address + fromAt, bytes)
}

/** Where the data of a contiguous tensor begins on the heap; 0 if it lies elsewhere. */
function heapAddress(tensor: Tensor): number {
  const { ptr } = tensor.realize().block
  return ptr === 0 ? 0 : ptr + tensor.offset * dtypeInfo[tensor.dtype].size
}

/** What this rank gives to a reduction, and where the result goes: bytes of contiguous tensors of one dtype. Both may be the same. */
export interface ReduceEnds {
  readonly own: Tensor
  readonly ownAt: number
  readonly target: Tensor
  readonly targetAt: number
}

/**
 * Reduces `bytes` bytes of all ranks, in the order of the ranks, so that all that do so get the same bits. The other ranks' operands lie in `slots`, from `slotAt`
 * on; `me` is this rank.
 */
export function reduceRanks(op: BackendReduceOp, ends: ReduceEnds, slots: readonly Uint8Array[], slotAt: number, me: number, bytes: number): void {
  const { own, ownAt, target, targetAt } = ends
  const kernel = kernelFor(op, target.dtype)
  const { size } = dtypeInfo[target.dtype]
  const sum = scratch.reserve(4 * CHUNK_BYTES)
  const [operand, ownCopy, result] = [sum + CHUNK_BYTES, sum + 2 * CHUNK_BYTES, sum + 3 * CHUNK_BYTES]
  const [ownAddress, targetAddress] = [heapAddress(own), heapAddress(target)]
  for (let start = 0; start < bytes; start += CHUNK_BYTES) {
    const length = Math.min(CHUNK_BYTES, bytes - start)
    const mine = ownAddress === 0 ? ownCopy : ownAddress + ownAt + start
    const out = targetAddress === 0 ? result : targetAddress + targetAt + start
    const heap = heapBytes()
    if (ownAddress === 0) copyFromTensor(heap, ownCopy, own, ownAt + start, length)
    let reduced = mine
    for (let rank = 0; rank < slots.length; rank++) {
      let next = mine
      if (rank !== me) {
        next = rank === 0 ? sum : operand
        copyBytes(heap, next, slots[rank] ?? heap, slotAt + start, length)
      }
      if (rank === 0) reduced = next
      else {
        // Until this rank's operand has been read, the result must not be written over it.
        const to = rank < me ? sum : out
        kernel(to, reduced, next, length / size)
        reduced = to
      }
    }
    if (reduced !== out) heap.copyWithin(out, reduced, reduced + length)
    if (targetAddress === 0) copyToTensor(target, targetAt + start, heap, result, length)
  }
}

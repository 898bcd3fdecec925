// Values of JavaScript between ranks, as JSON.
import { ArgumentError } from '../errors/index.ts'
import { Tensor } from '../tensor/index.ts'
import { tensorBytes } from './bytes.ts'
import { groupOr } from './processGroup.ts'
import type { ProcessGroup } from './processGroup.ts'

function encode(where: string, value: unknown): Uint8Array {
  let text: string | undefined
  try {
    text = JSON.stringify(value)
  } catch (error) {
    throw new ArgumentError(`${where}: the value cannot be written as JSON (${String(error)}).`, { cause: error })
  }
  if (text === undefined) throw new ArgumentError(`${where}: JSON has no ${typeof value}; pass null, or an object.`)
  return new TextEncoder().encode(text)
}

const decode = (bytes: Uint8Array): unknown => JSON.parse(new TextDecoder().decode(bytes))

function vector(bytes: Uint8Array): Tensor {
  const tensor = Tensor.empty([bytes.length], 'uint8')
  tensorBytes(tensor).set(bytes)
  return tensor
}

/** Everybody's value, by rank. Values travel as JSON. PyTorch's `all_gather_object`. */
export function allGatherObject(value: unknown, group?: ProcessGroup): unknown[] {
  const members = groupOr(group)
  const bytes = encode('allGatherObject', value)
  const lengths = Tensor.empty([members.size], 'int32')
  const own = Tensor.empty([1], 'int32')
  const words = (tensor: Tensor): Int32Array => {
    const { buffer, byteOffset } = tensorBytes(tensor)
    return new Int32Array(buffer, byteOffset, tensor.numel)
  }
  words(own).set([bytes.length])
  members.start({ kind: 'allgather', input: own, output: lengths }).wait()
  const sizes = [...words(lengths)]
  const longest = Math.max(...sizes)
  const padded = new Uint8Array(longest)
  padded.set(bytes)
  const output = Tensor.empty([longest * members.size], 'uint8')
  members.start({ kind: 'allgather', input: vector(padded), output }).wait()
  const all = tensorBytes(output)
  return sizes.map((size, rank) => decode(all.slice(rank * longest, rank * longest + size)))
}

/** The value of rank `src` (of the group), on every rank. It travels as JSON. PyTorch's `broadcast_object_list`. */
export function broadcastObject<T>(value: T, src: number, group?: ProcessGroup): T
export function broadcastObject(value: unknown, src: number, group?: ProcessGroup): unknown {
  const members = groupOr(group)
  const bytes = members.rank === src ? encode('broadcastObject', value) : new Uint8Array(0)
  const length = Tensor.empty([1], 'int32')
  const words = (): Int32Array => new Int32Array(tensorBytes(length).buffer, tensorBytes(length).byteOffset, 1)
  words().set([bytes.length])
  members.start({ kind: 'broadcast', root: src, data: length }).wait()
  const [size = 0] = words()
  const data = members.rank === src ? vector(bytes) : Tensor.empty([size], 'uint8')
  members.start({ kind: 'broadcast', root: src, data }).wait()
  return members.rank === src ? value : decode(tensorBytes(data))
}

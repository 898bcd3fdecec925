// Values of JavaScript between ranks, as JSON.
import { ArgumentError } from '../errors/index.ts'
import { Tensor } from '../tensor/index.ts'
import { decode as decodeAs, integer, list, object, record } from '../protocol/decode.ts'
import type { Decoder } from '../protocol/decode.ts'
import { checkCount, isPlainObject, valueText } from '../protocol/index.ts'
import { parseJson } from '../protocol/jsonText.ts'
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
  const bytes = new TextEncoder().encode(text)
  if (bytes.length > MAX_BYTES) throw new ArgumentError(`${where}: the value has ${bytes.length} bytes as JSON; at most ${MAX_BYTES} can be sent.`)
  return bytes
}

/** The longest text that a rank may send, in bytes. */
const MAX_BYTES = 2 ** 28

/** Any value of JSON. Its parts are visited for the limits of depth and size, and for keys that would replace a prototype. */
export const anyJson: Decoder<unknown> = (value, place) =>
  Array.isArray(value) ? list(anyJson)(value, place) : isPlainObject(value) ? record(anyJson)(value, place) : value

/** Reads what a rank sent: data that this process did not make. Throws ArgumentError for anything but JSON within the limits. */
function decode(where: string, rank: number, bytes: Uint8Array): unknown {
  const what = `the value of rank ${rank}`
  return decodeAs(where, anyJson, parseJson(where, what, new TextDecoder().decode(bytes)), what)
}

/** Checks the lengths in bytes that ranks announce, before memory is taken for them. */
const checkedLengths = (where: string, lengths: ArrayLike<number>): readonly number[] =>
  decodeAs(where, LENGTHS, { lengthOfRank: Array.from(lengths) }).lengthOfRank

const LENGTHS = object({ lengthOfRank: list(integer(0, MAX_BYTES)) })

function vector(bytes: Uint8Array): Tensor {
  const tensor = Tensor.empty([bytes.length], 'uint8')
  tensorBytes(tensor).set(bytes)
  return tensor
}

/** Everybody's value, by rank. Values travel as JSON. PyTorch's `all_gather_object`. */
export function allGatherObject(value: unknown, group?: ProcessGroup): unknown[] {
  checkCount('allGatherObject', arguments, 2)
  const members = groupOr(group)
  const bytes = encode('allGatherObject', value)
  const lengths = Tensor.empty([members.size], 'int32')
  const own = Tensor.empty([1], 'int32')
  const words = (tensor: Tensor): Int32Array => {
    const { buffer, byteOffset } = tensorBytes(tensor)
    return new Int32Array(buffer, byteOffset, tensor.numel)
  }
  words(own).set([bytes.length])
  members.run({ kind: 'allgather', input: own, output: lengths })
  const sizes = checkedLengths('allGatherObject', words(lengths))
  const longest = Math.max(...sizes)
  const padded = new Uint8Array(longest)
  padded.set(bytes)
  const output = Tensor.empty([longest * members.size], 'uint8')
  members.run({ kind: 'allgather', input: vector(padded), output })
  const all = tensorBytes(output)
  return sizes.map((size, rank) => decode('allGatherObject', rank, all.slice(rank * longest, rank * longest + size)))
}

/** The value of rank `src` (of the group), on every rank. It travels as JSON. PyTorch's `broadcast_object_list`. */
export function broadcastObject<T>(value: T, src: number, group?: ProcessGroup): T
export function broadcastObject(value: unknown, src: number, group?: ProcessGroup): unknown {
  checkCount('broadcastObject', arguments, 3)
  const members = groupOr(group)
  const bytes = members.rank === src ? encode('broadcastObject', value) : new Uint8Array(0)
  const length = Tensor.empty([1], 'int32')
  const words = (): Int32Array => new Int32Array(tensorBytes(length).buffer, tensorBytes(length).byteOffset, 1)
  words().set([bytes.length])
  members.run({ kind: 'broadcast', root: src, data: length })
  const [size = 0] = checkedLengths('broadcastObject', words())
  const data = members.rank === src ? vector(bytes) : Tensor.empty([size], 'uint8')
  members.run({ kind: 'broadcast', root: src, data })
  return members.rank === src ? value : decode('broadcastObject', src, tensorBytes(data))
}

/**
 * One of rank `src`'s values, a list with one for each rank, on each rank; others pass null. They travel as JSON. PyTorch's `scatter_object_list`.
 *
 * @throws ArgumentError on rank `src` unless `values` has one value for each rank.
 */
export function scatterObject<T>(values: readonly T[] | null, src: number, group?: ProcessGroup): T
export function scatterObject(values: readonly unknown[] | null, src: number, group?: ProcessGroup): unknown {
  checkCount('scatterObject', arguments, 3)
  const where = 'scatterObject'
  const { rank, size } = groupOr(group)
  if (rank === src && (!Array.isArray(values) || values.length !== size))
    throw new ArgumentError(
      `${where}: values must be a list of ${size} values, one for each rank, got ${Array.isArray(values) ? values.length : valueText(values)}.`,
    )
  // Objects are small: all of them travel to all ranks, and each takes its own.
  const all: unknown = broadcastObject<unknown>(values, src, group)
  return Array.isArray(all) ? all[rank] : undefined
}

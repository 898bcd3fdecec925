// The safetensors format: a JSON header, then the tensors' bytes. Read and written by most frameworks; https://github.com/huggingface/safetensors.
import { ArgumentError } from '../errors/index.ts'
import type { DType } from '../kernels/index.ts'
import { dtypeInfo } from '../kernels/index.ts'
import { Tensor, numelOf, tensorFromBytes } from '../tensor/index.ts'

const NAMES: Readonly<Record<DType, string>> = { float32: 'F32', float64: 'F64', int32: 'I32', bool: 'BOOL' }
const DTYPES = new Map(Object.entries(NAMES).map(([dtype, name]) => [name, dtype as DType]))
/** The header's length, as 64 bits. */
const PREFIX = 8
const METADATA = '__metadata__'

interface Entry {
  readonly dtype: string
  readonly shape: readonly number[]
  readonly data_offsets: readonly [number, number]
}

/** What a safetensors file holds. */
export interface Safetensors {
  readonly tensors: Map<string, Tensor>
  /** Texts that the writer added. */
  readonly metadata: Readonly<Record<string, string>>
}

/** Tensors by name as the bytes of a safetensors file. Throws ArgumentError for a reserved name. */
export function writeSafetensors(
  tensors: Iterable<readonly [string, Tensor]>,
  metadata: Readonly<Record<string, string>> = {},
): Uint8Array<ArrayBuffer> {
  const header: Record<string, unknown> = Object.keys(metadata).length === 0 ? {} : { [METADATA]: metadata }
  const parts: Uint8Array[] = []
  let at = 0
  for (const [name, tensor] of tensors) {
    if (name === METADATA) throw new ArgumentError(`writeSafetensors: a tensor cannot be called '${METADATA}'; the format keeps texts there.`)
    const data = tensor.toTypedArray()
    const bytes = new Uint8Array(data.buffer, data.byteOffset, data.byteLength)
    header[name] = { dtype: NAMES[tensor.dtype], shape: tensor.shape, data_offsets: [at, at + bytes.length] }
    parts.push(bytes)
    at += bytes.length
  }
  const text = new TextEncoder().encode(JSON.stringify(header))
  // Spaces behind the header, so that the data starts at a multiple of eight.
  const length = Math.ceil(text.length / 8) * 8
  const file = new Uint8Array(PREFIX + length + at).fill(32, PREFIX, PREFIX + length)
  new DataView(file.buffer).setBigUint64(0, BigInt(length), true)
  file.set(text, PREFIX)
  let to = PREFIX + length
  for (const part of parts) {
    file.set(part, to)
    to += part.length
  }
  return file
}

/** Reads a safetensors file. Throws ArgumentError for bytes that are none, and for a dtype that tensorfx does not have. */
export function readSafetensors(bytes: Uint8Array): Safetensors {
  const bad = (what: string): ArgumentError => new ArgumentError(`readSafetensors: these bytes are no safetensors file: ${what}.`)
  if (bytes.length < PREFIX) throw bad(`they are ${bytes.length}, the length of the header alone takes ${PREFIX}`)
  const length = Number(new DataView(bytes.buffer, bytes.byteOffset).getBigUint64(0, true))
  if (length > bytes.length - PREFIX) throw bad(`the header is said to have ${length} bytes, the file has ${bytes.length}`)
  const header = parseHeader(new TextDecoder().decode(bytes.subarray(PREFIX, PREFIX + length)), bad)
  const data = bytes.subarray(PREFIX + length)
  const tensors = new Map<string, Tensor>()
  for (const [name, entry] of Object.entries(header)) {
    if (name === METADATA) continue
    const { dtype: dtypeName, shape, data_offsets: offsets } = entry as Entry
    const dtype = DTYPES.get(dtypeName)
    if (dtype === undefined)
      throw new ArgumentError(
        `readSafetensors: tensor '${name}' has dtype ${dtypeName}; tensorfx has ${[...DTYPES.keys()].join(', ')}. Convert it before.`,
      )
    const [from, to] = offsets
    const wanted = numelOf(shape) * dtypeInfo[dtype].size
    if (!(from >= 0 && to - from === wanted && to <= data.length))
      throw bad(
        `tensor '${name}' of shape [${shape.join(', ')}] should take ${wanted} bytes, and is said to lie from ${from} to ${to} of ${data.length}`,
      )
    tensors.set(name, tensorFromBytes(data.slice(from, to), shape, dtype))
  }
  return { tensors, metadata: (header[METADATA] as Record<string, string> | undefined) ?? {} }
}

function parseHeader(text: string, bad: (what: string) => ArgumentError): Readonly<Record<string, unknown>> {
  let header: unknown
  try {
    header = JSON.parse(text)
  } catch {
    throw bad('their header is no JSON')
  }
  if (typeof header !== 'object' || header === null) throw bad('their header is no object')
  for (const [name, entry] of Object.entries(header)) {
    const { dtype, shape, data_offsets: offsets } = entry as Partial<Entry>
    if (name !== METADATA && !(typeof dtype === 'string' && Array.isArray(shape) && Array.isArray(offsets) && offsets.length === 2))
      throw bad(`the entry of tensor '${name}' lacks its dtype, shape or data_offsets`)
  }
  return header as Record<string, unknown>
}

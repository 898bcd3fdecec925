// The safetensors format: a JSON header followed by the tensors' bytes. Most frameworks can read and write it; https://github.com/huggingface/safetensors.
import { ArgumentError } from '../errors/index.ts'
import type { DType } from '../kernels/index.ts'
import { dtypeInfo, isDType } from '../kernels/index.ts'
import { checkArgument, checkIterable, isPlainObject } from '../protocol/index.ts'
import { Tensor, numelOf, storedElements, tensorFromBytes } from '../tensor/index.ts'

const NAMES: Readonly<Record<DType, string>> = {
  bool: 'BOOL',
  uint8: 'U8',
  int8: 'I8',
  int16: 'I16',
  int32: 'I32',
  int64: 'I64',
  float16: 'F16',
  bfloat16: 'BF16',
  float32: 'F32',
  float64: 'F64',
}
const DTYPES = new Map(Object.entries(NAMES).flatMap(([dtype, name]): [string, DType][] => (isDType(dtype) ? [[name, dtype]] : [])))
/** The number of bytes of the header's length. */
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
  /** Additional texts in the file. */
  readonly metadata: Readonly<Record<string, string>>
}

/** Writes tensors by name as the bytes of a safetensors file. Throws ArgumentError for a reserved name. */
export function writeSafetensors(
  tensors: Iterable<readonly [string, Tensor]>,
  metadata: Readonly<Record<string, string>> = {},
): Uint8Array<ArrayBuffer> {
  checkIterable('writeSafetensors', 'tensors', tensors)
  const header: Record<string, unknown> = Object.keys(metadata).length === 0 ? {} : { [METADATA]: metadata }
  const parts: Uint8Array[] = []
  let at = 0
  for (const entry of tensors) {
    checkArgument(
      Array.isArray(entry) && typeof entry[0] === 'string' && entry[1] instanceof Tensor,
      'writeSafetensors',
      'tensors',
      'pairs of a name and a Tensor',
      entry,
    )
    const [name, tensor] = entry
    if (name === METADATA)
      throw new ArgumentError(`writeSafetensors: a tensor cannot be called '${METADATA}', which the format reserves for texts; rename it.`)
    const data = storedElements(tensor)
    const bytes = new Uint8Array(data.buffer, data.byteOffset, data.byteLength)
    header[name] = { dtype: NAMES[tensor.dtype], shape: tensor.shape, data_offsets: [at, at + bytes.length] }
    parts.push(bytes)
    at += bytes.length
  }
  const text = new TextEncoder().encode(JSON.stringify(header))
  // The header is padded with spaces, so that the data starts at a multiple of eight.
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

/** Reads a safetensors file. Throws ArgumentError for bytes in another format, and for a dtype that tensorfx does not have. */
export function readSafetensors(bytes: Uint8Array): Safetensors {
  checkArgument(bytes instanceof Uint8Array, 'readSafetensors', 'bytes', 'a Uint8Array', bytes)
  if (bytes.length < PREFIX) throw malformed(`there are only ${bytes.length} bytes, but the length of the header alone takes ${PREFIX}`)
  const length = Number(new DataView(bytes.buffer, bytes.byteOffset).getBigUint64(0, true))
  if (length > bytes.length - PREFIX) throw malformed(`the header should have ${length} bytes, but the file has only ${bytes.length}`)
  const { entries, metadata } = parseHeader(new TextDecoder().decode(bytes.subarray(PREFIX, PREFIX + length)))
  const data = bytes.subarray(PREFIX + length)
  const tensors = new Map<string, Tensor>()
  for (const [name, { dtype: dtypeName, shape, data_offsets: offsets }] of entries) {
    const dtype = DTYPES.get(dtypeName)
    if (dtype === undefined)
      throw new ArgumentError(
        `readSafetensors: tensor '${name}' has dtype ${dtypeName}, but tensorfx only has ${[...DTYPES.keys()].join(', ')}; convert it first.`,
      )
    const [from, to] = offsets
    const wanted = numelOf(shape) * dtypeInfo[dtype].size
    if (!(from >= 0 && to - from === wanted && to <= data.length))
      throw malformed(
        `tensor '${name}' of shape [${shape.join(', ')}] should take ${wanted} bytes, but its data_offsets are ${from} and ${to}, and there are ${data.length} bytes of data`,
      )
    tensors.set(name, tensorFromBytes(data.slice(from, to), shape, dtype))
  }
  return { tensors, metadata }
}

const malformed = (what: string): ArgumentError => new ArgumentError(`readSafetensors: this is not a safetensors file: ${what}.`)

function parseHeader(text: string): {
  readonly entries: readonly (readonly [name: string, entry: Entry])[]
  readonly metadata: Safetensors['metadata']
} {
  let header: unknown
  try {
    header = JSON.parse(text)
  } catch {
    throw malformed('the header is not JSON')
  }
  if (!isPlainObject(header)) throw malformed('the header is not an object')
  const { [METADATA]: metadata = {}, ...rest } = header
  if (!isTexts(metadata)) throw malformed(`the values of ${METADATA} must be strings`)
  const entries = Object.entries(rest).map(([name, entry]) => {
    if (!isEntry(entry)) throw malformed(`the entry of tensor '${name}' lacks its dtype, shape or data_offsets`)
    return [name, entry] as const
  })
  return { entries, metadata }
}

const isTexts = (value: unknown): value is Readonly<Record<string, string>> =>
  isPlainObject(value) && Object.values(value).every((text) => typeof text === 'string')

const isNumbers = (value: unknown): value is readonly number[] => Array.isArray(value) && value.every((item) => typeof item === 'number')

function isEntry(value: unknown): value is Entry {
  if (!isPlainObject(value)) return false
  const { dtype, shape, data_offsets: offsets } = value
  return typeof dtype === 'string' && isNumbers(shape) && isNumbers(offsets) && offsets.length === 2
}

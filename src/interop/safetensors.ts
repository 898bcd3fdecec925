// The safetensors format: a JSON header followed by the tensors' bytes. Most frameworks can read and write it; https://github.com/huggingface/safetensors.
import { ArgumentError } from '../errors/index.ts'
import type { DType } from '../kernels/index.ts'
import { dtypeInfo, isDType } from '../kernels/index.ts'
import { decode, integer, list, mapOf, name as nameText, object, string } from '../protocol/decode.ts'
import type { Place } from '../protocol/decode.ts'
import { parseJson } from '../protocol/jsonText.ts'
import { checkArray, checkCount, checkIterable, isModule, isPlainObject, uncalledHint, valueText } from '../protocol/index.ts'
import type { TensorLike } from '../protocol/index.ts'
import { OTHER_DTYPES } from './otherDtypes.ts'
import type { OtherDtype } from './otherDtypes.ts'
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
/** Longer headers are refused, as by the reference implementation. */
const MAX_HEADER = 100_000_000
const MAX_TENSORS = 100_000
const MAX_RANK = 64

/** What the header says about a tensor. */
const ENTRY = object({ dtype: nameText, shape: list(integer(), MAX_RANK), data_offsets: list(integer(), 2) })

/** What a safetensors file holds. */
export interface Safetensors {
  readonly tensors: Map<string, Tensor>
  /** Additional texts in the file. */
  readonly metadata: Readonly<Record<string, string>>
}

/**
 * Writes tensors by name as the bytes of a safetensors file. Throws ArgumentError for names that readers cannot keep: `__metadata__`, `__proto__`, and one that is
 * there twice; and for values that are not tensors.
 */
export function writeSafetensors(
  tensors: Iterable<readonly [string, TensorLike]>,
  metadata: Readonly<Record<string, string>> = {},
): Uint8Array<ArrayBuffer> {
  checkCount('writeSafetensors', arguments, 2)
  if (isModule(tensors))
    throw new ArgumentError(`writeSafetensors: argument 'tensors' must be tensors by name, got ${valueText(tensors)}. Write model.stateDict().`)
  checkIterable('writeSafetensors', 'tensors', tensors)
  const { size, parts } = safetensorsParts('writeSafetensors', tensors, metadata)
  const file = new Uint8Array(size)
  let at = 0
  for (const part of parts) {
    file.set(part, at)
    at += part.length
  }
  return file
}

/** A file that is written part by part. */
export interface FileParts {
  /** The bytes of all parts. */
  readonly size: number
  /** The parts in order. Each tensor is read when its part is taken. */
  readonly parts: Iterable<Uint8Array>
}

/** What {@link writeSafetensors} writes, in parts, so that the file need not fit into memory next to the tensors. */
export function safetensorsParts(
  where: string,
  tensors: Iterable<readonly [string, TensorLike]>,
  metadata: Readonly<Record<string, string>>,
): FileParts {
  const header = new Map<string, unknown>()
  if (Object.keys(metadata).length > 0) header.set(METADATA, checkTexts(where, metadata))
  const all: Tensor[] = []
  let at = 0
  for (const entry of tensors) {
    checkArray(where, 'tensors[i]', entry)
    const [name, tensor] = entry
    checkName(where, name, header)
    if (!(tensor instanceof Tensor)) throw new ArgumentError(`${where}: '${name}' must be a Tensor, got ${valueText(tensor)}.`)
    const bytes = tensor.numel * dtypeInfo[tensor.dtype].size
    header.set(name, { dtype: NAMES[tensor.dtype], shape: tensor.shape, data_offsets: [at, at + bytes] })
    all.push(tensor)
    at += bytes
  }
  const text = new TextEncoder().encode(`{${[...header].map(([key, value]) => `${JSON.stringify(key)}:${JSON.stringify(value)}`).join(',')}}`)
  // The header is padded with spaces, so that the data starts at a multiple of eight.
  const length = Math.ceil(text.length / 8) * 8
  if (length > MAX_HEADER || all.length > MAX_TENSORS)
    throw new ArgumentError(
      `${where}: ${all.length} tensors with a header of ${length} bytes are more than readers take (${MAX_TENSORS} tensors, ${MAX_HEADER} bytes); write several files.`,
    )
  const head = new Uint8Array(PREFIX + length).fill(32, PREFIX)
  new DataView(head.buffer).setBigUint64(0, BigInt(length), true)
  head.set(text, PREFIX)
  return { size: head.length + at, parts: partsOf(head, all) }
}

function* partsOf(head: Uint8Array, tensors: readonly Tensor[]): Generator<Uint8Array, void, undefined> {
  yield head
  for (const tensor of tensors) {
    const data = storedElements(tensor)
    yield new Uint8Array(data.buffer, data.byteOffset, data.byteLength)
  }
}

function checkName(where: string, name: string, header: ReadonlyMap<string, unknown>): void {
  if (typeof name !== 'string') throw new ArgumentError(`${where}: the name of a tensor must be a string, got ${valueText(name)}.`)
  if (name === METADATA) throw new ArgumentError(`${where}: a tensor cannot be called '${METADATA}', which the format reserves for texts; rename it.`)
  if (name === '__proto__')
    throw new ArgumentError(`${where}: a tensor cannot be called '__proto__', which many readers take for a prototype; rename it.`)
  if (header.has(name)) throw new ArgumentError(`${where}: two tensors are called '${name}'; rename one of them.`)
}

function checkTexts(where: string, metadata: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  if (!isPlainObject(metadata)) throw new ArgumentError(`${where}: metadata must be an object of strings, got ${valueText(metadata)}.`)
  for (const [key, text] of Object.entries(metadata)) {
    if (key === '__proto__') throw new ArgumentError(`${where}: metadata cannot have the key '__proto__'; rename it.`)
    if (typeof text !== 'string') throw new ArgumentError(`${where}: metadata.${key} must be a string, got ${valueText(text)}.`)
  }
  return metadata
}

/**
 * Reads a safetensors file. Throws ArgumentError for bytes in another format, for a dtype that tensorfx does not have, and unless the tensors fill the data one
 * after the other, without overlaps and holes.
 */
export function readSafetensors(bytes: Uint8Array): Safetensors {
  checkCount('readSafetensors', arguments, 1)
  if (!(bytes instanceof Uint8Array))
    throw new ArgumentError(
      `readSafetensors: argument 'bytes' must be the bytes of a file as a Uint8Array, got ${valueText(bytes)}.${uncalledHint(bytes)}`,
    )
  if (bytes.length < PREFIX) throw malformed(`there are only ${bytes.length} bytes, but the length of the header alone takes ${PREFIX}`)
  const length = Number(new DataView(bytes.buffer, bytes.byteOffset).getBigUint64(0, true))
  if (length > bytes.length - PREFIX) throw malformed(`the header should have ${length} bytes, but the file has only ${bytes.length}`)
  if (length > MAX_HEADER) throw malformed(`the header has ${length} bytes, more than ${MAX_HEADER}`)
  const { entries, metadata } = parseHeader(bytes.subarray(PREFIX, PREFIX + length))
  const data = bytes.subarray(PREFIX + length)
  checkOffsets(entries, data.length)
  noteConversions(entries)
  return { tensors: new Map(entries.map((entry) => [entry.name, tensorOf(entry, data.subarray(entry.from, entry.to))])), metadata }
}

/** Reads parts of a file, one after the other. */
export interface PartReader {
  /** The size of the file; null if it is not known before the end. */
  readonly size: number | null
  /** The next bytes. Throws if there are fewer, unless that is allowed. */
  next(count: number): Promise<Uint8Array>
}

/** What the header of a file says, without its tensors' values. Throws ArgumentError for bytes in another format, as {@link readSafetensors} does. */
export async function readHeader(file: PartReader): Promise<Header> {
  const prefix = await file.next(PREFIX)
  const length = Number(new DataView(prefix.buffer, prefix.byteOffset).getBigUint64(0, true))
  if (length > MAX_HEADER) throw malformed(`the header has ${length} bytes, more than ${MAX_HEADER}`)
  const header = parseHeader(await file.next(length))
  const end = header.entries.reduce((most, { to }) => Math.max(most, to), 0)
  checkOffsets(header.entries, file.size === null ? end : file.size - PREFIX - length)
  return header
}

/** The same as {@link readSafetensors} for a file that is read tensor by tensor, so that it need not fit into memory next to them. */
export async function streamSafetensors(file: PartReader): Promise<Safetensors> {
  const { entries, metadata } = await readHeader(file)
  const inOrder = entries.toSorted((a, b) => a.from - b.from || a.to - b.to)
  noteConversions(entries)
  const read = new Map<string, Tensor>()
  for (const entry of inOrder) read.set(entry.name, tensorOf(entry, await file.next(entry.to - entry.from)))
  // In the order of the header.
  return {
    tensors: new Map(entries.flatMap(({ name }) => [read.get(name)].flatMap((t): [string, Tensor][] => (t === undefined ? [] : [[name, t]])))),
    metadata,
  }
}

function tensorOf({ name, dtype, shape, other }: Entry, bytes: Uint8Array): Tensor {
  if (other === null) return tensorFromBytes(bytes, shape, dtype)
  try {
    return tensorFromBytes(other.convert(bytes), shape, dtype)
  } catch (error) {
    throw new ArgumentError(
      `readSafetensors: tensor '${name}' cannot be converted to ${dtype}: ${error instanceof Error ? error.message : String(error)}.`,
    )
  }
}

/** Says once for each file which dtypes became others. */
function noteConversions(entries: readonly Entry[]): void {
  const kinds = new Map<string, string[]>()
  for (const { name, storedAs, other } of entries) if (other !== null) kinds.set(storedAs, [...(kinds.get(storedAs) ?? []), name])
  for (const [stored, names] of kinds)
    console.warn(
      `readSafetensors: ${names.length} tensor(s) of dtype ${stored}, which tensorfx does not have, became ${OTHER_DTYPES.get(stored)?.becomes ?? ''}: ${names.slice(0, 3).join(', ')}${names.length > 3 ? ', …' : ''}.`,
    )
}

const malformed = (what: string): ArgumentError => new ArgumentError(`readSafetensors: this is not a safetensors file: ${what}.`)

/** A tensor in the file. */
export interface Entry {
  readonly name: string
  readonly dtype: DType
  /** The dtype in the file. */
  readonly storedAs: string
  /** How to convert it; null for a dtype that tensorfx has. */
  readonly other: OtherDtype | null
  readonly shape: readonly number[]
  readonly from: number
  readonly to: number
}

/** The header of a file. */
export interface Header {
  readonly entries: readonly Entry[]
  readonly metadata: Safetensors['metadata']
}

function parseHeader(bytes: Uint8Array): Header {
  const header = parseJson('readSafetensors', 'the header of the file', headerText(bytes))
  if (!isPlainObject(header)) throw malformed('the header is not an object')
  const metadata: Record<string, string> = {}
  const entries: Entry[] = []
  const items = decode(
    'readSafetensors',
    mapOf((value, place) => ({ value, place })),
    header,
    'the header',
  )
  for (const [name, { value, place }] of items) {
    if (name === METADATA) for (const [key, text] of mapOf(string())(value, place)) metadata[key] = text
    else entries.push(readEntry(name, value, place))
  }
  if (entries.length > MAX_TENSORS) throw malformed(`it has ${entries.length} tensors, more than ${MAX_TENSORS}`)
  return { entries, metadata }
}

function headerText(bytes: Uint8Array): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    throw malformed('the header is not UTF-8')
  }
}

/** Checks what the header says about one tensor. */
function readEntry(name: string, value: unknown, place: Place): Entry {
  const { dtype: dtypeName, shape, data_offsets: offsets } = ENTRY(value, place)
  const other = OTHER_DTYPES.get(dtypeName) ?? null
  const dtype = other === null ? DTYPES.get(dtypeName) : other.becomes
  if (dtype === undefined)
    throw new ArgumentError(
      `readSafetensors: tensor '${name}' has dtype ${dtypeName}, but tensorfx only reads ${[...DTYPES.keys(), ...OTHER_DTYPES.keys()].join(', ')}; convert it first.`,
    )
  if (!Number.isSafeInteger(numelOf(shape.filter((size) => size > 0))))
    throw malformed(`the shape [${shape.join(', ')}] of tensor '${name}' is too large`)
  const [from, to] = offsets
  if (from === undefined || to === undefined) throw malformed(`the data_offsets of tensor '${name}' must be 2 numbers, got ${offsets.length}`)
  const wanted = numelOf(shape) * (other?.size ?? dtypeInfo[dtype].size)
  if (to - from !== wanted)
    throw malformed(`tensor '${name}' of shape [${shape.join(', ')}] should take ${wanted} bytes, but its data_offsets are ${from} and ${to}`)
  return { name, dtype, storedAs: dtypeName, other, shape, from, to }
}

/** Throws ArgumentError unless the tensors fill the data, one after the other. */
function checkOffsets(entries: readonly Entry[], length: number): void {
  let end = 0
  for (const { name, from, to } of entries.toSorted((a, b) => a.from - b.from || a.to - b.to)) {
    if (from !== end)
      throw malformed(
        `tensor '${name}' starts at ${from}, where ${from < end ? 'another tensor already is' : `${end} was expected: there is a hole`}`,
      )
    if (to > length) throw malformed(`tensor '${name}' ends at ${to}, but there are only ${length} bytes of data`)
    end = to
  }
  if (end !== length) throw malformed(`the tensors take ${end} bytes, but there are ${length} bytes of data`)
}

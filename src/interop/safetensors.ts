// The safetensors format: a JSON header followed by the tensors' bytes. Most frameworks can read and write it; https://github.com/huggingface/safetensors.
import { ArgumentError, messageOf } from '../errors/index.ts'
import { MAX_HEADER, MAX_TENSORS, METADATA, NAMES, PREFIX, checkOffsets, malformed, parseHeader, readHeader } from '../formats/safetensors.ts'
import type { Entry, PartReader } from '../formats/safetensors.ts'
import { OTHER_DTYPES } from '../formats/otherDtypes.ts'
import { dtypeInfo } from '../kernels/index.ts'
import { checkArray, checkCount, checkIterable, isModule, isPlainObject, uncalledHint, valueText } from '../protocol/index.ts'
import type { TensorLike } from '../protocol/index.ts'
import { Tensor, storedElements, tensorFromBytes } from '../tensor/index.ts'

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

/** Reads a file tensor by tensor, in the order of its data; `visit` gets each one. Returns the texts in the file, and the names in the order of the header. */
export async function visitSafetensors(
  file: PartReader,
  visit: (name: string, tensor: Tensor) => void,
): Promise<{ readonly metadata: Readonly<Record<string, string>>; readonly names: readonly string[] }> {
  const { entries, metadata } = await readHeader(file)
  noteConversions(entries)
  for (const entry of entries.toSorted((a, b) => a.from - b.from || a.to - b.to))
    visit(entry.name, tensorOf(entry, await file.next(entry.to - entry.from)))
  return { metadata, names: entries.map(({ name }) => name) }
}

/** The same as {@link readSafetensors} for a file that is read tensor by tensor, so that it need not fit into memory next to them. */
export async function streamSafetensors(file: PartReader): Promise<Safetensors> {
  const read = new Map<string, Tensor>()
  const { metadata, names } = await visitSafetensors(file, (name, tensor) => read.set(name, tensor))
  // In the order of the header.
  return {
    tensors: new Map(names.flatMap((name) => [read.get(name)].flatMap((t): [string, Tensor][] => (t === undefined ? [] : [[name, t]])))),
    metadata,
  }
}

/** A tensor of a file, from its bytes. */
export function tensorOf({ name, dtype, shape, other }: Entry, bytes: Uint8Array): Tensor {
  if (other === null) return tensorFromBytes(bytes, shape, dtype)
  try {
    return tensorFromBytes(other.convert(bytes), shape, dtype)
  } catch (error) {
    throw new ArgumentError(`readSafetensors: tensor '${name}' cannot be converted to ${dtype}: ${messageOf(error)}.`)
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

// The header of a safetensors file: names, dtypes, shapes and places of its tensors, and texts. interop/safetensors.ts reads and writes the tensors themselves.
import { ArgumentError } from '../errors/index.ts'
import type { DType } from '../kernels/index.ts'
import { dtypeInfo, isDType } from '../kernels/index.ts'
import { decode, integer, list, mapOf, name as nameText, object, string } from '../protocol/decode.ts'
import type { Place } from '../protocol/decode.ts'
import { parseJson } from '../protocol/jsonText.ts'
import { isPlainObject } from '../protocol/index.ts'
import { OTHER_DTYPES } from './otherDtypes.ts'
import type { OtherDtype } from './otherDtypes.ts'

/** The names of dtypes in files. */
export const NAMES: Readonly<Record<DType, string>> = {
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
  complex64: 'C64',
  complex128: 'C128',
}
const DTYPES = new Map(Object.entries(NAMES).flatMap(([dtype, name]): [string, DType][] => (isDType(dtype) ? [[name, dtype]] : [])))
/** The number of bytes of the header's length. */
export const PREFIX = 8
/** The name of the description of a GraphModule among the texts of a file. */
export const GRAPH_KEY = 'tensorfx.graphmodule'
export const METADATA = '__metadata__'
/** Longer headers are refused, as by the reference implementation. */
export const MAX_HEADER = 100_000_000
export const MAX_TENSORS = 100_000
const MAX_RANK = 64

const elementsOf = (shape: readonly number[]): number => shape.reduce((product, size) => product * size, 1)

/** What the header says about a tensor. */
const ENTRY = object({ dtype: nameText, shape: list(integer(), MAX_RANK), data_offsets: list(integer(), 2) })

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

export const malformed = (what: string): ArgumentError => new ArgumentError(`readSafetensors: this is not a safetensors file: ${what}.`)

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
  /** Additional texts in the file. */
  readonly metadata: Readonly<Record<string, string>>
}

export function parseHeader(bytes: Uint8Array): Header {
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
  if (!Number.isSafeInteger(elementsOf(shape.filter((size) => size > 0))))
    throw malformed(`the shape [${shape.join(', ')}] of tensor '${name}' is too large`)
  const [from, to] = offsets
  if (from === undefined || to === undefined) throw malformed(`the data_offsets of tensor '${name}' must be 2 numbers, got ${offsets.length}`)
  const wanted = elementsOf(shape) * (other?.size ?? dtypeInfo[dtype].size)
  if (to - from !== wanted)
    throw malformed(`tensor '${name}' of shape [${shape.join(', ')}] should take ${wanted} bytes, but its data_offsets are ${from} and ${to}`)
  return { name, dtype, storedAs: dtypeName, other, shape, from, to }
}

/** Throws ArgumentError unless the tensors fill the data, one after the other. */
export function checkOffsets(entries: readonly Entry[], length: number): void {
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

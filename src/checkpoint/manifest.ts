// The manifest of a checkpoint that several ranks wrote: which tensors it has, in which parts, and where these are. It is written last: a folder without one is no checkpoint.
import { ArgumentError } from '../errors/index.ts'
import { isDType } from '../kernels/index.ts'
import type { DType } from '../kernels/index.ts'
import { decode, integer, list, object, record, string } from '../protocol/decode.ts'
import type { Decoded, Decoder } from '../protocol/decode.ts'
import { parseJson } from '../protocol/jsonText.ts'

const SIZES = list(integer(0), 64)
const DTYPE: Decoder<DType> = (value, place) => (typeof value === 'string' && isDType(value) ? value : place.refuse('a dtype', value))

/** A part of a tensor: where it lies, and under which name it is in a rank's file. */
const PART = object({ rank: integer(0), key: string(), offsets: SIZES, sizes: SIZES })
export type StoredPart = Decoded<typeof PART>

const STORED = object({
  dtype: DTYPE,
  shape: SIZES,
  /** A part per rank at most. */
  parts: list(PART, 4096),
})
/** A tensor in parts that lie in several files. */
export type StoredTensor = Decoded<typeof STORED>

/** What a rank says of the parts that it holds. */
export const HELD = list(object({ name: string(), key: string(), dtype: DTYPE, shape: SIZES, offsets: SIZES, sizes: SIZES }))
export type Held = Decoded<typeof HELD>[number]

const MANIFEST = object({
  /** What a file of one process has among its texts, with the state of the parts that all ranks share. */
  metadata: record(string()),
  /** The state of each rank's own parts, as JSON. */
  ranks: list(string()),
  /** The bytes of each rank's file. */
  files: list(integer(0)),
  tensors: record(STORED),
})
export type Manifest = Decoded<typeof MANIFEST>

export const MANIFEST_FILE = 'manifest.json'
export const rankFile = (rank: number): string => `rank-${rank}.safetensors`

/** What the folder of a checkpoint holds. Throws ArgumentError for a file that is not a manifest. */
export function readManifestOf(fs: typeof import('node:fs'), where: string, path: string): Manifest {
  const text = fs.readFileSync(`${path}/${MANIFEST_FILE}`, 'utf8')
  const manifest = decode(where, MANIFEST, parseJson(where, MANIFEST_FILE, text), MANIFEST_FILE)
  if (manifest.ranks.length !== manifest.files.length)
    throw new ArgumentError(`${where}: ${MANIFEST_FILE} is damaged: it has ${manifest.ranks.length} ranks and ${manifest.files.length} files.`)
  return manifest
}

/** The parts of each tensor in all files, by name. Of those that several ranks hold, the first rank's is in its file. */
export function partsByName(reports: readonly (readonly Held[])[]): ReadonlyMap<string, StoredTensor> {
  const found = new Map<string, { dtype: DType; shape: readonly number[]; parts: Map<string, StoredPart> }>()
  for (const [rank, held] of reports.entries())
    for (const { name, key, dtype, shape, offsets, sizes } of held) {
      const known = found.get(name) ?? { dtype, shape, parts: new Map() }
      found.set(name, known)
      if (!known.parts.has(key)) known.parts.set(key, { rank, key, offsets, sizes })
    }
  return new Map([...found].map(([name, { dtype, shape, parts }]) => [name, { dtype, shape, parts: [...parts.values()] }]))
}

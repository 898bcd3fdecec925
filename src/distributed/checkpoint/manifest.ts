// What a checkpoint holds, as its manifest says. The manifest is written last: a checkpoint without one is not whole.
import { isDType } from '../../kernels/index.ts'
import type { DType } from '../../kernels/index.ts'
import { integer, list, number, object, oneOf, optional, record, string } from '../../protocol/decode.ts'
import type { Decoded, Decoder } from '../../protocol/decode.ts'
import { anyJson } from '../objects.ts'

export const SIZES = list(integer(0), 64)
const DTYPE: Decoder<DType> = (value, place) => (typeof value === 'string' && isDType(value) ? value : place.refuse('a dtype', value))

/** A part of a tensor: where it lies, and under which name it is in a rank's file. */
const PART = object({ rank: integer(0), key: string(), offsets: SIZES, sizes: SIZES })
export type Part = Decoded<typeof PART>

const STORED = object({
  dtype: DTYPE,
  shape: SIZES,
  /** A part per rank at most. */
  parts: list(PART, 4096),
})
/** A tensor in parts that lie in several files. */
export type StoredTensor = Decoded<typeof STORED>

/** The state of a generator of random numbers. */
export const GENERATOR = object({ seed: integer(0), offset: integer(0) })

export const FORMAT = 'tensorfx-sharded-checkpoint'

export const MANIFEST = object({
  format: oneOf([FORMAT]),
  version: oneOf([1]),
  /** The bytes of each rank's file. */
  files: list(integer(0)),
  /** The model's tensors by name. */
  model: record(STORED),
  /** The optimizer's state by the parameters' names. */
  optimizer: optional(object({ tensors: record(record(STORED)), numbers: record(record(number)), paramGroups: list(record(anyJson)) })),
  /** The state of each rank's generator of random numbers. */
  generators: list(GENERATOR),
  values: record(anyJson),
})
export type Manifest = Decoded<typeof MANIFEST>

export const MANIFEST_FILE = 'manifest.json'
export const rankFile = (rank: number): string => `rank-${rank}.safetensors`

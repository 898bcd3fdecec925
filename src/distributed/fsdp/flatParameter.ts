// The layout of a flat parameter: where each parameter of a unit lies in one long vector, and which part of it each rank holds. Pure arithmetic, no tensors and no
// process group.
import { ArgumentError } from '../../errors/index.ts'
import { checkArgument, checkArray, checkOptions, isPlainObject } from '../../protocol/index.ts'

/** A parameter of a unit. */
export interface FlatEntry {
  /** Its name in its module: `weight`. */
  readonly name: string
  /** The path of its module from the unit; '' for the unit itself. */
  readonly modulePath: string
  readonly shape: readonly number[]
  /** For `fullyShard`, the dimension that the ranks divide. Default 0. */
  readonly shardDim?: number
}

/** A second place of a parameter: the two names, and the place where it is stored. */
export interface SharedEntry {
  readonly name: string
  readonly modulePath: string
  readonly primaryName: string
  readonly primaryPath: string
}

/** A stretch of the flat parameter: a parameter, or a gap before the next one. */
export interface FlatSegment {
  readonly offset: number
  readonly numel: number
  readonly isPadding: boolean
}

/** Where the parameters of a unit lie. Offsets and sizes are in elements. */
export interface FlatLayout {
  readonly entries: readonly FlatEntry[]
  readonly shared: readonly SharedEntry[]
  /** The names of the parameters from the unit: `net.0.weight`. */
  readonly names: readonly string[]
  readonly numels: readonly number[]
  /** Where each parameter starts. */
  readonly offsets: readonly number[]
  /** Parameters and gaps, in order. */
  readonly segments: readonly FlatSegment[]
  /** All parameters and gaps. PyTorch's `_unpadded_unsharded_size`. */
  readonly numel: number
  readonly shards: number
  /** How much each rank stores. */
  readonly shardNumel: number
  /** `shards * shardNumel`. PyTorch's `_padded_unsharded_size`. */
  readonly paddedNumel: number
}

/** The part of a parameter that a rank stores; nulls if it has none. PyTorch's `_ShardParamInfo`. */
export interface ShardParamInfo {
  readonly inShard: boolean
  /** Where the part starts in the shard. */
  readonly offsetInShard: number | null
  readonly numelInShard: number | null
  /** The first and the last element of the parameter that belong to the part. */
  readonly intraParamStartIdx: number | null
  readonly intraParamEndIdx: number | null
}

/** What a rank's shard holds, by parameter. PyTorch's `FlatParamShardMetadata`. */
export interface FlatShardMetadata {
  readonly paramNames: readonly string[]
  readonly paramShapes: readonly (readonly number[])[]
  readonly paramNumels: readonly number[]
  /** The first and the last element of each that the shard holds. */
  readonly paramOffsets: readonly (readonly [number, number])[]
}

/** How a flat parameter is laid out. */
export interface FlatLayoutOptions {
  /** Among how many ranks it is divided. */
  readonly shards: number
  /** Each parameter starts at a multiple of this many elements, and the sum is a multiple of `worldSize`; 0: no gaps. Default 0. */
  readonly align?: number
  /** Default: `shards`. */
  readonly worldSize?: number
  readonly shared?: readonly SharedEntry[]
}

const numelOf = (shape: readonly number[]): number => shape.reduce((a, b) => a * b, 1)

const WHERE = 'flatLayout'

const checkCount = (name: string, value: unknown, least: number): void =>
  checkArgument(Number.isSafeInteger(value) && Number(value) >= least, WHERE, name, `an integer of at least ${least}`, value)

/** Throws ArgumentError unless it is what {@link flatLayout} returns. */
const checkLayout = (where: string, layout: unknown): void =>
  checkArgument(
    isPlainObject(layout) && Array.isArray(layout['offsets']) && Array.isArray(layout['numels']),
    where,
    'layout',
    'what flatLayout returns',
    layout,
  )

/** `net.0` and `weight` make `net.0.weight`. */
export const joinPath = (path: string, name: string): string => (path === '' ? name : `${path}.${name}`)

/**
 * Lays parameters out one after the other. Throws ArgumentError for a parameter of no dimensions.
 *
 * @example flatLayout([{ name: 'weight', modulePath: '', shape: [7, 5] }], { shards: 2 }).shardNumel // 18
 */
export function flatLayout(entries: readonly FlatEntry[], options: FlatLayoutOptions): FlatLayout {
  checkArray(WHERE, 'entries', entries)
  for (const [i, entry] of entries.entries())
    checkArgument(isPlainObject(entry) && Array.isArray(entry['shape']), WHERE, `entries[${i}]`, 'an object { name, modulePath, shape }', entry)
  checkOptions(WHERE, options, { shards: 'number', align: 'number', worldSize: 'number', shared: true })
  const { shards, align = 0, worldSize = shards, shared = [] } = options
  checkCount('shards', shards, 1)
  checkCount('align', align, 0)
  checkCount('worldSize', worldSize, 1)
  const segments: FlatSegment[] = []
  let at = 0
  const add = (numel: number, isPadding: boolean): void => {
    segments.push({ offset: at, numel, isPadding })
    at += numel
  }
  for (const { name, modulePath, shape } of entries) {
    if (shape.length === 0)
      throw new ArgumentError(`FSDP doesn't support scalar parameters. Change ${joinPath(modulePath, name)} to a 1D tensor with numel equal to 1.`)
    if (align > 0 && at % align !== 0) add(align - (at % align), true)
    add(numelOf(shape), false)
  }
  if (align > 0 && at % worldSize !== 0) add(worldSize - (at % worldSize), true)
  const shardNumel = Math.ceil(at / shards)
  const own = segments.filter(({ isPadding }) => !isPadding)
  return {
    entries,
    shared,
    names: entries.map(({ name, modulePath }) => joinPath(modulePath, name)),
    numels: own.map(({ numel }) => numel),
    offsets: own.map(({ offset }) => offset),
    segments,
    numel: at,
    shards,
    shardNumel,
    paddedNumel: shardNumel * shards,
  }
}

/** The elements of a rank's shard that are only there so that all shards are equally long. */
export function shardPadding(layout: FlatLayout, rank: number): number {
  checkLayout('shardPadding', layout)
  const { numel, shardNumel } = layout
  return shardNumel - Math.max(0, Math.min(shardNumel, numel - rank * shardNumel))
}

const NOT_IN_SHARD: ShardParamInfo = {
  inShard: false,
  offsetInShard: null,
  numelInShard: null,
  intraParamStartIdx: null,
  intraParamEndIdx: null,
}

/** Which part of each parameter a rank's shard holds. */
export function shardParamInfos(layout: FlatLayout, rank: number): ShardParamInfo[] {
  checkLayout('shardParamInfos', layout)
  const start = rank * layout.shardNumel
  const end = start + layout.shardNumel
  return layout.offsets.map((offset, i) => {
    const first = Math.max(offset, start)
    const last = Math.min(offset + (layout.numels[i] ?? 0), end)
    if (first >= last) return NOT_IN_SHARD
    return {
      inShard: true,
      offsetInShard: first - start,
      numelInShard: last - first,
      intraParamStartIdx: first - offset,
      intraParamEndIdx: last - offset - 1,
    }
  })
}

/** What a rank's shard holds. PyTorch's `shard_metadata`. */
export function shardMetadata(layout: FlatLayout, rank: number): FlatShardMetadata {
  const held = shardParamInfos(layout, rank).flatMap(({ inShard, intraParamStartIdx, intraParamEndIdx }, i) =>
    inShard && intraParamStartIdx !== null && intraParamEndIdx !== null ? [{ i, range: [intraParamStartIdx, intraParamEndIdx] as const }] : [],
  )
  return {
    paramNames: held.map(({ i }) => layout.names[i] ?? ''),
    paramShapes: held.map(({ i }) => layout.entries[i]?.shape ?? []),
    paramNumels: held.map(({ i }) => layout.numels[i] ?? 0),
    paramOffsets: held.map(({ range }) => range),
  }
}

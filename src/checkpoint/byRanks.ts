// A checkpoint that several ranks write: each a file with its parts of the tensors, the first a manifest at the end.
import { noGrad } from '../autograd/index.ts'
import { ArgumentError } from '../errors/index.ts'
import { writeWhole } from '../interop/atomicFile.ts'
import { safetensorsParts } from '../interop/safetensors.ts'
import { SafetensorsFile } from '../interop/safetensorsFile.ts'
import { decode } from '../protocol/decode.ts'
import { isPlainObject, setOwn } from '../protocol/index.ts'
import { parseJson } from '../protocol/jsonText.ts'
import { Tensor } from '../tensor/index.ts'
import type { CheckpointFiles } from './folder.ts'
import { metadataOf, readMetadata } from './format.ts'
import type { About } from './format.ts'
import { HELD, partsByName, rankFile, readManifestOf } from './manifest.ts'
import type { Held, Manifest, StoredPart, StoredTensor } from './manifest.ts'
import { isOfEachRank } from './parts.ts'
import type { Part } from './part.ts'
import { decodeState, encodeState, statesOf } from './stateTree.ts'
import type { EncodedState, ReadState } from './stateTree.ts'
import type { Team } from './team.ts'

type Fs = typeof import('node:fs')

/** What is saved: the state of all parts, what the program adds, and what the checkpoint says of itself. */
interface Saved {
  readonly parts: readonly Part[]
  readonly extra: unknown
  readonly about: About
}

type OwnStates = Pick<ReadState, 'states' | 'unfit'>

/** What this rank writes of a tensor. */
interface HeldPart extends Held {
  readonly tensor: Tensor
}

/** The parts of tensors that this rank holds. Of those that are not divided the first rank writes its own. */
function heldParts({ tensors }: EncodedState, isWritten: boolean): HeldPart[] {
  return [...tensors].flatMap(([name, value]): HeldPart[] => {
    const { dtype, shape } = value
    if (!(value instanceof Tensor))
      return value.localShards.map(({ tensor, offsets }) => ({
        name,
        key: `${name}@${offsets.join(',')}`,
        dtype: tensor.dtype,
        shape,
        offsets,
        sizes: tensor.sizes,
        tensor,
      }))
    return isWritten ? [{ name, key: name, dtype, shape, offsets: shape.map(() => 0), sizes: value.sizes, tensor: value }] : []
  })
}

/** Writes a checkpoint of this number, by default the next. All ranks call it. Returns its path. */
export function saveByRanks(where: string, team: Team, files: CheckpointFiles, { parts, extra, about }: Saved, number?: number): string {
  const fs = process.getBuiltinModule('node:fs')
  const isFirst = team.rank === 0
  // Ranks read divided states together.
  const states = parts.map(({ name, read }) => ({ name, state: read() }))
  const statesOf = (own: boolean): Record<string, unknown> =>
    Object.fromEntries(states.flatMap(({ name, state }) => (isOfEachRank(name) === own ? [[name, state]] : [])))
  const { shared, own } = team.each(where, 'save its state', () => ({
    shared: encodeState(where, { parts: statesOf(false), ...(isFirst ? { extra } : {}) }),
    own: encodeState(where, { [`ranks.${team.rank}`]: statesOf(true) }),
  }))
  const held = [...heldParts(shared, isFirst), ...heldParts(own, true)]
  const path = team.first(where, 'make the folder of a checkpoint', () => {
    files.make()
    return files.makePlace(number ?? files.next())
  })
  const reports = team.gather(held.map(({ tensor: _tensor, ...rest }) => rest)).map((given) => decode(where, HELD, given, 'what a rank holds'))
  const stored = partsByName(reports)
  const written = held.filter(({ name, key }) => stored.get(name)?.parts.some((part) => part.rank === team.rank && part.key === key) ?? false)
  const bytes = team.each(where, `write to ${path}`, () => {
    const file = safetensorsParts(
      where,
      written.map(({ key, tensor }) => [key, tensor] as const),
      {},
    )
    writeWhole(fs, `${path}/${rankFile(team.rank)}`, (draft) => {
      for (const part of file.parts) for (let at = 0; at < part.length;) at += fs.writeSync(draft, part, at)
    })
    return file.size
  })
  const ranks = team.gather({ bytes, own: JSON.stringify(own.json) }).map((given) => (isPlainObject(given) ? given : {}))
  team.first(where, 'write the manifest', () => {
    // A tensor without elements is in no file.
    const empty = [...shared.tensors].flatMap(([name, { dtype, shape }]) => (stored.has(name) ? [] : [[name, { dtype, shape, parts: [] }] as const]))
    const manifest: Manifest = {
      metadata: metadataOf(shared.json, about),
      ranks: ranks.map((rank) => String(rank['own'])),
      files: ranks.map((rank) => Number(rank['bytes'])),
      tensors: Object.fromEntries([...stored, ...empty]),
    }
    files.writeManifest(path, manifest)
    return true
  })
  return path
}

/** Reads a checkpoint that any number of ranks wrote. Each rank reads all of it, but of other ranks' own parts. */
export function readByRanks(where: string, path: string, team: Team): ReadState {
  const fs = process.getBuiltinModule('node:fs')
  const manifest = readManifestOf(fs, where, path)
  const reader = new PartsReader(fs, where, path, manifest)
  try {
    const { about, state } = readMetadata(where, manifest.metadata)
    const shared = statesOf(where, decodeState(where, parseJson(where, 'the state in the checkpoint', state), reader))
    const own = ownStates(where, manifest, reader, team)
    return { about, extra: shared.extra, states: { ...shared.states, ...own.states }, unfit: own.unfit }
  } finally {
    reader.close()
  }
}

/** The states of this rank's own parts. On another number of ranks, those that all ranks have in common; `unfit` says of the others why they are not there. */
function ownStates(where: string, { ranks }: Manifest, reader: PartsReader, team: Team): OwnStates {
  const parsed = ranks.map((text, rank) => {
    const read = parseJson(where, `the state of rank ${rank}`, text)
    const states = isPlainObject(read) ? read[`ranks.${rank}`] : undefined
    if (!isPlainObject(states)) throw new ArgumentError(`${where}: the checkpoint is damaged: rank ${rank} has no state. Use an older one.`)
    return states
  })
  const own = parsed[ranks.length === team.size ? team.rank : 0] ?? {}
  const states: Record<string, unknown> = {}
  const unfit: Record<string, string> = {}
  for (const [name, state] of Object.entries(own)) {
    const isCommon = new Set(parsed.map((one) => JSON.stringify(one[name]))).size === 1
    const isWithinPass = isPlainObject(state) && isPlainObject(state['pass'])
    if (ranks.length === team.size || (isCommon && !isWithinPass)) setOwn(states, name, decodeState(where, state, reader))
    else
      setOwn(
        unfit,
        name,
        `'${name}' was saved by ${ranks.length} ranks, and ${isWithinPass ? 'is in the middle of a pass over their shares of the data' : 'is another one on each'}, so that ${team.size} cannot go on with it. Load it on ${ranks.length} ranks, or leave it out.`,
      )
  }
  return { states, unfit }
}

/** Whether two parts have an element in common. */
const overlap = (a: StoredPart, b: StoredPart): boolean =>
  a.offsets.every((start, d) => start < (b.offsets[d] ?? 0) + (b.sizes[d] ?? 0) && (b.offsets[d] ?? 0) < start + (a.sizes[d] ?? 0))

/** Reads tensors from the parts in all files. */
class PartsReader {
  readonly #fs: Fs
  readonly #where: string
  readonly #path: string
  readonly #files: number
  readonly #tensors: ReadonlyMap<string, StoredTensor>
  readonly #open = new Map<number, SafetensorsFile>()

  constructor(fs: Fs, where: string, path: string, manifest: Manifest) {
    this.#fs = fs
    this.#where = where
    this.#path = path
    this.#files = manifest.files.length
    this.#tensors = new Map(Object.entries(manifest.tensors))
  }

  close(): void {
    for (const file of this.#open.values()) file.close()
  }

  #file(rank: number): SafetensorsFile {
    const known = this.#open.get(rank)
    if (known !== undefined) return known
    if (rank >= this.#files)
      throw new ArgumentError(`${this.#where}: the checkpoint is damaged: it has ${this.#files} files, and no ${rankFile(rank)}.`)
    const file = new SafetensorsFile(this.#fs, this.#where, `${this.#path}/${rankFile(rank)}`)
    this.#open.set(rank, file)
    return file
  }

  /** A whole tensor; undefined for an unknown name. Throws ArgumentError unless its parts are there, and cover it, each element once. */
  get(name: string): Tensor | undefined {
    const stored = this.#tensors.get(name)
    if (stored === undefined) return undefined
    const { dtype, shape, parts } = stored
    const found = parts.map((part, i) => {
      const { rank, key, offsets, sizes } = part
      const tensor = this.#file(rank).tensor(key)
      const fits =
        tensor !== undefined &&
        tensor.dtype === dtype &&
        String(tensor.sizes) === String(sizes) &&
        offsets.length === shape.length &&
        shape.every((size, dim) => (offsets[dim] ?? 0) + (sizes[dim] ?? 0) <= size)
      if (!fits || parts.slice(0, i).some((earlier) => overlap(earlier, part)))
        throw new ArgumentError(`${this.#where}: the part of '${name}' at [${offsets.join(', ')}] in ${rankFile(rank)} is not as the manifest says.`)
      return { tensor, offsets, sizes }
    })
    const covered = found.reduce((sum, { tensor }) => sum + tensor.numel, 0)
    const numel = shape.reduce((a, b) => a * b, 1)
    if (covered !== numel) throw new ArgumentError(`${this.#where}: the parts of '${name}' have ${covered} elements, the tensor has ${numel}.`)
    const whole = Tensor.empty(shape, dtype)
    noGrad(() => {
      for (const { tensor, offsets, sizes } of found)
        offsets.reduce((view, offset, dim) => view.narrow(dim, offset, sizes[dim] ?? 0), whole).copy_(tensor)
    })
    return whole
  }
}

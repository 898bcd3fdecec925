// loadCheckpoint: a training goes on from the state in a file.
import { ArgumentError } from '../errors/index.ts'
import { bytesOf, withParts } from '../interop/fileSource.ts'
import type { FileSource } from '../interop/fileSource.ts'
import { streamSafetensors } from '../interop/safetensors.ts'
import type { Safetensors } from '../interop/safetensors.ts'
import { parseJson } from '../protocol/jsonText.ts'
import { checkCount, checkOptions, entryOf, valueText } from '../protocol/index.ts'
import { readByRanks } from './byRanks.ts'
import { CheckpointFiles } from './folder.ts'
import { readMetadata } from './format.ts'
import { MANIFEST_FILE } from './manifest.ts'
import { RANDOM, checkParts, loadParts, modelsOf, partsOf } from './parts.ts'
import type { Part } from './part.ts'
import type { CheckpointParts } from './parts.ts'
import { pathOf } from './save.ts'
import { decodeState, statesOf } from './stateTree.ts'
import type { ReadState } from './stateTree.ts'
import { ALONE, ranksOrNull, teamOrNull } from './team.ts'
import type { RankGroup, Team } from './team.ts'

/** What {@link loadCheckpoint} returns. */
export interface LoadedCheckpoint<E = unknown> {
  /** What the checkpoint was saved with. Its type is what the caller says. */
  readonly extra: E
  readonly score: number | null
  /** The path of the file, or of the folder that several ranks wrote; null if it has none. */
  readonly path: string | null
}

/** Options of {@link loadCheckpoint}. */
export interface LoadCheckpointOptions {
  /** Which checkpoint of a folder: the newest, or the one with the best score. Default `'last'`. */
  readonly which?: 'last' | 'best'
  /** The ranks that load together. Default: all ranks, if a model is one of DistributedDataParallel or FSDP; otherwise this process alone. */
  readonly group?: RankGroup
}

/**
 * Loads what {@link saveCheckpoint} saved into models, optimizers and so on, all or nothing, and sets the default generator. The source is a folder, or a file: its path, URL, Blob or
 * bytes. Returns what was saved as `extra`; null for a folder without checkpoints, so that a program can begin and go on by the same call. Parts that are left out of `state` stay as
 * they are.
 *
 * A model that ranks hold in parts is loaded by all of them together, whatever the number of ranks that saved it. Random numbers and DataLoaders in the middle of a pass go on on the same
 * number of ranks only; on another one the default generator stays as it is. PyTorch's `torch.distributed.checkpoint.load`.
 *
 * @throws ArgumentError for a file of another kind or of a newer version, for a damaged one, and for a part that the file does not have; LoadStateError for another model;
 *   DistributedError if another rank cannot load it. Nothing is changed then.
 * @example
 * const loaded = await loadCheckpoint<{ epoch: number }>('checkpoints', { model, optimizer, schedulers: schedule, data: loader })
 * let epoch = loaded?.extra.epoch ?? 0
 */
export async function loadCheckpoint<E = unknown>(
  source: FileSource,
  state: CheckpointParts = {},
  options: LoadCheckpointOptions = {},
): Promise<LoadedCheckpoint<E> | null> {
  checkCount('loadCheckpoint', arguments, 3)
  const where = 'loadCheckpoint'
  checkOptions(where, options, { which: true, group: true })
  const { which = 'last', group } = options
  if (which !== 'last' && which !== 'best') throw new ArgumentError(`${where}: option 'which' must be 'last' or 'best', got ${valueText(which)}.`)
  checkParts(where, state, {})
  const ranks = ranksOrNull()
  const together = teamOrNull(where, modelsOf(state), group)
  const team = together ?? ALONE
  // Refuses what has no state before anything is read.
  const parts = partsOf(where, state, together === null ? null : ranks)
  const found = team.first(where, `look for a checkpoint in ${valueText(source)}`, () => find(where, source, which))
  if (found === null) return null
  if (found.isOfRanks && ranks === null)
    throw new ArgumentError(`${where}: several ranks wrote this checkpoint; import 'tensorfx/distributed' in the program that loads it.`)
  const file = found.path ?? (isBytes(source) ? await bytesOf(where, source) : source)
  const outcome = await outcomeOf(async () =>
    typeof file === 'string' && found.isOfRanks ? readByRanks(where, file, team) : readFile(where, await withParts(where, file, streamSafetensors)),
  )
  const read = team.each(where, `read ${found.path ?? 'the checkpoint'}`, outcome)
  loadStates(where, found.isOfRanks ? partsOf(where, state, ranks) : parts, read, team)
  return { extra: read.extra as E, score: read.about.score, path: found.path }
}

/** Runs `work`, and returns what gives its result, or throws its error. */
const outcomeOf = <T>(work: () => Promise<T>): Promise<() => T> =>
  work().then(
    (value) => () => value,
    (error: unknown) => () => {
      throw error
    },
  )

/** Loads the state in a file into parts, all or none. */
export function loadFile(where: string, file: Safetensors, parts: readonly Part[]): Pick<LoadedCheckpoint, 'score' | 'extra'> {
  const read = readFile(where, file)
  loadStates(where, parts, read, ALONE)
  return { score: read.about.score, extra: read.extra }
}

/** What the file of one process holds. */
function readFile(where: string, { tensors, metadata }: Safetensors): ReadState {
  const { about, state } = readMetadata(where, metadata)
  return { about, ...statesOf(where, decodeState(where, parseJson(where, 'the state in the checkpoint', state), tensors)), unfit: {} }
}

/** Loads what was read into parts, all or none. */
export function loadStates(where: string, parts: readonly Part[], { states, unfit }: ReadState, team: Team): void {
  const reason = parts.flatMap(({ name }) => (name === RANDOM ? [] : (entryOf(unfit, name) ?? [])))[0]
  if (reason !== undefined) throw new ArgumentError(`${where}: ${reason}`)
  const wanted = parts.filter(({ name }) => entryOf(unfit, name) === undefined)
  loadParts(where, wanted, states, team)
}

/** The checkpoint to load; null for a folder without checkpoints, and for one that is not there yet. A source without a path is the checkpoint itself. */
function find(where: string, source: FileSource, which: 'last' | 'best'): { readonly path: string | null; readonly isOfRanks: boolean } | null {
  const fs = globalThis.process?.getBuiltinModule?.('node:fs')
  const isPath = typeof source === 'string' || (source instanceof URL && source.protocol === 'file:')
  if (!isPath || fs === undefined) return { path: null, isOfRanks: false }
  const path = pathOf(where, source)
  if (path.endsWith('.safetensors') || fs.statSync(path, { throwIfNoEntry: false })?.isFile() === true) return { path, isOfRanks: false }
  if (fs.existsSync(`${path}/${MANIFEST_FILE}`)) return { path, isOfRanks: true }
  const files = new CheckpointFiles(fs, where, path)
  const found = which === 'best' ? files.best() : files.newest()
  return found === null ? null : { path: found, isOfRanks: !found.endsWith('.safetensors') }
}

const isBytes = (source: FileSource): boolean => source instanceof Uint8Array || source instanceof ArrayBuffer

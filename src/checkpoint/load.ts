// loadCheckpoint: a training goes on from the state in a file.
import { ArgumentError } from '../errors/index.ts'
import { bytesOf, withParts } from '../interop/fileSource.ts'
import type { FileSource } from '../interop/fileSource.ts'
import { streamSafetensors } from '../interop/safetensors.ts'
import type { Safetensors } from '../interop/safetensors.ts'
import { parseJson } from '../protocol/jsonText.ts'
import { checkCount, checkOptions, isPlainObject, valueText } from '../protocol/index.ts'
import { CheckpointFiles } from './folder.ts'
import { aboutFile, readMetadata } from './format.ts'
import { checkParts, loadParts, partsOf } from './parts.ts'
import type { CheckpointParts, Part } from './parts.ts'
import { pathOf } from './save.ts'
import { decodeState } from './stateTree.ts'

/** What {@link loadCheckpoint} returns. */
export interface LoadedCheckpoint<E = unknown> {
  /** What the checkpoint was saved with. Its type is what the caller says. */
  readonly extra: E
  readonly score: number | null
  /** The path of the file; null if it has none. */
  readonly path: string | null
}

/** Options of {@link loadCheckpoint}. */
export interface LoadCheckpointOptions {
  /** Which checkpoint of a folder: the newest, or the one with the best score. Default `'last'`. */
  readonly which?: 'last' | 'best'
}

/**
 * Loads what {@link saveCheckpoint} saved into models, optimizers and so on, all or nothing, and sets the default generator. The source is a folder, or a file: its path, URL, Blob or
 * bytes. Returns what was saved as `extra`; null for a folder without checkpoints, so that a program can begin and go on by the same call. Parts that are left out of `state` stay as
 * they are.
 *
 * @throws ArgumentError for a file of another kind or of a newer version, for a damaged one, and for a part that the file does not have; LoadStateError for another model. Nothing is changed then.
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
  checkOptions(where, options, { which: true })
  const { which = 'last' } = options
  if (which !== 'last' && which !== 'best') throw new ArgumentError(`${where}: option 'which' must be 'last' or 'best', got ${valueText(which)}.`)
  checkParts(where, state, {})
  const parts = partsOf(where, state)
  const file = await fileOf(where, source, which)
  if (file === null) return null
  const { score, extra } = loadFile(where, await withParts(where, file, streamSafetensors), parts)
  return { extra: extra as E, score, path: typeof file === 'string' ? file : null }
}

/** Loads the state in a file into parts, all or none. */
export function loadFile(
  where: string,
  { tensors, metadata }: Safetensors,
  parts: readonly Part[],
): { readonly score: number | null; readonly extra: unknown } {
  const { about, state } = readMetadata(where, metadata)
  const read = decodeState(where, parseJson(where, 'the state in the checkpoint', state), tensors)
  if (!isPlainObject(read) || !isPlainObject(read['parts']))
    throw new ArgumentError(`${where}: the checkpoint is damaged: it has no parts. Use an older one.`)
  loadParts(where, parts, read['parts'])
  return { score: about.score, extra: read['extra'] }
}

/** The file to load; null for a folder without checkpoints, and for one that is not there yet. */
async function fileOf(where: string, source: FileSource, which: 'last' | 'best'): Promise<FileSource | null> {
  const fs = globalThis.process?.getBuiltinModule?.('node:fs')
  const isPath = typeof source === 'string' || (source instanceof URL && source.protocol === 'file:')
  if (!isPath || fs === undefined) return isBytes(source) ? bytesOf(where, source) : source
  const path = pathOf(where, source)
  if (path.endsWith('.safetensors') || fs.statSync(path, { throwIfNoEntry: false })?.isFile() === true) return path
  const folder = new CheckpointFiles(fs, path)
  const [last] = folder.numbers()
  const number = which === 'best' ? await folder.best((one) => aboutFile(where, one)) : last
  return number === undefined || number === null ? null : folder.pathOf(number)
}

const isBytes = (source: FileSource): boolean => source instanceof Uint8Array || source instanceof ArrayBuffer

// saveCheckpoint: the state of a training in one file, which is there whole or not at all.
import { ArgumentError, UnsupportedError } from '../errors/index.ts'
import { writeWhole } from '../interop/atomicFile.ts'
import { safetensorsParts } from '../interop/safetensors.ts'
import type { FileParts } from '../interop/safetensors.ts'
import { checkCount, checkOptions, isFunction, isObject, valueText } from '../protocol/index.ts'
import { Tensor } from '../tensor/index.ts'
import { saveByRanks } from './byRanks.ts'
import { CheckpointFiles } from './folder.ts'
import { metadataOf } from './format.ts'
import type { About } from './format.ts'
import { checkParts, modelsOf, partsOf } from './parts.ts'
import type { CheckpointParts } from './parts.ts'
import { encodeState } from './stateTree.ts'
import type { EncodedState } from './stateTree.ts'
import { ranksOrNull, teamOrNull } from './team.ts'
import type { RankGroup, Team } from './team.ts'

/** What to save. */
export interface CheckpointState extends CheckpointParts {
  /** What the program needs beside: the step, the best loss, settings. Tensors, numbers, texts, arrays, objects and Maps of these. */
  readonly extra?: unknown
}

/** Options of {@link saveCheckpoint}. */
export interface SaveCheckpointOptions {
  /** In a folder: the number of the checkpoint, such as the step. Default: one more than the newest. */
  readonly number?: number
  /** In a folder: how many of the newest checkpoints stay. Default 3. */
  readonly keep?: number
  /** How good the model is: in a folder, the checkpoint with the best score stays too. */
  readonly score?: number
  /** Whether the best score is the least or the greatest. Default `'min'`, as of a loss. */
  readonly mode?: 'min' | 'max'
  /** The ranks that save together. Default: all ranks, if a model is one of DistributedDataParallel or FSDP; otherwise this process alone. */
  readonly group?: RankGroup
}

/** A file of a browser's private file system, as `directory.getFileHandle(name, { create: true })` gives it. */
export interface WritableHandle {
  createWritable(): Promise<{ write(data: Uint8Array): Promise<void>; close(): Promise<void>; abort(): Promise<void> }>
}

const isHandle = (target: unknown): target is WritableHandle => isObject(target) && isFunction(Reflect.get(target, 'createWritable'))

function checkedOptions(where: string, options: SaveCheckpointOptions): Required<Pick<SaveCheckpointOptions, 'keep' | 'mode'>> & About {
  checkOptions(where, options, { number: 'number', keep: 'number', score: 'number', mode: true, group: true })
  const { keep = 3, mode = 'min', number, score } = options
  if (!Number.isSafeInteger(keep) || keep < 1) throw new ArgumentError(`${where}: keep must be an integer from 1 on, got ${valueText(keep)}.`)
  if (mode !== 'min' && mode !== 'max') throw new ArgumentError(`${where}: mode must be 'min' or 'max', got ${valueText(mode)}.`)
  if (number !== undefined && !(Number.isSafeInteger(number) && number >= 0))
    throw new ArgumentError(`${where}: number must be an integer from 0 on, got ${valueText(number)}.`)
  return { keep, mode, score: score ?? null }
}

/** The file of a state, in parts. */
export function filePartsOf(where: string, state: CheckpointState, about: About): FileParts {
  checkParts(where, state, { extra: true })
  const states: Record<string, unknown> = {}
  for (const part of partsOf(where, state)) states[part.name] = part.read()
  const { json, tensors } = encodeState(where, { parts: states, extra: state.extra })
  return safetensorsParts(where, wholeTensors(where, tensors), metadataOf(json, about))
}

/** Tensors that one process has. Throws ArgumentError for one of which ranks hold parts. */
function wholeTensors(where: string, tensors: EncodedState['tensors']): Map<string, Tensor> {
  return new Map(
    [...tensors].map(([name, value]) => {
      if (!(value instanceof Tensor))
        throw new ArgumentError(`${where}: ${name} is ${valueText(value)}, of which this rank has a part only. Save on all ranks, with { group }.`)
      return [name, value]
    }),
  )
}

/**
 * Saves the state of a training: of models, optimizers, schedules, a GradScaler, generators, DataLoaders, and whatever else it needs to go on; that of the default generator is always
 * there. The target is a path that ends in `.safetensors`, a folder, or the handle of a file in a browser's private file system. In a folder, each checkpoint has a number, the newest few
 * stay, and the best. The file is written under another name, forced to the disk and renamed, so that a crash at any moment leaves the checkpoints before as they are. Returns the
 * path; null for a handle.
 *
 * Tensors are written one after the other, without a second copy of all. PyTorch's `torch.save` of a dict of state dicts.
 *
 * With a model of DistributedDataParallel or FSDP, or with `group`, all ranks call it together, and the target is a folder that all can write to. A checkpoint is a folder there: each rank writes a
 * file with its parts of the models and of their optimizers' states, its random numbers and the place of its DataLoader; the first writes the rest, and at the end the manifest that makes it a
 * checkpoint. Any number of ranks, and one process, can load it. PyTorch's `torch.distributed.checkpoint.save`.
 *
 * @throws ArgumentError for a part without a state, and for values that a file cannot hold. DistributedError if another rank cannot save. UnsupportedError for a path where there is no file system: write to a handle, or take {@link checkpointBlob}.
 * @example
 * await saveCheckpoint('checkpoints', { model, optimizer, schedulers: schedule, data: loader, extra: { epoch } }, { score: loss })
 */
export async function saveCheckpoint(
  target: string | URL | WritableHandle,
  state: CheckpointState,
  options: SaveCheckpointOptions = {},
): Promise<string | null> {
  checkCount('saveCheckpoint', arguments, 3)
  const where = 'saveCheckpoint'
  const { keep, mode, score } = checkedOptions(where, options)
  const team = teamOrNull(where, modelsOf(state), options.group)
  if (team !== null) return saveTogether(where, target, state, options, team)
  const file = filePartsOf(where, state, { score, mode })
  if (isHandle(target)) {
    await writeToHandle(target, file)
    return null
  }
  const fs = fileSystem(where)
  const path = pathOf(where, target)
  const write = (name: string): void =>
    writeWhole(fs, name, (draft) => {
      for (const part of file.parts) for (let at = 0; at < part.length;) at += fs.writeSync(draft, part, at)
    })
  if (path.endsWith('.safetensors')) {
    write(path)
    return path
  }
  const folder = new CheckpointFiles(fs, where, path)
  folder.make()
  const name = folder.pathOf(options.number ?? folder.next())
  write(name)
  folder.prune(keep, name)
  return name
}

/** Throws UnsupportedError where there are no files. */
function fileSystem(where: string): typeof import('node:fs') {
  const fs = globalThis.process?.getBuiltinModule?.('node:fs')
  if (fs === undefined)
    throw new UnsupportedError(
      `${where}: there is no file system here; give the handle of a file of navigator.storage.getDirectory(), or take checkpointBlob(state).`,
    )
  return fs
}

/** Several ranks save. */
function saveTogether(where: string, target: unknown, state: CheckpointState, options: SaveCheckpointOptions, team: Team): string {
  const { keep, mode, score } = checkedOptions(where, options)
  checkParts(where, state, { extra: true })
  const path = pathOf(where, target)
  if (path.endsWith('.safetensors'))
    throw new ArgumentError(`${where}: several ranks write a file each; argument 'target' must be the path of a folder, got ${valueText(target)}.`)
  const fs = fileSystem(where)
  const files = new CheckpointFiles(fs, where, path)
  const saved = { parts: partsOf(where, state, ranksOrNull()), extra: state.extra, about: { score, mode } }
  const written = saveByRanks(where, team, files, saved, options.number)
  team.first(where, 'remove older checkpoints', () => {
    files.prune(keep, written)
    return true
  })
  return written
}

/** The path of a target. Throws ArgumentError for anything else. */
export function pathOf(where: string, target: unknown): string {
  if (typeof target === 'string' && target !== '') return target.replace(/(?<=.)[/\\]+$/, '')
  if (target instanceof URL && target.protocol === 'file:') return decodeURIComponent(target.pathname).replace(/(?<=.)\/+$/, '')
  throw new ArgumentError(`${where}: argument 'target' must be a path, a file: URL, or the handle of a file, got ${valueText(target)}.`)
}

async function writeToHandle(handle: WritableHandle, { parts }: FileParts): Promise<void> {
  // What is written counts when the stream is closed.
  const stream = await handle.createWritable()
  try {
    for (const part of parts) await stream.write(part)
  } catch (error) {
    await stream.abort()
    throw error
  }
  await stream.close()
}

/**
 * The file that {@link saveCheckpoint} would write, as a Blob: to be downloaded, or stored by a page. Each tensor is copied into it.
 *
 * @example link.href = URL.createObjectURL(checkpointBlob({ model, optimizer }))
 */
export function checkpointBlob(state: CheckpointState): Blob {
  checkCount('checkpointBlob', arguments, 1)
  const { parts } = filePartsOf('checkpointBlob', state, { score: null, mode: 'min' })
  return new Blob(Array.from(parts, (part) => Uint8Array.from(part)))
}

// Checkpoints that all ranks write together. A crash at any moment leaves the last whole one as it is.
import { ArgumentError } from '../../errors/index.ts'
import { writeSafetensors } from '../../interop/safetensors.ts'
import { decode, integer, list, object, string } from '../../protocol/decode.ts'
import { checkArgument, checkCount, checkOptions, isPlainObject, valueText } from '../../protocol/index.ts'
import { getRngState } from '../../tensor/index.ts'
import type { ProcessGroup } from '../processGroup.ts'
import { CheckpointFolder } from './folder.ts'
import { FORMAT, GENERATOR, MANIFEST_FILE, SIZES, rankFile } from './manifest.ts'
import type { Manifest, StoredTensor } from './manifest.ts'
import { modelName, named, optimizerName, ownParts, partsByName } from './parts.ts'
import { checkState, modelState, optimizerState } from './state.ts'
import type { CheckpointState, StateTensor } from './state.ts'
import { onEach, onFirst, teamOf } from './team.ts'

/** Options of {@link saveShardedCheckpoint}. */
export interface SaveCheckpointOptions {
  /** What the program needs to go on, as JSON: the step, the epoch, the loss. */
  readonly values?: Readonly<Record<string, unknown>>
  /** How many whole checkpoints stay. Default 2. */
  readonly keep?: number
  /** The ranks that save. Default: all. */
  readonly group?: ProcessGroup
}

/** What a rank says of its file. */
const REPORT = object({
  bytes: integer(0),
  generator: GENERATOR,
  parts: list(object({ name: string(), key: string(), offsets: SIZES, sizes: SIZES })),
})

/**
 * Saves the state of a model, and of its optimizer, in a folder that all ranks can write to. All ranks call it; each writes a file with its parts, and the first a manifest at the end.
 * The newest checkpoint counts only when its manifest is there, so a crash at any moment leaves the one before as it is. Returns the checkpoint's number, which counts up.
 *
 * PyTorch's `torch.distributed.checkpoint.save`, with numbers and without a half-written state.
 *
 * @throws ArgumentError for bad arguments; DistributedError on all ranks if one of them cannot write. Older checkpoints stay.
 * @example saveShardedCheckpoint('checkpoints', { model, optimizer }, { values: { step } })
 */
export function saveShardedCheckpoint(folder: string, state: CheckpointState, options: SaveCheckpointOptions = {}): number {
  checkCount('saveShardedCheckpoint', arguments, 3)
  const where = 'saveShardedCheckpoint'
  const { model, optimizer } = checkState(where, folder, state)
  checkOptions(where, options, { values: true, keep: 'number', group: true })
  const { values = {}, keep = 2 } = options
  checkArgument(isPlainObject(values), where, 'values', 'an object of JSON', values)
  if (!Number.isSafeInteger(keep) || keep < 1) throw new ArgumentError(`${where}: keep must be an integer from 1 on, got ${valueText(keep)}.`)
  const team = teamOf(options.group)
  const files = new CheckpointFolder(where, folder)
  const number = onFirst(where, `make a folder in ${folder}`, team, () => files.makeNext()) ?? 0
  const saved = optimizer === undefined ? null : optimizerState(model, optimizer)
  const modelTensors = modelState(model)
  const all = named(modelTensors, saved)
  const own = ownParts(all, team)
  const bytes = onEach(where, `write to ${files.pathOf(number)}`, team, () => {
    const data = writeSafetensors(own.map(({ key, tensor }) => [key, tensor]))
    files.write(number, rankFile(team.rank), data)
    return data.length
  })
  const report = { bytes, generator: getRngState(), parts: own.map(({ name, key, offsets, sizes }) => ({ name, key, offsets, sizes })) }
  const reports = team.gather(report).map((given) => decode(where, REPORT, given))
  onFirst(where, `write ${MANIFEST_FILE}`, team, () => {
    const parts = partsByName(reports.map((one) => one.parts))
    const stored = (name: string, { dtype, shape }: StateTensor): StoredTensor => ({ dtype, shape, parts: parts.get(name) ?? [] })
    const manifest: Manifest = {
      format: FORMAT,
      version: 1,
      files: reports.map((one) => one.bytes),
      model: mapped(modelTensors, (name, tensor) => stored(modelName(name), tensor)),
      optimizer:
        saved === null
          ? undefined
          : { ...saved, tensors: mapped(saved.tensors, (name, of) => mapped(of, (key, t) => stored(optimizerName(name, key), t))) },
      generators: reports.map((one) => one.generator),
      values,
    }
    files.write(number, MANIFEST_FILE, JSON.stringify(manifest))
    files.prune(keep)
    return true
  })
  return number
}

/** A map as an object with other values. */
const mapped = <T, U>(map: ReadonlyMap<string, T>, change: (name: string, value: T) => U): Record<string, U> =>
  Object.fromEntries([...map].map(([name, value]) => [name, change(name, value)]))

// Reads checkpoints, with any number of ranks.
import { ArgumentError } from '../../errors/index.ts'
import { checkCount, checkOptions } from '../../protocol/index.ts'
import { setRngState } from '../../tensor/index.ts'
import type { ProcessGroup } from '../processGroup.ts'
import { CheckpointFolder } from './folder.ts'
import type { Manifest } from './manifest.ts'
import { PartsReader, modelName, optimizerName } from './parts.ts'
import { checkState, loadModelState, optimizerStateToLoad } from './state.ts'
import type { CheckpointState, WholeOptimizerParts } from './state.ts'
import { onEach, onFirst, teamOf } from './team.ts'

/** Options of {@link loadShardedCheckpoint}. */
export interface LoadCheckpointOptions {
  /** The ranks that load. Default: all. */
  readonly group?: ProcessGroup
}

/** A checkpoint that was loaded. */
export interface LoadedCheckpoint {
  /** Its number in the folder. */
  readonly number: number
  readonly values: Readonly<Record<string, unknown>>
}

/**
 * Loads the newest whole checkpoint of a folder, whatever the number of ranks that saved it. All ranks call it. Returns its number and values, or null if there is none: then the program
 * starts from the beginning. PyTorch's `torch.distributed.checkpoint.load`.
 *
 * @throws DistributedError on all ranks if one of them cannot read it; LoadStateError if the model is another one. Nothing is loaded then.
 * @example
 * const loaded = loadShardedCheckpoint('checkpoints', { model, optimizer })
 * for (let step = loaded?.values.step ?? 0; step < 1000; step++) train(step)
 */
export function loadShardedCheckpoint(folder: string, state: CheckpointState, options: LoadCheckpointOptions = {}): LoadedCheckpoint | null {
  checkCount('loadShardedCheckpoint', arguments, 3)
  const where = 'loadShardedCheckpoint'
  const { model, optimizer } = checkState(where, folder, state)
  checkOptions(where, options, { group: true })
  const team = teamOf(options.group)
  const files = new CheckpointFolder(where, folder)
  const number = onFirst(where, `read ${folder}`, team, () => files.newestWhole())
  if (number === null) return null
  const read = onEach(where, `read ${files.pathOf(number)}`, team, () => {
    const manifest = files.manifest(number)
    const reader = new PartsReader(where, files, number)
    const tensors = new Map(Object.entries(manifest.model).map(([name, stored]) => [name, reader.whole(modelName(name), stored)]))
    return { manifest, tensors, optimizer: optimizer === undefined ? null : readOptimizer(where, manifest, reader) }
  })
  const toLoad = optimizer === undefined || read.optimizer === null ? null : optimizerStateToLoad(model, optimizer, read.optimizer)
  loadModelState(model, read.tensors)
  if (toLoad !== null) optimizer?.loadStateDict(toLoad)
  const { generators, values } = read.manifest
  const generator = generators[team.rank]
  if (generator !== undefined && generators.length === team.size) setRngState(generator)
  return { number, values }
}

function readOptimizer(where: string, { optimizer }: Manifest, reader: PartsReader): WholeOptimizerParts {
  if (optimizer === undefined) throw new ArgumentError(`${where}: the checkpoint holds no optimizer; load it without one.`)
  const tensors = new Map(
    Object.entries(optimizer.tensors).map(([name, values]) => [
      name,
      new Map(Object.entries(values).map(([key, stored]) => [key, reader.whole(optimizerName(name, key), stored)])),
    ]),
  )
  return { ...optimizer, tensors }
}

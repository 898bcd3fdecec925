// Weights from files, as model.loadStateDict takes them: the safetensors format, and what torch.save writes.
import { checkCount, checkOptions } from '../protocol/index.ts'
import type { Tensor } from '../tensor/index.ts'
import { bytesOf, withParts } from './fileSource.ts'
import type { FileSource } from './fileSource.ts'
import { streamSafetensors } from './safetensors.ts'

/**
 * The tensors of a safetensors file, by name. They are read one by one, so that a large file need not fit into memory twice. Dtypes that tensorfx does not have
 * (F8_E4M3, F8_E5M2, U16, U32, U64) become float32, int32 or int64, with a note on the console. Throws ArgumentError for a file in another format.
 *
 *     model.loadStateDict(await loadSafetensors('model.safetensors'))
 */
export async function loadSafetensors(source: FileSource): Promise<Map<string, Tensor>> {
  checkCount('loadSafetensors', arguments, 1)
  return (await withParts('loadSafetensors', source, streamSafetensors)).tensors
}

/** Options of {@link loadTorchFile}. */
export interface LoadTorchFileOptions {
  /** Where the state dict is in a file that holds a dict of several things, such as 'model_state_dict' of a checkpoint. */
  readonly key?: string
}

/**
 * The state dict in a file of `torch.save` (.pt, .pth, .bin), by name. The pickle in it can only build dicts, lists, numbers and tensors: a file that asks for
 * anything else is refused, with the name of what it asked for, and no code of it runs. Throws ArgumentError for such a file, for a damaged one, and for one that
 * does not hold a dict of tensors. PyTorch's torch.load(path, weights_only=True).
 *
 *     model.loadStateDict(await loadTorchFile('model.pt'))
 */
export async function loadTorchFile(source: FileSource, options: LoadTorchFileOptions = {}): Promise<Map<string, Tensor>> {
  checkCount('loadTorchFile', arguments, 2)
  checkOptions('loadTorchFile', options, { key: true })
  const [bytes, { readStateDict }] = await Promise.all([bytesOf('loadTorchFile', source), import('./stateDict.ts')])
  return readStateDict('loadTorchFile', bytes, options.key ?? null)
}

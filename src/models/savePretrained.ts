// savePretrained: a model as the files that loadPretrained reads, and that Hugging Face's libraries read where they know the family.
import { ArgumentError, UnsupportedError } from '../errors/index.ts'
import { writeWhole } from '../interop/atomicFile.ts'
import { safetensorsParts } from '../interop/safetensors.ts'
import type { FileParts } from '../interop/safetensors.ts'
import { dtypeInfo } from '../kernels/index.ts'
import { Module } from '../module/index.ts'
import { checkCount, checkOptions, isObject, valueText } from '../protocol/index.ts'
import type { TensorLike } from '../protocol/index.ts'
import { Tensor } from '../tensor/index.ts'
import { configJson } from './config.ts'
import type { ConfigJson } from './config.ts'
import type { Configured } from './family.ts'
import { CONFIG_FILE, CONFIG_KEY, INDEX_FILE, WEIGHTS_FILE } from './loadPretrained.ts'

/** Options of {@link savePretrained}. */
export interface SavePretrainedOptions {
  /** The most bytes of tensors in a file; what is more goes into further ones. Default 5e9. */
  readonly maxShardSize?: number
}

/** The tensors of a model, each once: a head that shares the weight of an embedding is not written again. */
function tensorsOf(where: string, model: Module & Configured): readonly (readonly [string, TensorLike])[] {
  if (!(model instanceof Module) || typeof model.modelType !== 'string' || !isObject(model.config))
    throw new ArgumentError(
      `${where}: argument 'model' must be a model of 'tensorfx/models', got ${valueText(model)}. Others are saved by writeSafetensors(model.stateDict({ names: 'pytorch' })).`,
    )
  const seen = new Set<unknown>()
  return [...model.stateDict({ names: 'pytorch' })].filter(([, tensor]) => !seen.has(tensor) && seen.add(tensor))
}

const configOf = (model: Configured): ConfigJson => configJson(model.modelType, model.config)

const bytesOf = (tensor: TensorLike): number => (tensor instanceof Tensor ? tensor.numel * dtypeInfo[tensor.dtype].size : 0)

/** The tensors divided into files of at most `most` bytes. */
function shardsOf(tensors: readonly (readonly [string, TensorLike])[], most: number): readonly (readonly (readonly [string, TensorLike])[])[] {
  const shards: (readonly [string, TensorLike])[][] = [[]]
  let size = 0
  for (const entry of tensors) {
    const [, tensor] = entry
    const bytes = bytesOf(tensor)
    if (size > 0 && size + bytes > most) {
      shards.push([])
      size = 0
    }
    shards.at(-1)?.push(entry)
    size += bytes
  }
  return shards
}

/**
 * Writes a model into a folder: config.json and model.safetensors, or several files with an index. Each file is written whole under another name and renamed. Names are PyTorch's.
 *
 * @throws ArgumentError for a model that is not one of `tensorfx/models`. UnsupportedError where there is no file system: take {@link pretrainedBlob}.
 * @example await savePretrained(model, 'checkpoints/mine')
 */
export async function savePretrained(model: Module & Configured, folder: string, options: SavePretrainedOptions = {}): Promise<void> {
  const where = 'savePretrained'
  checkCount(where, arguments, 3)
  checkOptions<SavePretrainedOptions>(where, options, { maxShardSize: 'number' })
  const { maxShardSize = 5e9 } = options
  const tensors = tensorsOf(where, model)
  if (typeof folder !== 'string' || folder === '')
    throw new ArgumentError(`${where}: argument 'folder' must be the path of a folder, got ${valueText(folder)}.`)
  if (!(maxShardSize > 0)) throw new ArgumentError(`${where}: option 'maxShardSize' must be above 0, got ${valueText(maxShardSize)}.`)
  const [fs, path] = [globalThis.process?.getBuiltinModule?.('node:fs'), globalThis.process?.getBuiltinModule?.('node:path')]
  if (fs === undefined || path === undefined) throw new UnsupportedError(`${where}: there is no file system here; take pretrainedBlob(model).`)
  const write = (name: string, { parts }: Pick<FileParts, 'parts'>): void =>
    writeWhole(fs, path.join(folder, name), (draft) => {
      for (const part of parts) for (let at = 0; at < part.length;) at += fs.writeSync(draft, part, at)
    })
  const writeJson = (name: string, value: unknown): void => write(name, { parts: [new TextEncoder().encode(`${JSON.stringify(value, null, 2)}\n`)] })
  fs.mkdirSync(folder, { recursive: true })
  const shards = shardsOf(tensors, maxShardSize)
  const nameOf = (i: number): string =>
    shards.length === 1 ? WEIGHTS_FILE : `model-${String(i + 1).padStart(5, '0')}-of-${String(shards.length).padStart(5, '0')}.safetensors`
  for (const [i, shard] of shards.entries()) write(nameOf(i), safetensorsParts(where, shard, { format: 'pt' }))
  if (shards.length === 1) fs.rmSync(path.join(folder, INDEX_FILE), { force: true })
  else {
    const total = tensors.reduce((sum, [, tensor]) => sum + bytesOf(tensor), 0)
    const map = shards.flatMap((shard, i) => shard.map(([name]) => [name, nameOf(i)]))
    writeJson(INDEX_FILE, { metadata: { total_size: total }, weight_map: Object.fromEntries(map) })
  }
  writeJson(CONFIG_FILE, configOf(model))
}

/**
 * A model as one safetensors file with its config in it, to be downloaded or stored by a page; {@link loadPretrained} reads it.
 *
 * @throws ArgumentError for a model that is not one of `tensorfx/models`.
 * @example link.href = URL.createObjectURL(pretrainedBlob(model))
 */
export function pretrainedBlob(model: Module & Configured): Blob {
  checkCount('pretrainedBlob', arguments, 1)
  const tensors = tensorsOf('pretrainedBlob', model)
  const { parts } = safetensorsParts('pretrainedBlob', tensors, { format: 'pt', [CONFIG_KEY]: JSON.stringify(configOf(model)) })
  return new Blob(Array.from(parts, (part) => Uint8Array.from(part)))
}

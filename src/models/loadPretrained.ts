// loadPretrained: a model with the weights of a checkpoint, from its config.json and its safetensors files.
import { ArgumentError } from '../errors/index.ts'
import { withParts } from '../interop/fileSource.ts'
import type { FileSource } from '../interop/fileSource.ts'
import { readHeader } from '../formats/safetensors.ts'
import { visitSafetensors } from '../interop/safetensors.ts'
import { LoadStateError } from '../module/index.ts'
import type { Module } from '../module/index.ts'
import { checkCallable, checkCount, checkOptions, isClass, isPlainObject, nearest, valueText } from '../protocol/index.ts'
import { parseJson } from '../protocol/jsonText.ts'
import { Tensor, formatShape } from '../tensor/index.ts'
import { ConfigReader } from './config.ts'
import type { ConfigJson } from './config.ts'
import { familyOf } from './families.ts'
import type { Family } from './family.ts'
import { filesOf } from './pretrainedFiles.ts'
import type { PretrainedSource } from './pretrainedFiles.ts'
import { sha256 } from './sha256.ts'

export type { PretrainedSource } from './pretrainedFiles.ts'

const WHERE = 'loadPretrained'
export const CONFIG_FILE = 'config.json'
export const WEIGHTS_FILE = 'model.safetensors'
export const INDEX_FILE = 'model.safetensors.index.json'
/** The text of a lone file that holds the config. */
export const CONFIG_KEY = 'config'

/** How far a file of weights is. */
export interface LoadProgress {
  readonly file: string
  /** Bytes so far. */
  readonly loaded: number
  /** All bytes; null if the server does not say. */
  readonly total: number | null
}

/** Options of {@link loadPretrained}. */
export interface LoadPretrainedOptions<M extends Module = Module> {
  /** The class that the model must be of, such as GPT2: the result has its type. */
  readonly model?: abstract new (...args: never[]) => M
  /** Values that replace those of config.json, or a config for files that have none. */
  readonly config?: ConfigJson
  /** Whether each parameter must be in the files, and everything in them must belong to the model. Default true; otherwise missing ones keep their initial values. */
  readonly strict?: boolean
  /** Where files of a URL are kept: in Node the path of a folder, in a page the name of a CacheStorage. Without it they are loaded each time. */
  readonly cache?: string
  /** The SHA-256 of files by name, in hexadecimal digits: others are refused. */
  readonly integrity?: Readonly<Record<string, string>>
  /** Gets how far each file is. */
  readonly onProgress?: (progress: LoadProgress) => void
}

/** Copies tensors of files into a new model, and notes which came. */
class Filling {
  readonly #family: Family
  readonly #model: Module
  readonly #state: ReadonlyMap<string, unknown>
  /** Which parts of a tensor have come. */
  readonly #parts = new Map<Tensor, boolean[]>()
  readonly #problems: string[] = []
  readonly #unexpected: string[] = []

  constructor(family: Family, model: Module) {
    this.#family = family
    this.#model = model
    this.#state = model.stateDict({ names: 'pytorch' })
  }

  take(name: string, tensor: Tensor): void {
    const destination = this.#family.destination === undefined ? { name } : this.#family.destination(name)
    if (destination === null) return
    const whole = this.#state.get(destination.name)
    if (!(whole instanceof Tensor)) {
      this.#unexpected.push(name)
      return
    }
    const { index = 0, count = 1 } = destination.part ?? {}
    const rows = whole.ndim === 0 ? 1 : whole.size(0) / count
    const target = count === 1 ? whole.detach() : whole.detach().narrow(0, index * rows, rows)
    if (formatShape(target.shape) !== formatShape(tensor.shape)) {
      this.#problems.push(`${name} has shape ${formatShape(tensor.shape)} in the file, but the model of this config has ${formatShape(target.shape)}`)
      return
    }
    target.copyFrom(tensor)
    const parts = this.#parts.get(whole) ?? Array.from({ length: count }, () => false)
    parts[index] = true
    this.#parts.set(whole, parts)
  }

  /** Throws LoadStateError unless everything came that had to. */
  end(strict: boolean): void {
    const parameters = new Set<unknown>(this.#model.parameters())
    const missing = [...this.#state].flatMap(([name, value]) => {
      if (!(value instanceof Tensor)) return []
      // Counters and positions are in some versions of a file only; they are what the model made them.
      if (!parameters.has(value) && !value.isFloatingPoint()) return []
      return this.#parts.get(value)?.every(Boolean) === true ? [] : [name]
    })
    if (strict && missing.length > 0) this.#problems.push(`missing in the files: ${listed(missing)}`)
    if (strict && this.#unexpected.length > 0) {
      const [first = ''] = this.#unexpected
      const near = nearest(first, missing)
      this.#problems.push(
        `in the files, but not in the model: ${listed(this.#unexpected)}${near === null ? '' : ` ('${first}' is like '${near}')`}; { strict: false } skips them`,
      )
    }
    if (this.#problems.length > 0) throw new LoadStateError(this.#model.getName(), this.#problems)
  }
}

const listed = (names: readonly string[]): string => `${names.slice(0, 6).join(', ')}${names.length > 6 ? ` and ${names.length - 6} more` : ''}`

function readJson(file: string, text: string): ConfigJson {
  const value = parseJson(WHERE, file, text)
  if (!isPlainObject(value)) throw new ArgumentError(`${WHERE}: ${file} must hold an object, got ${valueText(value)}.`)
  return value
}

/** The names of the files of weights, by an index. */
function shardsOf(text: string): readonly string[] {
  const { weight_map: map } = readJson(INDEX_FILE, text)
  const names = isPlainObject(map) ? [...new Set(Object.values(map))] : []
  const files = names.filter((name) => typeof name === 'string')
  for (const name of names)
    if (typeof name !== 'string' || !/^[^/\\]+\.safetensors$/.test(name))
      throw new ArgumentError(
        `${WHERE}: ${INDEX_FILE}: 'weight_map' must have names of .safetensors files in the same folder, got ${valueText(name)}.`,
      )
  if (files.length === 0)
    throw new ArgumentError(`${WHERE}: ${INDEX_FILE}: 'weight_map' must be an object of files by the names of tensors, got ${valueText(map)}.`)
  return files
}

/** Reads a file of weights, with its progress and its hash. */
async function readWeights(file: string, source: FileSource, filling: Filling, options: LoadPretrainedOptions): Promise<void> {
  const { onProgress, integrity } = options
  const wanted = integrity?.[file]?.toLowerCase()
  const hash = wanted === undefined ? null : sha256()
  let loaded = 0
  await withParts(WHERE, source, (parts) =>
    visitSafetensors(
      {
        size: parts.size,
        async next(count) {
          const bytes = await parts.next(count)
          loaded += count
          hash?.update(bytes)
          onProgress?.({ file, loaded, total: parts.size })
          return bytes
        },
      },
      (name, tensor) => filling.take(name, tensor),
    ),
  )
  const found = hash?.digest()
  if (found !== wanted)
    throw new ArgumentError(
      `${WHERE}: option 'integrity': ${file} should have the SHA-256 ${String(wanted)}, but has ${String(found)}; load it again, from a source that you trust.`,
    )
}

function checkPretrainedOptions(options: LoadPretrainedOptions): void {
  checkOptions<LoadPretrainedOptions>(WHERE, options, {
    model: true,
    config: true,
    strict: 'boolean',
    cache: true,
    integrity: true,
    onProgress: true,
  })
  const { model, config = {}, cache, integrity = {}, onProgress } = options
  if (model !== undefined && !isClass(model))
    throw new ArgumentError(`${WHERE}: option 'model' must be a class, such as GPT2, got ${valueText(model)}.`)
  if (!isPlainObject(config)) throw new ArgumentError(`${WHERE}: option 'config' must be an object like config.json, got ${valueText(config)}.`)
  if (cache !== undefined && (typeof cache !== 'string' || cache === ''))
    throw new ArgumentError(`${WHERE}: option 'cache' must be the path of a folder, or in a page a name, got ${valueText(cache)}.`)
  if (!isPlainObject(integrity))
    throw new ArgumentError(`${WHERE}: option 'integrity' must be SHA-256 hashes by the names of files, got ${valueText(integrity)}.`)
  for (const [file, hash] of Object.entries(integrity))
    if (typeof hash !== 'string' || !/^[0-9a-f]{64}$/i.test(hash))
      throw new ArgumentError(`${WHERE}: option 'integrity': the SHA-256 of ${file} must be 64 hexadecimal digits, got ${valueText(hash)}.`)
  if (onProgress !== undefined) checkCallable(WHERE, 'onProgress', onProgress)
}

/**
 * Makes the model of a checkpoint and fills it with its weights, in evaluation mode. A checkpoint is a folder, or what lies below a URL: config.json, and model.safetensors or several
 * files with an index, as Hugging Face keeps them. A Blob is one file that {@link pretrainedBlob} made. Tensors are read one by one, so that there is no second copy of all of them.
 *
 * `model_type` of the config says which family it is: gpt2, llama, qwen2, mixtral, bert, t5, vit, whisper, clip, mamba, convnext, resnet, mobilenet_v3, efficientnet or unet. No code of a
 * checkpoint runs: it is data and may come from anyone.
 *
 * @throws ArgumentError for a config that is not one of a family, for files that are damaged, and for files without the hash in `integrity`. LoadStateError if names or shapes do not fit.
 * @example const model = await loadPretrained('checkpoints/gpt2', { model: GPT2 })
 */
export async function loadPretrained<M extends Module = Module>(
  source: PretrainedSource,
  options: LoadPretrainedOptions<M> & { readonly model: abstract new (...args: never[]) => M },
): Promise<M>
export async function loadPretrained(source: PretrainedSource, options?: LoadPretrainedOptions): Promise<Module>
export async function loadPretrained(source: PretrainedSource, options: LoadPretrainedOptions = {}): Promise<Module> {
  checkCount(WHERE, arguments, 2)
  checkPretrainedOptions(options)
  const { config = {}, strict = true, cache = null, onProgress } = options
  const files = filesOf(source, cache)
  const text = files === null ? await configOf(source) : await files.text(CONFIG_FILE)
  if (text === null && options.config === undefined)
    throw new ArgumentError(`${WHERE}: there is no ${CONFIG_FILE} in ${files?.name ?? 'the Blob'}; give the config in option 'config'.`)
  const json = { ...(text === null ? {} : readJson(CONFIG_FILE, text)), ...config }
  const family = await familyOf(WHERE, json['model_type'])
  const reader = new ConfigReader(json)
  for (const [key, [usual = '', ...others]] of Object.entries(family.only ?? {})) reader.choice(key, [usual, ...others], usual)
  const model = family.make(reader)
  if (options.model !== undefined && !(model instanceof options.model))
    throw new ArgumentError(`${WHERE}: option 'model' is ${options.model.name}, but the checkpoint is of the family '${String(json['model_type'])}'.`)
  const filling = new Filling(family, model)
  if (files === null) {
    if (source instanceof Blob) await readWeights(WEIGHTS_FILE, source, filling, options)
  } else {
    const index = await files.text(INDEX_FILE)
    for (const file of index === null ? [WEIGHTS_FILE] : shardsOf(index)) {
      const weights = await files.weights(file, (loaded, total) => onProgress?.({ file, loaded, total }))
      await readWeights(file, weights, filling, options)
    }
  }
  filling.end(strict)
  return model.train(false)
}

/** The config in a lone file. */
async function configOf(source: unknown): Promise<string | null> {
  if (!(source instanceof Blob)) return null
  const { metadata } = await withParts(WHERE, source, readHeader)
  return metadata[CONFIG_KEY] ?? null
}

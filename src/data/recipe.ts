// How a dataset reaches a worker thread. Functions and classes do not travel, so the worker gets a recipe: the module that makes the dataset, or the samples themselves.
import { ArgumentError } from '../errors/index.ts'
import { checkArray, checkCount, checkOptions, checkString, isClass, isFunction, isObject, valueText } from '../protocol/index.ts'
import { Tensor } from '../tensor/index.ts'
import { ConcatDataset, StackDataset, Subset, hasIndices, isOnce, isStream } from './dataset.ts'
import type { Dataset, IterableSource, MapDataset } from './dataset.ts'
import { decodeMessage, encodeMessage } from './messages.ts'
import type { Encoded } from './messages.ts'
import { TensorDataset } from './tensorDataset.ts'

/** How to make a dataset. It can be sent to another thread. */
export type Recipe =
  | { readonly kind: 'module'; readonly url: string; readonly exported: string; readonly args: Encoded }
  | { readonly kind: 'values' | 'tensors'; readonly values: Encoded }
  | { readonly kind: 'subset'; readonly of: Recipe; readonly indices: readonly number[] }
  | { readonly kind: 'concat' | 'stack'; readonly of: readonly Recipe[]; readonly keys: readonly string[] | null }

type Indexed = MapDataset<unknown> | readonly unknown[]

/** Recipes of what {@link importDataset} made. */
const imported = new WeakMap<object, { readonly url: string; readonly exported: string; readonly args: readonly unknown[] }>()

/** Options of {@link importDataset}. */
export interface ImportDatasetOptions {
  /** The name of the class or function that the module exports. Default `'default'`. */
  readonly exported?: string
  /** What it is called with: tensors, and values that `structuredClone` copies. */
  readonly args?: readonly unknown[]
}

/**
 * Makes a dataset by the class, or the function, that a module exports. Worker threads of a DataLoader make the same one by importing the module too: code cannot be sent to
 * them otherwise. A generator function is called for each pass over the data.
 *
 * @throws ArgumentError if the module has no such export, or that gives no dataset.
 * @example
 * // digits.mjs: export default class Digits extends Dataset { … }
 * const dataset = await importDataset<Dataset<[Tensor, number]>>(new URL('./digits.mjs', import.meta.url), { args: ['data/'] })
 * for await (const [images, labels] of new DataLoader(dataset, { batchSize: 64, numWorkers: 2 })) train(images, labels)
 */
export async function importDataset<D extends object = Dataset<unknown>>(module: URL | string, options: ImportDatasetOptions = {}): Promise<D> {
  checkCount('importDataset', arguments, 2)
  if (!(module instanceof URL)) checkString('importDataset', 'module', module)
  checkOptions('importDataset', options, { exported: true, args: true })
  const { exported = 'default', args = [] } = options
  checkString('importDataset', 'exported', exported)
  checkArray('importDataset', 'args', args)
  const url = String(module)
  const dataset = await make(url, exported, args)
  imported.set(dataset, { url, exported, args })
  // The caller says what its module exports; that it is a dataset is checked.
  return dataset as D
}

async function make(url: string, exported: string, args: readonly unknown[]): Promise<object> {
  const exports: object = await import(/* @vite-ignore */ url)
  const maker: unknown = Reflect.get(exports, exported)
  if (!isFunction(maker))
    throw new ArgumentError(
      `importDataset: ${url} must export a class or a function as '${exported}', got ${valueText(maker)}. It exports ${Object.keys(exports).join(', ') || 'nothing'}.`,
    )
  const made: unknown = isClass(maker) ? Reflect.construct(maker, args) : await maker(...args)
  if (isOnce(made)) return repeated(() => maker(...args))
  if (isObject(made) && (hasIndices(made) || isStream(made))) return made
  throw new ArgumentError(
    `importDataset: '${exported}' of ${url} must give a dataset ('length' and 'get(index)', an array, or an iterable), got ${valueText(made)}.`,
  )
}

/** What a generator function gives can be read once: each pass calls it anew. */
const repeated = (call: () => unknown): IterableSource<unknown> => ({
  async *[Symbol.asyncIterator]() {
    const stream = call()
    if (isStream(stream)) yield* stream
  },
})

/** How to make a dataset in another thread. Throws ArgumentError for one whose code cannot be sent. */
export function recipeOf(source: object): Recipe {
  const known = imported.get(source)
  if (known !== undefined) return { kind: 'module', url: known.url, exported: known.exported, args: encodeMessage(known.args) }
  // A subclass has code of its own.
  switch (Object.getPrototypeOf(source)) {
    case TensorDataset.prototype:
      if (source instanceof TensorDataset) return { kind: 'tensors', values: encodeMessage(source.tensors) }
      break
    case Subset.prototype:
      if (source instanceof Subset) return { kind: 'subset', of: recipeOf(source.dataset), indices: source.indices }
      break
    case ConcatDataset.prototype:
      if (source instanceof ConcatDataset) return { kind: 'concat', of: source.datasets.map((dataset) => recipeOf(dataset)), keys: null }
      break
    case StackDataset.prototype:
      if (source instanceof StackDataset) {
        const parts = Object.entries<object>(source.datasets)
        const keys = Array.isArray(source.datasets) ? null : parts.map(([key]) => key)
        return { kind: 'stack', of: parts.map(([, part]) => recipeOf(part)), keys }
      }
      break
    case Array.prototype:
      return { kind: 'values', values: encodeMessage(source) }
    default:
  }
  throw new ArgumentError(
    `DataLoader: with numWorkers, worker threads need the dataset too, and the code of ${valueText(source)} cannot be sent to them. Put it into a module of its own and make it with await importDataset(new URL('./dataset.mjs', import.meta.url), { args: […] }), or use numWorkers: 0.`,
  )
}

/** The dataset of a recipe. */
export async function followRecipe(recipe: Recipe): Promise<object> {
  switch (recipe.kind) {
    case 'module': {
      const args = decodeMessage(recipe.args)
      return make(recipe.url, recipe.exported, Array.isArray(args) ? args : [])
    }
    case 'values': {
      const values = decodeMessage(recipe.values)
      return Array.isArray(values) ? values : []
    }
    case 'tensors': {
      const values = decodeMessage(recipe.values)
      return new TensorDataset(...(Array.isArray(values) ? values : []).filter((value) => value instanceof Tensor))
    }
    case 'subset':
      return new Subset(indexed(await followRecipe(recipe.of)), recipe.indices)
    default: {
      const parts: Indexed[] = []
      for (const part of recipe.of) parts.push(indexed(await followRecipe(part)))
      if (recipe.kind === 'concat') return new ConcatDataset(parts)
      const { keys } = recipe
      return new StackDataset(keys === null ? parts : Object.fromEntries(parts.map((part, i) => [keys[i] ?? '', part])))
    }
  }
}

function indexed(source: object): Indexed {
  if (hasIndices(source)) return source
  throw new ArgumentError(`DataLoader: ${valueText(source)} has no samples by index.`)
}

// Reads a saved GraphModule as a module that only runs: what a page needs that computes with a model.
import { trustOf } from '../fx/text/decodeGraph.ts'
import type { Trust } from '../fx/text/decodeGraph.ts'
import { Module } from '../module/index.ts'
import * as coreLayers from '../nn/coreLayers.ts'
import { checkArgument, checkCount, checkOptions, isClass, isPlainObject } from '../protocol/index.ts'
import { SavedGraph } from './savedGraph.ts'
import { readSavedModule } from './savedModule.ts'
import type { Description } from './savedModule.ts'
import type { Place } from '../protocol/decode.ts'
import { ArgumentError } from '../errors/index.ts'

const WHERE = 'loadModel'

/** Options of {@link loadModel}. */
export interface LoadModelOptions {
  /** Classes of layers that the file may ask for besides those of convolutions and transformers, by name: `import { InstanceNorm2d } from 'tensorfx/nn'` and `layers: { InstanceNorm2d }`. */
  // eslint-disable-next-line typescript/no-explicit-any -- constructors of any arguments
  readonly layers?: Readonly<Record<string, new (...args: any[]) => Module>>
  /** Default: 'data'. */
  readonly trust?: Trust
}

/**
 * Reads a file that `saveGraphModule` of 'tensorfx/interop' wrote, as a module that runs its graph. The file is data, and may come from anyone, as for `loadGraphModule`. Throws
 * ArgumentError for any other bytes, for a newer version of the format, for a graph that names something else than operators, and for operators and layers that the program
 * has not loaded: the message names the import.
 *
 *     const model = loadModel(new Uint8Array(await (await fetch('model.safetensors')).arrayBuffer()))
 *     const logits = model(tensor(pixels).reshape([1, 3, 224, 224]))
 */
export function loadModel(bytes: Uint8Array, options: LoadModelOptions = {}): SavedGraph {
  checkCount(WHERE, arguments, 2)
  checkOptions(WHERE, options, { trust: true, layers: true })
  const { layers = {}, ...rest } = options
  const trust = trustOf(WHERE, rest)
  checkArgument(isPlainObject(layers), WHERE, 'layers', 'an object from the names of classes to classes', layers)
  for (const [name, layer] of Object.entries(layers))
    checkArgument(isClass(layer) && layer.prototype instanceof Module, WHERE, `layers.${name}`, 'a class of layers', layer)
  const making = {
    where: WHERE,
    layers: { ...coreLayers, ...layers },
    checkFree: (path: string): void => SavedGraph.checkFree(WHERE, path),
    make(values: Readonly<Record<string, unknown>>, json: Description, at: Place): SavedGraph {
      if (json.codegen !== undefined)
        throw new ArgumentError(
          `${WHERE}: the inputs or outputs of the saved graph are nested, which takes the code generator of fx; write import { loadGraphModule } from 'tensorfx/interop'.`,
        )
      return SavedGraph.read(WHERE, values, json.className, { json: json.graph, place: at.at('graph'), trust })
    },
  }
  return readSavedModule(making, bytes)
}

// What files of saved modules hold, and how a module is built from it. The file is not trusted: the description is decoded, and compared with the tensors of the
// file, before anything is made; attributes are set by own names only; and the graph may only name what is data, unless the caller says that it is code.
import { ArgumentError } from '../errors/index.ts'
import { Container } from '../fx/run/attributes.ts'
import type { Meta } from '../fx/graph/node.ts'
import { decodeNote } from '../fx/text/decodeGraph.ts'
import { Module, setAttribute, splitPath } from '../module/index.ts'
import { boolean, integer, list, mapOf, name as nameText, object, optional, Place } from '../protocol/decode.ts'
import type { Decoded, Decoder } from '../protocol/decode.ts'
import { isObject, isPlainObject } from '../protocol/index.ts'
import { parseJson } from '../protocol/jsonText.ts'
import type { Tensor } from '../tensor/index.ts'
import { CODEGEN } from './codegenJson.ts'
import { LAYER, layerFromSpec } from './layerFromSpec.ts'
import type { LayerSource } from './layerFromSpec.ts'
import { GRAPH_KEY as KEY } from '../formats/safetensors.ts'
import { readSafetensors } from './safetensors.ts'

/** The version of the description. A reader rejects newer versions. Version 1 had only what the graph refers to, and no nested inputs. */
export const VERSION = 2

const anything: Decoder<unknown> = (value) => value

const TENSOR = object({ parameter: boolean, requiresGrad: boolean, persistent: optional(boolean), unregistered: optional(boolean) })

const LAYER_CHILD = object({ layer: LAYER, training: boolean, frozen: optional(list(nameText, 64)) })

/** A module that a graph calls or reads: a layer or a GraphModule. */
type Child = Decoded<typeof LAYER_CHILD> | { readonly graph: Description; readonly place: Place }

const child: Decoder<Child> = (value, at) => {
  if (!isPlainObject(value)) return at.refuse('an object', value)
  if (Object.hasOwn(value, 'graph')) return { graph: MODULE(value['graph'], at.at('graph')), place: at.at('graph') }
  return LAYER_CHILD(value, at)
}

const MODULE = object({
  className: nameText,
  training: boolean,
  graph: anything,
  codegen: optional(CODEGEN),
  modules: mapOf(child),
  tensors: mapOf(TENSOR),
  attributes: optional(mapOf(decodeNote)),
  meta: optional(mapOf(decodeNote)),
})

/** A GraphModule as the file describes it. Its graph is read when the module is made. */
export interface Description extends Omit<Decoded<typeof MODULE>, 'modules'> {
  readonly modules: ReadonlyMap<string, Child>
}

const FILE = object({ version: integer(), module: MODULE, shared: mapOf(nameText) })

/** A module that a file describes: it holds attributes, and runs a graph. */
export interface SavedModule extends Module {
  meta: Meta
  /** The attribute at a dotted path; undefined if there is none. */
  attribute(path: string): unknown
  /** Adds a submodule at a dotted path. Returns false if something on the way is not a module. */
  addSubmodule(path: string, module: Module): boolean
}

/** How a kind of saved module is made. */
export interface Making<M extends SavedModule> extends LayerSource {
  /** Throws ArgumentError if a path contains a name that modules use themselves. */
  checkFree(path: string): void
  /** Makes a module that has these attributes, by path. `at` is where the description was found. */
  make(values: Readonly<Record<string, Module | Tensor>>, description: Description, at: Place): M
}

/** Reads a saved module. Throws ArgumentError for bytes that are not one, and for a newer version of the format. */
export function readSavedModule<M extends SavedModule>(making: Making<M>, bytes: Uint8Array): M {
  const { where } = making
  const { tensors, metadata } = readSafetensors(bytes)
  const text = Object.hasOwn(metadata, KEY) ? metadata[KEY] : undefined
  if (text === undefined) throw new ArgumentError(`${where}: this safetensors file contains only tensors, no '${KEY}'; read it with readSafetensors.`)
  const at = new Place(where, `'${KEY}' in the file`)
  const { module, shared } = parseFile(where, text, at)
  const find = (name: string): Tensor => {
    const tensor = tensors.get(shared.get(name) ?? name)
    if (tensor === undefined) throw new ArgumentError(`${where}: the file lacks the tensor '${name}'.`)
    return tensor
  }
  const builder = new Builder(making, find)
  const built = builder.build(module, '', at.at('module'))
  for (const [name, first] of shared) {
    const value = built.attribute(first)
    if (value === undefined) throw new ArgumentError(`${where}: '${name}' should be shared with '${first}', which the module lacks.`)
    builder.setAt(built, name, value)
  }
  return built
}

function parseFile(where: string, text: string, at: Place): Decoded<typeof FILE> {
  const file = parseJson(where, `'${KEY}' in the file`, text)
  if (!isPlainObject(file) || typeof file['version'] !== 'number')
    throw new ArgumentError(`${where}: '${KEY}' in the file is not the description of a module.`)
  if (file['version'] > VERSION)
    throw new ArgumentError(`${where}: version ${file['version']} is newer than this tensorfx reads (${VERSION}); update tensorfx.`)
  return FILE(file, at)
}

class Builder<M extends SavedModule> {
  readonly #making: Making<M>
  readonly #find: (name: string) => Tensor

  constructor(making: Making<M>, find: (name: string) => Tensor) {
    this.#making = making
    this.#find = find
  }

  build(json: Description, prefix: string, at: Place): M {
    const values: Record<string, Module | Tensor> = {}
    for (const [path, { parameter, requiresGrad }] of json.tensors) {
      this.#checkPath(path)
      const tensor = this.#find(prefix + path)
      values[path] = parameter ? tensor.asParameter(requiresGrad) : tensor
    }
    for (const [path, inner] of json.modules) {
      this.#checkPath(path)
      if (Object.hasOwn(values, path)) throw this.#wrong(`'${prefix}${path}' is both a tensor and a module in the file`)
      values[path] = this.#child(inner, `${prefix}${path}.`)
    }
    const made = this.#making.make(values, json, at)
    this.#addHeld(made, json, values)
    for (const [name, value] of json.attributes ?? []) this.setAt(made, name, value)
    for (const [key, value] of json.meta ?? []) made.meta[key] = value
    made.training = json.training
    return made
  }

  #child(inner: Child, prefix: string): Module {
    if ('graph' in inner) return this.build(inner.graph, prefix, inner.place)
    const layer = layerFromSpec(this.#making, inner.layer, prefix, this.#find, inner.frozen ?? [])
    layer.train(inner.training)
    return layer
  }

  /** Adds what the graph does not refer to, which a new GraphModule lacks, and registers buffers as they were. */
  #addHeld(made: M, json: Description, values: Readonly<Record<string, Module | Tensor>>): void {
    for (const [path, value] of Object.entries(values)) {
      if (value instanceof Module) {
        if (made.attribute(path) !== value && !made.addSubmodule(path, value))
          throw this.#wrong(`the module has no place for the attribute '${path}', because a tensor is in its way`)
        continue
      }
      if (made.attribute(path) === undefined) makeOwners(made, path)
      const { owner, name } = place(made, path)
      const { unregistered = false, persistent = true, parameter = false } = json.tensors.get(path) ?? {}
      if (parameter || !(owner instanceof Module)) this.setAt(made, path, value)
      else if (unregistered && !owner.hasBuffer(name)) this.setAt(made, path, value)
      else owner.registerBuffer(name, value, { persistent })
    }
  }

  /** Throws ArgumentError for a path with an empty name, and for one that contains a name that modules use themselves. */
  #checkPath(path: string): void {
    if (path.split('.').includes('')) throw this.#wrong(`the path '${path}' of an attribute has an empty name`)
    this.#making.checkFree(path)
  }

  setAt(made: M, path: string, value: unknown): void {
    this.#checkPath(path)
    const { owner, name } = place(made, path)
    if (!isObject(owner)) throw this.#wrong(`the module has no place for the attribute '${path}'`)
    setAttribute(owner, name, value)
  }

  #wrong(what: string): ArgumentError {
    return new ArgumentError(`${this.#making.where}: ${what}.`)
  }
}

function makeOwners(made: SavedModule, path: string): void {
  const [owner] = splitPath(path)
  if (owner !== '' && made.attribute(owner) === undefined) made.addSubmodule(owner, new Container())
}

/** The owner of the attribute at a path, and its name. */
export function place(module: SavedModule, path: string): { owner: unknown; name: string } {
  const [ownerPath, name] = splitPath(path)
  return { owner: ownerPath === '' ? module : module.attribute(ownerPath), name }
}

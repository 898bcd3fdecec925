// Reads a GraphModule from the bytes of a file, which may come from a stranger: the description is decoded, and compared with the tensors of the file, before
// anything is made; attributes are set by own names only; and the graph may only name what is data, unless the caller says that it is code.
import { ArgumentError } from '../errors/index.ts'
import { Container } from '../fx/run/attributes.ts'
import { checkFree } from '../fx/run/graphModule.ts'
import { GraphModule } from '../fx/index.ts'
import { decodeNote, readGraph, trustOf } from '../fx/text/readJson.ts'
import type { Trust, TrustOptions } from '../fx/text/readJson.ts'
import { Module, setAttribute, splitPath } from '../module/index.ts'
import { boolean, integer, list, mapOf, name as nameText, object, optional, Place } from '../protocol/decode.ts'
import type { Decoded, Decoder } from '../protocol/decode.ts'
import { checkCount, isObject, isPlainObject } from '../protocol/index.ts'
import { parseJson } from '../protocol/jsonText.ts'
import type { Tensor } from '../tensor/index.ts'
import { CODEGEN, codegenFromJson } from './codegenJson.ts'
import { KEY, VERSION, place } from './saveGraphModule.ts'
import { LAYER, moduleFromSpec } from './moduleSpec.ts'
import { readSafetensors } from './safetensors.ts'

const WHERE = 'loadGraphModule'

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
interface Description extends Omit<Decoded<typeof MODULE>, 'modules'> {
  readonly modules: ReadonlyMap<string, Child>
}

const FILE = object({ version: integer(), module: MODULE, shared: mapOf(nameText) })

/**
 * Reads a file that `saveGraphModule` wrote. The file is data, and may come from anyone: reading and calling the module runs only operators of tensorfx and functions
 * that this program registered. Throws ArgumentError for any other bytes, for a newer version of the format, and for a graph that names something else; with
 * `trust: 'code'` the graph may call any method and read any attribute, so pass that only for files whose author you trust as the author of a program.
 */
export function loadGraphModule(bytes: Uint8Array, options: TrustOptions = {}): GraphModule {
  checkCount('loadGraphModule', arguments, 2)
  const trust = trustOf(WHERE, options)
  const { tensors, metadata } = readSafetensors(bytes)
  const text = Object.hasOwn(metadata, KEY) ? metadata[KEY] : undefined
  if (text === undefined) throw new ArgumentError(`${WHERE}: this safetensors file contains only tensors, no '${KEY}'; read it with readSafetensors.`)
  const at = new Place(WHERE, `'${KEY}' in the file`)
  const { module, shared } = parseFile(text, at)
  const find = (name: string): Tensor => {
    const tensor = tensors.get(shared.get(name) ?? name)
    if (tensor === undefined) throw new ArgumentError(`${WHERE}: the file lacks the tensor '${name}'.`)
    return tensor
  }
  const gm = new Builder(find, trust).build(module, '', at.at('module'))
  for (const [name, first] of shared) {
    const value = gm.attribute(first)
    if (value === undefined) throw new ArgumentError(`${WHERE}: '${name}' should be shared with '${first}', which the module lacks.`)
    setAt(gm, name, value)
  }
  return gm
}

function parseFile(text: string, at: Place): Decoded<typeof FILE> {
  const file = parseJson(WHERE, `'${KEY}' in the file`, text)
  if (!isPlainObject(file) || typeof file['version'] !== 'number')
    throw new ArgumentError(`${WHERE}: '${KEY}' in the file is not the description of a module.`)
  if (file['version'] > VERSION)
    throw new ArgumentError(`${WHERE}: version ${file['version']} is newer than this tensorfx reads (${VERSION}); update tensorfx.`)
  return FILE(file, at)
}

class Builder {
  readonly #find: (name: string) => Tensor
  readonly #trust: Trust

  constructor(find: (name: string) => Tensor, trust: Trust) {
    this.#find = find
    this.#trust = trust
  }

  build(json: Description, prefix: string, at: Place): GraphModule {
    const values: Record<string, Module | Tensor> = {}
    for (const [path, { parameter, requiresGrad }] of json.tensors) {
      checkPath(path)
      const tensor = this.#find(prefix + path)
      values[path] = parameter ? tensor.asParameter(requiresGrad) : tensor
    }
    for (const [path, inner] of json.modules) {
      checkPath(path)
      if (Object.hasOwn(values, path)) throw new ArgumentError(`${WHERE}: '${prefix}${path}' is both a tensor and a module in the file.`)
      values[path] = this.#child(inner, `${prefix}${path}.`)
    }
    const graph = readGraph(WHERE, json.graph, at.at('graph'), this.#trust)
    if (json.codegen !== undefined) graph.setCodegen(codegenFromJson(json.codegen))
    const gm = new GraphModule(values, graph, json.className)
    addHeld(gm, json, values)
    for (const [name, value] of json.attributes ?? []) setAt(gm, name, value)
    for (const [key, value] of json.meta ?? []) gm.meta[key] = value
    gm.training = json.training
    return gm
  }

  #child(inner: Child, prefix: string): Module {
    if ('graph' in inner) return this.build(inner.graph, prefix, inner.place)
    const layer = moduleFromSpec(inner.layer, prefix, this.#find, inner.frozen ?? [])
    layer.train(inner.training)
    return layer
  }
}

/** Adds what the graph does not refer to, which a new GraphModule lacks, and registers buffers as they were. */
function addHeld(gm: GraphModule, json: Description, values: Readonly<Record<string, Module | Tensor>>): void {
  for (const [path, value] of Object.entries(values)) {
    if (value instanceof Module) {
      if (gm.attribute(path) !== value && !gm.addSubmodule(path, value))
        throw new ArgumentError(`${WHERE}: the module has no place for the attribute '${path}', because a tensor is in its way.`)
      continue
    }
    if (gm.attribute(path) === undefined) makeOwners(gm, path)
    const { owner, name } = place(gm, path)
    const { unregistered = false, persistent = true, parameter = false } = json.tensors.get(path) ?? {}
    if (parameter || !(owner instanceof Module)) setAt(gm, path, value)
    else if (unregistered && !owner.hasBuffer(name)) setAt(gm, path, value)
    else owner.registerBuffer(name, value, { persistent })
  }
}

function makeOwners(gm: GraphModule, path: string): void {
  const [owner] = splitPath(path)
  if (owner !== '' && gm.attribute(owner) === undefined) gm.addSubmodule(owner, new Container())
}

/** Throws ArgumentError for a path with an empty name, and for one that contains a name that modules use themselves. */
function checkPath(path: string): void {
  if (path.split('.').includes('')) throw new ArgumentError(`${WHERE}: the path '${path}' of an attribute has an empty name.`)
  checkFree(WHERE, path)
}

function setAt(gm: GraphModule, path: string, value: unknown): void {
  checkPath(path)
  const { owner, name } = place(gm, path)
  if (!isObject(owner)) throw new ArgumentError(`${WHERE}: the module has no place for the attribute '${path}'.`)
  setAttribute(owner, name, value)
}

// A GraphModule in one file: a safetensors file whose metadata contains the graph. Any reader of safetensors can read its tensors; tensorfx can read the module.
import { ArgumentError } from '../errors/index.ts'
import { Container } from '../fx/run/attributes.ts'
import { GraphModule } from '../fx/index.ts'
import { decodeNote, encodeMeta, graphFromJson, graphToJson } from '../fx/text/json.ts'
import type { GraphJson, JsonValue } from '../fx/text/json.ts'
import { Module, setAttribute, splitPath } from '../module/index.ts'
import { checkArgument, isObject, isParameter, isPlainObject } from '../protocol/index.ts'
import { Tensor } from '../tensor/index.ts'
import { codegenFromJson, codegenToJson } from './codegenJson.ts'
import type { CodegenJson } from './codegenJson.ts'
import { attributePaths } from './attributePaths.ts'
import { moduleFromSpec, moduleSpec, unknownModule } from './moduleSpec.ts'
import type { ModuleSpec } from './moduleSpec.ts'
import { readSafetensors, writeSafetensors } from './safetensors.ts'

/** The version of the description. A reader rejects newer versions. Version 1 had only what the graph refers to, and no nested inputs. */
const VERSION = 2
const KEY = 'tensorfx.graphmodule'

/** A module that a graph calls or reads: a layer or a GraphModule. */
type ChildJson = { readonly layer: ModuleSpec; readonly training: boolean } | { readonly graph: GraphModuleJson }

interface TensorJson {
  readonly parameter: boolean
  readonly requiresGrad: boolean
  /** For a buffer that is not in the state dict. */
  readonly persistent?: false
  /** For an attribute that is not a buffer. */
  readonly unregistered?: true
}

interface GraphModuleJson {
  readonly className: string
  readonly training: boolean
  readonly graph: GraphJson
  /** The structure of nested inputs and outputs. Left out if they are not nested. */
  readonly codegen?: CodegenJson
  readonly modules: { readonly [path: string]: ChildJson }
  /** The module's own tensors, at any depth. */
  readonly tensors: { readonly [path: string]: TensorJson }
  /** The other attributes that JSON can represent. */
  readonly attributes?: { readonly [name: string]: JsonValue }
  readonly meta?: { readonly [key: string]: JsonValue }
}

interface FileJson {
  readonly version: number
  readonly module: GraphModuleJson
  /** Further names of tensors in the file, so that shared parameters stay shared. */
  readonly shared: { readonly [name: string]: string }
}

/**
 * Writes a GraphModule as the bytes of a file: its graph with types, meta and stack traces, all layers, parameters and buffers, and the other attributes that JSON
 * can represent. Throws ArgumentError for a graph that JSON cannot represent, and for a module that is neither a layer of `nn` nor a GraphModule. PyTorch pickles a
 * GraphModule, without meta.
 */
export function saveGraphModule(gm: GraphModule): Uint8Array<ArrayBuffer> {
  if (!(gm instanceof GraphModule))
    throw new ArgumentError('saveGraphModule: the argument must be a GraphModule; trace the model with symbolicTrace first.')
  const tensors = new Map<string, Tensor>()
  const shared: Record<string, string> = {}
  const names = new Map<Tensor, string>()
  const keep = (name: string, tensor: Tensor): void => {
    const known = names.get(tensor)
    if (known === undefined) {
      names.set(tensor, name)
      tensors.set(name, tensor)
    } else if (known !== name) shared[name] = known
  }
  const file: FileJson = { version: VERSION, module: describe(gm, '', keep), shared }
  return writeSafetensors(tensors, { [KEY]: JSON.stringify(file) })
}

function describe(gm: GraphModule, prefix: string, keep: (name: string, tensor: Tensor) => void): GraphModuleJson {
  const modules: Record<string, ChildJson> = {}
  const tensors: Record<string, TensorJson> = {}
  for (const path of attributePaths(gm)) {
    if (path in modules || path in tensors) continue
    const value = gm.attribute(path)
    if (value instanceof Tensor) {
      tensors[path] = tensorJson(gm, path, value)
      keep(prefix + path, value)
    } else if (value instanceof GraphModule) modules[path] = { graph: describe(value, `${prefix}${path}.`, keep) }
    else if (value instanceof Module) {
      const layer = moduleSpec(value)
      if (layer === null) throw unknownModule('saveGraphModule', path, value)
      modules[path] = { layer, training: value.training }
      for (const [name, tensor] of value.stateDict()) if (tensor instanceof Tensor) keep(`${prefix}${path}.${name}`, tensor)
    } else throw new ArgumentError(`saveGraphModule: attribute '${path}' is neither a tensor nor a module; only those can be saved.`)
  }
  const codegen = codegenToJson(gm.graph.codegen)
  const attributes = encodeMeta(otherAttributes(gm))
  const meta = encodeMeta(gm.meta)
  return {
    className: gm.className,
    training: gm.training,
    graph: graphToJson(gm.graph),
    ...(codegen === null ? {} : { codegen }),
    modules,
    tensors,
    ...(Object.keys(attributes).length === 0 ? {} : { attributes }),
    ...(Object.keys(meta).length === 0 ? {} : { meta }),
  }
}

function tensorJson(gm: GraphModule, path: string, tensor: Tensor): TensorJson {
  const { owner, name } = place(gm, path)
  const own = { parameter: isParameter(tensor), requiresGrad: tensor.requiresGrad }
  if (own.parameter || !(owner instanceof Module)) return own
  if (!owner.hasBuffer(name)) return { ...own, unregistered: true }
  const isPersistent = [...owner.ownBuffers()].every(([buffer, , persistent]) => buffer !== name || persistent)
  return isPersistent ? own : { ...own, persistent: false }
}

/** The attributes that are neither modules nor tensors. */
function otherAttributes(gm: GraphModule): Record<string, unknown> {
  const own = new Set(['training', 'className', 'meta'])
  return Object.fromEntries(Object.entries(gm).filter(([name, value]) => !own.has(name) && !(value instanceof Module) && !(value instanceof Tensor)))
}

function place(gm: GraphModule, path: string): { owner: unknown; name: string } {
  const [ownerPath, name] = splitPath(path)
  return { owner: ownerPath === '' ? gm : gm.attribute(ownerPath), name }
}

/** Reads a file that {@link saveGraphModule} wrote. Throws ArgumentError for any other bytes, and for a newer version of the format. */
export function loadGraphModule(bytes: Uint8Array): GraphModule {
  checkArgument(bytes instanceof Uint8Array, 'loadGraphModule', 'bytes', 'a Uint8Array', bytes)
  const { tensors, metadata } = readSafetensors(bytes)
  const text = metadata[KEY]
  if (text === undefined)
    throw new ArgumentError(`loadGraphModule: this safetensors file contains only tensors, no '${KEY}'; read it with readSafetensors.`)
  const file = parseFile(text)
  const find = (name: string): Tensor => {
    const tensor = tensors.get(file.shared[name] ?? name)
    if (tensor === undefined) throw new ArgumentError(`loadGraphModule: the file lacks the tensor '${name}'.`)
    return tensor
  }
  const gm = build(file.module, '', find)
  for (const [name, first] of Object.entries(file.shared)) setAt(gm, name, gm.attribute(first))
  return gm
}

function parseFile(text: string): FileJson {
  const malformed = (): ArgumentError => new ArgumentError(`loadGraphModule: '${KEY}' in the file is not the description of a module.`)
  let file: unknown
  try {
    file = JSON.parse(text)
  } catch {
    throw malformed()
  }
  if (!isPlainObject(file) || typeof file['version'] !== 'number') throw malformed()
  if (file['version'] > VERSION)
    throw new ArgumentError(`loadGraphModule: version ${file['version']} is newer than this tensorfx reads (${VERSION}); update tensorfx.`)
  if (!isFile(file)) throw malformed()
  return file
}

const isFile = (file: object): file is FileJson => 'module' in file && isPlainObject(file.module) && 'shared' in file && isPlainObject(file.shared)

function build(json: GraphModuleJson, prefix: string, find: (name: string) => Tensor): GraphModule {
  const values: Record<string, Module | Tensor> = {}
  for (const [path, { parameter, requiresGrad }] of Object.entries(json.tensors)) {
    const tensor = find(prefix + path)
    values[path] = parameter ? tensor.asParameter(requiresGrad) : tensor
  }
  for (const [path, child] of Object.entries(json.modules)) {
    if ('graph' in child) {
      values[path] = build(child.graph, `${prefix}${path}.`, find)
      continue
    }
    const layer = moduleFromSpec(child.layer)
    layer.loadStateDict(new Map([...layer.stateDict().keys()].map((name) => [name, find(`${prefix}${path}.${name}`)])))
    layer.train(child.training)
    values[path] = layer
  }
  const graph = graphFromJson(json.graph)
  if (json.codegen !== undefined) graph.setCodegen(codegenFromJson(json.codegen))
  const gm = new GraphModule(values, graph, json.className)
  addHeld(gm, json, values)
  for (const [name, value] of Object.entries(json.attributes ?? {})) setAt(gm, name, decodeNote(value))
  for (const [key, value] of Object.entries(json.meta ?? {})) gm.meta[key] = decodeNote(value)
  gm.training = json.training
  return gm
}

/** Adds what the graph does not refer to, which a new GraphModule lacks, and registers buffers as they were. */
function addHeld(gm: GraphModule, json: GraphModuleJson, values: Readonly<Record<string, Module | Tensor>>): void {
  for (const [path, value] of Object.entries(values)) {
    if (value instanceof Module) {
      if (gm.attribute(path) !== value) gm.addSubmodule(path, value)
      continue
    }
    if (gm.attribute(path) === undefined) makeOwners(gm, path)
    const { owner, name } = place(gm, path)
    const { unregistered = false, persistent = true, parameter = false } = json.tensors[path] ?? {}
    if (parameter || !(owner instanceof Module)) setAt(gm, path, value)
    else if (unregistered && !owner.hasBuffer(name)) setAt(gm, path, value)
    else owner.registerBuffer(name, value, { persistent })
  }
}

function makeOwners(gm: GraphModule, path: string): void {
  const [owner] = splitPath(path)
  if (owner !== '' && gm.attribute(owner) === undefined) gm.addSubmodule(owner, new Container())
}

function setAt(gm: GraphModule, path: string, value: unknown): void {
  const { owner, name } = place(gm, path)
  if (!isObject(owner)) throw new ArgumentError(`loadGraphModule: the module has no place for the attribute '${path}'.`)
  setAttribute(owner, name, value)
}

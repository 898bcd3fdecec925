// A GraphModule as one file: a safetensors file whose metadata holds the graph. Any reader of safetensors sees its tensors; tensorfx gets the module back.
import { ArgumentError } from '../errors/index.ts'
import { Container } from '../fx/container.ts'
import { GraphModule, graphFromJson, graphToJson } from '../fx/index.ts'
import type { GraphJson } from '../fx/index.ts'
import { decodeNote, encodeMeta } from '../fx/json.ts'
import type { JsonValue } from '../fx/json.ts'
import { Module } from '../module/index.ts'
import { isParameter } from '../protocol/index.ts'
import { Tensor } from '../tensor/index.ts'
import { codegenFromJson, codegenToJson } from './codegenJson.ts'
import type { CodegenJson } from './codegenJson.ts'
import { attributePaths } from './attributePaths.ts'
import { moduleFromSpec, moduleSpec, unknownModule } from './moduleSpec.ts'
import type { ModuleSpec } from './moduleSpec.ts'
import { readSafetensors, writeSafetensors } from './safetensors.ts'

/** Version of the description; a reader refuses newer ones. 1 held only what the graph refers to, and no nested inputs. */
const VERSION = 2
const KEY = 'tensorfx.graphmodule'

/** A module that a graph calls or reads: a layer, or a graph with what it needs. */
type ChildJson = { readonly layer: ModuleSpec; readonly training: boolean } | { readonly graph: GraphModuleJson }

interface TensorJson {
  readonly parameter: boolean
  readonly requiresGrad: boolean
  /** Not in the state dict. Left out when it is. */
  readonly persistent?: false
  /** An attribute that is no buffer. Left out when it is one. */
  readonly unregistered?: true
}

interface GraphModuleJson {
  readonly className: string
  readonly training: boolean
  readonly graph: GraphJson
  /** How nested inputs and outputs lie in the graph. Left out when there are none. */
  readonly codegen?: CodegenJson
  readonly modules: { readonly [path: string]: ChildJson }
  /** Tensors of the module itself, at any depth. */
  readonly tensors: { readonly [path: string]: TensorJson }
  /** Other attributes, as far as JSON can hold them. */
  readonly attributes?: { readonly [name: string]: JsonValue }
  readonly meta?: { readonly [key: string]: JsonValue }
}

interface FileJson {
  readonly version: number
  readonly module: GraphModuleJson
  /** Names under which a tensor of the file is known, too: shared parameters stay shared. */
  readonly shared: { readonly [name: string]: string }
}

/**
 * The bytes of a file with the whole module: graph (with types, notes and stacks), layers, parameters and buffers, also those that the graph does not refer to, and
 * other attributes as far as JSON can hold them. Throws ArgumentError for a graph that JSON cannot hold, and for a module that is neither a layer of `nn` nor a
 * GraphModule. PyTorch pickles a GraphModule, without its notes.
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
      for (const [name, tensor] of value.stateDict()) keep(`${prefix}${path}.${name}`, tensor as unknown as Tensor)
    } else throw new ArgumentError(`saveGraphModule: attribute '${path}' is neither a tensor nor a module.`)
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

/** Attributes that are neither modules nor tensors. */
function otherAttributes(gm: GraphModule): Record<string, unknown> {
  const own = new Set(['training', 'className', 'meta'])
  return Object.fromEntries(Object.entries(gm).filter(([name, value]) => !own.has(name) && !(value instanceof Module) && !(value instanceof Tensor)))
}

function place(gm: GraphModule, path: string): { owner: unknown; name: string } {
  const dot = path.lastIndexOf('.')
  return { owner: dot < 0 ? gm : gm.attribute(path.slice(0, dot)), name: path.slice(dot + 1) }
}

/** The module of a file that {@link saveGraphModule} made. Throws ArgumentError for any other bytes, and for a file of a newer version. */
export function loadGraphModule(bytes: Uint8Array): GraphModule {
  const { tensors, metadata } = readSafetensors(bytes)
  const text = metadata[KEY]
  if (text === undefined)
    throw new ArgumentError(`loadGraphModule: this safetensors file holds tensors only, no '${KEY}'; read it with readSafetensors.`)
  const file = JSON.parse(text) as FileJson
  if (!(file.version <= VERSION))
    throw new ArgumentError(`loadGraphModule: version ${String(file.version)} is newer than this tensorfx reads (${VERSION}); update tensorfx.`)
  const find = (name: string): Tensor => {
    const tensor = tensors.get(file.shared[name] ?? name)
    if (tensor === undefined) throw new ArgumentError(`loadGraphModule: the file lacks the tensor '${name}'.`)
    return tensor
  }
  const gm = build(file.module, '', find)
  for (const [name, first] of Object.entries(file.shared)) setAttribute(gm, name, gm.attribute(first))
  return gm
}

function build(json: GraphModuleJson, prefix: string, find: (name: string) => Tensor): GraphModule {
  const values: Record<string, unknown> = {}
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
  const gm = new GraphModule(values, graphFromJson(json.graph), json.className)
  addHeld(gm, json, values)
  if (json.codegen !== undefined) gm.graph.setCodegen(codegenFromJson(json.codegen))
  for (const [name, value] of Object.entries(json.attributes ?? {})) setAttribute(gm, name, decodeNote(value))
  for (const [key, value] of Object.entries(json.meta ?? {})) gm.meta[key] = decodeNote(value)
  gm.training = json.training
  return gm
}

/** What the graph does not refer to is no part of a new GraphModule: it is added; and buffers become what they were. */
function addHeld(gm: GraphModule, json: GraphModuleJson, values: Readonly<Record<string, unknown>>): void {
  for (const [path, value] of Object.entries(values)) {
    if (value instanceof Module) {
      if (gm.attribute(path) !== value) gm.addSubmodule(path, value)
      continue
    }
    const { unregistered, persistent, parameter } = json.tensors[path] as TensorJson
    if (gm.attribute(path) === undefined) makeOwners(gm, path)
    const { owner, name } = place(gm, path)
    if (parameter || !(owner instanceof Module)) setAttribute(gm, path, value)
    else if (unregistered === true && !owner.hasBuffer(name)) setAttribute(gm, path, value)
    else owner.registerBuffer(name, value as Tensor, { persistent: persistent ?? true })
  }
}

function makeOwners(gm: GraphModule, path: string): void {
  const dot = path.lastIndexOf('.')
  const owner = path.slice(0, Math.max(0, dot))
  if (owner !== '' && gm.attribute(owner) === undefined) gm.addSubmodule(owner, new Container())
}

function setAttribute(gm: GraphModule, path: string, value: unknown): void {
  const { owner, name } = place(gm, path)
  ;(owner as Record<string, unknown>)[name] = value
}

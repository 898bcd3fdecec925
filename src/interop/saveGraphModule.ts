// Writes a GraphModule as one file: a safetensors file whose metadata contains the graph. Any reader of safetensors can read its tensors; loadGraphModule.ts reads
// the module.
import { ArgumentError } from '../errors/index.ts'
import { GraphModule } from '../fx/index.ts'
import { encodeMeta, graphToJson } from '../fx/text/json.ts'
import type { GraphJson, JsonValue } from '../fx/text/json.ts'
import { Module } from '../module/index.ts'
import { checkCount, isParameter } from '../protocol/index.ts'
import { Tensor } from '../tensor/index.ts'
import { codegenToJson } from './codegenJson.ts'
import type { CodegenJson } from './codegenJson.ts'
import { attributePaths } from './attributePaths.ts'
import { frozenParameters, moduleSpec, unknownModule } from './moduleSpec.ts'
import type { ModuleSpec } from './moduleSpec.ts'
import { writeSafetensors } from './safetensors.ts'
import { GRAPH_KEY as KEY } from '../formats/safetensors.ts'
import { VERSION, place } from './savedModule.ts'

/** A module that a graph calls or reads: a layer or a GraphModule. */
type ChildJson = LayerJson | { readonly graph: GraphModuleJson }

interface LayerJson {
  readonly layer: ModuleSpec
  readonly training: boolean
  /** The paths of parameters that are not trained. Left out if there are none. */
  readonly frozen?: readonly string[]
}

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
  checkCount('saveGraphModule', arguments, 1)
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
      const frozen = frozenParameters(value)
      modules[path] = { layer, training: value.training, ...(frozen.length === 0 ? {} : { frozen }) }
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

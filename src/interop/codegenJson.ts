// Code generators as JSON: the structure of a graph's nested inputs and outputs.
import { ArgumentError } from '../errors/index.ts'
import { CodeGen, PyTreeCodeGen } from '../fx/index.ts'
import type { GraphCodegen } from '../fx/index.ts'
import { treeSpecToString } from '../pytree/index.ts'
import type { TreeSpec } from '../pytree/index.ts'

/** A structure; null for a leaf. */
type SpecJson = null | { readonly array: readonly SpecJson[] } | { readonly object: Entries<string> } | { readonly map: Entries<MapKey> }
type Entries<K> = readonly (readonly [key: K, child: SpecJson])[]
type MapKey = string | number | boolean | null

/** A {@link PyTreeCodeGen} as JSON. */
export interface CodegenJson {
  readonly origArgs: readonly string[]
  readonly inSpec: SpecJson
  readonly outSpec: SpecJson | 'plain'
  readonly patterns: readonly number[]
}

/** The code generator as JSON; null if inputs and outputs are not nested. Throws ArgumentError for a custom code generator, and for structures that JSON cannot represent. */
export function codegenToJson(codegen: GraphCodegen): CodegenJson | null {
  if (codegen.constructor === CodeGen) return null
  if (!(codegen instanceof PyTreeCodeGen) || codegen.constructor !== PyTreeCodeGen)
    throw new ArgumentError(
      `saveGraphModule: the graph has a custom code generator, ${codegen.constructor.name}, which cannot be saved; set a CodeGen of tensorfx first.`,
    )
  const { origArgs, inSpec, outSpec, patterns } = codegen.info
  return { origArgs, inSpec: specToJson(inSpec), outSpec: outSpec === null ? 'plain' : specToJson(outSpec), patterns: patterns ?? [] }
}

/** The code generator that {@link codegenToJson} described. */
export function codegenFromJson(json: CodegenJson): GraphCodegen {
  const { origArgs, inSpec, outSpec, patterns } = json
  return new PyTreeCodeGen({ origArgs, inSpec: specFromJson(inSpec), outSpec: outSpec === 'plain' ? null : specFromJson(outSpec), patterns })
}

function specToJson(spec: TreeSpec): SpecJson {
  switch (spec.kind) {
    case 'leaf':
      return null
    case 'array':
      return { array: spec.children.map(specToJson) }
    case 'object':
      return { object: entries(spec.keys, spec.children) }
    case 'map':
      return { map: entries(spec.keys.map(mapKey), spec.children) }
    case 'registered':
      throw new ArgumentError(
        `saveGraphModule: an input or output of the graph is a ${treeSpecToString(spec)}, which cannot be saved; flatten it first.`,
      )
  }
}

function entries<K>(keys: readonly K[], children: readonly TreeSpec[]): Entries<K> {
  return keys.flatMap((key, i) => {
    const child = children[i]
    return child === undefined ? [] : [[key, specToJson(child)] as const]
  })
}

function mapKey(key: unknown): MapKey {
  if (key === null || typeof key === 'string' || typeof key === 'number' || typeof key === 'boolean') return key
  throw new ArgumentError(
    `saveGraphModule: an input or output of the graph is a Map with a key of type ${typeof key}, which cannot be saved; use strings or numbers as keys.`,
  )
}

function specFromJson(json: SpecJson): TreeSpec {
  if (json === null) return { kind: 'leaf' }
  if ('array' in json) return { kind: 'array', children: json.array.map(specFromJson) }
  if ('object' in json)
    return { kind: 'object', keys: json.object.map(([key]) => key), children: json.object.map(([, child]) => specFromJson(child)) }
  return { kind: 'map', keys: json.map.map(([key]) => key), children: json.map.map(([, child]) => specFromJson(child)) }
}

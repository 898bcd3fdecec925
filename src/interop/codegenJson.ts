// Code generators as JSON: the structure of a graph's nested inputs and outputs.
import { ArgumentError } from '../errors/index.ts'
import { CodeGen, PyTreeCodeGen } from '../fx/index.ts'
import type { GraphCodegen } from '../fx/index.ts'
import { integer, list, name as nameText, object, optional } from '../protocol/decode.ts'
import type { Decoded, Decoder } from '../protocol/decode.ts'
import { isPlainObject } from '../protocol/index.ts'
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

/** A name that is read from an options object, whose prototype must not answer. */
const key: Decoder<string> = (value, place) => {
  const text = nameText(value, place)
  return text in Object.prototype ? place.refuse('a name that not every object has', value) : text
}

const mapKey: Decoder<MapKey> = (value, place) =>
  value === null || typeof value === 'boolean' || typeof value === 'number' ? value : nameText(value, place)

const spec: Decoder<TreeSpec> = (value, place) => {
  if (value === null) return { kind: 'leaf' }
  if (!isPlainObject(value)) return place.refuse('a structure', value)
  const { array, object: record, map } = STRUCTURE(value, place)
  if (array !== undefined) return { kind: 'array', children: array }
  if (record !== undefined) return { kind: 'object', keys: record.map(([k]) => k), children: record.map(([, child]) => child) }
  if (map !== undefined) return { kind: 'map', keys: map.map(([k]) => k), children: map.map(([, child]) => child) }
  return place.refuse('a structure with one of the keys array, object, map', value)
}

const pair =
  <K>(first: Decoder<K>): Decoder<readonly [K, TreeSpec]> =>
  (value, place) =>
    Array.isArray(value) && value.length === 2
      ? [first(value[0], place.at(0)), spec(value[1], place.at(1))]
      : place.refuse('a key and a structure', value)

const STRUCTURE = object({
  array: optional(list((value, place) => spec(value, place))),
  object: optional(list(pair(key))),
  map: optional(list(pair(mapKey))),
})

/** The description of a code generator in a file. */
export const CODEGEN = object({
  origArgs: list(nameText),
  inSpec: spec,
  outSpec: (value: unknown, place) => (value === 'plain' ? null : spec(value, place)),
  patterns: list(integer()),
})

/** The code generator that {@link codegenToJson} described. Throws GraphError if the parts of the description do not fit. */
export function codegenFromJson(json: Decoded<typeof CODEGEN>): GraphCodegen {
  const { origArgs, inSpec, patterns } = json
  const wrong = (what: string): ArgumentError => new ArgumentError(`loadGraphModule: codegen.${what}.`)
  if (patterns.some((i) => i >= origArgs.length)) throw wrong('patterns has a position that origArgs lacks')
  for (const [i, name] of origArgs.entries()) {
    const input = inSpec.kind === 'array' ? inSpec.children[i] : undefined
    if (patterns.includes(i)) {
      if (!(input?.kind === 'object' && input.children.every((child) => child.kind === 'leaf')))
        throw wrong(`patterns has the position of '${name}', whose structure is not an object of plain values`)
    } else if (input?.kind !== 'leaf' && (!/^[\p{ID_Start}_$][\p{ID_Continue}$]*$/u.test(name) || USED.has(name)))
      throw wrong(`origArgs has '${name}', which cannot be the name of a parameter`)
  }
  return new PyTreeCodeGen(json)
}

/** Names that the generated code uses itself. */
const USED: ReadonlySet<string> = new Set(['pytree', 'inSpec', 'outSpec', 'torch', 'operator'])

function specToJson(spec: TreeSpec): SpecJson {
  switch (spec.kind) {
    case 'leaf':
      return null
    case 'array':
      return { array: spec.children.map(specToJson) }
    case 'object':
      return { object: entries(spec.keys, spec.children) }
    case 'map':
      return { map: entries(spec.keys.map(checkMapKey), spec.children) }
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

function checkMapKey(key: unknown): MapKey {
  if (key === null || typeof key === 'string' || typeof key === 'number' || typeof key === 'boolean') return key
  throw new ArgumentError(
    `saveGraphModule: an input or output of the graph is a Map with a key of type ${typeof key}, which cannot be saved; use strings or numbers as keys.`,
  )
}

// Saved graphs as what the page shows: the JSON of a graph, and a safetensors file whose metadata has a GraphModule. The graph is only shown: functions are names, layers what the file
// says of them, and nothing of it runs.
import { RECIPES } from '../../../formats/layerRecipes.ts'
import { GRAPH_KEY } from '../../../formats/safetensors.ts'
import { ArgumentError, UnsupportedError } from '../../../errors/index.ts'
import { Module } from '../../../module/index.ts'
import { Place, decode, list, mapOf, name as nameText, object, optional } from '../../../protocol/decode.ts'
import type { Decoded, Decoder } from '../../../protocol/decode.ts'
import { isPlainObject } from '../../../protocol/index.ts'
import { parseJson } from '../../../protocol/jsonText.ts'
import { installGraphText } from '../../graph/graphText.ts'
import type { Graph } from '../../graph/graph.ts'
import { GraphModule, checkFree } from '../../run/graphModule.ts'
import { CodeGen } from '../../text/codegen.ts'
import { formatGraph, formatNode, formatTabular } from '../../text/format.ts'
import { readGraph } from '../../text/readJson.ts'
import { plainView } from '../graphView.ts'
import { NONE, configText } from '../nodeFacts.ts'
import type { GraphView, TargetFacts, ViewTensor } from '../view.ts'
import { isTensorItem } from '../weights.ts'
import type { WeightsView } from '../weights.ts'

/** Stands for a module, a parameter or a buffer of a graph that is only shown. */
class NotInFile extends Module {
  override forward(): never {
    throw new UnsupportedError('this graph comes from a file without weights, so it cannot run.')
  }
}

/** A GraphModule of a graph alone: what its nodes refer to is not there. */
export function moduleOfGraph(graph: Graph, className?: string): GraphModule {
  const targets = [...graph.nodes].filter(({ op }) => op === 'call_module' || op === 'get_attr').map(({ target }) => String(target))
  for (const target of targets) checkFree('open', target)
  return new GraphModule(Object.fromEntries(targets.map((target) => [target, new NotInFile()])), graph, className)
}

/** In a page nothing has put the parts of graphs together. */
const install = (): void =>
  installGraphText({ newCodegen: () => new CodeGen(), isCodegen: (value) => value instanceof CodeGen, formatNode, formatGraph, formatTabular })

/** The graph in a JSON text. Throws ArgumentError for another text. */
export function graphJsonView(name: string, text: string): GraphView {
  const json = parseJson('open', `'${name}'`, text)
  if (!isPlainObject(json) || !Array.isArray(json['nodes']))
    throw new ArgumentError(`open: '${name}' is JSON, but not that of a graph, which graphToJson writes: it has no list 'nodes'.`)
  return shown(name, json, new Place('open', 'the graph'), undefined, () => NONE)
}

function shown(name: string, json: unknown, place: Place, className: string | undefined, factsOf: (target: string) => TargetFacts): GraphView {
  install()
  const gm = moduleOfGraph(readGraph('open', json, place, 'shown'), className)
  return plainView(gm, name, ({ op, target }) => (op === 'call_module' || op === 'get_attr' ? factsOf(String(target)) : NONE))
}

const anything: Decoder<unknown> = (value) => value
const LAYER = object({ class: nameText, args: list(anything, 16) })
const MODULE = object({
  className: nameText,
  graph: anything,
  modules: mapOf(object({ layer: optional(LAYER), graph: optional(object({ className: nameText })) })),
})
const FILE = object({ module: MODULE, shared: mapOf(nameText) })

/** The GraphModule in a safetensors file. Throws ArgumentError for metadata that describes none. */
export function savedModuleView(name: string, weights: WeightsView, text: string): GraphView {
  const file = decode('open', FILE, parseJson('open', `'${GRAPH_KEY}' of '${name}'`, text), `'${GRAPH_KEY}'`)
  const { module, shared } = file
  const tensors = new Map(weights.items.flatMap((item) => (isTensorItem(item) ? [[item.path.join('.'), item] as const] : [])))
  const tensorOf = (path: string, shownAs: string): readonly ViewTensor[] => {
    const found = tensors.get(shared.get(path) ?? path)
    if (found === undefined) return []
    const { shape, dtype, statistics } = found
    return [{ name: shownAs, kind: 'parameter', shape, dtype, statistics }]
  }
  /** The tensors below a path, also those that are another's. */
  const below = (path: string): readonly ViewTensor[] =>
    [...new Set([...tensors.keys(), ...shared.keys()])]
      .filter((key) => key.startsWith(`${path}.`))
      .flatMap((key) => tensorOf(key, key.slice(path.length + 1)))
  const known = new Map<string, TargetFacts>()
  const factsOf = (target: string): TargetFacts => {
    let facts = known.get(target)
    if (facts === undefined) known.set(target, (facts = factsAt(target)))
    return facts
  }
  const factsAt = (target: string): TargetFacts => {
    const child = module.modules.get(target)
    if (child?.layer !== undefined) return { type: child.layer.class, config: configOf(child.layer), tensors: below(target) }
    if (child?.graph !== undefined) return { type: child.graph.className, config: {}, tensors: below(target) }
    const own = tensorOf(target, target)
    return own.length === 0 ? NONE : { type: 'Parameter', config: {}, tensors: own }
  }
  return shown(name, module.graph, new Place('open', 'the graph'), module.className, factsOf)
}

/** The arguments of a layer by their names. */
function configOf({ class: type, args }: Decoded<typeof LAYER>): Readonly<Record<string, string>> {
  const required = RECIPES.get(type)?.required ?? []
  return Object.fromEntries(
    args.flatMap((arg, i): readonly (readonly [string, string])[] =>
      isPlainObject(arg)
        ? Object.entries(arg).map(([key, value]) => [key, configText(value)] as const)
        : [[required[i] ?? `args[${i}]`, configText(arg)]],
    ),
  )
}

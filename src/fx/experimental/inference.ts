// Models for inference: without dropout, and parts of them. PyTorch's torch.fx.experimental.optimization, with optimization.ts, which folds batch norms.
import { checkGraphModule, checkNode } from '../../protocol/graphChecks.ts'
import { checkArgument, checkArray, checkCount, checkOptions, isModule } from '../../protocol/index.ts'
import { ArgumentError } from '../../errors/index.ts'
import { Module, isLibraryLayer } from '../../module/index.ts'
import { Graph } from '../graph/graph.ts'
import type { Argument, Node } from '../graph/node.ts'
import { applyRewrites, nodeRewrite } from '../passes/each/rewrites.ts'
import type { GraphRewrite } from '../passes/each/rewrites.ts'
import { GraphModule } from '../run/graphModule.ts'
import { symbolicTrace } from '../trace/symbolicTrace.ts'
import { applyLayout, checkLayout } from './layoutRegions.ts'
import type { Layout } from './layoutRegions.ts'
import { fuse } from './optimization.ts'

// Layers are recognised by their attributes, because minifiers change class names.
const isDropout = (module: unknown): boolean => module instanceof Module && isLibraryLayer(module) && 'p' in module && 'inplace' in module

/** A dropout layer away: the rewrite of {@link removeDropout}. */
export const dropoutRewrite: GraphRewrite = /* @__PURE__ */ nodeRewrite({
  name: 'dropout away',
  what: 'A dropout layer becomes its input.',
  match: ({ gm, node }) => (node.op === 'call_module' && isDropout(gm.attribute(node.target)) ? (node.allInputNodes[0] ?? null) : null),
  replace: (input) => input,
})

/** The model as a graph that can be changed: traced, or a copy that shares its tensors. */
const ownGraph = (model: Module): GraphModule => (model instanceof GraphModule ? model.deepCopy({ shareTensors: true }) : symbolicTrace(model))

/**
 * The model without its `nn.Dropout` layers, also in training mode. Calls of the function `dropout` stay. The model does not change. PyTorch's remove_dropout.
 */
export function removeDropout(model: Module): GraphModule {
  checkCount('removeDropout', arguments, 1)
  const gm = ownGraph(model)
  applyRewrites(gm, [dropoutRewrite])
  return gm
}

/**
 * A module of some nodes of a graph, which takes the values of `inputs` and returns an array with those of `outputs`. It shares the attributes of `gm`, which does not
 * change. PyTorch's extract_subgraph.
 * @throws ArgumentError if a node needs a value that is neither an input nor computed by an earlier node of the list.
 */
export function extractSubgraph(gm: GraphModule, nodes: readonly Node[], inputs: readonly Node[], outputs: readonly Node[]): GraphModule {
  checkCount('extractSubgraph', arguments, 4)
  checkGraphModule('extractSubgraph', gm)
  checkArray('extractSubgraph', 'nodes', nodes)
  checkArray('extractSubgraph', 'inputs', inputs)
  checkArray('extractSubgraph', 'outputs', outputs)
  const graph = new Graph()
  const copies = new Map<Node, Node>(inputs.map((input) => [input, graph.placeholder(input.name, input.type)]))
  const copyOf = (node: Node): Argument => {
    const copy = copies.get(node)
    if (copy === undefined)
      throw new ArgumentError(`extractSubgraph: the value of '${node.name}' is missing; add it to inputs, or to nodes before those that need it.`)
    return copy
  }
  for (const node of nodes) copies.set(node, graph.nodeCopy(node, copyOf))
  graph.output(outputs.map(copyOf))
  graph.lint()
  return new GraphModule(gm, graph, gm.className)
}

/** A class of modules. */
export interface ModuleClass {
  readonly prototype: Module
}

/**
 * Whether a node calls a module of exactly the last class of `pattern`, and its first argument is a node that calls one of exactly the class before it. PyTorch's
 * matches_module_pattern, which takes the modules instead of `gm`.
 */
export function matchesModulePattern(pattern: readonly [first: ModuleClass, then: ModuleClass], node: Node, gm: GraphModule): boolean {
  checkCount('matchesModulePattern', arguments, 3)
  checkArray('matchesModulePattern', 'pattern', pattern)
  checkNode('matchesModulePattern', node)
  checkGraphModule('matchesModulePattern', gm)
  const [input] = node.args
  const before = node.allInputNodes.find((n) => n === input)
  const calls = (n: Node, wanted: ModuleClass): boolean => n.op === 'call_module' && constructorOf(gm.attribute(n.target)) === wanted
  return before !== undefined && calls(before, pattern[0]) && calls(node, pattern[1])
}

const constructorOf = (value: unknown): unknown => (value instanceof Module ? value.constructor : undefined)

/** Puts another module in the place of the one that a call_module node calls. PyTorch's replace_node_module. @throws ArgumentError for other nodes. */
export function replaceNodeModule(node: Node, gm: GraphModule, module: Module): void {
  checkCount('replaceNodeModule', arguments, 3)
  checkNode('replaceNodeModule', node)
  checkGraphModule('replaceNodeModule', gm)
  checkArgument(isModule(module), 'replaceNodeModule', 'module', 'a Module', module)
  if (node.op !== 'call_module') throw new ArgumentError(`replaceNodeModule: node '${node.name}' must be a call_module, got a ${node.op}.`)
  gm.addSubmodule(node.target, module)
}

/** Options of {@link optimizeForInference}. */
export interface InferenceOptions {
  /** Fold batch norms into the layers before them; see {@link fuse}. Default true. */
  readonly convBnFuse?: boolean
  /** Remove dropout layers; see {@link removeDropout}. Default true. */
  readonly removeDropout?: boolean
  /** Let the parts of the model that support it compute in this layout; see {@link applyLayout}. Default: none. PyTorch's mkldnn_layout_optimize. */
  readonly layoutOptimize?: Layout
}

/**
 * Prepares a model for inference: folds batch norms, removes dropout, and converts parts to a layout, if there is one. The model does not change; if there is nothing
 * to do, it is returned. PyTorch's optimize_for_inference.
 * @throws ArgumentError for a model in training mode whose batch norms should be folded, for an unknown option, and for a layout that lacks something.
 */
export function optimizeForInference(model: Module, options: InferenceOptions = {}): Module {
  checkCount('optimizeForInference', arguments, 2)
  const where = 'optimizeForInference'
  checkArgument(isModule(model), where, 'model', 'a Module', model)
  checkOptions(where, options, { convBnFuse: 'boolean', removeDropout: 'boolean', layoutOptimize: true })
  const { layoutOptimize } = options
  if (layoutOptimize !== undefined) checkLayout(where, layoutOptimize)
  const fused = options.convBnFuse === false ? model : fuse(model)
  const without = options.removeDropout === false ? fused : removeDropout(fused)
  if (layoutOptimize === undefined) return without
  const gm = ownGraph(without)
  applyLayout(gm, layoutOptimize)
  return gm
}

// splitConstSubgraphs: constant folding. The part of a graph that depends only on parameters and constants is computed once, before the first run. PyTorch's
// torch.fx.experimental.const_fold.
import { checkGraphModule } from '../../protocol/graphChecks.ts'
import { InternalError } from '../../errors/index.ts'
import { Module, copyable, setAttribute, getAttribute } from '../../module/index.ts'
import { replaced } from '../../pipeline/index.ts'
import type { Pass } from '../../pipeline/index.ts'
import { checkArgument, checkCallable, checkCount, checkString, isModule, isTensorLike } from '../../protocol/index.ts'
import { GraphError } from '../graph/errors.ts'
import { Graph } from '../graph/graph.ts'
import { referringNodes } from '../graph/lint.ts'
import { Node } from '../graph/node.ts'
import { GraphModule } from '../run/graphModule.ts'
import { inlineModule, splitModule } from '../passes/split/splitModule.ts'
import { symbolicTrace } from '../trace/symbolicTrace.ts'

/** Several folded values, as parameters named `0`, `1`, … */
class FoldedParameters extends Module {
  constructor(parameters: readonly unknown[]) {
    super()
    for (const [i, parameter] of parameters.entries()) setAttribute(this, String(i), parameter)
  }

  override forward(): never {
    throw new GraphError('FoldedParameters only holds folded values; it cannot be called.')
  }
}

/** A module whose constant part is computed at its first run, or by `runFolding()`, and then kept as a parameter. PyTorch's FoldedGraphModule. */
export class FoldedGraphModule extends GraphModule {
  /** The module that computes the constants; null if there are none. */
  readonly constSubgraphModule: GraphModule | null
  /** The name of the attribute that holds them; null if there are none. */
  readonly fxConstFoldedAttrsName: string | null
  hasFoldingBeenRun = false

  constructor(root: GraphModule, graph: Graph, constSubgraph: GraphModule | null = null, attrsName: string | null = null) {
    checkCount('FoldedGraphModule', arguments, 4)
    checkGraphModule('FoldedGraphModule', root, 'root')
    super(root, graph, root.className)
    this.constSubgraphModule = constSubgraph
    this.fxConstFoldedAttrsName = attrsName
  }

  // eslint-disable-next-line typescript/no-explicit-any -- as in GraphModule
  override forward(...args: any[]): any {
    if (!this.hasFoldingBeenRun) this.runFolding()
    return super.forward(...args)
  }

  protected override makeEmpty(): FoldedGraphModule {
    return new FoldedGraphModule(new GraphModule({}, new Graph(), this.className), new Graph())
  }

  /** Keeps the module that computes the constants, to which no node refers. */
  override deleteAllUnusedSubmodules(): void {
    const { constSubgraphModule } = this
    super.deleteAllUnusedSubmodules()
    setAttribute(this, 'constSubgraphModule', constSubgraphModule)
  }

  /** Computes the constants now. Throws GraphError if that has been done already. */
  runFolding(): void {
    if (this.constSubgraphModule === null || this.fxConstFoldedAttrsName === null) return
    if (this.hasFoldingBeenRun) throw new GraphError('runFolding: the constants of this module have already been computed.')
    const values: unknown = this.constSubgraphModule.call()
    const folded = Array.isArray(values) ? new FoldedParameters(values.map(asParameter)) : asParameter(values)
    setAttribute(this, this.fxConstFoldedAttrsName, folded)
    this.hasFoldingBeenRun = true
  }
}

function asParameter(value: unknown): unknown {
  return isTensorLike(value) ? copyable(value).detach().clone().asParameter(value.requiresGrad) : value
}

/**
 * Splits off the part of a model that depends only on attributes, to be computed once. Nodes for which `skipFolding` returns true, and what depends on them, stay. Nodes
 * with side effects and random nodes are never folded. The model does not change. PyTorch's split_const_subgraphs. Throws InternalError if the split has no module for that part.
 */
export function splitConstSubgraphs(model: Module, skipFolding: (node: Node) => boolean = () => false): FoldedGraphModule {
  checkCount('splitConstSubgraphs', arguments, 2)
  checkCallable('splitConstSubgraphs', 'skipFolding', skipFolding)
  const traced = model instanceof GraphModule ? model : symbolicTrace(model)
  const constant = new Set<Node>()
  for (const node of traced.graph.nodes) {
    if (node.op === 'placeholder' || node.op === 'output') continue
    if (node.op !== 'get_attr' && !(node.allInputNodes.length > 0 && node.allInputNodes.every((n) => constant.has(n)))) continue
    if (skipFolding(node) || node.isImpure() || !isFoldable(traced, node)) continue
    constant.add(node)
  }
  if (![...constant].some((node) => node.op !== 'get_attr')) return new FoldedGraphModule(traced, traced.graph.deepCopy())
  const split = splitModule(traced, (node) => (constant.has(node) ? 0 : 1))
  const [call] = split.graph.findNodes({ op: 'call_module', target: 'submod_0' })
  const part = split.attribute('submod_0')
  if (call === undefined || !(part instanceof GraphModule)) throw new InternalError('splitModule made no module for the constant part')
  const constGm = withAttributes(part, call, split)
  const name = getUniqueAttrNameInModule(traced, '_FX_CONST_FOLDED_ATTRS')
  setAttribute(split, name, null)
  const folded = split.graph.insertingBefore(call, () => split.graph.getAttr(name))
  folded.copyMeta(call)
  call.replaceAllUsesWith(folded)
  split.graph.eraseNode(call)
  const rest = split.graph.findNodes({ op: 'call_module', target: 'submod_1' })[0]
  if (rest !== undefined) inlineModule(split, rest)
  split.graph.eliminateDeadCode()
  split.graph.lint()
  return new FoldedGraphModule(split, split.graph, constGm, name)
}

/** {@link splitConstSubgraphs} as a pass. It changes nothing if nothing can be folded. */
export const foldConstants: Pass<GraphModule> = {
  name: 'foldConstants',
  run: (gm) => {
    const folded = splitConstSubgraphs(gm)
    return folded.constSubgraphModule === null ? false : replaced(folded)
  },
}

/** Whether a node gives the same value every time. In training mode, a module with buffers (batch norm) or without parameters (dropout) may not. */
function isFoldable(gm: GraphModule, node: Node): boolean {
  if (node.op !== 'call_module') return true
  const module = gm.attribute(node.target)
  return module instanceof Module && (!module.training || ([...module.parameters()].length > 0 && [...module.buffers()].length === 0))
}

/** The constant part as a module that reads its attributes itself instead of getting them as arguments. */
function withAttributes(part: GraphModule, call: Node, split: GraphModule): GraphModule {
  const { graph } = part
  // The module that owns the graph does not have these attributes.
  graph.owningModule = null
  for (const [i, placeholder] of graph.findNodes({ op: 'placeholder' }).entries()) {
    const source = call.args[i]
    if (!(source instanceof Node) || source.op !== 'get_attr') throw new InternalError(`input ${i} of the constant part is not an attribute`)
    const read = graph.insertingBefore(placeholder, () => graph.getAttr(source.target))
    read.copyMeta(placeholder)
    placeholder.replaceAllUsesWith(read)
    graph.eraseNode(placeholder)
  }
  const paths = [...referringNodes(graph)].map((node) => node.target)
  return new GraphModule(Object.fromEntries(paths.map((path) => [path, part.attribute(path) ?? split.attribute(path)])), graph)
}

/**
 * A name that is free in a module: characters that names cannot have become `_`, and a number at the end is counted up. PyTorch's get_unique_attr_name_in_module.
 */
export function getUniqueAttrNameInModule(module: Module, name: string): string {
  checkCount('getUniqueAttrNameInModule', arguments, 2)
  checkArgument(isModule(module), 'getUniqueAttrNameInModule', 'module', 'a Module', module)
  checkString('getUniqueAttrNameInModule', 'name', name)
  let unique = name.replace(/[^0-9a-zA-Z_]+/g, '_').replace(/^(?=\d)/, '_')
  while (getAttribute(module, unique) !== undefined) {
    const [, stem = unique, number = '0'] = /^(.*)_(\d+)$/.exec(unique) ?? []
    unique = `${stem}_${Number(number) + 1}`
  }
  return unique
}

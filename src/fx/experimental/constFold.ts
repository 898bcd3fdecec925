// splitConstSubgraphs: what depends on parameters and constants only is computed once, before the first run. PyTorch's torch.fx.experimental.const_fold.
import { Module } from '../../module/index.ts'
import { isTensorLike } from '../../protocol/index.ts'
import { GraphError } from '../errors.ts'
import { Graph } from '../graph.ts'
import { GraphModule } from '../graphModule.ts'
import type { Node } from '../node.ts'
import { inlineModule, splitModule } from '../passes/splitModule.ts'
import { symbolicTrace } from '../symbolicTrace.ts'

/** What folding needs of a tensor. */
interface Foldable {
  readonly requiresGrad: boolean
  detach(): Foldable
  clone(): Foldable
  asParameter(requiresGrad: boolean): unknown
}

/** Several folded values: `folded[0]`, `folded[1]`, … are its parameters. */
class FoldedParameters extends Module {
  constructor(parameters: readonly unknown[]) {
    super()
    parameters.forEach((parameter, i) => {
      ;(this as unknown as Record<string, unknown>)[i] = parameter
    })
  }

  override forward(): never {
    throw new GraphError('folded parameters are not called')
  }
}

/** A module whose constant part is computed at its first run, or by `runFolding()`, and kept as a parameter. PyTorch's FoldedGraphModule. */
export class FoldedGraphModule extends GraphModule {
  /** What computes the constants; null when there were none. */
  readonly constSubgraphModule: GraphModule | null
  /** The attribute that holds them; null when there were none. */
  readonly fxConstFoldedAttrsName: string | null
  hasFoldingBeenRun = false

  constructor(root: GraphModule, graph: Graph, constSubgraph: GraphModule | null = null, attrsName: string | null = null) {
    super(root, graph, root.className)
    this.constSubgraphModule = constSubgraph
    this.fxConstFoldedAttrsName = attrsName
  }

  // eslint-disable-next-line typescript/no-explicit-any -- as GraphModule's
  override forward(...args: any[]): any {
    if (!this.hasFoldingBeenRun) this.runFolding()
    return super.forward(...args)
  }

  protected override makeEmpty(): FoldedGraphModule {
    return new FoldedGraphModule(new GraphModule({}, new Graph(), this.className), new Graph())
  }

  /** Computes the constants now. It can run once. */
  runFolding(): void {
    if (this.constSubgraphModule === null || this.fxConstFoldedAttrsName === null) return
    if (this.hasFoldingBeenRun) throw new GraphError('runFolding: the constants of this module have been computed already.')
    const values = this.constSubgraphModule.call() as unknown
    const folded = Array.isArray(values) ? new FoldedParameters(values.map(asParameter)) : asParameter(values)
    ;(this as unknown as Record<string, unknown>)[this.fxConstFoldedAttrsName] = folded
    this.hasFoldingBeenRun = true
  }
}

function asParameter(value: unknown): unknown {
  if (!isTensorLike(value)) return value
  const tensor = value as unknown as Foldable
  return tensor.detach().clone().asParameter(tensor.requiresGrad)
}

/**
 * Splits off what depends on attributes only. `skipFolding` keeps a node (and what depends on it) in the graph. Nodes with side effects and random ones
 * are never folded. The model is not changed. PyTorch's split_const_subgraphs.
 */
export function splitConstSubgraphs(model: Module, skipFolding: (node: Node) => boolean = () => false): FoldedGraphModule {
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
  const call = split.graph.findNodes({ op: 'call_module', target: 'submod_0' })[0] as Node
  const constGm = withAttributes(split.attribute('submod_0') as GraphModule, call, split)
  const name = freshName(traced, '_FX_CONST_FOLDED_ATTRS')
  ;(split as unknown as Record<string, unknown>)[name] = null
  const folded = split.graph.insertingBefore(call, () => split.graph.getAttr(name))
  folded.meta = { ...call.meta }
  call.replaceAllUsesWith(folded)
  split.graph.eraseNode(call)
  const rest = split.graph.findNodes({ op: 'call_module', target: 'submod_1' })[0]
  if (rest !== undefined) inlineModule(split, rest)
  split.graph.eliminateDeadCode()
  split.graph.lint()
  return new FoldedGraphModule(split, split.graph, constGm, name)
}

/** A module's call may depend on its mode (dropout) or on state that it changes (batch norm); a layer in training that has parameters only does not. */
function isFoldable(gm: GraphModule, node: Node): boolean {
  if (node.op !== 'call_module') return true
  const module = gm.attribute(node.target as string)
  return module instanceof Module && (!module.training || ([...module.parameters()].length > 0 && [...module.buffers()].length === 0))
}

/** The constant part as a module of its own, which reads its attributes itself instead of taking them as arguments. */
function withAttributes(part: GraphModule, call: Node, split: GraphModule): GraphModule {
  const { graph } = part
  // Its module does not have what it is going to read.
  graph.owningModule = null
  graph.findNodes({ op: 'placeholder' }).forEach((placeholder, i) => {
    const source = call.args[i] as Node
    const read = graph.insertingBefore(placeholder, () => graph.getAttr(source.target as string))
    read.meta = { ...placeholder.meta }
    placeholder.replaceAllUsesWith(read)
    graph.eraseNode(placeholder)
  })
  const paths = [...graph.nodes].filter((n) => n.op === 'get_attr' || n.op === 'call_module').map((n) => n.target as string)
  return new GraphModule(Object.fromEntries(paths.map((path) => [path, part.attribute(path) ?? split.attribute(path)])), graph)
}

/** The name, with a number behind it where the module has such an attribute. */
function freshName(gm: GraphModule, base: string): string {
  let name = base
  for (let i = 0; gm.attribute(name) !== undefined; i++) name = `${base}_${i}`
  return name
}

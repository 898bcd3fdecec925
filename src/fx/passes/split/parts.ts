// Parts of graphs as modules. PyTorch's torch.fx.passes.utils.common.
import { checkArgument, checkCount, isObject } from '../../../protocol/index.ts'
import { checkGraph, checkGraphModule } from '../../../protocol/graphChecks.ts'
import { ArgumentError } from '../../../errors/index.ts'
import { Module, setAttribute } from '../../../module/index.ts'
import type { Graph } from '../../graph/graph.ts'
import { referringNodes } from '../../graph/lint.ts'
import { GraphModule } from '../../run/graphModule.ts'

/** A module that only holds other modules, by name. PyTorch's HolderModule. */
export class HolderModule extends Module {
  constructor(modules: Readonly<Record<string, Module | null>>) {
    checkCount('HolderModule', arguments, 1)
    super()
    checkArgument(isObject(modules), 'HolderModule', 'modules', 'an object of modules by name', modules)
    for (const [name, module] of Object.entries(modules)) setAttribute(this, name, module)
  }

  /** @throws ArgumentError always: it has nothing to compute. */
  override forward(): never {
    throw new ArgumentError('HolderModule only holds modules; call one of them.')
  }
}

/** The result of {@link liftSubgraphAsModule}. */
export interface LiftedSubgraph {
  readonly graphModule: GraphModule
  /** From the path of each attribute that the graph refers to, to its path in the module that gets the part: `blk.0` -> `comp.blk.0`. */
  readonly qualnames: ReadonlyMap<string, string>
}

/**
 * Makes a module of a graph that refers to attributes of `gm`, which it shares. `name` is what the module will be called in its owner. PyTorch's
 * lift_subgraph_as_module.
 */
export function liftSubgraphAsModule(gm: GraphModule, subgraph: Graph, name: string = '', className: string = 'GraphModule'): LiftedSubgraph {
  checkCount('liftSubgraphAsModule', arguments, 4)
  checkGraphModule('liftSubgraphAsModule', gm)
  checkGraph('liftSubgraphAsModule', subgraph, 'subgraph')
  const paths = new Set(Array.from(referringNodes(subgraph), (node) => node.target))
  const attributes = Object.fromEntries(Array.from(paths, (path) => [path, gm.attribute(path)]))
  const graphModule = new GraphModule(attributes, subgraph, className)
  return { graphModule, qualnames: new Map(Array.from(paths, (path) => [path, name === '' ? path : `${name}.${path}`])) }
}

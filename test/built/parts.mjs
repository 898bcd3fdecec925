// Parts that programs of one subpath work on. Modules of the built package that only define: importing them puts nothing together, so the subpath has to.
import { makeFx } from '../../dist/aot/makeFx/makeFx.js'
import { Graph, GraphModule } from '../../dist/fx/index.js'
import { tensor } from '../../dist/ops/create/tensor.js'

export { makeFx, tensor }

/** A leaf that collects gradients. */
export const parameter = (values) => tensor(values, { requiresGrad: true })

/** (x) => x.add(1) */
export function graphModule() {
  const graph = new Graph()
  graph.output(graph.callMethod('add', [graph.placeholder('x'), 1]))
  return new GraphModule({}, graph)
}

/** A number to which graphModule can add. */
export const addable = (value) => ({ add: (other) => value + other })

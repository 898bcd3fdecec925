// Shape propagation.
import type { Pass } from '../../../pipeline/index.ts'
import type { GraphModule } from '../../run/graphModule.ts'
import { interpreterPass } from '../pass.ts'
import { ShapeProp } from '../shapeProp.ts'

/** A pass that runs the graph on these inputs and records the shape and dtype of every value. The graph does not change. See {@link ShapeProp}. */
export function propagateShapes(...inputs: readonly unknown[]): Pass<GraphModule> {
  return interpreterPass(ShapeProp, inputs)
}

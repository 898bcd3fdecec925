// The smallest contiguous block of nodes on which a backend differs, by the net minimizer: for differences that show only where nodes are fused.
import { MinimizerBase } from '../../fx/passes/index.ts'
import { noGrad } from '../../autograd/index.ts'
import type { GraphModule, Node } from '../../fx/index.ts'

/** Finds the block. `differs` judges a part of the graph on the inputs that it has in the whole. */
export function smallestBlock(
  gm: GraphModule,
  inputs: readonly unknown[],
  differs: (part: GraphModule, inputs: readonly unknown[]) => boolean,
): readonly Node[] {
  const given = [...gm.graph.processInputs(...inputs)]
  let failed = false
  const minimizer = new MinimizerBase(gm, given, () => [failed ? 1 : 0, !failed], {
    settings: { traverseMethod: 'block', allOutputs: true },
    runA: (part, values) => noGrad(() => part.call(...values)),
    runB: (part, values) => {
      failed = differs(part, values)
      return noGrad(() => part.call(...values))
    },
    print: () => {},
  })
  return [...minimizer.minimize()]
}

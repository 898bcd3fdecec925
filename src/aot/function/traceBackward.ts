// The backward half of a joint graph, recorded into the graph of its forward.
import { OpNode, backwardState } from '../../autograd/index.ts'
import { withMode } from '../../dispatch/index.ts'
import { checkGraph } from '../../protocol/graphChecks.ts'
import { checkArray, checkCallable } from '../../protocol/index.ts'
import { CapturedStack } from '../../provenance/index.ts'
import { awayFromCpu, makeFake } from '../../tensor/index.ts'
import type { Tensor } from '../../tensor/index.ts'
import type { JointGraph } from '../joint/jointGraph.ts'
import type { ProxyTensorMode } from '../trace/proxyMode.ts'

/** What a backward adds to a joint graph. */
export type Backward = Pick<JointGraph, 'forwardNodes' | 'tangents' | 'grads'>

/** The backward half of a joint graph: placeholders for the gradients of `roots`, and what `differentiate` records. */
export function traceBackward(
  mode: ProxyTensorMode,
  roots: readonly Tensor[],
  differentiate: (tangents: readonly Tensor[], roots: readonly Tensor[]) => readonly (Tensor | null)[],
): Backward {
  checkGraph('traceBackward', Reflect.get(Object(mode), 'graph'), 'mode.graph')
  checkArray('traceBackward', 'roots', roots)
  checkCallable('traceBackward', 'differentiate', differentiate)
  const forwardNodes = new Set(mode.graph.nodes)
  const tangents = roots.map((root, i) => {
    const tensor = makeFake({ shape: root.symSizes, dtype: root.dtype, ...awayFromCpu(root) })
    return { tensor, node: mode.placeholder(`tangents_${i + 1}`, tensor) }
  })
  const gradients = notingGradients(mode, () =>
    withMode(mode, () =>
      differentiate(
        tangents.map((t) => t.tensor),
        roots,
      ),
    ),
  )
  return { forwardNodes, tangents: tangents.map((t) => t.node), grads: gradients.map((g) => (g === null ? null : mode.nodeOf(g))) }
}

/** Notes at the nodes of gradients which derivative gives them, and of which node, for anomaly mode and comparisons. */
function notingGradients<T>(mode: ProxyTensorMode, fn: () => T): T {
  const outer = backwardState.onApplied
  backwardState.onApplied = (from, gradients) => {
    const [output] = from instanceof OpNode ? from.outputs : []
    const of = output === undefined ? undefined : mode.known(output)
    const stack: unknown = of?.meta['stack_trace']
    for (const [i, gradient] of gradients.entries()) {
      const node = gradient === null ? undefined : mode.known(gradient)
      // A derivative that passes a gradient on did not compute it.
      if (node !== undefined) {
        const at = stack instanceof CapturedStack ? stack : undefined
        node.meta['gradient'] ??= { name: from.name, output: i, stack: at, of: of?.name ?? null }
      }
    }
  }
  try {
    return fn()
  } finally {
    backwardState.onApplied = outer
  }
}

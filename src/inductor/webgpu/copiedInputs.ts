// Windows that are cut from an input: where they begin in its memory is known only at the call. Graphs on the GPU cut them from a copy.
import type { GraphModule } from '../../fx/index.ts'
import { asStrided, clone, opOf } from '../../ops/index.ts'
import type { TensorSpec } from '../../tensor/index.ts'
import type { IrGraph } from '../ir.ts'
import { copiedWindow, lower } from '../lowering.ts'

type Specs = readonly (TensorSpec | number)[]

const cutsInputs = ({ nodes }: IrGraph): boolean => nodes.some((node) => node.kind === 'extern' && node.def === copiedWindow.op)

/** Whether a program says itself where windows lie in memory: a copy has another one. */
const seesMemory = (gm: GraphModule): boolean => [...gm.graph.nodes].some(({ target }) => opOf(target) === asStrided.op)

/** Lowers a graph; one whose operators cut windows from its inputs, as pooling does, on copies of them. */
export function lowerForDevice(gm: GraphModule, specs: Specs): IrGraph {
  const graph = lower(gm, specs, { composed: true })
  return cutsInputs(graph) && !seesMemory(gm) ? lower(withCopiedInputs(gm, specs), specs, { composed: true }) : graph
}

/** The graph on copies of the tensors that it gets. */
function withCopiedInputs(gm: GraphModule, specs: Specs): GraphModule {
  const copy = gm.deepCopy({ shareTensors: true })
  const { graph } = copy
  const placeholders = graph.findNodes({ op: 'placeholder' })
  const last = placeholders.at(-1)
  if (last === undefined) return copy
  graph.insertingAfter(last, () => {
    placeholders.forEach((node, i) => {
      if (typeof specs[i] !== 'object') return
      const made = graph.callFunction(clone, [node])
      node.replaceAllUsesWith(made, (user) => user !== made)
    })
  })
  copy.recompile()
  return copy
}

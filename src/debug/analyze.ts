// Where do the numbers go wrong first? Compiles every prefix of a graph and compares each intermediate value with eager and float64.
// PyTorch's repro `analyze`; the quickest accuracy tool, no minification needed.
import { lookupBackend, withConfig } from '../dynamo/index.ts'
import { Graph, GraphModule, Interpreter } from '../fx/index.ts'
import type { Node } from '../fx/index.ts'
import { Tensor } from '../tensor/index.ts'
import { config } from '../dynamo/index.ts'
import { same } from './same.ts'
import { castToFp64, cloneInput } from './twoModels.ts'

/** Reports, one line per intermediate whose compiled value diverges: `DIVERGED at name: reason`; and nondeterminism. "No divergence found" if none. */
export function analyze(gm: GraphModule, inputs: readonly unknown[], backend: string): string {
  return withConfig({ reproAfter: null }, () => {
    const exposed = withAllOutputs(gm)
    const names = intermediates(gm.graph).map((n) => n.name)
    const compiled = lookupBackend(backend)(exposed.deepCopy({ shareTensors: true }), inputs.map(cloneInput)) as (
      ...i: readonly unknown[]
    ) => readonly unknown[]
    const values = compiled(...inputs.map(cloneInput))
    const again = compiled(...inputs.map(cloneInput))
    const eager = new Interpreter(exposed).run(...inputs.map(cloneInput)) as readonly unknown[]
    const wide = castToFp64(exposed, inputs)
    const fp64 = new Interpreter(wide.gm).run(...wide.inputs) as readonly unknown[]
    const lines: string[] = []
    names.forEach((name, i) => {
      if (!(eager[i] instanceof Tensor)) return
      if (!same(values[i], again[i], null, { tol: 0, equalNan: true, logError: () => {} })) lines.push(`NONDETERMINISTIC ${backend} at ${name}`)
      let reason = ''
      const ok = same(eager[i], values[i], fp64[i], { tol: config.reproTolerance, equalNan: true, logError: (m) => (reason = m) })
      if (!ok) lines.push(`DIVERGED at ${name}: ${reason}`)
    })
    return lines.length === 0 ? `No divergence found in ${names.length} intermediate values.` : lines.join('\n')
  })
}

const intermediates = (graph: Graph): Node[] =>
  [...graph.nodes].filter((n) => n.op === 'call_function' || n.op === 'call_method' || n.op === 'call_module')

/** The same graph, returning every intermediate value. */
function withAllOutputs(gm: GraphModule): GraphModule {
  const graph = gm.graph.deepCopy()
  graph.outputNode().args = [intermediates(graph)]
  return new GraphModule(gm, graph)
}

// Finds where numbers first go wrong: compiles a graph that returns every intermediate value, and compares each with eager and float64.
// PyTorch's repro `analyze`; the quickest accuracy tool, since it needs no minification.
import { checkArray } from '../protocol/index.ts'
import { lookupBackend, runnable, withConfig } from '../dynamo/index.ts'
import { Graph, GraphModule, Interpreter } from '../fx/index.ts'
import { checkGraphModule } from '../protocol/graphChecks.ts'
import type { Node } from '../fx/index.ts'
import { config } from '../dynamo/index.ts'
import { same } from './same.ts'
import { castToFp64, cloneInput } from './twoModels.ts'

/** A report with a line for each intermediate value that diverges (`DIVERGED at name: reason`) or differs between two runs; "No divergence found" if none does. */
export function analyze(gm: GraphModule, inputs: readonly unknown[], backend: string): string {
  checkGraphModule('analyze', gm)
  checkArray('analyze', 'inputs', inputs)
  return withConfig({ reproAfter: null }, () => {
    const exposed = withAllOutputs(gm)
    const names = intermediates(gm.graph).map((n) => n.name)
    const compiled = runnable(lookupBackend(backend)(exposed.deepCopy({ shareTensors: true }), inputs.map(cloneInput)))
    const values = listOf(compiled(...inputs.map(cloneInput)))
    const again = listOf(compiled(...inputs.map(cloneInput)))
    const eager = listOf(new Interpreter(exposed).run(...inputs.map(cloneInput)))
    const wide = castToFp64(exposed, inputs)
    const fp64 = listOf(new Interpreter(wide.gm).run(...wide.inputs))
    const lines: string[] = []
    names.forEach((name, i) => {
      if (!same(values[i], again[i], null, { tol: 0, equalNan: true, logError: () => {} })) lines.push(`NONDETERMINISTIC ${backend} at ${name}`)
      let reason = ''
      const ok = same(eager[i], values[i], fp64[i], { tol: config.reproTolerance, equalNan: true, logError: (m) => (reason = m) })
      if (!ok) lines.push(`DIVERGED at ${name}: ${reason}`)
    })
    return lines.length === 0 ? `No divergence found in ${names.length} intermediate values.` : lines.join('\n')
  })
}

/** The outputs of a graph that returns a list. */
const listOf = (outputs: unknown): readonly unknown[] => (Array.isArray(outputs) ? outputs : [outputs])

const intermediates = (graph: Graph): Node[] =>
  [...graph.nodes].filter((n) => n.op === 'call_function' || n.op === 'call_method' || n.op === 'call_module')

/** The same graph, returning every intermediate value. */
function withAllOutputs(gm: GraphModule): GraphModule {
  const graph = gm.graph.deepCopy()
  graph.outputNode().args = [intermediates(graph)]
  return new GraphModule(gm, graph)
}

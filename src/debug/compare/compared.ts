// A graph, its reference, and the rows of the table, for one set of inputs.
import { makeFx } from '../../aot/index.ts'
import { noGrad } from '../../autograd/index.ts'
import { present } from '../../errors/index.ts'
import type { GraphModule } from '../../fx/index.ts'
import type { Compared } from './comparing.ts'
import { FORWARD } from './culprit.ts'
import type { NodeRow } from './culprit.ts'
import { taskOf, writesIn } from './reference.ts'

/** The graph and its reference on one set of inputs. `known` are the rows of the sets before. */
export function comparedOn(
  gm: GraphModule,
  inputs: readonly unknown[],
  set: number,
  known: readonly NodeRow[],
  settings: Pick<Compared, 'reference' | 'tol'>,
): Compared {
  const { shared, overwritten } = writesIn(gm, inputs)
  const functional = shared !== null
  const graph = functional ? functionalForm(gm, inputs) : gm.deepCopy()
  const { run, ...task } = taskOf(graph, inputs, settings.reference)
  const nodes = new Map([...graph.graph.nodes].map((node) => [node.name, node]))
  const rows = run.steps.map(
    ({ node: { name }, like: [like] }): NodeRow =>
      known.find(({ node }) => node.name === name) ?? {
        node: present(nodes.get(name), `the node ${name}`),
        dtype: like.dtype,
        shape: like.shape,
        alone: new Map(),
        inGraph: new Map(),
      },
  )
  const given = [...graph.graph.processInputs(...inputs)]
  return {
    ...settings,
    gm: graph,
    inputs: given,
    task,
    run,
    rows,
    functional,
    overwritten: functional ? new Set() : overwritten,
    set,
    halfOf: () => FORWARD,
  }
}

/** The graph with new values in the place of writes. */
function functionalForm(gm: GraphModule, inputs: readonly unknown[]): GraphModule {
  const copy = gm.deepCopy()
  return noGrad(() => makeFx(copy)(...inputs))
}

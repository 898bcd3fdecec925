// A backend on a graph with its gradients: the joint graph node by node, then its halves as compile would give them, then both together.
import { present } from '../../errors/index.ts'
import type { GraphModule, Node } from '../../fx/index.ts'
import type { Candidate } from './backends.ts'
import { comparedOn } from './compared.ts'
import { Comparing } from './comparing.ts'
import type { Compared } from './comparing.ts'
import { culpritAt } from './culprit.ts'
import type { Culprit } from './culprit.ts'
import { composition } from './gradients.ts'
import type { GradientRow, Joint } from './gradients.ts'
import { RIGHT } from './measure.ts'
import { taskOf } from './reference.ts'
import { confirmed, tried } from './trial.ts'

/** A graph and inputs on which a backend is not right. */
export interface Failing {
  readonly gm: GraphModule
  readonly inputs: readonly unknown[]
}

/** Why a backend is not right; `failing` is the half that shows it, null if the joint graph does. */
export interface Found {
  readonly culprit: Culprit
  readonly failing: Failing | null
}

/** Compares a joint graph with its halves. The gradients are noted in `rows`. */
export async function compareJoint(
  one: Candidate,
  compared: Compared,
  joint: Joint,
  rows: readonly GradientRow[],
  { whole, notes }: { readonly whole: boolean; readonly notes: string[] },
): Promise<Found | null> {
  const { gm, task, run, tol, set } = compared
  if (joint.isRandom && !one.isHere) {
    const measured = {
      ...RIGHT,
      status: 'skipped',
      error: NaN,
      reason: 'it draws random numbers, and the backend has a generator of its own',
    } as const
    for (const row of rows) {
      row.measured.set(one.name, measured)
      row.statuses.set(one.name, 'not judged')
    }
    return { culprit: culpritAt([gm.graph.outputNode()], measured, { found: 'in the graph', set, half: 'forward', forward: null }), failing: null }
  }
  const inJoint = await new Comparing(one, compared).culprit(whole, notes)
  const values = new Map<string, unknown>([...run.env].map(([node, value]) => [node.name, value]))
  const together = await composition(one, joint, rows, task, values, tol)
  if (inJoint !== null) return { culprit: inJoint, failing: null }
  if (whole && one.compiles) {
    for (const half of [joint.forward, joint.backward]) {
      // oxlint-disable-next-line no-await-in-loop -- a fault of the forward comes first
      const found = await inHalf(one, half.gm, half.inputs(values), compared)
      if (found !== null) return found
    }
  }
  if (together.status === 'ok') return null
  const first = rows.find((row) => row.statuses.get(one.name) !== 'right')
  const node = first?.node ?? gm.graph.outputNode()
  const nodes = [present(named(gm, node.name), `the node ${node.name}`)]
  return { culprit: culpritAt(nodes, together, { found: 'in the graph', set, ...joint.halfOf(node) }), failing: null }
}

const named = (gm: GraphModule, name: string): Node | undefined => [...gm.graph.nodes].find((node) => node.name === name)

/** One half by itself, with what the reference has saved. The nodes of the culprit are those of the joint graph. */
async function inHalf(one: Candidate, half: GraphModule, inputs: readonly unknown[], compared: Compared): Promise<Found | null> {
  const { gm, tol, reference, halfOf, set } = compared
  const task = taskOf(half, inputs, reference)
  const measured = await confirmed(one, task, tol, await tried(one, task, tol))
  if (measured.status === 'ok') return null
  const closer = await new Comparing(one, { ...comparedOn(half, inputs, set, [], { reference, tol }), halfOf }).culprit(true, [])
  const found = closer ?? culpritAt([half.graph.outputNode()], measured, { found: 'in the graph', set, half: 'forward', forward: null })
  const nodes = found.nodes.map((node) => named(gm, node.name) ?? gm.graph.outputNode())
  const where = half.meta['half'] === 'backward' ? 'backward' : 'forward'
  return { culprit: { ...found, nodes, half: where }, failing: { gm: half, inputs } }
}

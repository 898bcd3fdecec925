// One backend on one graph and one set of inputs: each node alone, then the graph with all values as outputs, then the graph as it is.
import { ArgumentError, present } from '../../errors/index.ts'
import { Graph, GraphModule } from '../../fx/index.ts'
import type { Node } from '../../fx/index.ts'
import { sameShape } from '../../tensor/index.ts'
import type { Tensor } from '../../tensor/index.ts'
import { describe } from '../common/describeError.ts'
import type { Candidate } from './backends.ts'
import { minifier, MinifierError } from '../minify/minifier.ts'
import { measure, RIGHT } from './measure.ts'
import type { Measured } from './measure.ts'
import { isCall } from '../../fx/passes/nodes/calls.ts'
import { keepingDraws, stepOf, taskOf } from './reference.ts'
import type { ReferenceKind, ReferenceRun, Step, Task } from './reference.ts'
import { culpritAt, FORWARD } from './culprit.ts'
import type { Culprit, NodeRow } from './culprit.ts'
import { confirmed, repeated, runsToShow, Trial, tried, verdictOf } from './trial.ts'

/** A graph as it is compared. */
export interface Compared {
  readonly gm: GraphModule
  /** One per placeholder. */
  readonly inputs: readonly unknown[]
  /** Whether `gm` is the functional form. */
  readonly functional: boolean
  readonly task: Task
  readonly run: ReferenceRun
  readonly rows: readonly NodeRow[]
  /** The names of the nodes whose values are written over later. */
  readonly overwritten: ReadonlySet<string>
  readonly reference: ReferenceKind
  readonly tol: number
  /** The position of the inputs among those of the comparison. */
  readonly set: number
  /** What is known of a node of a joint graph: which half it belongs to. */
  readonly halfOf: (node: Node) => Pick<Culprit, 'half' | 'forward'>
}

/** How often the whole graph runs with all values as outputs, and how often as it is. */
const EXPOSED_RUNS = 3
const WHOLE_RUNS = 5

/** Compares one backend. */
export class Comparing {
  readonly #one: Candidate
  readonly #compared: Compared

  constructor(one: Candidate, compared: Compared) {
    this.#one = one
    this.#compared = compared
  }

  /** Why the backend is not right; null if it is. What could not be compared is added to `notes`. */
  async culprit(whole: boolean, notes: string[]): Promise<Culprit | null> {
    const { name, compiles } = this.#one
    const { run } = this.#compared
    for (const step of run.steps) {
      // oxlint-disable-next-line no-await-in-loop -- one session at a time
      this.#record(step, 'alone', await this.#alone(step))
    }
    const wrong = this.#first('alone', ['differs'])
    if (wrong !== null) return wrong
    const comesAndGoes = this.#first('alone', ['flaky'])
    if (comesAndGoes !== null) return comesAndGoes
    const failed = this.#first('alone', ['failed'])
    const skipped = this.#first('alone', ['skipped'])
    if (!whole || !compiles) return failed ?? skipped
    if (skipped !== null) {
      notes.push(`${name}: the whole graph is not compared: '${skipped.nodes[0]?.name ?? ''}' cannot be, since ${skipped.reason ?? ''}.`)
      return failed ?? skipped
    }
    const found = await this.#whole(notes)
    // Whatever cannot run alone is a better name for what cannot run at all.
    return found === null || found.kind === 'failed' ? (failed ?? found) : found
  }

  /** Notes what a node gave. Of several sets of inputs, the worst is kept. */
  #record(step: Step, where: 'alone' | 'inGraph', measured: Measured): void {
    const row = this.#compared.rows.find(({ node }) => node.name === step.node.name)
    const known = row?.[where].get(this.#one.name)
    if (known === undefined || measured.status !== 'ok' || measured.error > known.error) row?.[where].set(this.#one.name, measured)
  }

  /** The first node with a status among those. */
  #first(found: 'alone' | 'in the graph', statuses: readonly Measured['status'][]): Culprit | null {
    for (const row of this.#compared.rows) {
      const measured = (found === 'alone' ? row.alone : row.inGraph).get(this.#one.name)
      if (measured !== undefined && statuses.includes(measured.status)) return this.#culprit([row.node], measured, found)
    }
    return null
  }

  #culprit(nodes: readonly Node[], measured: Measured, found: Culprit['found']): Culprit {
    const [first] = nodes
    const half = first === undefined ? FORWARD : this.#compared.halfOf(first)
    return culpritAt(nodes, measured, { found, set: this.#compared.set, ...half })
  }

  /** A node alone, on the inputs of the reference. */
  async #alone(step: Step): Promise<Measured> {
    const { tol } = this.#compared
    // Only the first wrong node is examined closely; the errors of later ones go into the table.
    if (this.#first('alone', ['differs']) !== null) return tried(this.#one, step, tol, 1)
    return confirmed(this.#one, step, tol, await tried(this.#one, step, tol))
  }

  async #whole(notes: string[]): Promise<Culprit | null> {
    const { name } = this.#one
    let exposed: Measured
    try {
      exposed = await this.#exposed()
    } catch (thrown) {
      exposed = { ...RIGHT, status: 'failed', error: NaN, reason: describe(thrown), rate: 1, thrown }
      notes.push(`${name}: the graph with all values as outputs could not be run: ${describe(thrown)}`)
    }
    const inGraph = this.#first('in the graph', ['differs']) ?? this.#first('in the graph', ['flaky'])
    if (inGraph !== null) return inGraph
    const { task, tol, gm } = this.#compared
    const asItIs = await confirmed(this.#one, task, tol, await tried(this.#one, task, tol, WHOLE_RUNS))
    if (asItIs.status !== 'ok') return this.#culprit(await this.#smallest(asItIs), asItIs, 'only where it is fused')
    return exposed.status === 'ok' ? null : this.#culprit([gm.graph.outputNode()], exposed, 'in the graph')
  }

  /** The fewest nodes on which the backend still fails in this way. */
  async #smallest({ status, rule }: Measured): Promise<readonly Node[]> {
    const { gm, task, reference, tol } = this.#compared
    const fails = async (part: GraphModule, inputs: readonly unknown[]): Promise<boolean> => {
      const measured = await tried(this.#one, taskOf(part, inputs, reference, task.state), tol, runsToShow({ status, rule }))
      return measured.status === status && measured.rule === rule
    }
    const small = await minifier(gm, task.inputs, fails, { skipSanity: true, finalRuns: 1 }).catch((error: unknown) => {
      // A backend may go wrong for this very graph only.
      if (error instanceof MinifierError) return { gm: new GraphModule(gm, new Graph()) }
      throw error
    })
    const names = new Set([...small.gm.graph.nodes].map((node) => node.name))
    const nodes = [...gm.graph.nodes].filter((node) => isCall(node) && names.has(node.name))
    return nodes.length === 0 ? [gm.graph.outputNode()] : nodes
  }

  /** The whole graph with all values as outputs. Each node is judged on what the backend computed before it. */
  async #exposed(): Promise<Measured> {
    const { gm, run, overwritten, task, tol } = this.#compared
    const { steps } = run
    const graph = gm.graph.deepCopy()
    const copies = new Map([...graph.nodes].map((node) => [node.name, node]))
    // Nodes with several results stay as they are: a backend returns tensors.
    const single = steps.filter((step) => step.like.length === 1 && !overwritten.has(step.node.name))
    graph.outputNode().args = [single.map((step) => present(copies.get(step.node.name), 'the copy of a node'))]
    const exposed: Task = { ...task, gm: new GraphModule(gm, graph, gm.className) }
    Object.assign(exposed.gm.meta, gm.meta)
    return this.#one.with(exposed.gm, exposed.inputs, async (prepared) => {
      const trial = new Trial(prepared, exposed, tol)
      const byNode = new Map<Step, Measured[]>(single.map((step) => [step, []]))
      const overall = await repeated(async () => {
        const { measured, overwritten: at } = await trial.run((got) => {
          if (got.length !== single.length)
            throw new ArgumentError(
              `compareBackends: with all values as outputs, the backend returned ${got.length} tensors instead of ${single.length}.`,
            )
          const judged = this.#judged(single, got)
          for (const [i, step] of single.entries()) byNode.get(step)?.push(judged[i] ?? RIGHT)
          return judged.find(({ status }) => status !== 'ok') ?? RIGHT
        })
        if (measured.status === 'failed') throw measured.thrown
        const changed = single[at]
        if (changed !== undefined && measured.rule !== null) byNode.get(changed)?.splice(-1, 1, measured)
        return measured
      }, EXPOSED_RUNS)
      for (const [step, runs] of byNode) this.#record(step, 'inGraph', verdictOf(runs))
      return overall
    })
  }

  /** Each value, on those that the backend itself computed before it. */
  #judged(single: readonly Step[], got: readonly Tensor[]): readonly Measured[] {
    const { run, reference, tol } = this.#compared
    // Layers keep statistics from node to node.
    const gm = this.#compared.gm.deepCopy()
    const env = new Map<Node, unknown>(run.env)
    for (const [i, step] of single.entries()) {
      const value = present(got[i], 'the value of a node')
      if (sameShape(value.shape, step.like[0].shape)) env.set(step.node, value)
    }
    return keepingDraws(() =>
      single.map((step, i) => {
        const { step: again } = stepOf(gm, step.node, env, reference, step.state)
        return again === null ? RIGHT : measure({ ...again, like: step.like }, [present(got[i], 'the value of a node')], tol)
      }),
    )
  }
}

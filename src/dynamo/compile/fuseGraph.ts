// From a graph with sizes to kernels for any sizes: what the backend fuses for two choices of sizes.
import { config } from '../../config.ts'
import { withoutModes } from '../../dispatch/index.ts'
import { InternalError, TensorfxError, UnsupportedError, messageOf, present } from '../../errors/index.ts'
import { announce } from '../../events/index.ts'
import type { Node } from '../../fx/index.ts'
import type { FuseForSizes, FusedUnit } from '../backends/backend.ts'
import { FusedSteps } from '../run/fusedSteps.ts'
import type { FusionEvents } from '../run/fusedSteps.ts'
import { instructionOf } from '../run/instruction.ts'
import type { Instruction } from '../run/instruction.ts'
import { BEGINNINGS } from '../run/sampleSizes.ts'
import type { SeenSizes } from '../run/sampleSizes.ts'
import type { FuseSteps } from '../run/stepProgram.ts'
import { neededSteps, withoutLists } from '../tree/traceTree.ts'
import type { ArgStep, Step } from '../tree/traceTree.ts'
import type { SegmentGraph } from './segmentGraph.ts'

/** What is fused: the graph, and the segment that it is of. */
interface SizedGraph extends SegmentGraph {
  readonly end: Step
  readonly outputs: readonly number[]
}

/** Where results have fewer elements on average, calls take longer than what they compute, and finding kernels longer than these save. */
const LEAST_ELEMENTS = 1024

/** Whether kernels for any sizes pay, by the sizes with which the steps were recorded. */
function isWorthwhile(steps: readonly Step[]): boolean {
  const results = steps.flatMap((step) => step.results)
  return config.verifySizes || results.reduce((sum, { numel }) => sum + numel, 0) >= LEAST_ELEMENTS * results.length
}

/** What fuses the steps of a graph with sizes. */
export function fusingOf(graph: SizedGraph, fuse: FuseForSizes): FuseSteps {
  const { steps } = neededSteps(graph.end, graph.outputs)
  if (!steps.every(isPure)) return () => 'none'
  return (seen, events) => {
    if (!isWorthwhile(steps)) return 'none'
    const units = withoutModes(() => unitsFor(graph, fuse, seen))
    if (units === null) return null
    return units.some((unit) => 'kernel' in unit) ? instructionsOf(graph, steps, units, events) : 'none'
  }
}

/** Whether a step may run at another place among the others, and twice. */
const isPure = ({ operator: { tags } }: Step): boolean =>
  !(tags.has('random') || tags.has('custom') || tags.has('rejectsData') || tags.has('mutates'))

type Units = ReturnType<FuseForSizes>

/** What runs, for the first choice of sizes that the graph takes; null if it takes none, and nothing if it has no such kernels for any choice. Without such kernels it takes longer, and no more, so what goes wrong is told and not thrown. */
function unitsFor({ gm }: SizedGraph, fuse: FuseForSizes, seen: SeenSizes): Units | null {
  for (const beginning of BEGINNINGS) {
    const samples = seen.samples(beginning)
    if (samples === null) continue
    try {
      return fuse(gm, ...samples)
    } catch (error) {
      if (error instanceof UnsupportedError) return []
      // The operators do not take these sizes.
      if (error instanceof TensorfxError && !(error instanceof InternalError)) continue
      announce({ kind: 'limit', what: 'verifySizes' }, () => ({
        kind: 'limit',
        what: 'verifySizes',
        name: gm.className,
        reason: `no kernels for any sizes: ${messageOf(error)}`,
      }))
      return []
    }
  }
  return null
}

function instructionsOf({ nodes, end }: SizedGraph, steps: readonly Step[], units: Units, events: FusionEvents): readonly Instruction[] {
  const slotOf = new Map([...nodes].map(([slot, node]) => [node, slot]))
  const stepOf = new Map<Node, Step>()
  for (const step of steps) for (const node of nodesOf(nodes, step)) stepOf.set(node, step)
  const done = new Set<Step>()
  return units.flatMap((unit): readonly Instruction[] => {
    if ('kernel' in unit) return [fusedSteps(unit, end, slotOf, events)]
    const step = present(stepOf.get(unit), `the step of ${unit.name}`)
    if (done.has(step)) return []
    done.add(step)
    return [instructionOf(step)]
  })
}

/** The nodes of a step: its own, and those that take its results apart. */
function nodesOf(nodes: ReadonlyMap<number, Node>, step: Step): readonly Node[] {
  const own = step.results.flatMap((_, i) => nodes.get(step.firstSlot + i) ?? [])
  return step.single ? own : own.flatMap((node) => [node, ...node.allInputNodes])
}

function fusedSteps({ kernel, inputs, outputs }: FusedUnit, end: Step, slotOf: ReadonlyMap<Node, number>, events: FusionEvents): Instruction {
  const numbers = new Map<number, ArgStep>()
  for (const step of end.path()) for (const arg of withoutLists(step.args)) if (arg.kind === 'scalar') numbers.set(arg.slot, arg)
  const slot = (node: Node): number => present(slotOf.get(node), `the slot of ${node.name}`)
  const args = inputs.map((node): ArgStep => numbers.get(slot(node)) ?? { kind: 'slot', slot: slot(node) })
  return new FusedSteps(kernel, end, { args, results: outputs.map(slot) }, events)
}

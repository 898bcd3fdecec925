// A graph with sizes, as eager kernels run it: its recorded steps one after the other, without the checks of the functions that the graph's code would call, since the walk has made them. It holds no shapes, so it is
// for any sizes.
import type { Arg } from '../../dispatch/index.ts'
import type { CompiledCode } from '../../aot/index.ts'
import { argValue, runStep } from './evaluate.ts'
import { mayHavePlan } from './planRecorder.ts'
import { SizedPlans } from './sizedPlans.ts'
import type { SizedLayout } from '../tree/sizes.ts'
import { neededSteps, visitSlots, withoutLists } from '../tree/traceTree.ts'
import type { ArgStep, Step } from '../tree/traceTree.ts'

/** One step, and the slots that no later one reads. */
interface Instruction {
  readonly step: Step
  readonly args: readonly ArgStep[]
  readonly ends: readonly number[]
}

function instructionsOf(steps: readonly Step[], outputs: readonly number[]): readonly Instruction[] {
  const read = new Set(outputs)
  return steps
    .toReversed()
    .map((step) => {
      const ends: number[] = []
      const see = (slot: number): void => {
        if (!read.has(slot)) ends.push(slot)
        read.add(slot)
      }
      for (const arg of step.args) visitSlots(arg, see)
      step.results.forEach((_, i) => see(step.firstSlot + i))
      return { step, args: step.args, ends }
    })
    .reverse()
}

/** What computes `outputs` of a segment that ends at `end` from the values of `inputSlots`. */
export function stepProgram(end: Step, outputs: readonly number[], inputSlots: readonly number[]): CompiledCode {
  const { steps } = neededSteps(end, outputs)
  const instructions = instructionsOf(steps, outputs)
  const count = end.nextSlot
  const eagerly = (inputs: readonly unknown[]): readonly unknown[] => {
    const values = new Array<unknown>(count)
    const at = (slot: number): unknown => values[slot]
    for (let i = 0; i < inputSlots.length; i++) values[inputSlots[i] ?? 0] = inputs[i]
    for (const { step, args, ends } of instructions) {
      const given = new Array<Arg>(args.length)
      for (let i = 0; i < args.length; i++) {
        const arg = args[i]
        if (arg !== undefined) given[i] = argValue(arg, at)
      }
      const results = runStep(step, given)
      for (let i = 0; i < results.length; i++) values[step.firstSlot + i] = results[i]
      // A value that is not needed any more may be collected while the program still runs.
      for (const slot of ends) values[slot] = undefined
    }
    return outputs.map(at)
  }
  if (!mayHavePlan(steps)) return (...inputs) => eagerly(inputs)
  const plans = new SizedPlans({ steps, inputSlots, outputs }, sizedInputs(end, inputSlots), eagerly)
  return (...inputs) => plans.run(inputs)
}

/** Of each input: which of its positions are sizes, or that it is one. */
export function sizedInputs(end: Step, inputSlots: readonly number[]): readonly (SizedLayout | 'size' | null)[] {
  const sized = new Map<number, SizedLayout | 'size'>()
  for (const step of end.path())
    for (const arg of withoutLists(step.args)) {
      if (arg.kind === 'input' && arg.spec.sizes !== null) sized.set(arg.slot, arg.spec.sizes)
      if (arg.kind === 'scalar' && arg.number === 'size') sized.set(arg.slot, 'size')
    }
  return inputSlots.map((slot) => sized.get(slot) ?? null)
}

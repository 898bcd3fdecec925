// Runs recorded steps one by one on eager kernels, for values that no compiled graph returns.
import { noGrad } from '../autograd/index.ts'
import { runKernel, withoutModes } from '../dispatch/index.ts'
import type { Arg } from '../dispatch/index.ts'
import { Tensor, asTensor } from '../tensor/index.ts'
import { neededSteps } from './traceTree.ts'
import type { ArgStep, Step } from './traceTree.ts'

/** The value of an argument; `at` gives the values of slots, tensors and numbers. */
export function argValue(arg: ArgStep, at: (slot: number) => unknown): Arg {
  if (arg.kind === 'const') return arg.value
  if (arg.kind === 'list') return arg.items.map((item) => argValue(item, at))
  const value = at(arg.slot)
  return typeof value === 'number' ? value : asTensor(value, 'the value of a slot')
}

/** Computes `slots` of the segment that ends at `end` from the values of its inputs. Returns the values of all slots that it computed. */
export function evaluate(end: Step, slots: readonly number[], input: (slot: number) => unknown): ReadonlyMap<number, unknown> {
  const values = new Map<number, unknown>()
  const at = (slot: number): unknown => (values.has(slot) ? values.get(slot) : input(slot))
  const { steps } = neededSteps(end, slots)
  withoutModes(() =>
    noGrad(() => {
      for (const step of steps) runStep(step, at).forEach((value, i) => values.set(step.firstSlot + i, value))
    }),
  )
  return values
}

/** Runs one step; its results in order. */
function runStep(step: Step, at: (slot: number) => unknown): readonly Tensor[] {
  const result = runKernel(
    step.operator,
    step.args.map((arg) => argValue(arg, at)),
  )
  return result instanceof Tensor ? [result] : result
}

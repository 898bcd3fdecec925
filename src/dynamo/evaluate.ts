// Runs recorded steps one by one with the eager kernels: for values that nothing compiled gives.
import { noGrad } from '../autograd/index.ts'
import { runKernel, withoutModes } from '../dispatch/index.ts'
import type { Arg } from '../dispatch/index.ts'
import { Tensor } from '../tensor/index.ts'
import { neededSteps } from './traceTree.ts'
import type { ArgStep, Step } from './traceTree.ts'

/** The value of an argument, where `at` knows the slots. */
export function argValue(arg: ArgStep, at: (slot: number) => unknown): Arg {
  if (arg.kind === 'const') return arg.value
  if (arg.kind === 'list') return arg.items.map((item) => argValue(item, at))
  return at(arg.slot) as Arg
}

/** Computes `slots` of the segment that ends at `end` from the values of its inputs. Returns the values of all slots on the way. */
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
export function runStep(step: Step, at: (slot: number) => unknown): readonly Tensor[] {
  const result = runKernel(
    step.op as NonNullable<Step['op']>,
    step.args.map((arg) => argValue(arg, at)),
  )
  return result instanceof Tensor ? [result] : result
}

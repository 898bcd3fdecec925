// Runs recorded steps one by one on eager kernels, for values that no compiled graph returns.
import { noGrad } from '../../autograd/index.ts'
import { runKernel, withoutModes } from '../../dispatch/index.ts'
import type { Arg } from '../../dispatch/index.ts'
import { beyondLimit } from '../../kernels/index.ts'
import { Tensor, asTensor } from '../../tensor/index.ts'
import { neededSteps, under } from '../tree/traceTree.ts'
import type { ArgStep, Step } from '../tree/traceTree.ts'

/** The value of an argument; `at` gives the values of slots, tensors and numbers. */
export function argValue(arg: ArgStep, at: (slot: number) => unknown): Arg {
  if (arg.kind === 'const') return arg.value
  if (arg.kind === 'list') return arg.items.map((item) => argValue(item, at))
  const value = at(arg.slot)
  return typeof value === 'number' ? value : asTensor(value, 'the value of a slot')
}

/** Computes `slots` of the segment that ends at `end` from the values of its inputs. Returns the values of all slots that it computed. */
export const evaluate = (end: Step, slots: readonly number[], input: (slot: number) => unknown): ReadonlyMap<number, Tensor> =>
  runSteps(neededSteps(end, slots).steps, input)

/** Runs steps in order; `onValue` is called after each with its results. The error of one that fails shows where the program called the operator. */
export function runSteps(
  steps: readonly Step[],
  input: (slot: number) => unknown,
  onValue: (slot: number, value: Tensor) => void = () => undefined,
): ReadonlyMap<number, Tensor> {
  const values = new Map<number, Tensor>()
  const at = (slot: number): unknown => values.get(slot) ?? input(slot)
  const run = (): void =>
    noGrad(() => {
      for (const step of steps) {
        runStep(step, argsOf(step, at)).forEach((value, i) => {
          values.set(step.firstSlot + i, value)
          onValue(step.firstSlot + i, value)
        })
      }
    })
  const [first] = steps
  if (first !== undefined) under(first, () => withoutModes(run))
  return values
}

const argsOf = (step: Step, at: (slot: number) => unknown): readonly Arg[] => step.args.map((arg) => argValue(arg, at))

/** Runs one step; its results in order. An error gets the stack of the call that was recorded as the step. */
export function runStep(step: Step, args: readonly Arg[]): readonly Tensor[] {
  try {
    const result = step.beyondLimit ? beyondLimit(() => runKernel(step.operator, args)) : runKernel(step.operator, args)
    return result instanceof Tensor ? [result] : result
  } catch (error) {
    if (error instanceof Error && step.stack !== null) error.stack = `${error.name}: ${error.message}\n${String(step.stack)}`
    throw error
  }
}

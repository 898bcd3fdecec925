// What the program of a graph with sizes consists of: recorded steps, and kernels for any sizes in the place of several of them.
import type { Arg, OpDef } from '../../dispatch/index.ts'
import type { Tensor } from '../../tensor/index.ts'
import { runStep } from './evaluate.ts'
import { visitSlots } from '../tree/traceTree.ts'
import type { ArgStep, Step } from '../tree/traceTree.ts'

export interface Instruction {
  readonly args: readonly ArgStep[]
  /** The slots of its results. */
  readonly results: readonly number[]
  /** Whether it does nothing but launch kernels that depend on the layouts of their operands, and on the numbers among its arguments, only. */
  readonly launchesOnly: boolean
  /** Whether its results may exceed the memory limit, see {@link Step.beyondLimit}. */
  readonly beyondLimit: boolean
  readonly run: (args: readonly Arg[]) => readonly Tensor[]
  /** Whether its kernel, if it is only one, may write a result over an argument with the same layout: it reads of it only the element that it writes. `result`, `arg`: positions. */
  readonly mayOverwrite: (result: number, arg: number) => boolean
}

/** Operators, beside those that compute element by element, reduce, or make views, that do nothing but launch kernels which depend on the layouts of their operands only. */
const LAUNCHES = new Set([
  'torch.cat',
  'torch.mm',
  'torch.bmm',
  'torch.nn.functional.linear',
  'torch.softmax',
  'torch.log_softmax',
  'torch.ops.tensorfx.native_layer_norm',
])

const launchesOnly = ({ tags, qualname }: OpDef): boolean =>
  tags.has('pointwise') || tags.has('reduction') || tags.has('view') || LAUNCHES.has(qualname)

/** Whether one of the slots that arguments come from is among `slots`. */
export function readsOneOf(slots: ReadonlySet<number>, args: readonly ArgStep[]): boolean {
  let found = false
  for (const arg of args) visitSlots(arg, (slot) => (found ||= slots.has(slot)))
  return found
}

/** A step as an instruction. */
export const instructionOf = (step: Step): Instruction => ({
  args: step.args,
  results: step.results.map((_, i) => step.firstSlot + i),
  launchesOnly: launchesOnly(step.operator),
  beyondLimit: step.beyondLimit,
  run: (args) => runStep(step, args),
  mayOverwrite: () => step.operator.tags.has('pointwise'),
})

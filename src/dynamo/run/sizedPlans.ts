// The plans of a graph with sizes, one for each list of them that comes often, with the numbers of the program, as a learning rate, that come with it. What a plan gives is compared with what the operators gave before it is used: a wrong plan costs time, not results.
import { announce } from '../../events/index.ts'
import { PerEngine, dtypeInfo, heapBytes, sameBytes } from '../../kernels/index.ts'
import { Tensor, sameShape } from '../../tensor/index.ts'
import { config } from '../../config.ts'
import { runPlan, sharing } from './launchPlan.ts'
import type { LaunchPlan } from './launchPlan.ts'
import { recordPlan } from './planRecorder.ts'
import type { RecordedProgram } from './planRecorder.ts'
import { Sizes } from '../tree/sizes.ts'
import type { SizedLayout } from '../tree/sizes.ts'

/** For this many lists of sizes plans are kept; that which was used least recently goes first. */
const MOST_PLANS = 1024

/** What memory of a run that is verified holds before: NaN for floating-point numbers, which no result is by chance. */
const FILL = 0xff

/**
 * How often a list of sizes comes before it gets a plan. To record a plan and to compare it takes as long as some six calls of the operators, which it has to win back: lists of a generation with a growing cache may come
 * once or twice only.
 */
const CALLS_BEFORE = 3

/** A number of the program that has had more values than these is no part of lists of sizes any more, and what computes with it no part of plans: one that counts calls would have a plan for each call. */
const MOST_VALUES = 16

/** What is known of one list of sizes: how often it has come without a plan; null: it gets none. */
type Known = LaunchPlan | number | null

export class SizedPlans {
  readonly #program: RecordedProgram
  /** By placeholder: which positions of a tensor are sizes, whether it is a size itself, or neither. */
  readonly #sized: readonly (SizedLayout | 'size' | null)[]
  /** Calls the operators. */
  readonly #eagerly: (inputs: readonly unknown[]) => readonly unknown[]
  readonly #record: typeof recordPlan
  #none = Sizes.none()
  /** By placeholder that is a number, but no size: the values that it has had, until they are too many. */
  readonly #values = new Map<number, Set<number>>()
  /** The slots of those that had too many. */
  readonly #changing = new Set<number>()
  readonly #plans = new PerEngine(() => new Map<Sizes, Known>())
  /** The plan that was made last: the next one, mostly for sizes near by, has many of its launches. */
  #latest: LaunchPlan | null = null

  constructor(
    program: RecordedProgram,
    sized: readonly (SizedLayout | 'size' | null)[],
    eagerly: (inputs: readonly unknown[]) => readonly unknown[],
    record = recordPlan,
  ) {
    this.#record = record
    this.#program = program
    this.#sized = sized
    this.#eagerly = eagerly
  }

  /** The outputs for the values of the placeholders. */
  run(inputs: readonly unknown[]): readonly unknown[] {
    const sizes = this.#sizesOf(inputs)
    const plans = this.#plans.current
    const found = plans.get(sizes)
    const known = found === undefined ? 0 : found
    if (known === null) return this.#eagerly(inputs)
    if (typeof known === 'number') {
      if (known >= CALLS_BEFORE || config.verifySizes) return this.#recorded(sizes, inputs)
      this.#note(sizes, known + 1)
      return this.#eagerly(inputs)
    }
    if (config.verifySizes) return this.#verified(known, sizes, inputs, this.#eagerly(inputs))
    this.#note(sizes, known)
    return runPlan(known, inputs) ?? this.#eagerly(inputs)
  }

  #recorded(sizes: Sizes, inputs: readonly unknown[]): readonly unknown[] {
    const { outputs, plan: recorded } = this.#record(this.#program, inputs, this.#changing)
    const plan = recorded === null || this.#latest === null ? recorded : sharing(recorded, this.#latest)
    if (plan !== null) this.#latest = plan
    this.#note(sizes, plan)
    return plan === null ? outputs : this.#verified(plan, sizes, inputs, outputs)
  }

  /** What a plan gives, if it is what the operators gave: `outputs`. Otherwise these, and the plan is dropped. */
  #verified(plan: LaunchPlan, sizes: Sizes, inputs: readonly unknown[], outputs: readonly unknown[]): readonly unknown[] {
    const got = runPlan(plan, inputs, FILL)
    if (got === null) return outputs
    if (sameResults(got, outputs)) return got
    this.#note(sizes, null)
    announce({ kind: 'limit', what: 'verifySizes' }, () => ({
      kind: 'limit',
      what: 'verifySizes',
      name: 'a graph with sizes',
      reason: `the launches for ${this.#sizesText(inputs)} gave other results than the operators, which run instead`,
    }))
    return outputs
  }

  #sizesText(inputs: readonly unknown[]): string {
    return inputs
      .filter((_, i) => this.#sized[i] !== null)
      .map((input) => (input instanceof Tensor ? `${input.dtype}[${input.sizes.join(', ')}]` : String(input)))
      .join(', ')
  }

  #note(sizes: Sizes, plan: Known): void {
    const plans = this.#plans.current
    plans.delete(sizes)
    plans.set(sizes, plan)
    const [oldest] = plans.size > MOST_PLANS ? plans.keys() : []
    if (oldest !== undefined) plans.delete(oldest)
  }

  #sizesOf(inputs: readonly unknown[]): Sizes {
    if (this.#none.isFull) this.#none = Sizes.none()
    let list = this.#none
    for (let i = 0; i < inputs.length; i++) {
      const sized = this.#sized[i] ?? null
      const input = inputs[i]
      if (input instanceof Tensor) list = sized === null || sized === 'size' ? list : list.ofTensor(sized, input)
      else if (sized === 'size') list = list.with(Number(input))
      else if (typeof input === 'number' && this.#isSteady(i, input)) list = withNumber(list, input)
    }
    return list
  }

  /** Whether the number at a position has few values. */
  #isSteady(position: number, value: number): boolean {
    const slot = this.#program.inputSlots[position] ?? -1
    if (this.#changing.has(slot)) return false
    const values = this.#values.get(position) ?? new Set()
    this.#values.set(position, values.add(value))
    if (values.size <= MOST_VALUES) return true
    this.#values.delete(position)
    this.#changing.add(slot)
    // The plans so far hold the number, which lists do not have from here on.
    this.#none = Sizes.none()
    this.#plans.current.clear()
    return false
  }
}

/** The list with a number. Zeros have signs. */
const withNumber = (list: Sizes, number: number): Sizes => (number === 0 ? list.with(0).with(Object.is(number, 0) ? 0 : 1) : list.with(number))

/** Whether results have the same shapes, strides and bytes. */
export const sameResults = (got: readonly unknown[], expected: readonly unknown[]): boolean =>
  got.length === expected.length && got.every((one, i) => one instanceof Tensor && isSame(one, expected[i]))

function isSame(one: Tensor, other: unknown): boolean {
  if (!(other instanceof Tensor) || one.dtype !== other.dtype || !sameShape(one.sizes, other.sizes) || !sameShape(one.steps, other.steps))
    return false
  const [a, b] = [bytesOf(one), bytesOf(other)]
  return a !== null && b !== null && sameBytes(a, b)
}

/** The memory of a tensor, in its place if it is on the heap; of one that is not contiguous, all that it lies in. Null if there is none. */
function bytesOf(tensor: Tensor): Uint8Array | null {
  const storage = tensor.realize()
  const { ptr } = storage.block
  const bytes = ptr === 0 ? storage.peekBytes() : heapBytes().subarray(ptr, ptr + storage.nbytes)
  if (bytes === null || !tensor.contiguousLayout) return bytes
  const { size } = dtypeInfo[tensor.dtype]
  return bytes.subarray(tensor.offset * size, (tensor.offset + tensor.numel) * size)
}

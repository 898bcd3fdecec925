// A kernel for any sizes in the place of several steps. It is verified, not trusted: the steps run beside it in the first call, in the second, the fourth and so on.
import { sameStrides } from '../../aot/meta/layout.ts'
import { config } from '../../config.ts'
import type { Arg } from '../../dispatch/index.ts'
import { announce } from '../../events/index.ts'
import { beyondLimit } from '../../kernels/index.ts'
import { allclose } from '../../ops/index.ts'
import { launches } from '../../ops/eager/launchLog.ts'
import { Tensor, exactElements, sameShape } from '../../tensor/index.ts'
import type { FusedUnit } from '../backends/backend.ts'
import type { ArgStep, Step } from '../tree/traceTree.ts'
import { visitSlots } from '../tree/traceTree.ts'
import { argValue, runStep } from './evaluate.ts'
import type { Instruction } from './instruction.ts'

/** By how much a kernel may differ from its operators, in proportion to the largest result, or to the largest term of a sum, which may cancel: both round, at other places. */
const TOLERANCE: Readonly<Partial<Record<Tensor['dtype'], number>>> = { float64: 1e-9, float32: 1e-4, float16: 2e-2, bfloat16: 1e-1 }

/** What becomes of a kernel while it is used. */
export interface FusionEvents {
  /** It was not for the sizes of a call. */
  readonly missed: () => void
  /** It gave wrong results. */
  readonly failed: () => void
}

export class FusedSteps implements Instruction {
  readonly args: readonly ArgStep[]
  readonly results: readonly number[]
  readonly launchesOnly = true
  readonly beyondLimit: boolean
  readonly #kernel: FusedUnit['kernel']
  /** What it stands for. */
  readonly #steps: readonly Step[]
  readonly #events: FusionEvents
  #calls = 0
  #isWrong = false

  /** `end`: the last step of the segment; `args`, `results`: the slots of what the kernel reads and returns. */
  constructor(kernel: FusedUnit['kernel'], end: Step, { args, results }: Pick<Instruction, 'args' | 'results'>, events: FusionEvents) {
    this.#kernel = kernel
    this.args = args
    this.results = results
    this.#steps = stepsBetween(end, args, results)
    this.beyondLimit = this.#steps.some((step) => step.beyondLimit)
    this.#events = events
  }

  mayOverwrite(result: number, arg: number): boolean {
    return this.#kernel.overwrites?.get(result) === arg
  }

  run(args: readonly Arg[]): readonly Tensor[] {
    const got = this.#isWrong ? null : this.beyondLimit ? beyondLimit(() => this.#kernel.run(args)) : this.#kernel.run(args)
    if (got === null) {
      if (!this.#isWrong) this.#events.missed()
      // What these operators launch depends on more than the layouts of the operands.
      launches.listener?.runsOnCopies()
      return this.#eagerly(args).results
    }
    const calls = ++this.#calls
    return config.verifySizes || (calls & (calls - 1)) === 0 ? this.#verified(got, args) : got
  }

  /** What the kernel gave, if that is what the operators give. */
  #verified(got: readonly Tensor[], args: readonly Arg[]): readonly Tensor[] {
    const outer = launches.listener
    launches.listener = null
    try {
      const { results: expected, rounded } = this.#eagerly(args)
      if (got.every((one, i) => isClose(one, expected[i], rounded))) return got
      this.#isWrong = true
      this.#events.failed()
      outer?.runsOnCopies()
      announce({ kind: 'limit', what: 'verifySizes' }, () => ({
        kind: 'limit',
        what: 'verifySizes',
        name: 'a kernel for any sizes',
        reason: `it gave other results than ${this.#steps.map(({ operator }) => operator.name).join(', ')}, which run instead`,
      }))
      return expected
    } finally {
      launches.listener = outer
    }
  }

  /** What the steps give, and the terms of the sums among them. */
  #eagerly(args: readonly Arg[]): { readonly results: readonly Tensor[]; readonly rounded: readonly Tensor[] } {
    const values = new Map<number, unknown>()
    this.args.forEach((arg, i) => visitSlots(arg, (slot) => values.set(slot, args[i])))
    const at = (slot: number): unknown => values.get(slot)
    const rounded: Tensor[] = []
    for (const step of this.#steps) {
      const given = step.args.map((arg) => argValue(arg, at))
      const [terms] = given
      if (step.operator.tags.has('reduction') && terms instanceof Tensor) rounded.push(terms)
      runStep(step, given).forEach((value, i) => values.set(step.firstSlot + i, value))
    }
    const results = this.results.flatMap((slot) => {
      const value = at(slot)
      return value instanceof Tensor ? [value] : []
    })
    return { results, rounded }
  }
}

/** The steps that compute `results` from the slots of `args`, in order. */
function stepsBetween(end: Step, args: readonly ArgStep[], results: readonly number[]): readonly Step[] {
  const given = new Set<number>()
  for (const arg of args) visitSlots(arg, (slot) => given.add(slot))
  const needed = new Set(results)
  const steps = end
    .path()
    .reverse()
    .filter((step) => {
      if (!step.gives(needed)) return false
      for (const arg of step.args)
        visitSlots(arg, (slot) => {
          if (!given.has(slot)) needed.add(slot)
        })
      return true
    })
  return steps.reverse()
}

/**
 * Whether results have the same layouts (the strides of single elements are no part of them) and, but for rounding, the same values. `rounded`: values that were added up on the way: a sum is off by a share of its terms,
 * however small it is, and has their precision.
 */
export function isClose(one: Tensor, other: Tensor | undefined, rounded: readonly Tensor[] = []): boolean {
  if (other === undefined || one.dtype !== other.dtype || !sameShape(one.sizes, other.sizes) || !sameStrides(one, other)) return false
  if (TOLERANCE[one.dtype] === undefined) return allclose(one, other, { rtol: 0, atol: 0, equalNan: true })
  const values = [other, ...rounded]
  const rtol = Math.max(...values.map(({ dtype }) => TOLERANCE[dtype] ?? 0))
  return allclose(one, other, { rtol, atol: rtol * Math.max(...values.map(largestOf)), equalNan: true })
}

/** The largest finite absolute value. */
function largestOf(tensor: Tensor): number {
  let largest = 0
  const elements = exactElements(tensor)
  for (let i = 0; i < elements.length; i++) {
    const size = Math.abs(Number(elements[i]))
    if (size > largest && size < Infinity) largest = size
  }
  return largest
}

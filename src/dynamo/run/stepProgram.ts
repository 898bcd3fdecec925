// A graph with sizes, as eager kernels run it: its recorded steps one after the other, without the checks of the functions that the graph's code would call, since the walk has made them. It holds no shapes, so it is
// for any sizes. A graph that comes again gets kernels for any sizes in the place of several steps each.
import { devices, observed } from '../../dispatch/index.ts'
import type { Arg } from '../../dispatch/index.ts'
import type { CompiledCode } from '../../aot/index.ts'
import { config } from '../../config.ts'
import { launches } from '../../ops/eager/launchLog.ts'
import { argValue } from './evaluate.ts'
import { instructionOf } from './instruction.ts'
import type { Instruction } from './instruction.ts'
import type { FusionEvents } from './fusedSteps.ts'
import { mayHavePlan } from './planRecorder.ts'
import type { RecordedProgram } from './planRecorder.ts'
import { SeenSizes } from './sampleSizes.ts'
import { SizedPlans } from './sizedPlans.ts'
import type { SizedLayout } from '../tree/sizes.ts'
import { neededSteps, visitSlots, withoutLists } from '../tree/traceTree.ts'
import type { Step } from '../tree/traceTree.ts'

/**
 * When the steps of a graph are fused. With one list of sizes it is not known which of them differ, and how they depend on each other; what fewer lists say may not hold for another one: then there are no kernels for it, and they are
 * sought anew. To find kernels and to compare them with the steps takes as long as some 50 calls or more. Sizes that go on changing need them. A training step whose last batch is smaller never has a third list:
 * it is to have run as often as a short program does, and to be over what a program takes to start.
 */
const SOUGHT_WITH = { lists: 3, fewLists: 2, calls: 16 }

/** From the values of the placeholders to those of the outputs. */
type Run = (inputs: readonly unknown[]) => readonly unknown[]

/** The instructions with kernels in the place of steps, where there are some, for sizes like those that were seen; 'none' if there are none for any sizes, null if it takes other lists of sizes to find them. */
export type FuseSteps = (seen: SeenSizes, events: FusionEvents) => readonly Instruction[] | 'none' | null

/** One instruction, and the slots that no later one reads. */
interface Line {
  readonly instruction: Instruction
  readonly ends: readonly number[]
}

function linesOf(instructions: readonly Instruction[], outputs: readonly number[]): readonly Line[] {
  const read = new Set(outputs)
  return instructions
    .toReversed()
    .map((instruction) => {
      const ends: number[] = []
      const see = (slot: number): void => {
        if (!read.has(slot)) ends.push(slot)
        read.add(slot)
      }
      for (const arg of instruction.args) visitSlots(arg, see)
      instruction.results.forEach(see)
      return { instruction, ends }
    })
    .reverse()
}

/** Runs instructions one after the other. */
function runnerOf(instructions: readonly Instruction[], { outputs, inputSlots }: Places, slots: number): Run {
  const lines = linesOf(instructions, outputs)
  return (inputs) => {
    const values = new Array<unknown>(slots)
    const at = (slot: number): unknown => values[slot]
    for (let i = 0; i < inputSlots.length; i++) values[inputSlots[i] ?? 0] = inputs[i]
    for (const { instruction, ends } of lines) {
      const { args, results } = instruction
      const given = new Array<Arg>(args.length)
      for (let i = 0; i < args.length; i++) {
        const arg = args[i]
        if (arg !== undefined) given[i] = argValue(arg, at)
      }
      const made = instruction.run(given)
      for (let i = 0; i < made.length; i++) values[results[i] ?? 0] = made[i]
      // A value that is not needed any more may be collected while the program still runs.
      for (const slot of ends) values[slot] = undefined
    }
    return outputs.map(at)
  }
}

/** The slots of the placeholders and of what is returned, and which outputs the caller writes to inputs. */
type Places = Pick<RecordedProgram, 'inputSlots' | 'outputs' | 'writeBacks'>

class StepProgram {
  readonly #end: Step
  readonly #places: Places
  readonly #sized: SizedInputs
  readonly #hasPlans: boolean
  /** Calls the operators. */
  readonly #eagerly: Run
  readonly #unfused: Run
  #run: Run
  readonly #fuse: FuseSteps | null
  /** The sizes for which there were no kernels, in how many calls, and whether some of them are new since kernels were sought. */
  #seen: SeenSizes | null = null
  #calls = 0
  #hasNew = false
  #fusions = 0
  /** Whether there are no kernels for the sizes of the last call. */
  #isWaiting = true
  /** Whether there are none for any. */
  #isUnfused = false

  constructor(end: Step, places: Places, fuse: FuseSteps | null, sized: SizedInputs) {
    const { steps } = neededSteps(end, places.outputs)
    this.#end = end
    this.#places = places
    this.#fuse = fuse
    this.#sized = sized
    // A plan is of launches in the program's memory.
    this.#hasPlans = devices.here === 'cpu' && mayHavePlan(steps)
    const instructions = steps.map(instructionOf)
    this.#eagerly = this.#runnerOf(instructions)
    this.#unfused = this.#withPlans(instructions, this.#eagerly)
    this.#run = this.#unfused
  }

  /** Whether no kernels stand in the place of steps, and none will. */
  get isProgram(): boolean {
    return this.#isUnfused
  }

  run(inputs: readonly unknown[]): readonly unknown[] {
    // Who watches operators is to see them.
    if (observed.observer !== null || launches.listener !== null) return this.#eagerly(inputs)
    if (this.#fuse === null || this.#isUnfused || this.#fusions > config.recompileLimit) return this.#run(inputs)
    const outputs = this.#run(inputs)
    if (this.#isWaiting) this.#note(this.#fuse, inputs)
    return outputs
  }

  /** Notes the sizes of a call for which there are no kernels, and looks for some. */
  #note(fuse: FuseSteps, inputs: readonly unknown[]): void {
    this.#seen ??= new SeenSizes(inputs, (position) => this.#sized[position] === 'size')
    const before = this.#seen.count
    this.#seen.note(inputs)
    this.#calls++
    this.#hasNew ||= this.#seen.count > before
    const isOften = this.#calls >= SOUGHT_WITH.calls || config.verifySizes
    if (!this.#hasNew || this.#seen.count < (isOften ? SOUGHT_WITH.fewLists : SOUGHT_WITH.lists)) return
    this.#hasNew = false
    this.#fusions++
    const failed = (): void => {
      this.#isUnfused = true
      this.#run = this.#unfused
    }
    const instructions = fuse(this.#seen, { missed: () => (this.#isWaiting = true), failed })
    if (instructions === null) {
      this.#isUnfused = this.#fusions > config.recompileLimit && this.#run === this.#unfused
      return
    }
    if (instructions === 'none') return failed()
    this.#isWaiting = false
    this.#run = this.#withPlans(instructions, this.#runnerOf(instructions))
  }

  #runnerOf(instructions: readonly Instruction[]): Run {
    return runnerOf(instructions, this.#places, this.#end.nextSlot)
  }

  #withPlans(instructions: readonly Instruction[], eagerly: Run): Run {
    if (!this.#hasPlans) return eagerly
    const plans = new SizedPlans({ instructions, ...this.#places }, this.#sized, eagerly)
    return (inputs) => plans.run(inputs)
  }
}

/** What computes the outputs of a segment that ends at `end` from the values of its inputs. `fuse`: what finds kernels for any sizes; null: nothing does. */
export function stepProgram(
  end: Step,
  places: Places,
  fuse: FuseSteps | null = null,
  sized: SizedInputs = sizedInputs(end, places.inputSlots),
): CompiledCode {
  const program = new StepProgram(end, places, fuse, sized)
  return Object.assign((...inputs: readonly unknown[]) => program.run(inputs), { isProgram: () => program.isProgram })
}

/** Of each input: which of its positions are sizes, or that it is one. */
type SizedInputs = readonly (SizedLayout | 'size' | null)[]

/** Of each input: which of its positions are sizes, or that it is one. */
export function sizedInputs(end: Step, inputSlots: readonly number[]): SizedInputs {
  const sized = new Map<number, SizedLayout | 'size'>()
  for (const step of end.path())
    for (const arg of withoutLists(step.args)) {
      if (arg.kind === 'input' && arg.spec.sizes !== null) sized.set(arg.slot, arg.spec.sizes)
      if (arg.kind === 'scalar' && arg.number === 'size') sized.set(arg.slot, 'size')
    }
  return inputSlots.map((slot) => sized.get(slot) ?? null)
}

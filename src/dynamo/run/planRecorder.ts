// Runs the steps of a graph with sizes on eager kernels, and makes the plan by which a later call with the same sizes launches the same kernels.
import type { Arg } from '../../dispatch/index.ts'
import { present } from '../../errors/index.ts'
import { dtypeInfo, placeSpans } from '../../kernels/index.ts'
import type { CompiledKernel } from '../../kernels/index.ts'
import { byteOffset } from '../../ops/eager/launch.ts'
import { launches } from '../../ops/eager/launchLog.ts'
import type { LaunchListener } from '../../ops/eager/launchLog.ts'
import { Tensor, sameShape } from '../../tensor/index.ts'
import type { Storage } from '../../tensor/index.ts'
import { argValue } from './evaluate.ts'
import { readsOneOf } from './instruction.ts'
import type { Instruction } from './instruction.ts'
import type { Allocation, Launch, LaunchPlan, OperatorCall, Reservation, View } from './launchPlan.ts'
import { visitSlots } from '../tree/traceTree.ts'
import type { Step } from '../tree/traceTree.ts'

/** Whether a step can be run twice in one call, to compare a plan with it. */
const isRepeatable = ({ operator: { tags } }: Step): boolean =>
  !(tags.has('random') || tags.has('custom') || tags.has('rejectsData') || tags.has('mutates'))

/** Whether steps may have a plan. */
export const mayHavePlan = (steps: readonly Step[]): boolean => steps.length > 0 && steps.every(isRepeatable)

/** What runs: the instructions, the slots of the placeholders, and those of what is returned. */
export interface RecordedProgram {
  readonly instructions: readonly Instruction[]
  readonly inputSlots: readonly number[]
  readonly outputs: readonly number[]
  /** From positions of outputs to those of the inputs that the caller overwrites with them, which the run may do itself. It then returns the input. */
  readonly writeBacks?: ReadonlyMap<number, number>
}

/** No slots. */
const NONE: ReadonlySet<number> = new Set()

/** Later than every action. */
const NEVER = 2 ** 30 - 1

/** Memory that the run has met. */
class Memory {
  readonly base: number
  readonly storage: Storage
  /** The bytes from the start of the storage to where the base is. */
  readonly start: number
  /** The tensor that the base's tensor is like; null: no operator has returned it. */
  tensor: Tensor | null
  /** Whether it is in the arena unless it is read as a tensor. */
  readonly isTemporary: boolean
  isTensor: boolean
  /** Whether it may exceed the memory limit. */
  isBeyondLimit = false
  /** The first and the last action that uses it. */
  first = NEVER
  last = -1

  constructor(base: number, storage: Storage, start: number, tensor: Tensor | null, isTemporary: boolean) {
    this.base = base
    this.storage = storage
    this.start = start
    this.tensor = tensor
    this.isTemporary = isTemporary
    this.isTensor = !isTemporary
  }

  usedAt(action: number): void {
    if (action < this.first) this.first = action
    if (action > this.last) this.last = action
  }
}

/** Computes the outputs. `plan`: that for these sizes, and for these numbers but those at the slots `changing`; null if there is none. */
export function recordPlan(
  program: RecordedProgram,
  inputs: readonly unknown[],
  changing: ReadonlySet<number> = NONE,
): { readonly outputs: readonly unknown[]; readonly plan: LaunchPlan | null } {
  const recorder = new PlanRecorder(program, inputs, changing)
  const outputs = recorder.run()
  return { outputs, plan: recorder.plan() }
}

class PlanRecorder implements LaunchListener {
  readonly #program: RecordedProgram
  /** The slots of numbers that no plan can hold. */
  readonly #changing: ReadonlySet<number>
  readonly #values: unknown[] = []
  readonly #memory = new Map<Storage, Memory>()
  readonly #all: Memory[] = []
  readonly #actions: (Launch | OperatorCall)[] = []
  /** Launches that are the only one of an instruction. */
  readonly #alone = new Map<Launch | OperatorCall, { readonly instruction: Instruction; readonly tensors: readonly Tensor[] }>()
  /** The launches of the present step. */
  #pending: { readonly run: CompiledKernel['run']; readonly tensors: readonly Tensor[]; readonly numbers: number[]; scratchBytes: number }[] = []
  #scratch: { readonly address: number; readonly bytes: number } | null = null
  #isLaunchesOnly = true
  #isPossible = true
  #bases: number

  constructor(program: RecordedProgram, inputs: readonly unknown[], changing: ReadonlySet<number>) {
    this.#program = program
    this.#changing = changing
    this.#bases = 1 + program.inputSlots.length
    inputs.forEach((input, i) => {
      this.#values[program.inputSlots[i] ?? 0] = input
      if (!(input instanceof Tensor)) return
      const storage = input.realize().home
      // Where inputs lie on one memory, their distance is another one in each call.
      if (this.#memory.has(storage) || storage.block.ptr === 0) this.#isPossible = false
      this.#know(new Memory(i + 1, storage, byteOffset(input), input, false))
    })
  }

  #know(memory: Memory): Memory {
    this.#memory.set(memory.storage, memory)
    this.#all.push(memory)
    return memory
  }

  /** A base for memory that is no input's. */
  #next(): number {
    return this.#bases++
  }

  // ---- what it hears ----

  launched(run: CompiledKernel['run'], tensors: readonly Tensor[], numbers: readonly number[]): void {
    const scratch = this.#scratch
    this.#scratch = null
    if (scratch !== null && numbers.at(-1) !== scratch.address) this.#isLaunchesOnly = false
    this.#pending.push({ run, tensors: [...tensors], numbers: [...numbers], scratchBytes: scratch?.bytes ?? 0 })
  }

  reserved(address: number, bytes: number): void {
    if (this.#scratch !== null || bytes <= 0) this.#isLaunchesOnly = false
    this.#scratch = { address, bytes }
  }

  runsOnCopies(): void {
    this.#isLaunchesOnly = false
  }

  // ---- the run ----

  run(): readonly unknown[] {
    for (const instruction of this.#program.instructions) this.#instruction(instruction)
    return this.#program.outputs.map((slot) => this.#values[slot])
  }

  #instruction(instruction: Instruction): void {
    const at = (slot: number): unknown => this.#values[slot]
    const args = instruction.args.map((arg): Arg => argValue(arg, at))
    this.#pending = []
    this.#scratch = null
    this.#isLaunchesOnly = instruction.launchesOnly && !readsOneOf(this.#changing, instruction.args)
    let results: readonly Tensor[]
    const outer = launches.listener
    launches.listener = this
    try {
      results = instruction.run(args)
    } finally {
      launches.listener = outer
    }
    if (this.#scratch !== null) this.#isLaunchesOnly = false
    results.forEach((result, i) => (this.#values[instruction.results[i] ?? 0] = result))
    if (!this.#isPossible) return
    if (this.#isLaunchesOnly) this.#noteLaunches(instruction, results)
    else this.#noteCall(instruction, results)
  }

  #noteLaunches(instruction: Instruction, results: readonly Tensor[]): void {
    const at = this.#actions.length
    const isAlone = this.#pending.length === 1
    this.#pending.forEach(({ run, tensors, numbers, scratchBytes }, i) => {
      const operands = tensors.map((tensor) => {
        const memory = this.#memoryOf(tensor)
        memory.usedAt(at + i)
        return { base: memory.base, bytes: byteOffset(tensor) - memory.start }
      })
      const action: Launch = { kind: 'launch', run, operands, args: [...tensors.map(() => 0), ...numbers], scratchBytes }
      this.#actions.push(action)
      if (isAlone) this.#alone.set(action, { instruction, tensors })
    })
    for (const result of results) {
      const memory = this.#memoryOf(result)
      memory.tensor ??= result
      memory.isBeyondLimit ||= instruction.beyondLimit
    }
  }

  #memoryOf(tensor: Tensor): Memory {
    const storage = tensor.realize().home
    if (storage.block.ptr === 0) this.#isPossible = false
    return this.#memory.get(storage) ?? this.#know(new Memory(this.#next(), storage, 0, null, true))
  }

  #noteCall(instruction: Instruction, results: readonly Tensor[]): void {
    const at = this.#actions.length
    const reads = new Map<number, View>()
    for (const arg of instruction.args)
      visitSlots(arg, (slot) => {
        const view = this.#viewOf(slot, at)
        if (view !== null) reads.set(slot, view)
      })
    const bases = results.map((result) => {
      const storage = result.realize().home
      if (this.#memory.has(storage) || storage.block.ptr === 0) this.#isPossible = false
      return this.#know(new Memory(this.#next(), storage, 0, result, false)).base
    })
    this.#actions.push({ kind: 'call', instruction, reads, results: bases })
  }

  /** A slot's value as an operator, or the caller, reads it. */
  #viewOf(slot: number, at: number): View | null {
    const value = this.#values[slot]
    if (!(value instanceof Tensor)) return { base: this.#program.inputSlots.indexOf(slot) + 1, like: null }
    const memory = this.#memoryOf(value)
    const { tensor } = memory
    if (tensor === null || tensor.dtype !== value.dtype) {
      this.#isPossible = false
      return null
    }
    // No launch wrote it, as for a tensor without elements, so that none says where it is to be made.
    if (memory.isTemporary && memory.first === NEVER) this.#isPossible = false
    memory.isTensor = true
    if (at > memory.last) memory.last = at
    if (tensor === value) return { base: memory.base, like: null }
    return { base: memory.base, like: fakeLike(value, value.offset - tensor.offset) }
  }

  // ---- the plan ----

  plan(): LaunchPlan | null {
    const views = this.#program.outputs.map((slot) => this.#viewOf(slot, this.#actions.length))
    const bases = views.map((view) => (view?.like === null && view.base > this.#program.inputSlots.length ? view.base : -1))
    if (!this.#isPossible || bases.includes(-1) || new Set(bases).size < bases.length) return null
    const temporaries = this.#all.filter(({ isTemporary, first }) => isTemporary && first < NEVER)
    const kept = temporaries.filter(({ isTensor }) => isTensor)
    if (!kept.every(isWhole)) return null
    const overwritten = this.#overwritten(bases)
    const made = kept.filter(({ base }) => !overwritten.has(base))
    const inArena = temporaries.filter(({ isTensor }) => !isTensor)
    const { offsets, bytes } = placeSpans(inArena.map(({ storage, first, last }) => ({ bytes: storage.block.nbytes, first, last })))
    const placed = new Map(inArena.map(({ base }, i) => [base, present(offsets[i], 'the place of a temporary')]))
    const outputs = bases.map((base) => overwritten.get(base)?.base ?? base)
    return { actions: this.#placed(made, placed, overwritten), arenaBytes: bytes, bases: this.#bases, outputs }
  }

  /** By base of a new value: the input whose memory it is written to. */
  #overwritten(bases: readonly number[]): ReadonlyMap<number, Memory> {
    const overwritten = new Map<number, Memory>()
    for (const [position, input] of this.#program.writeBacks ?? []) {
      const [target, value] = [input + 1, bases[position]].map((base) => this.#all.find((memory) => memory.base === base))
      if (target !== undefined && value !== undefined && this.#mayOverwrite(target, value)) overwritten.set(value.base, target)
    }
    return overwritten
  }

  /** Whether nothing shows that a new value is written over the old one: that is read before, or by the launch that writes, element by element, and nothing can fail afterwards. */
  #mayOverwrite(target: Memory, value: Memory): boolean {
    const { tensor: old } = target
    const { tensor: made } = value
    if (old === null || made === null || !old.contiguousLayout || !haveOneLayout(old, made)) return false
    // What an operator has made is not written by the first launch that uses it.
    if (!value.isTemporary) return false
    const [writer, ...later] = this.#actions.slice(value.first)
    const launch = writer === undefined ? undefined : this.#alone.get(writer)
    if (launch === undefined) return false
    const { instruction, tensors } = launch
    // A kernel may see a tensor otherwise, as a complex one: then it reads other elements as well.
    const areWhole = tensors.every(({ storage, dtype, sizes, steps, offset }) => {
      const like = storage?.home === target.storage ? old : storage?.home === value.storage ? made : null
      return like === null || (dtype === like.dtype && offset === like.offset && sameShape(sizes, like.sizes) && sameShape(steps, like.steps))
    })
    const result = instruction.results.findIndex((slot) => storageOf(this.#values[slot]) === value.storage)
    const mayWrite = instruction.args.every((arg, i) => {
      let reads = false
      visitSlots(arg, (slot) => (reads ||= storageOf(this.#values[slot]) === target.storage))
      return !reads || (arg.kind !== 'list' && instruction.mayOverwrite(result, i))
    })
    if (!areWhole || !mayWrite) return false
    return later.every((action) => action.kind === 'launch' && !action.operands.some(({ base }) => base === target.base))
  }

  /** The actions, with tensors made before they are written, and before any input is, and temporaries in the arena. */
  #placed(made: readonly Memory[], placed: ReadonlyMap<number, number>, overwritten: ReadonlyMap<number, Memory>): LaunchPlan['actions'] {
    const firstWrite = this.#all.reduce((first, memory) => (overwritten.has(memory.base) ? Math.min(first, memory.first) : first), NEVER)
    const byFirst = new Map<number, Memory[]>()
    for (const memory of made) {
      const at = Math.min(memory.first, firstWrite)
      byFirst.set(at, [...(byFirst.get(at) ?? []), memory])
    }
    const scratchBytes = Math.max(0, ...this.#actions.slice(firstWrite).map((action) => (action.kind === 'launch' ? action.scratchBytes : 0)))
    return this.#actions.flatMap((action, i): LaunchPlan['actions'] => {
      const allocations = (byFirst.get(i) ?? []).map(({ base, storage, tensor, isBeyondLimit }): Allocation => {
        const like = fakeLike(present(tensor, 'the tensor of a base'), 0)
        return { kind: 'allocate', base, like, room: storage.block.nbytes, isBeyondLimit }
      })
      const reservations: readonly Reservation[] = i === firstWrite && scratchBytes > 0 ? [{ kind: 'reserve', scratchBytes }] : []
      if (action.kind === 'call') return [...allocations, action]
      const operands = action.operands.map(({ base, bytes }) => {
        const at = placed.get(base)
        return at === undefined ? { base: overwritten.get(base)?.base ?? base, bytes } : { base: 0, bytes: at + bytes }
      })
      return [...allocations, ...reservations, { ...action, operands }]
    })
  }
}

/** Whether the tensor of a base has all of its memory, from the start. */
const isWhole = ({ tensor, storage }: Memory): boolean =>
  tensor !== null && tensor.offset === 0 && storage.nbytes === tensor.numel * dtypeInfo[tensor.dtype].size

const haveOneLayout = (a: Tensor, b: Tensor): boolean => a.dtype === b.dtype && sameShape(a.sizes, b.sizes) && sameShape(a.steps, b.steps)

const storageOf = (value: unknown): Storage | null => (value instanceof Tensor ? (value.storage?.home ?? null) : null)

const fakeLike = (tensor: Tensor, offset: number): Tensor => new Tensor(tensor.sizes, tensor.dtype, null, undefined, offset, tensor)

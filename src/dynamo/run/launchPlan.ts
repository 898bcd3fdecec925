// What the steps of a graph with sizes come to for one list of sizes: the kernels that their operators launch, with all numbers that they get, in one arena for what does not outlive the run. Operators, their checks and
// their choices of kernels run once for each list; from then on a call is a row of launches. A step whose operator does more than launch kernels stays a call of it.
import { OutOfMemoryError, ScratchMemory, beyondLimit, dtypeInfo, heapBytes } from '../../kernels/index.ts'
import type { CompiledKernel } from '../../kernels/index.ts'
import { scratchMemory } from '../../ops/eager/launch.ts'
import { Storage, Tensor, asTensor } from '../../tensor/index.ts'
import type { Arg } from '../../dispatch/index.ts'
import { argValue } from './evaluate.ts'
import type { Instruction } from './instruction.ts'

/** Memory by its place in the list of a run: 0 is the arena, then come the inputs, then tensors that the run makes. */
type Base = number

/** Launches a kernel. */
export interface Launch {
  readonly kind: 'launch'
  readonly run: CompiledKernel['run']
  /** By argument that is an address: the base, and the bytes from it on. */
  readonly operands: readonly { base: Base; bytes: number }[]
  /** All arguments; those that are addresses are set before each launch. */
  readonly args: number[]
  /** The scratch memory whose address is the last argument; 0 for none. */
  readonly scratchBytes: number
}

/** Makes a tensor that the run returns, or that an operator reads. */
export interface Allocation {
  readonly kind: 'allocate'
  readonly base: Base
  /** A fake tensor like it. */
  readonly like: Tensor
  /** The bytes of its memory, with those that kernels write past its end. */
  readonly room: number
  /** Whether it may exceed the memory limit. */
  readonly isBeyondLimit: boolean
}

/** Makes room for what launches need beside tensors, before the first of them that writes to an input: from there on nothing may fail. */
export interface Reservation {
  readonly kind: 'reserve'
  readonly scratchBytes: number
}

/** Runs an instruction that does more than launch kernels. */
export interface OperatorCall {
  readonly kind: 'call'
  readonly instruction: Instruction
  /** By slot: the tensors that it reads. */
  readonly reads: ReadonlyMap<number, View>
  /** The bases of its results. */
  readonly results: readonly Base[]
}

/** A tensor that the plan knows: an input, one on a base, or a window of it. */
export interface View {
  readonly base: Base
  /** A fake tensor with its layout, whose offset counts from that of the base's tensor; null: it is that tensor. */
  readonly like: Tensor | null
}

/** A row of launches for one list of sizes. */
export interface LaunchPlan {
  readonly actions: readonly (Launch | Allocation | Reservation | OperatorCall)[]
  readonly arenaBytes: number
  readonly bases: number
  /** The bases of what is returned: that of an input whose new value was written into it. */
  readonly outputs: readonly Base[]
}

/** The plan with launches of another one in the place of those that are equal to them. Plans of a growing cache then share what is not of its length, and what runs at each call stays near the processor. */
export const sharing = (plan: LaunchPlan, other: LaunchPlan): LaunchPlan => ({
  ...plan,
  actions: plan.actions.map((action, i) => {
    const like = other.actions[i]
    if (action.kind !== 'launch' || like?.kind !== 'launch') return action
    const hasOperands =
      action.operands.length === like.operands.length &&
      action.operands.every(({ base, bytes }, at) => base === like.operands[at]?.base && bytes === like.operands[at].bytes)
    if (!hasOperands) return action
    return isOneLaunch(action, like) ? like : { ...action, operands: like.operands }
  }),
})

/** Whether launches on the same operands are the same. Their arguments that are addresses are set before each run, and so is that of scratch memory, the last one. */
function isOneLaunch(a: Launch, b: Launch): boolean {
  if (a.run !== b.run || a.args.length !== b.args.length || a.scratchBytes !== b.scratchBytes) return false
  const numbers = a.args.slice(a.operands.length, a.scratchBytes > 0 ? -1 : undefined)
  return numbers.every((number, i) => Object.is(number, b.args[a.operands.length + i]))
}

let isRunning = false

/** The temporaries of the plan that runs. */
const arena = new ScratchMemory('the temporaries of compiled programs', () => !isRunning)

/** Runs a plan on the values of a graph's placeholders. Returns null, and has changed nothing, where that is impossible: tensors are off the heap, or there is no room. `fill`: what memory holds before; null: anything. */
export function runPlan(plan: LaunchPlan, inputs: readonly unknown[], fill: number | null = null): readonly Tensor[] | null {
  if (isRunning) return null
  isRunning = true
  try {
    return thisRun.outputs(plan, inputs, fill)
  } catch (error) {
    if (error instanceof OutOfMemoryError) return null
    throw error
  } finally {
    thisRun.clear()
    isRunning = false
  }
}

/** The run of a plan. */
class PlanRun {
  #inputs: readonly unknown[] = []
  #fill: number | null = null
  /** By base: its address, and its tensor. */
  readonly #addresses: number[] = []
  readonly #tensors: (Tensor | undefined)[] = []

  outputs(plan: LaunchPlan, inputs: readonly unknown[], fill: number | null): readonly Tensor[] | null {
    this.#inputs = inputs
    this.#fill = fill
    const addresses = this.#addresses
    for (let i = 0; i < inputs.length; i++) {
      const input = inputs[i]
      if (input instanceof Tensor && !this.#set(i + 1, input, input.offset * dtypeInfo[input.dtype].size)) return null
    }
    const { actions, arenaBytes, outputs } = plan
    if (arenaBytes > 0) {
      addresses[0] = arena.reserve(arenaBytes)
      if (fill !== null) heapBytes().fill(fill, addresses[0], addresses[0] + arenaBytes)
    }
    for (const action of actions) {
      if (action.kind === 'launch') launchAt(action, addresses)
      else if (action.kind === 'reserve') scratchMemory(action.scratchBytes)
      else if (!(action.kind === 'allocate' ? this.#allocate(action) : this.#call(action))) return null
    }
    return outputs.map((base) => asTensor(this.#tensors[base], 'a result of a plan'))
  }

  /** Holds no tensors from here on. */
  clear(): void {
    this.#inputs = []
    this.#tensors.fill(undefined)
  }

  /** Notes where a tensor is. Returns false if it is off the heap. */
  #set(base: Base, tensor: Tensor, bytes: number): boolean {
    const { ptr } = tensor.realize().block
    this.#tensors[base] = tensor
    this.#addresses[base] = ptr + bytes
    return ptr !== 0
  }

  #allocate({ base, like, room, isBeyondLimit }: Allocation): boolean {
    const allocate = (): Storage => Storage.allocate(like.numel * dtypeInfo[like.dtype].size, like.sizes, like.dtype, room)
    const storage = isBeyondLimit ? beyondLimit(allocate) : allocate()
    const { ptr } = storage.block
    if (this.#fill !== null && ptr !== 0) heapBytes().fill(this.#fill, ptr, ptr + room)
    return this.#set(base, new Tensor(like.sizes, like.dtype, storage, undefined, 0, like), 0)
  }

  #call({ instruction, reads, results }: OperatorCall): boolean {
    const at = (slot: number): unknown => {
      const view = reads.get(slot)
      return view === undefined ? undefined : this.#valueOf(view)
    }
    const made = instruction.run(instruction.args.map((arg): Arg => argValue(arg, at)))
    return results.every((base, i) => this.#set(base, asTensor(made[i], 'a result'), 0))
  }

  #valueOf({ base, like }: View): unknown {
    const tensor = this.#tensors[base]
    if (tensor === undefined) return this.#inputs[base - 1]
    return like === null ? tensor : new Tensor(like.sizes, like.dtype, tensor.storage, undefined, tensor.offset + like.offset, like)
  }
}

/** One object for all runs, of which there is one at a time. Where no object of a class is alive, V8 drops at a collection what it has optimised for them. */
const thisRun = new PlanRun()

function launchAt({ run, operands, args, scratchBytes }: Launch, addresses: readonly number[]): void {
  for (let i = 0; i < operands.length; i++) {
    const operand = operands[i]
    if (operand !== undefined) args[i] = (addresses[operand.base] ?? 0) + operand.bytes
  }
  if (scratchBytes > 0) args[args.length - 1] = scratchMemory(scratchBytes)
  run(...args)
}

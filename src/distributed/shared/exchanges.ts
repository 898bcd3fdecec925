// What each collective posts and takes, step by step, where ranks share memory.
import { dtypeInfo } from '../../kernels/index.ts'
import type { Tensor } from '../../tensor/index.ts'
import type { BackendReduceOp, Collective } from '../collective.ts'
import { copyBetweenTensors, copyBytes, copyFromTensor, copyToTensor, reduceRanks } from './reduceOnHeap.ts'

/** A collective that all ranks of a group run. */
export type SharedCollective = Exclude<Collective, { readonly kind: 'send' | 'recv' }>

/** A collective as steps: in each, a rank posts bytes in its slot, and takes what others have posted. */
export interface Exchange {
  /** How many there are. It may become known with the first. */
  readonly steps: number
  /** The rank whose slot is read; null for all. It is this rank where none of the others' is. */
  readonly from: number | null
  post(step: number, slot: Uint8Array): void
  take(step: number, slots: readonly Uint8Array[]): void
}

/** Copies between the ranks' tensors without a slot in between, where ranks are processes that may read each other's memory. */
export interface DirectMemory {
  /** Where the data of a contiguous tensor lies, for other ranks. It stays there while a collective uses it. */
  addressOf(tensor: Tensor): number
  /** Copies bytes of another rank to a contiguous tensor, from its byte `toAt` on. */
  copy(rank: number, from: number, to: Tensor, toAt: number, bytes: number): void
}

/** This rank among those of a group. */
export interface Seat {
  readonly size: number
  readonly me: number
  /** Bytes of a slot. */
  readonly capacity: number
  readonly direct: DirectMemory | null
}

const nothing = (): void => undefined

const bytesOf = (tensor: Tensor): number => tensor.numel * dtypeInfo[tensor.dtype].size

/** Steps of at most `capacity` bytes for `total` of them; one if there are none, so that every collective meets all ranks. */
const stepsFor = (total: number, capacity: number): number => Math.max(1, Math.ceil(total / capacity))

/** A part of `capacity` for each rank, of whole elements of any dtype and aligned for the processor. */
const partOf = ({ size, capacity }: Seat): number => Math.floor(capacity / size / 64) * 64 || Math.floor(capacity / size / 8) * 8

/** How the `total` bytes of a rank's output come in parts, of which a slot holds one for each rank. */
function partsOf(output: Tensor, seat: Seat): { readonly total: number; readonly part: number; lengthAt(start: number): number } {
  const [total, part] = [bytesOf(output), partOf(seat)]
  return { total, part, lengthAt: (start) => Math.min(part, total - start) }
}

/** Up to this many bytes, every rank reduces all: it is one step. With more ranks or bytes each reduces its part, and the parts are exchanged in a second step. */
const WHOLE_BYTES = 2 ** 11

/** Every rank reduces all of it; `root` keeps it, or all do if that is null. */
function reduceWhole(op: BackendReduceOp, data: Tensor, root: number | null, { me, capacity }: Seat): Exchange {
  const total = bytesOf(data)
  const lengthAt = (start: number): number => Math.min(capacity, total - start)
  return {
    steps: stepsFor(total, capacity),
    from: root === null || root === me ? null : me,
    post: (step, slot) => copyFromTensor(slot, 0, data, step * capacity, lengthAt(step * capacity)),
    take(step, slots) {
      const start = step * capacity
      if (root === null || root === me) reduceRanks(op, { own: data, ownAt: start, target: data, targetAt: start }, slots, 0, me, lengthAt(start))
    },
  }
}

/** Each rank reduces its part of what fits in a slot, in even steps, and gets the other parts in odd ones. */
function reduceParts(op: BackendReduceOp, data: Tensor, seat: Seat): Exchange {
  const { size, me } = seat
  const total = bytesOf(data)
  const part = partOf(seat)
  const capacity = part * size
  const startOf = (step: number, rank: number): number => (step >> 1) * capacity + rank * part
  const lengthOf = (step: number, rank: number): number => Math.max(0, Math.min(part, total - startOf(step, rank)))
  return {
    steps: 2 * stepsFor(total, capacity),
    from: null,
    post(step, slot) {
      if (step % 2 === 1) return copyFromTensor(slot, 0, data, startOf(step, me), lengthOf(step, me))
      for (let rank = 0; rank < size; rank++) if (rank !== me) copyFromTensor(slot, rank * part, data, startOf(step, rank), lengthOf(step, rank))
    },
    take(step, slots) {
      if (step % 2 === 0) {
        const start = startOf(step, me)
        return reduceRanks(op, { own: data, ownAt: start, target: data, targetAt: start }, slots, me * part, me, lengthOf(step, me))
      }
      slots.forEach((slot, rank) => {
        if (rank !== me) copyToTensor(data, startOf(step, rank), slot, 0, lengthOf(step, rank))
      })
    },
  }
}

function broadcast(data: Tensor, root: number, { me, capacity }: Seat): Exchange {
  const total = bytesOf(data)
  const lengthAt = (start: number): number => Math.min(capacity, total - start)
  return {
    steps: stepsFor(total, capacity),
    from: root,
    post(step, slot) {
      if (me === root) copyFromTensor(slot, 0, data, step * capacity, lengthAt(step * capacity))
    },
    take(step, slots) {
      const slot = slots[root]
      if (me !== root && slot !== undefined) copyToTensor(data, step * capacity, slot, 0, lengthAt(step * capacity))
    },
  }
}

/** Every rank's input, one after the other, to those that have an output. */
function gather(input: Tensor, output: Tensor | null, { me, capacity }: Seat): Exchange {
  const total = bytesOf(input)
  const lengthAt = (start: number): number => Math.min(capacity, total - start)
  return {
    steps: stepsFor(total, capacity),
    from: output === null ? me : null,
    post: (step, slot) => copyFromTensor(slot, 0, input, step * capacity, lengthAt(step * capacity)),
    take(step, slots) {
      const start = step * capacity
      if (output === null) return
      slots.forEach((slot, rank) => {
        if (rank === me) copyBetweenTensors(output, me * total + start, input, start, lengthAt(start))
        else copyToTensor(output, rank * total + start, slot, 0, lengthAt(start))
      })
    },
  }
}

/** Bytes of a rank from which on it takes less time to read its memory than to copy them to a slot and from there. */
const DIRECT_BYTES = 2 ** 14

/** A number and its bytes. */
const word = new Float64Array(1)
const wordBytes = new Uint8Array(word.buffer)

/** Tells the others a number: where this rank's data lies, or how long it is. */
function postNumber(slot: Uint8Array, value: number): void {
  word[0] = value
  copyBytes(slot, 0, wordBytes, 0, 8)
}

function numberIn(slot: Uint8Array): number {
  copyBytes(wordBytes, 0, slot, 0, 8)
  return word[0] ?? 0
}

/** {@link broadcast}: the others read the root's memory, which waits until they have. */
function broadcastDirectly(data: Tensor, root: number, { me }: Seat, direct: DirectMemory): Exchange {
  return {
    steps: 2,
    from: me === root ? null : root,
    post(step, slot) {
      if (step === 0 && me === root) postNumber(slot, direct.addressOf(data))
    },
    take(step, slots) {
      const slot = slots[root]
      if (step === 0 && me !== root && slot !== undefined) direct.copy(root, numberIn(slot), data, 0, bytesOf(data))
    },
  }
}

/** {@link gather} to all: each reads the memory of the others, and waits until they have read its own. */
function allGatherDirectly(input: Tensor, output: Tensor, { me }: Seat, direct: DirectMemory): Exchange {
  const total = bytesOf(input)
  return {
    steps: 2,
    from: null,
    post(step, slot) {
      if (step === 0) postNumber(slot, direct.addressOf(input))
    },
    take(step, slots) {
      if (step === 1) return
      slots.forEach((slot, rank) => {
        if (rank === me) copyBetweenTensors(output, me * total, input, 0, total)
        else direct.copy(rank, numberIn(slot), output, rank * total, total)
      })
    },
  }
}

/** A part for each rank from the root. */
function scatter(input: Tensor | null, output: Tensor, root: number, seat: Seat): Exchange {
  const { size, me } = seat
  const { total, part, lengthAt } = partsOf(output, seat)
  return {
    steps: stepsFor(total, part),
    from: root,
    post(step, slot) {
      const start = step * part
      if (input !== null) for (let rank = 0; rank < size; rank++) copyFromTensor(slot, rank * part, input, rank * total + start, lengthAt(start))
    },
    take(step, slots) {
      const slot = slots[root]
      if (slot !== undefined) copyToTensor(output, step * part, slot, me * part, lengthAt(step * part))
    },
  }
}

/** Each rank reduces its part of all inputs. */
function reduceScatter(op: BackendReduceOp, input: Tensor, output: Tensor, seat: Seat): Exchange {
  const { size, me } = seat
  const { total, part, lengthAt } = partsOf(output, seat)
  return {
    steps: stepsFor(total, part),
    from: null,
    post(step, slot) {
      const start = step * part
      for (let rank = 0; rank < size; rank++) if (rank !== me) copyFromTensor(slot, rank * part, input, rank * total + start, lengthAt(start))
    },
    take(step, slots) {
      const start = step * part
      reduceRanks(op, { own: input, ownAt: me * total + start, target: output, targetAt: start }, slots, me * part, me, lengthAt(start))
    },
  }
}

const offsets = (counts: readonly number[]): number[] => counts.map((_, i) => counts.slice(0, i).reduce((a, b) => a + b, 0))

/** The ranks do not know each other's counts: in the first step they learn the longest part, which says how many steps follow. */
class AllToAll implements Exchange {
  steps = 1
  readonly from = null
  readonly #seat: Seat
  readonly #part: number
  readonly #input: Tensor
  readonly #output: Tensor
  /** Bytes to and from each rank, and where they begin. */
  readonly #sends: readonly { readonly start: number; readonly bytes: number }[]
  readonly #receives: readonly { readonly start: number; readonly bytes: number }[]

  constructor({ input, output, inputCounts, outputCounts }: Extract<Collective, { readonly kind: 'alltoall' }>, seat: Seat) {
    this.#seat = seat
    this.#part = partOf(seat)
    this.#input = input
    this.#output = output
    const { size } = dtypeInfo[input.dtype]
    const stretches = (counts: readonly number[]): { start: number; bytes: number }[] => {
      const starts = offsets(counts)
      return counts.map((count, i) => ({ start: (starts[i] ?? 0) * size, bytes: count * size }))
    }
    this.#sends = stretches(inputCounts)
    this.#receives = stretches(outputCounts)
  }

  post(step: number, slot: Uint8Array): void {
    if (step === 0) return postNumber(slot, Math.max(0, ...this.#sends.map(({ bytes }) => bytes)))
    const at = (step - 1) * this.#part
    this.#sends.forEach(({ start, bytes }, rank) => {
      copyFromTensor(slot, rank * this.#part, this.#input, start + at, Math.max(0, Math.min(this.#part, bytes - at)))
    })
  }

  take(step: number, slots: readonly Uint8Array[]): void {
    if (step === 0) {
      this.steps = 1 + stepsFor(Math.max(...slots.map(numberIn)), this.#part)
      return
    }
    const at = (step - 1) * this.#part
    slots.forEach((slot, rank) => {
      const { start = 0, bytes = 0 } = this.#receives[rank] ?? {}
      copyToTensor(this.#output, start + at, slot, this.#seat.me * this.#part, Math.max(0, Math.min(this.#part, bytes - at)))
    })
  }
}

const MEETING: Exchange = { steps: 1, from: null, post: nothing, take: nothing }

/** The steps of a collective of a group. */
export function exchangeOf(collective: SharedCollective, seat: Seat): Exchange {
  switch (collective.kind) {
    case 'allreduce': {
      const { op, data } = collective
      return seat.size === 2 || bytesOf(data) <= WHOLE_BYTES ? reduceWhole(op, data, null, seat) : reduceParts(op, data, seat)
    }
    case 'reduce':
      return reduceWhole(collective.op, collective.data, collective.root, seat)
    case 'broadcast': {
      const { data, root } = collective
      return seat.direct !== null && bytesOf(data) >= DIRECT_BYTES ? broadcastDirectly(data, root, seat, seat.direct) : broadcast(data, root, seat)
    }
    case 'allgather': {
      const { input, output } = collective
      return seat.direct !== null && bytesOf(input) >= DIRECT_BYTES
        ? allGatherDirectly(input, output, seat, seat.direct)
        : gather(input, output, seat)
    }
    case 'gather':
      return gather(collective.input, collective.output, seat)
    case 'scatter':
      return scatter(collective.input, collective.output, collective.root, seat)
    case 'reducescatter':
      return reduceScatter(collective.op, collective.input, collective.output, seat)
    case 'alltoall':
      return new AllToAll(collective, seat)
    case 'barrier':
      return MEETING
  }
}

// Collectives of a thread world. Each is a sequence of steps: every rank posts some bytes in its slot, waits until all have posted, and reads what it needs.
import { dtypeInfo } from '../../kernels/index.ts'
import { tensorBytes, tensorOf } from '../bytes.ts'
import type { BackendReduceOp, Collective } from '../collective.ts'
import { combine } from '../combine.ts'
import type { Steps } from './messages.ts'
import type { Post, SharedMemory } from './sharedMemory.ts'
import type { Tensor } from '../../tensor/index.ts'

const EMPTY = new Uint8Array(0)

/** The ranks of a group, and where this one stands. */
export class Group {
  readonly #memory: SharedMemory
  readonly posts: readonly Post[]
  readonly me: number
  readonly #own: Post
  /** Steps that this rank has begun. */
  #step = 0

  constructor(memory: SharedMemory, posts: readonly Post[], own: Post) {
    this.#memory = memory
    this.posts = posts
    this.#own = own
    this.me = posts.indexOf(own)
  }

  get size(): number {
    return this.posts.length
  }

  /** Bytes that fit in a slot, or in one of `parts` equal parts of it: whole elements of any dtype. */
  capacity(parts = 1): number {
    return Math.floor(this.#own.slot.length / parts / 8) * 8
  }

  /** One step: `post` fills this rank's slot, `take` reads those of all. */
  *step(post: (slot: Uint8Array) => void, take: (slots: readonly Uint8Array[]) => void): Steps {
    const step = ++this.#step
    while (!this.posts.every(({ read }) => this.#memory.load(read) >= step - 1)) yield
    post(this.#own.slot)
    this.#memory.store(this.#own.posted, step)
    while (!this.posts.every(({ posted }) => this.#memory.load(posted) >= step)) yield
    take(this.posts.map(({ slot }) => slot))
    this.#memory.store(this.#own.read, step)
  }
}

/** The pieces of `total` bytes of at most `capacity`; one empty piece if there are none, so that every collective meets all ranks. */
function* pieces(total: number, capacity: number): Generator<readonly [start: number, end: number]> {
  for (let start = 0; start === 0 || start < total; start += capacity) yield [start, Math.min(start + capacity, total)]
}

/** The reduction of the same bytes of all slots. */
function reduced(op: BackendReduceOp, dtype: Tensor['dtype'], slots: readonly Uint8Array[], start: number, bytes: number): Uint8Array {
  const [first, ...others] = slots.map((slot) => tensorOf(slot.subarray(start, start + bytes), dtype))
  if (first === undefined || bytes === 0) return EMPTY
  return tensorBytes(combine(op, [first, ...others]))
}

/** All ranks reduce all of it; only `isRoot` ones keep it. */
function* reduce(group: Group, op: BackendReduceOp, data: Tensor, isRoot: boolean): Steps {
  for (const [start, end] of pieces(tensorBytes(data).length, group.capacity())) {
    yield* group.step(
      (slot) => slot.set(tensorBytes(data).subarray(start, end)),
      (slots) => {
        if (!isRoot) return
        const sum = reduced(op, data.dtype, slots, 0, end - start)
        tensorBytes(data).set(sum, start)
      },
    )
  }
}

function* broadcast(group: Group, data: Tensor, root: number): Steps {
  for (const [start, end] of pieces(tensorBytes(data).length, group.capacity())) {
    yield* group.step(
      (slot) => {
        if (group.me === root) slot.set(tensorBytes(data).subarray(start, end))
      },
      (slots) => {
        if (group.me !== root) tensorBytes(data).set((slots[root] ?? EMPTY).subarray(0, end - start), start)
      },
    )
  }
}

/** Everybody's input, one after the other, to those who have an output. */
function* gather(group: Group, input: Tensor, output: Tensor | null): Steps {
  const total = tensorBytes(input).length
  for (const [start, end] of pieces(total, group.capacity())) {
    yield* group.step(
      (slot) => slot.set(tensorBytes(input).subarray(start, end)),
      (slots) => {
        if (output === null) return
        slots.forEach((slot, rank) => tensorBytes(output).set(slot.subarray(0, end - start), rank * total + start))
      },
    )
  }
}

/** A part for each rank, from those who have an input: with `op` the parts of all are reduced, otherwise the root's count. */
function* scatter(group: Group, input: Tensor | null, output: Tensor, from: { readonly op: BackendReduceOp } | { readonly root: number }): Steps {
  const part = tensorBytes(output).length
  const capacity = group.capacity(group.size)
  for (const [start, end] of pieces(part, capacity)) {
    const bytes = end - start
    yield* group.step(
      (slot) => {
        if (input === null) return
        for (let rank = 0; rank < group.size; rank++) slot.set(tensorBytes(input).subarray(rank * part + start, rank * part + end), rank * capacity)
      },
      (slots) => {
        const at = group.me * capacity
        const own = 'op' in from ? reduced(from.op, output.dtype, slots, at, bytes) : (slots[from.root] ?? EMPTY).subarray(at, at + bytes)
        tensorBytes(output).set(own, start)
      },
    )
  }
}

const offsets = (counts: readonly number[]): number[] => counts.map((_, i) => counts.slice(0, i).reduce((a, b) => a + b, 0))

function* allToAll(group: Group, input: Tensor, output: Tensor, inputCounts: readonly number[], outputCounts: readonly number[]): Steps {
  const { size } = dtypeInfo[input.dtype]
  const capacity = group.capacity(group.size)
  // The ranks do not know each other's counts: the longest part says how many steps there are.
  let longest = 0
  yield* group.step(
    (slot) => new Float64Array(slot.buffer, slot.byteOffset, 1).set([Math.max(0, ...inputCounts) * size]),
    (slots) => {
      for (const slot of slots) longest = Math.max(longest, new Float64Array(slot.buffer, slot.byteOffset, 1)[0] ?? 0)
    },
  )
  const [from, to] = [offsets(inputCounts), offsets(outputCounts)]
  for (const [start] of pieces(longest, capacity)) {
    const piece = (counts: readonly number[], rank: number): number => Math.max(0, Math.min((counts[rank] ?? 0) * size - start, capacity))
    yield* group.step(
      (slot) => {
        for (let rank = 0; rank < group.size; rank++) {
          const at = (from[rank] ?? 0) * size + start
          slot.set(tensorBytes(input).subarray(at, at + piece(inputCounts, rank)), rank * capacity)
        }
      },
      (slots) => {
        slots.forEach((slot, rank) => {
          const at = group.me * capacity
          tensorBytes(output).set(slot.subarray(at, at + piece(outputCounts, rank)), (to[rank] ?? 0) * size + start)
        })
      },
    )
  }
}

/** The steps of a collective of the group. */
export function stepsOf(group: Group, collective: Exclude<Collective, { kind: 'send' | 'recv' }>): Steps {
  switch (collective.kind) {
    case 'allreduce':
      return reduce(group, collective.op, collective.data, true)
    case 'reduce':
      return reduce(group, collective.op, collective.data, group.me === collective.root)
    case 'broadcast':
      return broadcast(group, collective.data, collective.root)
    case 'allgather':
    case 'gather':
      return gather(group, collective.input, collective.output)
    case 'scatter':
    case 'reducescatter':
      return scatter(group, collective.input, collective.output, collective)
    case 'alltoall':
      return allToAll(group, collective.input, collective.output, collective.inputCounts, collective.outputCounts)
    case 'barrier':
      return group.step(
        () => undefined,
        () => undefined,
      )
  }
}

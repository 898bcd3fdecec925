// The MPI world: every rank is a process that mpirun or srun started. Ranks on one machine share memory, through which small and medium collectives go; MPI moves
// all other bytes. Its calls are non-blocking, so that a collective that never ends can be given up.
import { dtypeInfo, heapMemory } from '../../kernels/index.ts'
import type { DType } from '../../kernels/index.ts'
import { Tensor } from '../../tensor/index.ts'
import type { Backend, Channel, Ended, SlotStore, Task } from '../backend.ts'
import { tensorBytes } from '../bytes.ts'
import { OF_BOOLEANS } from '../collective.ts'
import type { BackendReduceOp, Collective } from '../collective.ts'
import { DistributedError } from '../errors.ts'
import { boardOfJob } from '../failures/board.ts'
import { Patience } from '../patience.ts'
import type { SharedGroup } from '../shared/sharedGroup.ts'
import { waitToJoin, waitToLeave } from './arrivals.ts'
import { loadMpi } from './library.ts'
import type { Handle, Mpi, MpiCall, MpiType } from './library.ts'
import { PIECE_BYTES, Requests } from './requests.ts'
import { goesThroughMemory, ranksOnThisMachine, shareMemory } from './sharedWindow.ts'
import type { SharedWindow } from './sharedWindow.ts'

export { isLaunchedByMpi } from './launched.ts'

/** Elements as MPI reduces them: halves and complex numbers never come here. */
const TYPES: Readonly<Record<DType, MpiType>> = {
  bool: 'uint8',
  uint8: 'uint8',
  int8: 'int8',
  int16: 'int16',
  int32: 'int32',
  int64: 'int64',
  float16: 'byte',
  bfloat16: 'byte',
  float32: 'float32',
  float64: 'float64',
  complex64: 'byte',
  complex128: 'byte',
}

/** MPI_THREAD_SINGLE: one thread calls MPI. With any other level Open MPI locks in every call, which doubles the time of small ones. */
const THREADS = 0
/** MPI_UNDEFINED */
const UNDEFINED = -32766
/** How long a rank waits for others to say where they are. Milliseconds. */
const ANSWER_TIME = 500
/** For how long a rank that has lost its patience lets other processes run in between, before it sleeps in between. Milliseconds. */
const YIELDING = 1
/** Tags of the control communicator. */
const [QUESTION, ANSWER] = [1, 2]

class MpiChannel implements Channel {
  readonly #backend: MpiBackend
  readonly #comm: Handle
  readonly #control: Handle
  readonly #size: number
  readonly #rank: number
  /** The memory that the ranks share; null if they are on several machines. */
  readonly #window: SharedWindow | null
  #started = 0

  constructor(backend: MpiBackend, comm: Handle, control: Handle, size: number, rank: number) {
    this.#backend = backend
    this.#comm = comm
    this.#control = control
    this.#size = size
    this.#rank = rank
    this.#window = shareMemory(backend.mpi, backend, comm, size, rank)
  }

  /** The ranks as those that share memory; null if they are on several machines. */
  get shared(): SharedGroup | null {
    return this.#window?.group ?? null
  }

  start(collective: Collective): Task {
    if (collective.kind !== 'send' && collective.kind !== 'recv') {
      this.#started++
      if (this.#window !== null && goesThroughMemory(collective, this.#size)) return this.#window.group.start(collective)
    }
    if (collective.kind === 'allreduce') return this.#allReduce(collective.data, collective.op)
    return this.#backend.requests.start((request) => this.#launch(collective, request), collective.kind === 'recv')
  }

  #allReduce(data: Tensor, op: BackendReduceOp): Task {
    const { size } = dtypeInfo[data.dtype]
    const piece = PIECE_BYTES / size
    const type = this.#type(data)
    const handle = this.#op(op, data)
    if (data.numel <= piece) return this.#reduceInPlace(data, this.#backend.address(data), data.numel, type, handle)
    const count = Math.ceil(data.numel / piece)
    return this.#backend.requests.inPieces(count, (i) =>
      this.#reduceInPlace(data, this.#backend.address(data) + i * PIECE_BYTES, Math.min(piece, data.numel - i * piece), type, handle),
    )
  }

  #reduceInPlace(held: Tensor, at: number, count: number, type: Handle, op: Handle): Task {
    const { mpi, requests, allReduce } = this.#backend
    const slot = requests.take(held)
    mpi.check('MPI_Iallreduce', allReduce(mpi.inPlace, at, count, type, op, this.#comm, slot.request))
    return requests.task(slot)
  }

  /** Starts a collective, and returns what has to be kept until its end. */
  #launch(collective: Exclude<Collective, { readonly kind: 'allreduce' }>, request: number): unknown {
    const { mpi } = this.#backend
    const comm = this.#comm
    const { byte } = mpi.types
    const address = (tensor: Tensor): number => this.#backend.address(tensor)
    const bytes = (tensor: Tensor): number => tensorBytes(tensor).length
    switch (collective.kind) {
      case 'reduce': {
        const { data, op, root } = collective
        const isRoot = root === this.#rank
        const [from, to] = isRoot ? [mpi.inPlace, address(data)] : [address(data), 0]
        mpi.call('MPI_Ireduce', from, to, data.numel, this.#type(data), this.#op(op, data), root, comm, request)
        break
      }
      case 'broadcast':
        mpi.call('MPI_Ibcast', address(collective.data), bytes(collective.data), byte, collective.root, comm, request)
        break
      case 'allgather': {
        const n = bytes(collective.input)
        mpi.call('MPI_Iallgather', address(collective.input), n, byte, address(collective.output), n, byte, comm, request)
        break
      }
      case 'gather': {
        const n = bytes(collective.input)
        const to = collective.output === null ? 0 : address(collective.output)
        mpi.call('MPI_Igather', address(collective.input), n, byte, to, n, byte, collective.root, comm, request)
        break
      }
      case 'scatter': {
        const n = bytes(collective.output)
        const from = collective.input === null ? 0 : address(collective.input)
        mpi.call('MPI_Iscatter', from, n, byte, address(collective.output), n, byte, collective.root, comm, request)
        break
      }
      case 'reducescatter': {
        const { input, output, op } = collective
        mpi.call('MPI_Ireduce_scatter_block', address(input), address(output), output.numel, this.#type(output), this.#op(op, output), comm, request)
        break
      }
      case 'alltoall': {
        const { input, output } = collective
        const width = collective.input.numel === 0 ? 1 : bytes(input) / input.numel
        // MPI reads the counts until the end, so they must lie where nothing moves.
        const counts = [collective.inputCounts, collective.outputCounts].map((list) => this.#backend.countsAndStarts(list, width))
        const [[inCounts, inStarts], [outCounts, outStarts]] = counts as [readonly [Tensor, Tensor], readonly [Tensor, Tensor]]
        mpi.call(
          'MPI_Ialltoallv',
          ...[address(input), address(inCounts), address(inStarts), byte],
          ...[address(output), address(outCounts), address(outStarts), byte, comm, request],
        )
        return [collective, counts]
      }
      case 'barrier':
        mpi.call('MPI_Ibarrier', comm, request)
        break
      case 'send':
        mpi.call('MPI_Isend', address(collective.data), bytes(collective.data), byte, collective.peer, collective.tag, comm, request)
        break
      case 'recv':
        mpi.call('MPI_Irecv', address(collective.data), bytes(collective.data), byte, collective.peer ?? mpi.anySource, collective.tag, comm, request)
        break
    }
    return collective
  }

  #type(tensor: Tensor): Handle {
    return this.#backend.mpi.types[TYPES[tensor.dtype]]
  }

  #op(op: BackendReduceOp, tensor: Tensor): Handle {
    return this.#backend.mpi.ops[tensor.dtype === 'bool' ? OF_BOOLEANS[op] : op]
  }

  absent(sequence: number): readonly number[] {
    const started = new Map<number, number>([[this.#rank, this.#started]])
    for (let rank = 0; rank < this.#size; rank++) if (rank !== this.#rank) this.#post(rank, QUESTION)
    const end = performance.now() + ANSWER_TIME
    while (started.size < this.#size && performance.now() < end) {
      this.answer()
      const message = this.#take(ANSWER)
      if (message !== null) started.set(message.from, message.started)
      this.#backend.sleep()
    }
    return Array.from({ length: this.#size }, (_, rank) => rank).filter((rank) => (started.get(rank) ?? 0) < sequence)
  }

  /** Tells ranks that have asked how many collectives this one has started. */
  answer(): void {
    for (let message = this.#take(QUESTION); message !== null; message = this.#take(QUESTION)) this.#post(message.from, ANSWER)
  }

  #post(to: number, tag: number): void {
    const { mpi } = this.#backend
    const data = this.#backend.words(this.#started)
    const task = this.#backend.requests.start((request) => {
      mpi.call('MPI_Isend', this.#backend.address(data), 4, mpi.types.byte, to, tag, this.#control, request)
      return data
    })
    // So few bytes are on their way at once.
    task.poll()
  }

  #take(tag: number): { readonly from: number; readonly started: number } | null {
    const { mpi } = this.#backend
    const [flag, status] = [new Int32Array(1), new Int32Array(16)]
    mpi.call('MPI_Iprobe', mpi.anySource, tag, this.#control, flag, status)
    if (flag[0] === 0) return null
    const from = status[mpi.statusSource] ?? 0
    const data = this.#backend.words(0)
    const task = this.#backend.requests.start((request) => {
      mpi.call('MPI_Irecv', this.#backend.address(data), 4, mpi.types.byte, from, tag, this.#control, request)
      return data
    })
    while (!task.poll());
    return { from, started: new DataView(tensorBytes(data).slice().buffer).getInt32(0, true) }
  }

  close(): void {
    this.#backend.forget(this)
    this.#window?.group.close()
  }

  /** Gives its memory and communicators back to MPI, when all ranks do. */
  free(): void {
    const { mpi } = this.#backend
    if (this.#window !== null) mpi.call('MPI_Win_free', mpi.cell(this.#window.handle))
    for (const comm of [this.#comm, this.#control]) mpi.call('MPI_Comm_free', mpi.cell(comm))
  }
}

/** A rank of MPI's world. */
class MpiBackend implements Backend {
  readonly name = 'mpi'
  readonly rank: number
  readonly size: number
  readonly mpi: Mpi
  readonly requests: Requests
  readonly allReduce: MpiCall
  readonly #channels = new Set<MpiChannel>()
  readonly #closed: MpiChannel[] = []
  readonly #patience: Patience
  readonly #clock = new Int32Array(new SharedArrayBuffer(4))
  #buffer: ArrayBufferLike | null = null
  #base = 0
  #isOver = false

  constructor(mpi: Mpi) {
    this.mpi = mpi
    this.allReduce = mpi.prepare('MPI_Iallreduce')
    const value = new Int32Array(1)
    mpi.call('MPI_Comm_rank', mpi.world, value)
    this.rank = value[0] ?? 0
    mpi.call('MPI_Comm_size', mpi.world, value)
    this.size = value[0] ?? 1
    this.#patience = new Patience(ranksOnThisMachine(mpi, this, mpi.world, this.rank))
    this.requests = new Requests(mpi, this.#patience)
  }

  open(ranks: readonly number[]): Channel | null {
    const isMember = ranks.includes(this.rank)
    const split = (): Handle => {
      const made = this.mpi.cell(0)
      this.mpi.call('MPI_Comm_split', this.mpi.world, isMember ? 0 : UNDEFINED, this.rank, made)
      return Number(made[0] ?? 0)
    }
    const [comm, control] = [split(), split()]
    if (!isMember) return null
    const channel = new MpiChannel(this, comm, control, ranks.length, ranks.indexOf(this.rank))
    this.#channels.add(channel)
    return channel
  }

  progress(): void {
    for (const { shared } of this.#channels) shared?.progress()
  }

  /** How many collectives are under way. */
  get pending(): number {
    return [...this.#channels].reduce((sum, { shared }) => sum + (shared?.pending ?? 0), this.requests.pending)
  }

  forget(channel: MpiChannel): void {
    this.#channels.delete(channel)
    this.#closed.push(channel)
  }

  /** The address of a contiguous tensor's data. Never of a typed array: a detached one would be address 0. */
  address(tensor: Tensor): number {
    if (tensor.numel === 0) return 0
    const { block } = tensor.realize()
    const start = tensor.offset * dtypeInfo[tensor.dtype].size
    if (block.ptr === 0) return this.mpi.addressOf(tensorBytes(tensor).buffer) + start
    const { buffer } = heapMemory()
    if (this.#buffer !== buffer) {
      const base = this.mpi.addressOf(buffer)
      if (this.#buffer !== null && base !== this.#base && this.requests.pending > 0)
        throw new DistributedError('the heap has moved while a collective is under way; wait for it before large allocations.')
      this.#buffer = buffer
      this.#base = base
    }
    return this.#base + block.ptr + start
  }

  /** A vector of one number. */
  words(...values: readonly number[]): Tensor {
    const tensor = Tensor.empty([values.length], 'int32')
    tensorBytes(tensor).set(new Uint8Array(Int32Array.from(values).buffer))
    return tensor
  }

  /** Counts and displacements of an all-to-all, in bytes. */
  countsAndStarts(counts: readonly number[], width: number): readonly [Tensor, Tensor] {
    const sizes = counts.map((count) => count * width)
    return [this.words(...sizes), this.words(...sizes.map((_, i) => sizes.slice(0, i).reduce((a, b) => a + b, 0)))]
  }

  sleep(): void {
    Atomics.wait(this.#clock, 0, 0, 0.05)
  }

  idle(attempt: number): void {
    const overdue = this.#patience.overdue(attempt)
    if (overdue <= 0) return
    // MPI moves data, also of collectives that others wait for, only while it is asked.
    if (attempt % 16 === 0) for (const channel of this.#channels) channel.answer()
    if (overdue < YIELDING) this.mpi.yield()
    else this.sleep()
  }

  finalize(patience: number): void {
    if (this.#isOver || !waitToLeave(patience)) return
    this.#isOver = true
    for (const channel of this.#closed) channel.free()
    this.mpi.call('MPI_Finalize')
  }

  abort(code: number): void {
    if (this.#isOver) return
    this.#isOver = true
    this.mpi.call('MPI_Abort', this.mpi.world, code)
  }

  openSlots(_slots: number, slotBytes: number): SlotStore | null {
    return boardOfJob()?.openSlots(this.rank, slotBytes) ?? null
  }

  ended(rank: number): Ended | null {
    const board = boardOfJob()
    const first = board?.first() ?? null
    if (first?.rank === rank) return { cause: first.cause, code: first.code, progress: null }
    const departure = board?.departure(rank) ?? null
    return departure === null ? null : { cause: departure.failure.cause, code: departure.failure.code, progress: departure.progress }
  }
}

/** Joins MPI's world. Throws DistributedError if MPI or koffi cannot be loaded or a rank has ended, CollectiveTimeoutError if one does not come within `timeout` milliseconds. */
export async function openMpi(timeout: number): Promise<Backend> {
  const mpi = await loadMpi()
  const flag = new Int32Array(1)
  mpi.call('MPI_Initialized', flag)
  if (flag[0] === 0) await waitToJoin(timeout)
  if (flag[0] === 0) mpi.call('MPI_Init_thread', null, null, THREADS, flag)
  mpi.call('MPI_Comm_set_errhandler', mpi.world, mpi.errorsReturn)
  return new MpiBackend(mpi)
}

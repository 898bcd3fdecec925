// Records what uses memory while a program runs: each block of a tensor from its allocation to its end, with the operator and the module that made it, and what it is for.
import { backwardState } from '../../autograd/index.ts'
import { isArgList, observed } from '../../dispatch/index.ts'
import type { Arg } from '../../dispatch/index.ts'
import { budget, scratchBytes } from '../../kernels/memory/budget.ts'
import { allocating, listenToBlocks } from '../../kernels/memory/owners.ts'
import type { BlockRecord } from '../../kernels/memory/owners.ts'
import { collectBlocks, recordOf } from '../../kernels/memory/storageBlock.ts'
import { isParameter } from '../../protocol/index.ts'
import { Tensor } from '../../tensor/index.ts'
import { ModuleCalls } from './moduleCalls.ts'

/** What memory is for. PyTorch's categories of its memory timeline, with buffers of modules and the scratch memory of kernels and compiled programs. */
export type MemoryCategory = 'parameter' | 'buffer' | 'gradient' | 'optimizer state' | 'input' | 'activation' | 'temporary' | 'scratch' | 'unknown'

/** A block of memory. */
export interface Holding {
  category: MemoryCategory
  /** What made it; of a parameter, a buffer or a gradient its name. Null if it is unknown. */
  readonly operator: string | null
  readonly module: string | null
  name: string | null
  readonly shape: readonly number[] | null
  readonly dtype: string | null
  readonly bytes: number
  /** When it was made and when it ended, in milliseconds; before the program began, and after it. */
  readonly from: number
  to: number
}

/** What was in use at a moment. */
export interface MemoryPoint {
  readonly time: number
  /** All bytes in use, and those that are not a tensor's. */
  readonly inUse: number
  readonly scratch: number
}

/** What `allocating.composite` says while an optimizer computes. */
const isOptimizer = (maker: string | null): boolean => maker !== null && maker.startsWith('optim.')

/** The collector runs when so large a part of what is in use was allocated since it last ran, so that what is dead is soon found. */
const COLLECT_PART = 1 / 10
const COLLECT_LEAST = 2 ** 16

type Phase = 'forward' | 'backward' | 'optimizer'

export class MemoryRecorder {
  readonly holdings: Holding[] = []
  readonly points: MemoryPoint[] = []
  readonly #calls = new ModuleCalls({ enter: ({ module, path }) => this.#know(module, path) })
  /** Blocks that have a record, and those from before, which have none. */
  readonly #byRecord = new Map<BlockRecord, Holding>()
  readonly #older = new WeakMap<object, Holding>()
  readonly #modules = new WeakSet()
  /** The parameters that may have gradients, by name. */
  readonly #parameters = new Map<Tensor, string>()
  #phase: Phase = 'forward'
  #sinceCollected = 0

  /** Runs `fn` and records it. */
  during(fn: () => void): void {
    const outer = observed.observer
    const outerListener = listenToBlocks({
      made: (record) => this.#made(record),
      freed: (record) => {
        const holding = this.#byRecord.get(record)
        if (holding === undefined) return
        holding.to = performance.now()
        this.#byRecord.delete(record)
        this.#note(holding.to)
      },
    })
    observed.observer = {
      begin: (_op, args) => this.#enter(args),
      end: () => undefined,
      beginComposite: () => undefined,
      endComposite: () => undefined,
      launched: () => this.#note(performance.now()),
    }
    try {
      collectBlocks()
      this.#note(performance.now())
      this.#calls.during(fn)
      this.#endPhase('forward')
      collectBlocks()
      this.#note(performance.now())
    } finally {
      observed.observer = outer
      listenToBlocks(outerListener)
    }
  }

  #note(time: number): void {
    this.points.push({ time, inUse: budget.heap + budget.spilled, scratch: scratchBytes() })
  }

  #made(record: BlockRecord): void {
    const { operator, shape, dtype, bytes } = record
    // A compiled backward runs no operators: its first memory tells that the forward is over.
    if (this.#phase === 'forward' && backwardState.node !== null) this.#endPhase('backward')
    const from = performance.now()
    if (isOptimizer(operator)) this.#phase = 'optimizer'
    const module = this.#calls.stack.at(-1)?.path ?? null
    const holding: Holding = { category: 'temporary', operator, module, name: null, shape, dtype, bytes, from, to: Infinity }
    this.holdings.push(holding)
    this.#byRecord.set(record, holding)
    this.#sinceCollected += bytes
    this.#note(from)
  }

  /** An operator begins: what it reads is known from now on, and what died is looked for now and then. */
  #enter(args: readonly Arg[]): void {
    const phase = isOptimizer(allocating.composite) ? 'optimizer' : backwardState.node === null ? 'forward' : 'backward'
    if (phase !== this.#phase) this.#endPhase(phase)
    const category = phase === 'optimizer' ? 'optimizer state' : 'input'
    for (const tensor of tensorsIn(args)) {
      const holding = this.#holdingOf(tensor, category)
      if (holding === null || !isParameter(tensor) || this.#parameters.has(tensor)) continue
      this.#parameters.set(tensor, 'a parameter')
      if (holding.category === category || holding.category === 'temporary') holding.category = 'parameter'
    }
    if (this.#sinceCollected > Math.max(COLLECT_LEAST, COLLECT_PART * budget.heap)) {
      this.#sinceCollected = 0
      collectBlocks()
    }
  }

  /** The forward, the backward or the optimizer's step is over: what they leave is known by what was in use then. */
  #endPhase(next: Phase): void {
    collectBlocks()
    this.#sinceCollected = 0
    for (const [parameter, name] of this.#parameters) {
      const { grad } = parameter
      const holding = grad instanceof Tensor ? this.#holdingOf(grad, 'gradient') : null
      if (holding === null || holding.category === 'parameter') continue
      holding.category = 'gradient'
      holding.name = `${name}.grad`
    }
    for (const holding of this.#byRecord.values()) {
      if (holding.category !== 'temporary') continue
      if (this.#phase === 'optimizer') {
        if (holding.operator !== null && isOptimizer(holding.operator)) holding.category = 'optimizer state'
      } else if (next === 'backward' && !isOfBackward(holding)) holding.category = 'activation'
    }
    this.#phase = next
    this.#note(performance.now())
  }

  /** The parameters and buffers of a module that is called. */
  #know(module: object, path: string): void {
    if (this.#modules.has(module)) return
    this.#modules.add(module)
    for (const [key, value] of Object.entries(module)) {
      if (!(value instanceof Tensor) || value.isFake) continue
      const name = `${path}.${key}`
      const holding = this.#holdingOf(value, 'buffer')
      if (isParameter(value)) this.#parameters.set(value, name)
      if (holding === null) continue
      holding.category = isParameter(value) ? 'parameter' : 'buffer'
      holding.name = name
    }
  }

  /** What is known of the memory of a tensor; `category` is what it is for if it was there before. Null if it has none yet. */
  #holdingOf(tensor: Tensor, category: MemoryCategory): Holding | null {
    const { storage } = tensor
    // What is computed later has no memory yet.
    if (storage === null || storage.writer !== null || storage.block.nbytes === 0) return null
    const { block } = storage
    const record = recordOf(block)
    const known = (record === undefined ? undefined : this.#byRecord.get(record)) ?? this.#older.get(block)
    if (known !== undefined) return known
    const { shape, dtype } = tensor
    const holding: Holding = {
      ...{ category, operator: record?.operator ?? null, module: null, name: null, shape, dtype },
      ...{ bytes: block.nbytes, from: -Infinity, to: Infinity },
    }
    this.holdings.push(holding)
    if (record === undefined) this.#older.set(block, holding)
    else this.#byRecord.set(record, holding)
    return holding
  }
}

const isOfBackward = ({ operator }: Holding): boolean => operator !== null && operator.includes('backward (')

const tensorsIn = (args: readonly Arg[]): readonly Tensor[] =>
  args.flatMap((arg) => (arg instanceof Tensor ? [arg] : isArgList(arg) ? tensorsIn(arg) : []))

// Sends gradients while backward goes on: as soon as all gradients of a bucket are there, it is reduced over the ranks. PyTorch's Reducer.
import { noGrad, queueBackwardCallback } from '../../autograd/index.ts'
import { GradNode } from '../../autograd/index.ts'
import type { Edge } from '../../autograd/index.ts'
import { dtypeInfo } from '../../kernels/index.ts'
import { zeros } from '../../ops/index.ts'
import { Tensor } from '../../tensor/index.ts'
import { DistributedError } from '../errors.ts'
import { allReduce } from '../inPlace.ts'
import { broadcastObject } from '../objects.ts'
import type { ProcessGroup } from '../processGroup.ts'
import { assignBuckets } from './buckets.ts'

/** A parameter and its name. */
export interface NamedParameter {
  readonly name: string
  readonly tensor: Tensor
}

/** Gradients that travel together, as a communication hook sees them. PyTorch's `GradBucket`. */
export interface GradBucket {
  readonly index: number
  /** All gradients, one after the other. */
  readonly buffer: Tensor
  readonly parameters: readonly NamedParameter[]
  /** The gradients: views of `buffer`. */
  readonly gradients: readonly Tensor[]
  /** Whether it is the last that is sent in this backward. */
  readonly isLast: boolean
}

/** Gradients under way: `wait` returns them, or nothing if they are in the bucket's buffer then, as those of a Work are. */
export interface CommFuture {
  wait(): Tensor | void
}

/** Sends a bucket. Returns the reduced gradients, or what to wait for. */
export type CommHook = (bucket: GradBucket) => Tensor | CommFuture

interface Bucket {
  readonly indices: readonly number[]
  buffer: Tensor | null
  waiting: number
  /** What was sent. */
  result: Tensor | CommFuture | null
}

/** The gradients of parameters in the buffer of their bucket. */
export function gradientViews(buffer: Tensor, parameters: readonly NamedParameter[]): Tensor[] {
  let end = 0
  return parameters.map(({ tensor: { shape, numel } }) => {
    end += numel
    return buffer.narrow(0, end - numel, numel).view(shape)
  })
}

/** PyTorch's first bucket: small, so that sending starts early. */
const FIRST_BUCKET_BYTES = 2 ** 20

/** Options of a reducer. */
export interface ReducerOptions {
  readonly capBytes: number
  readonly gradientAsBucketView: boolean
  readonly findUnusedParameters: boolean
  readonly staticGraph: boolean
}

export class Reducer {
  readonly #parameters: readonly NamedParameter[]
  readonly #group: ProcessGroup
  readonly #capBytes: number
  readonly #asView: boolean
  readonly #findUnused: boolean
  readonly #isStatic: boolean
  /** Of a static graph: how many gradients of each parameter a backward computes on this rank, once one has sent. */
  #counts: readonly number[] | null = null
  /** Of a static graph: which parameters some rank uses, once that is agreed on. */
  #usedByAny: readonly boolean[] | null = null
  /** Gradients of each parameter in this backward. */
  #seen: number[] = []
  #buckets: Bucket[]
  /** Replaces the usual mean over the ranks. */
  hook: CommHook | null = null
  /** What the sum over the ranks is divided by. */
  divisor: number
  /** Whether the buckets stay as they are. */
  isFrozen = false
  /** Whether the next backward sends. */
  #isArmed = false
  #isRunning = false
  #isReady: boolean[] = []
  /** Whether this rank's backward reached each parameter, if that is asked for. */
  #used: boolean[] = []
  #arrivals: number[] = []
  #isRebuilt = false
  #next = 0

  constructor(parameters: readonly NamedParameter[], group: ProcessGroup, options: ReducerOptions) {
    this.#parameters = parameters
    this.#group = group
    this.divisor = group.size
    this.#capBytes = options.capBytes
    this.#asView = options.gradientAsBucketView
    this.#isStatic = options.staticGraph
    // A static graph shows in its first backward what is not used.
    this.#findUnused = options.findUnusedParameters && !options.staticGraph
    // The order in which gradients will come is not known yet.
    this.#buckets = this.#assign(
      parameters.map((_, i) => i),
      [Infinity],
    )
    parameters.forEach(({ tensor }, i) => tensor.registerPostAccumulateGradHook(() => this.#onGradient(i)))
  }

  /** The parameters of each bucket, as the next backward sends them. */
  get buckets(): readonly (readonly string[])[] {
    return this.#buckets.map(({ indices }) => indices.map((i) => this.#parameters[i]?.name ?? ''))
  }

  #assign(order: readonly number[], limits: readonly number[]): Bucket[] {
    const items = order.map((i) => {
      const tensor = this.#parameter(i).tensor
      return { bytes: tensor.numel * dtypeInfo[tensor.dtype].size, dtype: tensor.dtype }
    })
    return assignBuckets(items, limits).map((indices) => {
      const own = indices.map((at) => order[at] ?? 0)
      return { indices: own, buffer: null, waiting: own.length, result: null }
    })
  }

  #parameter(index: number): NamedParameter {
    const parameter = this.#parameters[index]
    if (parameter === undefined) throw new DistributedError(`there is no parameter ${index}`)
    return parameter
  }

  /** Before a backward that sends; `outputs` are what it starts from. */
  prepare(outputs: readonly Tensor[]): void {
    this.#rebuild()
    this.#arm()
    // A parameter of a static graph may get gradients in a backward within the one that starts here, at whose end it is too early to finish.
    if (this.#isStatic) for (const output of outputs) if (output.requiresGrad) output.registerHook(() => this.#begin())
    if (!this.#findUnused) return
    const reached = leavesOf(outputs)
    this.#used = this.#parameters.map(({ tensor }) => reached.has(tensor))
  }

  #arm(): void {
    this.#isArmed = true
    this.#isRunning = false
    this.#next = 0
    this.#isReady = this.#parameters.map(() => false)
    this.#used = this.#parameters.map((_, i) => this.#counts?.[i] !== 0)
    this.#seen = this.#parameters.map(() => 0)
    for (const bucket of this.#buckets) {
      bucket.waiting = bucket.indices.length
      bucket.result = null
    }
  }

  /** Takes part in what the other ranks send in a backward, with zeros, and without gradients of its own. */
  shadow(): void {
    this.#arm()
    this.#isReady = this.#parameters.map(() => true)
    this.#used = this.#parameters.map(() => false)
    noGrad(() => {
      for (const [index, bucket] of this.#buckets.entries()) this.#send(bucket, index, this.#buffer(bucket).zero_())
      this.#usedSomewhere()
      for (const { result } of this.#buckets) if (result !== null && !(result instanceof Tensor)) result.wait()
    })
    this.#isArmed = false
  }

  /**
   * Groups the parameters in the order in which their gradients came in the first backward: so buckets fill up one after the other. All ranks take the first rank's order. Where
   * parameters may be left out, that differs from step to step, so the buckets stay.
   */
  #rebuild(): void {
    if (this.#isRebuilt || this.isFrozen || this.#findUnused || this.#arrivals.length < this.#parameters.length) return
    this.#isRebuilt = true
    this.#arrivals = broadcastObject(this.#arrivals, 0, this.#group)
    this.#buckets = this.#assign(this.#arrivals, [Math.min(FIRST_BUCKET_BYTES, this.#capBytes), this.#capBytes])
  }

  /** A backward begins, unless it has already. */
  #begin(): void {
    if (!this.#isArmed || this.#isRunning) return
    this.#isRunning = true
    queueBackwardCallback(() => this.#finish())
    this.#used.forEach((used, i) => {
      if (!used) this.#markReady(i)
    })
  }

  #onGradient(index: number): void {
    if (!this.#isArmed) return
    this.#begin()
    this.#arrive(index)
    if (!this.#isStatic) return this.#markReady(index)
    const seen = (this.#seen[index] ?? 0) + 1
    this.#seen[index] = seen
    // The first backward of a static graph counts, and sends at its end.
    if (this.#counts !== null && seen === this.#counts[index]) this.#markReady(index)
  }

  #arrive(index: number): void {
    if (!this.#isRebuilt && !this.isFrozen && !this.#arrivals.includes(index)) this.#arrivals.push(index)
  }

  /** The end of a backward of a static graph: the first is remembered, and later ones must be like it. */
  #endStatic(): void {
    if (this.#counts === null) {
      this.#counts = this.#seen
      this.#used = this.#seen.map((seen) => seen > 0)
      for (const i of this.#parameters.keys()) {
        this.#arrive(i)
        this.#markReady(i)
      }
      return
    }
    const counts = this.#counts
    const changed = this.#parameters.flatMap(({ name }, i) =>
      this.#seen[i] === counts[i] ? [] : [`${name} (${this.#seen[i]}, ${counts[i]} before)`],
    )
    if (changed.length > 0)
      throw new DistributedError(
        'DistributedDataParallel: Your training graph has changed in this iteration, which is not compatible with staticGraph set to true. ' +
          `Other numbers of gradients than in the first backward came for ${changed.join(', ')}. Leave staticGraph out, or use the same parameters in each iteration.`,
      )
  }

  #markReady(index: number): void {
    if (this.#isReady[index] === true) return
    this.#isReady[index] = true
    const bucket = this.#buckets.find(({ indices }) => indices.includes(index))
    if (bucket === undefined) return
    bucket.waiting--
    // In order: all ranks must send the same bucket at the same time.
    for (let next = this.#buckets[this.#next]; next !== undefined && next.waiting === 0; next = this.#buckets[this.#next]) {
      this.#sendFilled(next, this.#next)
      this.#next++
    }
  }

  #sendFilled(bucket: Bucket, index: number): void {
    noGrad(() => this.#send(bucket, index, this.#fill(bucket)))
  }

  #send(bucket: Bucket, index: number, buffer: Tensor): void {
    if (this.hook !== null) {
      const parameters = bucket.indices.map((i) => this.#parameter(i))
      bucket.result = this.hook({
        index,
        buffer,
        parameters,
        gradients: gradientViews(buffer, parameters),
        isLast: index === this.#buckets.length - 1,
      })
      return
    }
    buffer.div_(this.divisor)
    bucket.result = allReduce(buffer, { group: this.#group, asyncOp: true }) ?? buffer
  }

  #views(bucket: Bucket, buffer: Tensor): Tensor[] {
    return gradientViews(
      buffer,
      bucket.indices.map((i) => this.#parameter(i)),
    )
  }

  /** The bucket's buffer with the gradients of its parameters; zeros for those without one. */
  #fill(bucket: Bucket): Tensor {
    const buffer = this.#buffer(bucket)
    this.#views(bucket, buffer).forEach((view, at) => {
      const { grad } = this.#parameter(bucket.indices[at] ?? 0).tensor
      if (grad === null) view.zero_()
      else if (grad.storage !== view.storage || grad.offset !== view.offset) view.copy_(grad.detach())
    })
    return buffer
  }

  #buffer(bucket: Bucket): Tensor {
    const [first = 0] = bucket.indices
    const total = bucket.indices.reduce((sum, i) => sum + this.#parameter(i).tensor.numel, 0)
    bucket.buffer ??= zeros([total], { dtype: this.#parameter(first).tensor.dtype })
    return bucket.buffer
  }

  /** At the end of backward: waits for what was sent, and gives the parameters their gradients. */
  #finish(): void {
    this.#isArmed = false
    if (this.#isStatic) this.#endStatic()
    const missing = this.#parameters.filter((_, i) => this.#isReady[i] !== true).map(({ name }) => name)
    if (missing.length > 0)
      throw new DistributedError(
        `DistributedDataParallel: backward reached no gradient for ${missing.join(', ')}, so its bucket was not sent, and other ranks may be waiting for it. ` +
          'Use these parameters in the loss, call requiresGrad_(false) on them, or pass { findUnusedParameters: true }.',
      )
    const usedSomewhere = this.#usedSomewhere()
    noGrad(() => {
      for (const bucket of this.#buckets) {
        const { result, buffer } = bucket
        if (result === null || buffer === null) continue
        const reduced = result instanceof Tensor ? result : result.wait()
        if (reduced instanceof Tensor && reduced !== buffer) buffer.copy_(reduced.detach().view(buffer.shape))
        this.#views(bucket, buffer).forEach((view, at) => {
          const index = bucket.indices[at] ?? 0
          const { tensor } = this.#parameter(index)
          if (tensor.grad === null && usedSomewhere[index] === false) return
          if (this.#asView) tensor.grad = view
          else if (tensor.grad === null) tensor.grad = view.clone()
          else tensor.grad.copy_(view)
        })
      }
    })
  }

  /** Which parameters some rank has used. */
  #usedSomewhere(): readonly boolean[] {
    if (!this.#findUnused && !this.#isStatic) return this.#used
    if (this.#usedByAny !== null) return this.#usedByAny
    const counts = zeros([this.#used.length], { dtype: 'int32' })
    this.#used.forEach((used, i) => {
      if (used) counts.narrow(0, i, 1).fill_(1)
    })
    allReduce(counts, { group: this.#group })
    const used = [...counts.toTypedArray()].map((count) => count > 0)
    if (this.#isStatic) this.#usedByAny = used
    return used
  }
}

/** The leaves from which tensors were computed. */
function leavesOf(outputs: readonly Tensor[]): ReadonlySet<Tensor> {
  const leaves = new Set<Tensor>()
  const seen = new Set<GradNode>()
  const stack: Edge[] = outputs.map((output) => (output.gradFn instanceof GradNode ? output.gradFn : output))
  for (let edge = stack.pop(); edge !== undefined; edge = stack.pop()) {
    if (edge === null) continue
    if (!(edge instanceof GradNode)) {
      leaves.add(edge)
      continue
    }
    if (seen.has(edge)) continue
    seen.add(edge)
    stack.push(...edge.targets)
  }
  return leaves
}

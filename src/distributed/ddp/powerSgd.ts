// PowerSGD: gradients that are matrices travel as the product of two narrow ones. PyTorch's torch.distributed.algorithms.ddp_comm_hooks.powerSGD_hook, after
// https://arxiv.org/abs/1905.13727.
import { noGrad } from '../../autograd/index.ts'
import { ArgumentError } from '../../errors/index.ts'
import { dtypeInfo } from '../../kernels/index.ts'
import { bmm, cat, norm, qr, randn, stack, zeros } from '../../ops/index.ts'
import { checkArgument, checkCount, checkOptions, valueText } from '../../protocol/index.ts'
import { Generator, Tensor } from '../../tensor/index.ts'
import { ProcessGroup, groupOr } from '../processGroup.ts'
import { allreduceHook, bufferOf } from './commHooks.ts'
import type { CommFuture, GradBucket } from './reducer.ts'
import { startSum } from './sums.ts'

/** Options of {@link PowerSGDState}. */
export interface PowerSGDOptions {
  /** Columns of the two narrow matrices: more of them cost more bytes, and lose less. Default 1. */
  readonly matrixApproximationRank?: number
  /** Steps at the start that send whole gradients. At least 2 with `useErrorFeedback` or `warmStart`. Default 1000. */
  readonly startPowerSGDIter?: number
  /** A gradient is sent whole unless that takes more than this many times the elements. Default 2. */
  readonly minCompressionRate?: number
  /** Whether what a step loses is added to the gradients of the next one. Default true. */
  readonly useErrorFeedback?: boolean
  /** Whether a step starts from the matrices of the one before, and not from random ones. Default true. */
  readonly warmStart?: boolean
  /** Added to the length of a column that is divided by it: a small value, such as 1e-8, where gradients may be 0. Default 0. */
  readonly orthogonalizationEpsilon?: number
  /** Seed of the random matrices, the same on all ranks. Default 0. */
  readonly randomSeed?: number
  /** Whether gradients of one shape are multiplied together. Default false. */
  readonly batchTensorsWithSameShape?: boolean
}

const OPTIONS = {
  matrixApproximationRank: 'number',
  startPowerSGDIter: 'number',
  minCompressionRate: 'number',
  useErrorFeedback: 'boolean',
  warmStart: 'boolean',
  orthogonalizationEpsilon: 'number',
  randomSeed: 'number',
  batchTensorsWithSameShape: 'boolean',
} as const

/**
 * What {@link powerSGDHook} is told, and what it remembers between steps. One for each model and rank; `processGroup` null means all ranks. PyTorch's `PowerSGDState`, with other random
 * matrices and without logs.
 *
 * @throws ArgumentError for options out of range.
 * @example
 * const state = new PowerSGDState(null, { matrixApproximationRank: 2, startPowerSGDIter: 10 })
 * model.registerCommHook(state, powerSGDHook)
 */
export class PowerSGDState {
  readonly processGroup: ProcessGroup | null
  readonly matrixApproximationRank: number
  readonly startPowerSGDIter: number
  readonly minCompressionRate: number
  readonly useErrorFeedback: boolean
  readonly warmStart: boolean
  readonly orthogonalizationEpsilon: number
  readonly batchTensorsWithSameShape: boolean
  /** What each bucket lost on this rank in the last step, by the bucket's index. */
  readonly errorDict: Map<number, Tensor> = new Map()
  /** The narrow matrices of each bucket, one after the other. */
  readonly pMemoryDict: Map<number, Tensor> = new Map()
  readonly qMemoryDict: Map<number, Tensor> = new Map()
  /** Steps so far. */
  iter = 0
  /** @internal */
  readonly generator: Generator
  /** @internal */
  readonly elements: { before: number; after: number } = { before: 0, after: 0 }

  constructor(processGroup: ProcessGroup | null = null, options: PowerSGDOptions = {}) {
    const where = 'PowerSGDState'
    checkCount(where, arguments, 2)
    checkOptions(where, options, OPTIONS)
    const { matrixApproximationRank = 1, startPowerSGDIter = 1000, minCompressionRate = 2, useErrorFeedback = true, warmStart = true } = options
    checkArgument(
      processGroup === null || processGroup instanceof ProcessGroup,
      where,
      'processGroup',
      'a ProcessGroup, or null for all ranks',
      processGroup,
    )
    const isCount = (value: number): boolean => Number.isSafeInteger(value) && value >= 0
    checkArgument(
      isCount(matrixApproximationRank) && matrixApproximationRank > 0,
      where,
      'matrixApproximationRank',
      'a positive integer',
      matrixApproximationRank,
    )
    checkArgument(isCount(startPowerSGDIter), where, 'startPowerSGDIter', 'an integer of at least 0', startPowerSGDIter)
    checkArgument(minCompressionRate > 0, where, 'minCompressionRate', 'a positive number', minCompressionRate)
    if ((useErrorFeedback || warmStart) && startPowerSGDIter <= 1)
      throw new ArgumentError(
        `${where}: Expect startPowerSGDIter > 1 if useErrorFeedback or warmStart is enabled, because PowerSGD can only be applied after the first two iterations in DDP; got ${valueText(startPowerSGDIter)}.`,
      )
    this.processGroup = processGroup
    this.matrixApproximationRank = matrixApproximationRank
    this.startPowerSGDIter = startPowerSGDIter
    this.minCompressionRate = minCompressionRate
    this.useErrorFeedback = useErrorFeedback
    this.warmStart = warmStart
    this.orthogonalizationEpsilon = options.orthogonalizationEpsilon ?? 0
    this.batchTensorsWithSameShape = options.batchTensorsWithSameShape ?? false
    this.generator = new Generator(options.randomSeed ?? 0)
  }

  /** How many times fewer elements than without compression were sent since it began, and both numbers of elements. PyTorch's `compression_stats`. */
  compressionStats(): readonly [rate: number, before: number, after: number] {
    const { before, after } = this.elements
    return [after > 0 ? before / after : 0, before, after]
  }

  /** Counts a step when its last bucket was sent. @internal */
  countStep({ isLast }: GradBucket): void {
    if (isLast) this.iter++
  }
}

/** Gives the columns of each of `matrices` (batch x rows x columns) unit length and right angles, in place. */
function orthogonalize(matrices: Tensor, epsilon: number): void {
  const [, , columns = 0] = matrices.shape
  if (columns > 2 && dtypeInfo[matrices.dtype].size > 2) {
    matrices.copy_(qr(matrices)[0])
    return
  }
  for (let i = 0; i < columns; i++) {
    const column = matrices.narrow(2, i, 1)
    column.div_(norm(column, 2, [1], true).add(epsilon))
    if (i + 1 === columns) continue
    const rest = matrices.narrow(2, i + 1, columns - i - 1)
    rest.sub_(column.mul(rest).sum([1], true).mul(column))
  }
}

/** Gradients that are compressed together: batch x rows x columns. */
interface Batch {
  readonly matrices: Tensor
  /** The gradients themselves, where `matrices` is a copy of them. */
  readonly copied: readonly Tensor[]
  /** Columns of the narrow matrices. */
  readonly columns: number
}

/** What a bucket sends: matrices, which are compressed, and gradients that are sent whole. */
interface Plan {
  readonly batches: readonly Batch[]
  readonly whole: readonly Tensor[]
}

/** Each gradient on its own: those that are worth it as matrices, the others whole. */
function divide(state: PowerSGDState, gradients: readonly Tensor[]): Plan {
  const shapes = new Map<string, Tensor[]>()
  const whole: Tensor[] = []
  for (const gradient of gradients) {
    const [rows = 1] = gradient.shape
    const matrix = gradient.view([rows, gradient.numel / Math.max(rows, 1)])
    const [n = 0, m = 0] = matrix.shape
    const compressed = (n + m) * Math.min(n, m, state.matrixApproximationRank)
    const isWorthIt = compressed * state.minCompressionRate < n * m
    state.elements.before += n * m
    state.elements.after += isWorthIt ? compressed : n * m
    if (!isWorthIt) {
      whole.push(gradient)
      continue
    }
    const like = shapes.get(String(matrix.shape)) ?? []
    like.push(matrix)
    shapes.set(String(matrix.shape), like)
  }
  const batchOf = (matrices: Tensor, copied: readonly Tensor[]): Batch => {
    const [, n = 0, m = 0] = matrices.shape
    return { matrices, copied, columns: Math.min(n, m, state.matrixApproximationRank) }
  }
  const batches = [...shapes.values()].flatMap((like) =>
    state.batchTensorsWithSameShape && like.length > 1 ? [batchOf(stack(like), like)] : like.map((matrix) => batchOf(matrix.unsqueeze(0), [])),
  )
  return { batches, whole }
}

/** A narrow matrix for each batch, with as many rows as the batch has along `dim`: views of a memory for all, which is made if there is none yet. */
function narrowMatrices(
  batches: readonly Batch[],
  dim: 1 | 2,
  memories: Map<number, Tensor>,
  bucket: GradBucket,
): readonly [Tensor, readonly Tensor[]] {
  const shapes = batches.map(({ matrices, columns }) => [matrices.shape[0] ?? 0, matrices.shape[dim] ?? 0, columns])
  const sizes = shapes.map(([a = 0, b = 0, c = 0]) => a * b * c)
  const total = sizes.reduce((sum, size) => sum + size, 0)
  const memory = memories.get(bucket.index) ?? Tensor.empty([total], bucket.buffer.dtype)
  memories.set(bucket.index, memory)
  let end = 0
  const views = shapes.map((shape, i) => {
    const size = sizes[i] ?? 0
    end += size
    return memory.narrow(0, end - size, size).view(shape)
  })
  return [memory, views]
}

/** All gradients as one square matrix, which is `buffer`. */
function square(state: PowerSGDState, buffer: Tensor, side: number, numel: number): Plan {
  const columns = Math.min(side, state.matrixApproximationRank)
  state.elements.before += numel
  state.elements.after += 2 * side * columns
  return { batches: [{ matrices: buffer.view([1, side, side]), copied: [], columns }], whole: [] }
}

/** Sends a bucket whose gradients lie in `buffer`, which holds the result in the end. `planOf` says what of it is compressed, when the last step's error was added. */
function compress(state: PowerSGDState, bucket: GradBucket, buffer: Tensor, planOf: () => Plan): { wait(): Tensor } {
  const group = groupOr(state.processGroup)
  const { index } = bucket
  const { orthogonalizationEpsilon: epsilon, warmStart, errorDict, pMemoryDict, qMemoryDict } = state
  const lost = errorDict.get(index)
  if (lost !== undefined) buffer.add_(lost)
  const before = state.useErrorFeedback ? buffer.clone() : null
  const { batches, whole } = planOf()
  const isFirst = !pMemoryDict.has(index)
  const [pMemory, ps] = narrowMatrices(batches, 1, pMemoryDict, bucket)
  const [qMemory, qs] = narrowMatrices(batches, 2, qMemoryDict, bucket)
  for (const q of qs) {
    if (isFirst) q.copy_(randn(q.shape, { generator: state.generator, dtype: q.dtype }))
    orthogonalize(q, epsilon)
  }
  const each = (fn: (matrices: Tensor, p: Tensor, q: Tensor) => void): void =>
    batches.forEach(({ matrices }, i) => {
      const [p, q] = [ps[i], qs[i]]
      if (p !== undefined && q !== undefined) fn(matrices, p, q)
    })
  each((matrices, p, q) => p.copy_(bmm(matrices, q)))
  const reduce = (tensor: Tensor): CommFuture | null => (tensor.numel === 0 ? null : startSum(group, tensor))
  const flat = whole.length === 0 ? null : cat(whole.map((gradient) => gradient.reshape([-1])))
  const sums = [flat === null ? null : reduce(flat), reduce(pMemory)]
  const finish = (): Tensor => {
    for (const sum of sums) sum?.wait()
    let end = 0
    for (const gradient of whole) {
      end += gradient.numel
      if (flat !== null)
        gradient.copy_(
          flat
            .narrow(0, end - gradient.numel, gradient.numel)
            .div(group.size)
            .view(gradient.shape),
        )
    }
    for (const p of ps) orthogonalize(p, epsilon)
    each((matrices, p, q) => q.copy_(bmm(matrices.transpose(1, 2), p)))
    reduce(qMemory)?.wait()
    qMemory.div_(group.size)
    each((matrices, p, q) => matrices.copy_(bmm(p, q.transpose(1, 2))))
    for (const { matrices, copied } of batches) copied.forEach((gradient, i) => gradient.copy_(matrices.select(0, i)))
    if (before !== null) errorDict.set(index, before.sub(buffer))
    if (!warmStart) for (const memories of [pMemoryDict, qMemoryDict]) memories.delete(index)
    state.countStep(bucket)
    return buffer
  }
  return { wait: () => noGrad(finish) }
}

/** Sends a bucket whole in the first steps, and with `send` in those that follow. */
function afterStart(where: string, state: PowerSGDState, bucket: GradBucket, send: (buffer: Tensor) => CommFuture): Tensor | CommFuture {
  checkArgument(state instanceof PowerSGDState, where, 'state', 'a PowerSGDState', state)
  const buffer = bufferOf(where, bucket)
  if (state.iter >= state.startPowerSGDIter) return noGrad(() => send(buffer))
  state.countStep(bucket)
  return allreduceHook(state.processGroup, bucket)
}

/**
 * Sends the gradients of each parameter that has rows and columns as the product of two narrow matrices, which are close to their mean, and the others whole. The first `startPowerSGDIter` steps
 * send all of them whole. PyTorch's `powerSGD_hook`.
 *
 * @throws ArgumentError unless `state` is a PowerSGDState.
 * @example model.registerCommHook(new PowerSGDState(null, { startPowerSGDIter: 10 }), powerSGDHook)
 */
export const powerSGDHook = (state: PowerSGDState, bucket: GradBucket): Tensor | CommFuture =>
  afterStart('powerSGDHook', state, bucket, (buffer) => compress(state, bucket, buffer, () => divide(state, bucket.gradients)))

/**
 * The same with all gradients of a bucket as one square matrix, filled up with zeros. It takes less time than {@link powerSGDHook} and loses more; start with
 * `matrixApproximationRank` 1, since a higher rank need not lose less. `minCompressionRate` and `batchTensorsWithSameShape` have no effect. PyTorch's `batched_powerSGD_hook`.
 *
 * @throws ArgumentError unless `state` is a PowerSGDState.
 * @example model.registerCommHook(new PowerSGDState(null, { startPowerSGDIter: 10 }), batchedPowerSGDHook)
 */
export const batchedPowerSGDHook = (state: PowerSGDState, bucket: GradBucket): Tensor | CommFuture =>
  afterStart('batchedPowerSGDHook', state, bucket, (buffer) => {
    const { numel } = buffer
    const side = Math.ceil(Math.sqrt(numel))
    const padded = zeros([side * side], { dtype: buffer.dtype })
    padded.narrow(0, 0, numel).copy_(buffer)
    const sent = compress(state, bucket, padded, () => square(state, padded, side, numel))
    return { wait: () => noGrad(() => sent.wait().narrow(0, 0, numel)) }
  })

// Collectives on tensors, as torch.distributed has them: results are written to tensors of the caller, and with `asyncOp` while the program goes on.
import { noGrad } from '../autograd/index.ts'
import { dispatchState } from '../dispatch/index.ts'
import { ArgumentError, ShapeError } from '../errors/index.ts'
import { cat } from '../ops/index.ts'
import { checkCount, checkOptions, valueText } from '../protocol/index.ts'
import { Tensor, formatShape, sameShape } from '../tensor/index.ts'
import { checkReduceOp } from './collective.ts'
import type { Collective, ReduceOp } from './collective.ts'
import { CollectiveTimeoutError, DistributedError } from './errors.ts'
import { allReduce as functionalAllReduce } from './functional.ts'
import { contiguous, copyBack, reduction } from './prepare.ts'
import { groupOr } from './processGroup.ts'
import type { ProcessGroup } from './processGroup.ts'
import type { Work } from './work.ts'

/** Options of all collectives. */
export interface CollectiveOptions {
  /** Default: all ranks. */
  readonly group?: ProcessGroup
  /** Whether to return a {@link Work} instead of waiting. Default false. */
  readonly asyncOp?: boolean
}

/** Options of collectives that reduce. */
export interface ReduceOptions extends CollectiveOptions {
  /** Default 'sum'. */
  readonly op?: ReduceOp
}

const OPTIONS = { group: true, asyncOp: 'boolean' } as const
const REDUCE_OPTIONS = { ...OPTIONS, op: true } as const

function run(collective: Collective, options: CollectiveOptions, finish: (() => void) | null): Work | undefined {
  const group = groupOr(options.group)
  if (options.asyncOp === true) return group.start(collective, finish)
  group.run(collective, finish)
  return undefined
}

/** The rank within the group of a world rank. */
function inGroup(where: string, name: string, rank: number, group: ProcessGroup): number {
  const index = group.ranks.indexOf(rank)
  if (index < 0) throw new ArgumentError(`${where}: ${name} must be one of the group's ranks (${group.ranks.join(', ')}), got ${valueText(rank)}.`)
  return index
}

/** Reduces the tensors of all ranks; every rank gets the result in its tensor. PyTorch's `all_reduce`. */
export function allReduce(tensor: Tensor, options: ReduceOptions = {}): Work | undefined {
  checkCount('allReduce', arguments, 2)
  const where = 'allReduce'
  checkOptions(where, options, REDUCE_OPTIONS)
  const group = groupOr(options.group)
  const { op = 'sum' } = options
  if (dispatchState.mode !== null && tensor instanceof Tensor) {
    checkReduceOp(where, op, tensor.dtype)
    tensor.copy_(functionalAllReduce(tensor, op, group))
    return undefined
  }
  const input = contiguous(where, 'tensor', tensor)
  const rule = reduction(where, input, op, group.size)
  const data = input.dtype === rule.dtype ? input : input.to(rule.dtype)
  const back = copyBack(data, tensor)
  return run({ kind: 'allreduce', op: rule.op, data }, options, () => {
    rule.after(data)
    back?.()
  })
}

/** Reduces the tensors of all ranks; rank `dst` gets the result in its tensor. PyTorch's `reduce`. */
export function reduce(tensor: Tensor, dst: number, options: ReduceOptions = {}): Work | undefined {
  checkCount('reduce', arguments, 3)
  const where = 'reduce'
  checkOptions(where, options, REDUCE_OPTIONS)
  const group = groupOr(options.group)
  const root = inGroup(where, 'dst', dst, group)
  const input = contiguous(where, 'tensor', tensor)
  const rule = reduction(where, input, options.op ?? 'sum', group.size)
  const data = input.to(rule.dtype)
  const isRoot = group.rank === root
  const back = copyBack(data, tensor)
  return run({ kind: 'reduce', op: rule.op, root, data }, options, () => {
    if (!isRoot) return
    rule.after(data)
    back?.()
  })
}

/** The tensor of rank `src`, on every rank. PyTorch's `broadcast`. */
export function broadcast(tensor: Tensor, src: number, options: CollectiveOptions = {}): Work | undefined {
  checkCount('broadcast', arguments, 3)
  checkOptions('broadcast', options, OPTIONS)
  const group = groupOr(options.group)
  const root = inGroup('broadcast', 'src', src, group)
  const data = contiguous('broadcast', 'tensor', tensor)
  return run({ kind: 'broadcast', root, data }, options, group.rank === root ? null : copyBack(data, tensor))
}

function checkParts(where: string, whole: Tensor, part: Tensor, size: number, [wholeName, partName]: readonly [string, string]): void {
  if (whole.dtype !== part.dtype)
    throw new ArgumentError(`${where}: ${wholeName} is ${whole.dtype} and ${partName} is ${part.dtype}; both need the same dtype.`)
  const [first = 1, ...rest] = part.shape
  const concatenated = [first * size, ...rest]
  if (sameShape(whole.shape, [size, ...part.shape]) || (part.ndim > 0 && sameShape(whole.shape, concatenated))) return
  throw new ShapeError(
    `${where}: ${partName} has shape ${formatShape(part.shape)}, so ${wholeName} must have shape ${formatShape(concatenated)} for ${size} ranks, got ${formatShape(whole.shape)}.`,
  )
}

/** Every rank's `input`, one after the other along dimension 0, in `output` on every rank. PyTorch's `all_gather_into_tensor`. */
export function allGatherIntoTensor(output: Tensor, input: Tensor, options: CollectiveOptions = {}): Work | undefined {
  checkCount('allGatherIntoTensor', arguments, 3)
  const where = 'allGatherIntoTensor'
  checkOptions(where, options, OPTIONS)
  const [own, all] = [contiguous(where, 'input', input), contiguous(where, 'output', output)]
  checkParts(where, output, input, groupOr(options.group).size, ['output', 'input'])
  return run({ kind: 'allgather', input: own, output: all }, options, copyBack(all, output))
}

/** Every rank's tensor in a list of tensors. PyTorch's `all_gather`. */
export function allGather(outputs: readonly Tensor[], input: Tensor, options: CollectiveOptions = {}): Work | undefined {
  checkCount('allGather', arguments, 3)
  const where = 'allGather'
  checkOptions(where, options, OPTIONS)
  return gatherInto(where, outputs, input, options, null)
}

/** Every rank's tensor in a list of tensors of rank `dst`; other ranks pass null. PyTorch's `gather`. */
export function gather(input: Tensor, outputs: readonly Tensor[] | null, dst: number, options: CollectiveOptions = {}): Work | undefined {
  checkCount('gather', arguments, 4)
  checkOptions('gather', options, OPTIONS)
  return gatherInto('gather', outputs, input, options, inGroup('gather', 'dst', dst, groupOr(options.group)))
}

function checkList(where: string, name: string, list: unknown, size: number): asserts list is readonly Tensor[] {
  if (!Array.isArray(list) || list.length !== size)
    throw new ArgumentError(
      `${where}: ${name} must be a list of ${size} tensors, one a rank, got ${Array.isArray(list) ? `${list.length}` : valueText(list)}.`,
    )
}

function gatherInto(
  where: string,
  outputs: readonly Tensor[] | null,
  input: Tensor,
  options: CollectiveOptions,
  root: number | null,
): Work | undefined {
  const group = groupOr(options.group)
  const own = contiguous(where, 'input', input)
  if (root !== null && group.rank !== root) return run({ kind: 'gather', root, input: own, output: null }, options, null)
  checkList(where, 'outputs', outputs, group.size)
  for (const output of outputs) checkParts(where, output, input, 1, ['each output', 'the input'])
  const all = Tensor.empty([group.size * own.numel], own.dtype)
  const finish = (): void =>
    noGrad(() =>
      outputs.forEach((output, rank) => {
        output.detach().copy_(all.narrow(0, rank * own.numel, own.numel).view(output.shape))
      }),
    )
  return run(root === null ? { kind: 'allgather', input: own, output: all } : { kind: 'gather', root, input: own, output: all }, options, finish)
}

/** One tensor of the list that rank `src` has, in `output` of each rank; other ranks pass null. PyTorch's `scatter`. */
export function scatter(output: Tensor, inputs: readonly Tensor[] | null, src: number, options: CollectiveOptions = {}): Work | undefined {
  checkCount('scatter', arguments, 4)
  const where = 'scatter'
  checkOptions(where, options, OPTIONS)
  const group = groupOr(options.group)
  const root = inGroup(where, 'src', src, group)
  const own = contiguous(where, 'output', output)
  let input: Tensor | null = null
  if (group.rank === root) {
    checkList(where, 'inputs', inputs, group.size)
    input = joined(where, inputs, output)
  }
  return run({ kind: 'scatter', root, input, output: own }, options, copyBack(own, output))
}

/** The tensors of a list, one after the other. */
function joined(where: string, inputs: readonly Tensor[], like: Tensor): Tensor {
  const all = Tensor.empty([inputs.length * like.numel], like.dtype)
  noGrad(() =>
    inputs.forEach((tensor, rank) => {
      checkParts(where, contiguous(where, `inputs[${rank}]`, tensor), like, 1, ['each input', 'the output'])
      all.narrow(0, rank * like.numel, like.numel).copy_(tensor.detach().reshape([like.numel]))
    }),
  )
  return all
}

/** Reduces the `input` of all ranks; each gets its part along dimension 0 in `output`. PyTorch's `reduce_scatter_tensor`. */
export function reduceScatterTensor(output: Tensor, input: Tensor, options: ReduceOptions = {}): Work | undefined {
  checkCount('reduceScatterTensor', arguments, 3)
  const where = 'reduceScatterTensor'
  checkOptions(where, options, REDUCE_OPTIONS)
  const group = groupOr(options.group)
  const whole = contiguous(where, 'input', input)
  const rule = reduction(where, whole, options.op ?? 'sum', group.size)
  checkParts(where, input, contiguous(where, 'output', output), group.size, ['input', 'output'])
  const own = contiguous(where, 'output', output).to(rule.dtype)
  const back = copyBack(own, output)
  return run({ kind: 'reducescatter', op: rule.op, input: whole.to(rule.dtype), output: own }, options, () => {
    rule.after(own)
    back?.()
  })
}

/** Reduces lists of tensors of all ranks; each gets the one at its rank in `output`. PyTorch's `reduce_scatter`. */
export function reduceScatter(output: Tensor, inputs: readonly Tensor[], options: ReduceOptions = {}): Work | undefined {
  checkCount('reduceScatter', arguments, 3)
  checkOptions('reduceScatter', options, REDUCE_OPTIONS)
  checkList('reduceScatter', 'inputs', inputs, groupOr(options.group).size)
  const whole = joined('reduceScatter', inputs, output)
  return reduceScatterTensor(output, whole.view([inputs.length, ...output.shape]), options)
}

function checkSplits(where: string, name: string, splits: readonly number[] | null | undefined, tensor: Tensor, size: number): readonly number[] {
  const [rows = 1] = tensor.shape
  if (splits === null || splits === undefined) {
    if (rows % size !== 0) throw new ArgumentError(`${where}: dimension 0 of the tensor (${rows}) does not divide by ${size} ranks; pass ${name}.`)
    return Array.from({ length: size }, () => rows / size)
  }
  const isValid = Array.isArray(splits) && splits.length === size && splits.every((n) => Number.isSafeInteger(n) && n >= 0)
  if (!isValid || splits.reduce((a, b) => a + b, 0) !== rows)
    throw new ArgumentError(`${where}: ${name} must be ${size} sizes that add up to dimension 0 of the tensor (${rows}), got ${valueText(splits)}.`)
  return splits
}

/**
 * Sends rows of `input` to every rank, and puts the rows that they send one after the other into `output`: equal parts, or as many as the splits say. PyTorch's
 * `all_to_all_single`. Throws ArgumentError if the two have different dtypes.
 */
export function allToAllSingle(
  output: Tensor,
  input: Tensor,
  outputSplits?: readonly number[] | null,
  inputSplits?: readonly number[] | null,
  options: CollectiveOptions = {},
): Work | undefined {
  checkCount('allToAllSingle', arguments, 5)
  const where = 'allToAllSingle'
  checkOptions(where, options, OPTIONS)
  const { size } = groupOr(options.group)
  const [from, to] = [contiguous(where, 'input', input), contiguous(where, 'output', output)]
  if (from.dtype !== to.dtype) throw new ArgumentError(`${where}: input is ${from.dtype} and output is ${to.dtype}; both need the same dtype.`)
  const counts = (name: string, splits: readonly number[] | null | undefined, tensor: Tensor): number[] => {
    const rows = checkSplits(where, name, splits, tensor, size)
    const width = tensor.shape.slice(1).reduce((a, b) => a * b, 1)
    return rows.map((n) => n * width)
  }
  const collective: Collective = {
    kind: 'alltoall',
    input: from,
    output: to,
    inputCounts: counts('inputSplits', inputSplits, from),
    outputCounts: counts('outputSplits', outputSplits, to),
  }
  return run(collective, options, copyBack(to, output))
}

/**
 * Sends `inputs[r]` to rank r, and receives what rank r sends in `outputs[r]`. Sizes may differ between pairs of ranks. Throws ArgumentError if they have different dtypes.
 * PyTorch's `all_to_all`.
 */
export function allToAll(outputs: readonly Tensor[], inputs: readonly Tensor[], options: CollectiveOptions = {}): Work | undefined {
  checkCount('allToAll', arguments, 3)
  const where = 'allToAll'
  checkOptions(where, options, OPTIONS)
  const { size } = groupOr(options.group)
  checkList(where, 'outputs', outputs, size)
  checkList(where, 'inputs', inputs, size)
  const parts = inputs.map((tensor, rank) => contiguous(where, `inputs[${rank}]`, tensor))
  const dtype = parts[0]?.dtype ?? 'float32'
  const other = [...parts, ...outputs].find((tensor) => tensor.dtype !== dtype)
  if (other !== undefined) throw new ArgumentError(`${where}: all tensors need the same dtype, got ${dtype} and ${other.dtype}.`)
  const input = noGrad(() => cat(parts.map((tensor) => tensor.reshape([tensor.numel]))))
  const outputCounts = outputs.map(({ numel }) => numel)
  const output = Tensor.empty([outputCounts.reduce((a, b) => a + b, 0)], dtype)
  const finish = (): void =>
    noGrad(() =>
      outputs.forEach((target, rank) => {
        const start = outputCounts.slice(0, rank).reduce((a, b) => a + b, 0)
        target.detach().copy_(output.narrow(0, start, target.numel).view(target.shape))
      }),
    )
  return run({ kind: 'alltoall', input, output, inputCounts: parts.map(({ numel }) => numel), outputCounts }, options, finish)
}

/** Waits until all ranks have come. PyTorch's `barrier`. */
export function barrier(options: CollectiveOptions = {}): Work | undefined {
  checkCount('barrier', arguments, 1)
  checkOptions('barrier', options, OPTIONS)
  return run({ kind: 'barrier' }, options, null)
}

/** A barrier with a timeout of its own (milliseconds), which names the rank that did not come. Throws CollectiveTimeoutError if one did not. PyTorch's `monitored_barrier`. */
export function monitoredBarrier(options: { readonly group?: ProcessGroup; readonly timeout?: number } = {}): void {
  checkCount('monitoredBarrier', arguments, 1)
  checkOptions('monitoredBarrier', options, { group: true, timeout: 'number' })
  const group = groupOr(options.group)
  const work = group.start({ kind: 'barrier' }, null, options.timeout)
  try {
    work.wait()
  } catch (error) {
    if (!(error instanceof CollectiveTimeoutError)) throw error
    const absent = /Ranks? ([\d, ]+) ha(?:s|ve) not come/.exec(error.message)?.[1] ?? 'unknown'
    throw new CollectiveTimeoutError(
      `[Rank ${group.rank}]: Rank ${absent} failed to pass monitoredBarrier in ${options.timeout ?? 'the default number of'} ms`,
    )
  }
}

/** Options of messages. */
export interface MessageOptions {
  readonly group?: ProcessGroup
  /** Only a receive with the same tag gets the message. Default 0. */
  readonly tag?: number
}

const MESSAGE_OPTIONS = { group: true, tag: 'number' } as const

/** Sends a tensor to rank `dst`, and returns at once. Throws ArgumentError if `dst` is this rank. PyTorch's `isend`. */
export function isend(tensor: Tensor, dst: number, options: MessageOptions = {}): Work {
  checkCount('isend', arguments, 3)
  checkOptions('isend', options, MESSAGE_OPTIONS)
  const group = groupOr(options.group)
  const peer = inGroup('isend', 'dst', dst, group)
  if (peer === group.rank) throw new ArgumentError(`isend: dst must be another rank, got ${dst}, which is this one.`)
  return group.start({ kind: 'send', peer, tag: options.tag ?? 0, data: contiguous('isend', 'tensor', tensor) })
}

/** Receives a tensor from rank `src`, or from any rank if that is null, and returns at once. Throws ArgumentError if `src` is this rank. PyTorch's `irecv`. */
export function irecv(tensor: Tensor, src: number | null = null, options: MessageOptions = {}): Work {
  checkCount('irecv', arguments, 3)
  checkOptions('irecv', options, MESSAGE_OPTIONS)
  const group = groupOr(options.group)
  const peer = src === null ? null : inGroup('irecv', 'src', src, group)
  if (peer === group.rank) throw new ArgumentError(`irecv: src must be another rank, got ${src}, which is this one.`)
  const data = contiguous('irecv', 'tensor', tensor)
  return group.start({ kind: 'recv', peer, tag: options.tag ?? 0, data }, copyBack(data, tensor))
}

/** Sends a tensor to rank `dst`. PyTorch's `send`. */
export function send(tensor: Tensor, dst: number, options: MessageOptions = {}): void {
  checkCount('send', arguments, 3)
  isend(tensor, dst, options).wait()
}

/**
 * Receives a tensor from rank `src`, or from any rank if that is null. Returns the sender's rank. Throws DistributedError if the backend does not say who sent. PyTorch's
 * `recv`.
 */
export function recv(tensor: Tensor, src: number | null = null, options: MessageOptions = {}): number {
  checkCount('recv', arguments, 3)
  const work = irecv(tensor, src, options)
  work.wait()
  const sender = groupOr(options.group).ranks[work.source ?? -1]
  if (sender === undefined) throw new DistributedError('recv: the backend did not say who sent')
  return sender
}

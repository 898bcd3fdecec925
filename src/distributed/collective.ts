// Collectives as data: what a backend is asked to do, what fingerprints compare, and what errors, statistics and timelines name.
import { ArgumentError } from '../errors/index.ts'
import { dtypeInfo } from '../kernels/index.ts'
import type { DType } from '../kernels/index.ts'
import { nearest, valueText } from '../protocol/index.ts'
import type { Tensor } from '../tensor/index.ts'

/** How values of several ranks become one. PyTorch's `ReduceOp`. */
export const REDUCE_OPS = ['sum', 'avg', 'product', 'min', 'max', 'band', 'bor', 'bxor'] as const
/** One of {@link REDUCE_OPS}. */
export type ReduceOp = (typeof REDUCE_OPS)[number]
/** The operators that backends know; an average is a sum, divided afterwards. */
export type BackendReduceOp = Exclude<ReduceOp, 'avg'>

/** For booleans a sum is "or", a product "and". */
export const OF_BOOLEANS: Readonly<Record<BackendReduceOp, BackendReduceOp>> = {
  sum: 'bor',
  product: 'band',
  min: 'band',
  max: 'bor',
  band: 'band',
  bor: 'bor',
  bxor: 'bxor',
}

/** The reduction operators by PyTorch's names: `ReduceOp.SUM`. */
export const ReduceOp = {
  SUM: 'sum',
  AVG: 'avg',
  PRODUCT: 'product',
  MIN: 'min',
  MAX: 'max',
  BAND: 'band',
  BOR: 'bor',
  BXOR: 'bxor',
} as const satisfies Record<string, ReduceOp>

/** One collective, or one message, of a group. Tensors are contiguous; ranks count within the group, counts are in elements. */
export type Collective =
  | { readonly kind: 'allreduce'; readonly op: BackendReduceOp; readonly data: Tensor }
  | { readonly kind: 'reduce'; readonly op: BackendReduceOp; readonly root: number; readonly data: Tensor }
  | { readonly kind: 'broadcast'; readonly root: number; readonly data: Tensor }
  | { readonly kind: 'allgather'; readonly input: Tensor; readonly output: Tensor }
  | { readonly kind: 'gather'; readonly root: number; readonly input: Tensor; readonly output: Tensor | null }
  | { readonly kind: 'scatter'; readonly root: number; readonly input: Tensor | null; readonly output: Tensor }
  | { readonly kind: 'reducescatter'; readonly op: BackendReduceOp; readonly input: Tensor; readonly output: Tensor }
  | {
      readonly kind: 'alltoall'
      readonly input: Tensor
      readonly output: Tensor
      readonly inputCounts: readonly number[]
      readonly outputCounts: readonly number[]
    }
  | { readonly kind: 'barrier' }
  | { readonly kind: 'send'; readonly peer: number; readonly tag: number; readonly data: Tensor }
  | { readonly kind: 'recv'; readonly peer: number | null; readonly tag: number; readonly data: Tensor }

/** What all ranks of a group must agree on. The sizes of an all-to-all and the data of a root may differ. */
export interface Description {
  readonly kind: Collective['kind']
  readonly op: string
  readonly dtype: string
  readonly shape: readonly number[]
  readonly root: number
}

/** The tensor whose dtype and shape all ranks share; null where they may differ. */
function commonTensor(collective: Collective): Tensor | null {
  switch (collective.kind) {
    case 'allreduce':
    case 'reduce':
    case 'broadcast':
    case 'send':
    case 'recv':
      return collective.data
    case 'allgather':
    case 'gather':
    case 'reducescatter':
      return collective.input
    case 'scatter':
      return collective.output
    case 'alltoall':
    case 'barrier':
      return null
  }
}

/** The tensor that a collective writes to on this rank; null if there is none. Where only one rank receives, it counts as written on the others too. */
export function writtenTensor(collective: Collective): Tensor | null {
  if ('output' in collective) return collective.output
  return 'data' in collective && collective.kind !== 'send' ? collective.data : null
}

/** What of a collective must be equal on all ranks. */
export function describe(collective: Collective): Description {
  const tensor = commonTensor(collective)
  return {
    kind: collective.kind,
    op: 'op' in collective ? collective.op : '',
    dtype: collective.kind === 'alltoall' ? collective.input.dtype : (tensor?.dtype ?? ''),
    shape: tensor?.shape ?? [],
    root: 'root' in collective ? collective.root : -1,
  }
}

/** `allreduce(sum, float32[4, 5])`. */
export function descriptionText({ kind, op, dtype, shape, root }: Description): string {
  const parts = [op, dtype === '' ? '' : `${dtype}[${shape.join(', ')}]`, root < 0 ? '' : `root ${root}`]
  return `${kind}(${parts.filter((part) => part !== '').join(', ')})`
}

/** The bytes that this rank hands to the others in the best algorithm for the collective: what a bandwidth is computed from. */
export function bytesSent(collective: Collective, size: number, rank: number): number {
  const bytes = (tensor: Tensor | null): number => (tensor === null ? 0 : tensor.numel * dtypeInfo[tensor.dtype].size)
  switch (collective.kind) {
    case 'allreduce':
      return (2 * (size - 1) * bytes(collective.data)) / size
    case 'reduce':
    case 'broadcast':
      return ((size - 1) * bytes(collective.data)) / size
    case 'allgather':
      return (size - 1) * bytes(collective.input)
    case 'gather':
      return rank === collective.root ? 0 : bytes(collective.input)
    case 'scatter':
      return rank === collective.root ? (size - 1) * bytes(collective.output) : 0
    case 'reducescatter':
      return (size - 1) * bytes(collective.output)
    case 'alltoall':
      return (collective.input.numel - (collective.inputCounts[rank] ?? 0)) * dtypeInfo[collective.input.dtype].size
    case 'send':
      return bytes(collective.data)
    case 'recv':
    case 'barrier':
      return 0
  }
}

/** Checks an operator for tensors of a dtype. Throws ArgumentError for a name that is unknown, bitwise operators on floats, and averages of integers. */
export function checkReduceOp(where: string, op: ReduceOp, dtype: DType): void {
  if (!REDUCE_OPS.includes(op)) {
    const guess = typeof op === 'string' ? nearest(op, REDUCE_OPS) : undefined
    throw new ArgumentError(
      `${where}: op must be one of ${REDUCE_OPS.join(', ')}, got ${valueText(op)}.${guess === undefined ? '' : ` Did you mean '${guess}'?`}`,
    )
  }
  const { floating } = dtypeInfo[dtype]
  if (floating && (op === 'band' || op === 'bor' || op === 'bxor'))
    throw new ArgumentError(`${where}: Cannot use ReduceOp.${op.toUpperCase()} with non-integral dtype ${dtype}. Use it on integers or booleans.`)
  if (!floating && op === 'avg')
    throw new ArgumentError(`${where}: an average of ${dtype} is not ${dtype}. Convert the tensor to a floating dtype first, or use 'sum'.`)
}

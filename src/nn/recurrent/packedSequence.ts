// Sequences of different lengths: padded to one length, or packed without padding for RNN, LSTM and GRU. PyTorch's torch.nn.utils.rnn.
import { ArgumentError, ShapeError } from '../../errors/index.ts'
import { cat, full, indexSelect, reshape, stack } from '../../ops/index.ts'
import { checkArgument, checkCount, checkIterable, checkOptions, valueText } from '../../protocol/index.ts'
import { Tensor, checkTensor, formatShape, inverseOrder, tensorFromValues } from '../../tensor/index.ts'
import { checkInteger } from '../options.ts'

/** Integers, in an array or a tensor of one dimension. */
type Integers = Tensor | readonly number[]

const integers = (values: readonly number[]): Tensor => tensorFromValues(values, [values.length], 'int64')

function listOf(where: string, name: string, values: Integers): readonly number[] {
  const list: readonly unknown[] = values instanceof Tensor && values.ndim === 1 ? Array.from(values.toTypedArray(), Number) : [values].flat()
  const numbers = list.filter((v) => typeof v === 'number' && Number.isInteger(v) && v >= 0)
  checkArgument(numbers.length === list.length, where, name, 'an array or a vector of integers of at least 0', values)
  return numbers.map(Number)
}

/**
 * Sequences without padding: first the first step of all sequences, then the second step of those that have one, and so on; the longest sequence first. Made by
 * `nn.utils.rnn.packPaddedSequence` and `nn.utils.rnn.packSequence`. PyTorch's `nn.utils.rnn.PackedSequence`.
 */
export class PackedSequence {
  /** The steps, [sum of all lengths, ..]. */
  readonly data: Tensor
  /** How many sequences have each step. */
  readonly sizes: readonly number[]
  /** The sequences in the order of their lengths; null if that is the order in which they were given. */
  readonly order: readonly number[] | null

  constructor(data: Tensor, batchSizes: Integers, sortedIndices: Integers | null = null) {
    checkCount('PackedSequence', arguments, 3)
    const where = 'nn.utils.rnn.PackedSequence'
    checkTensor(where, 'data', data)
    this.data = data
    this.sizes = listOf(where, 'batchSizes', batchSizes)
    this.order = sortedIndices === null ? null : listOf(where, 'sortedIndices', sortedIndices)
    const total = this.sizes.reduce((a, b) => a + b, 0)
    if (this.sizes.some((size, t) => size < 1 || size > (this.sizes[t - 1] ?? size)) || data.size(0) !== total)
      throw new ArgumentError(
        `${where}: batchSizes must be positive, must not grow, and add up to the rows of data, of shape ${formatShape(data.shape)}; got ${valueText(this.sizes)}.`,
      )
  }

  /** How many sequences have each step, int64. */
  get batchSizes(): Tensor {
    return integers(this.sizes)
  }

  /** Where the sequences, longest first, were in the batch; null if it was in that order. */
  get sortedIndices(): Tensor | null {
    return this.order === null ? null : integers(this.order)
  }

  /** Where the sequences of the batch are among those sorted by length; null if it was in that order. */
  get unsortedIndices(): Tensor | null {
    return this.order === null ? null : integers(inverseOrder(this.order))
  }

  /** The same sequences with other data, such as what a layer computed from them. */
  withData(data: Tensor): PackedSequence {
    return new PackedSequence(data, this.sizes, this.order)
  }

  toString(): string {
    return `PackedSequence(data: ${formatShape(this.data.shape)}, batchSizes: [${this.sizes.join(', ')}])`
  }
}

/** Options of `nn.utils.rnn.packPaddedSequence`. */
export interface PackOptions {
  /** The sequences are [batch, length, ..] instead of [length, batch, ..]. */
  readonly batchFirst?: boolean
  /** Refuse sequences that are not sorted by length, the longest first; default true. Otherwise they are sorted here. */
  readonly enforceSorted?: boolean
}

const lead = (x: Tensor, batchFirst: boolean): Tensor => (batchFirst ? x.transpose(0, 1) : x)

/**
 * Leaves out the padding of sequences of the given lengths. PyTorch's `nn.utils.rnn.pack_padded_sequence`.
 *
 * Shapes: `input` [L, B, ..], or [B, L, ..] with `batchFirst`, and B lengths give data [sum of the lengths, ..].
 *
 * @throws ArgumentError if a length is not between 1 and L, or if the lengths grow and `enforceSorted` is true.
 * @example nn.utils.rnn.packPaddedSequence(torch.tensor([[1, 4], [2, 5], [3, 0]]), [3, 2]).data.toArray() // [1, 4, 2, 5, 3]
 */
export function packPaddedSequence(input: Tensor, lengths: Integers, options: PackOptions = {}): PackedSequence {
  checkCount('packPaddedSequence', arguments, 3)
  const where = 'nn.utils.rnn.packPaddedSequence'
  checkTensor(where, 'input', input)
  checkOptions(where, options, { batchFirst: 'boolean', enforceSorted: 'boolean' })
  const { batchFirst = false, enforceSorted = true } = options
  if (input.ndim < 2) throw new ShapeError(`${where}: input must have a length and a batch, got shape ${formatShape(input.shape)}.`)
  const steps = lead(input, batchFirst)
  const [longest, batch] = [steps.size(0), steps.size(1)]
  const all = listOf(where, 'lengths', lengths)
  if (all.length !== batch || all.some((length) => length < 1 || length > longest))
    throw new ArgumentError(`${where}: lengths must be ${batch} integers from 1 to ${longest}, one for each sequence, got ${valueText(all)}.`)
  const order = [...all.keys()].toSorted((a, b) => (all[b] ?? 0) - (all[a] ?? 0))
  if (enforceSorted && all.some((length, i) => length > (all[i - 1] ?? length)))
    throw new ArgumentError(
      `${where}: the sequences must be sorted by length, the longest first, got ${valueText(all)}. Sort them, or pass { enforceSorted: false }.`,
    )
  const rows: number[] = []
  const sizes = Array.from({ length: Math.max(...all) }, (_, t) => {
    const here = (enforceSorted ? [...all.keys()] : order).filter((i) => (all[i] ?? 0) > t)
    rows.push(...here.map((i) => t * batch + i))
    return here.length
  })
  const flat = reshape(steps, [longest * batch, ...steps.shape.slice(2)])
  return new PackedSequence(indexSelect(flat, 0, integers(rows)), sizes, enforceSorted ? null : order)
}

/** Options of `nn.utils.rnn.padPackedSequence`. */
export interface PadPackedOptions {
  /** The result is [batch, length, ..] instead of [length, batch, ..]. */
  readonly batchFirst?: boolean
  /** Default 0. */
  readonly paddingValue?: number
  /** The length to pad to; null (the default) means that of the longest sequence. */
  readonly totalLength?: number | null
}

/**
 * Packed sequences in their first order, padded to one length, and their lengths. PyTorch's `nn.utils.rnn.pad_packed_sequence`.
 *
 * Shapes: data [sum of the lengths, ..] gives [L, B, ..], or [B, L, ..] with `batchFirst`, and int64 lengths [B].
 *
 * @throws ArgumentError if `totalLength` is less than the longest length.
 * @example nn.utils.rnn.padPackedSequence(nn.utils.rnn.packSequence([torch.tensor([1, 2]), torch.tensor([3])]))[0].toArray() // [[1, 3], [2, 0]]
 */
export function padPackedSequence(sequence: PackedSequence, options: PadPackedOptions = {}): readonly [padded: Tensor, lengths: Tensor] {
  checkCount('padPackedSequence', arguments, 2)
  const where = 'nn.utils.rnn.padPackedSequence'
  checkArgument(sequence instanceof PackedSequence, where, 'sequence', 'a PackedSequence', sequence)
  checkOptions(where, options, { batchFirst: 'boolean', paddingValue: 'number', totalLength: true })
  const { batchFirst = false, paddingValue = 0 } = options
  const { data, sizes, order } = sequence
  const length = options.totalLength ?? sizes.length
  checkInteger(where, 'totalLength', length, sizes.length)
  const batch = sizes[0] ?? 0
  const starts = sizes.map((_, t) => sizes.slice(0, t).reduce((a, b) => a + b, 0))
  const places = order === null ? Array.from({ length: batch }, (_, i) => i) : inverseOrder(order)
  // The row behind the data is the padding.
  const rows = Array.from({ length }, (_, t) => places.map((at) => (at < (sizes[t] ?? 0) ? (starts[t] ?? 0) + at : data.size(0)))).flat()
  const padding = full([1, ...data.shape.slice(1)], paddingValue, { dtype: data.dtype })
  const flat = indexSelect(cat([data, padding]), 0, integers(rows))
  const lengths = places.map((at) => sizes.filter((size) => size > at).length)
  return [lead(reshape(flat, [length, batch, ...data.shape.slice(1)]), batchFirst), integers(lengths)]
}

/** Options of `nn.utils.rnn.padSequence`. */
export interface PadOptions {
  /** The result is [batch, length, ..] instead of [length, batch, ..]. */
  readonly batchFirst?: boolean
  /** Default 0. */
  readonly paddingValue?: number
  /** Where the padding goes; default 'right', behind the sequence. */
  readonly paddingSide?: 'left' | 'right'
}

function sequencesOf(where: string, sequences: Iterable<Tensor>): readonly Tensor[] {
  checkIterable(where, 'sequences', sequences)
  const list = [...sequences]
  for (const sequence of list) checkTensor(where, 'sequences', sequence)
  const [one] = list
  const shape = one?.shape ?? []
  if (one === undefined || list.some((s) => s.ndim === 0 || formatShape(s.shape.slice(1)) !== formatShape(shape.slice(1))))
    throw new ShapeError(
      `${where}: expected at least one sequence [length, ..], all alike after the first dimension; got shapes ${list.map((s) => formatShape(s.shape)).join(', ')}.`,
    )
  return list
}

/**
 * Sequences padded to the length of the longest one. PyTorch's `nn.utils.rnn.pad_sequence`.
 *
 * Shapes: B sequences [length, ..] give [L, B, ..], or [B, L, ..] with `batchFirst`.
 *
 * @throws ShapeError unless the sequences are alike but for their lengths.
 * @example nn.utils.rnn.padSequence([torch.tensor([1, 2]), torch.tensor([3])], { batchFirst: true }).toArray() // [[1, 2], [3, 0]]
 */
export function padSequence(sequences: Iterable<Tensor>, options: PadOptions = {}): Tensor {
  checkCount('padSequence', arguments, 2)
  const where = 'nn.utils.rnn.padSequence'
  checkOptions(where, options, { batchFirst: 'boolean', paddingValue: 'number', paddingSide: true })
  const { batchFirst = false, paddingValue = 0, paddingSide = 'right' } = options
  if (paddingSide !== 'left' && paddingSide !== 'right')
    throw new ArgumentError(`${where}: paddingSide must be 'left' or 'right', got ${valueText(paddingSide)}.`)
  const list = sequencesOf(where, sequences)
  const longest = Math.max(...list.map((s) => s.size(0)))
  const padded = list.map((s) => {
    if (s.size(0) === longest) return s
    const padding = full([longest - s.size(0), ...s.shape.slice(1)], paddingValue, { dtype: s.dtype })
    return cat(paddingSide === 'right' ? [s, padding] : [padding, s])
  })
  return stack(padded, batchFirst ? 0 : 1)
}

/**
 * The sequences of a padded tensor, without the padding behind them. PyTorch's `nn.utils.rnn.unpad_sequence`.
 *
 * Shapes: [L, B, ..], or [B, L, ..] with `batchFirst`, gives B sequences [length, ..].
 *
 * @throws ArgumentError unless there is a length for each sequence.
 * @example nn.utils.rnn.unpadSequence(torch.tensor([[1, 3], [2, 0]]), [2, 1]).map((t) => t.toArray()) // [[1, 2], [3]]
 */
export function unpadSequence(paddedSequences: Tensor, lengths: Integers, batchFirst = false): readonly Tensor[] {
  checkCount('unpadSequence', arguments, 3)
  const where = 'nn.utils.rnn.unpadSequence'
  checkTensor(where, 'paddedSequences', paddedSequences)
  const all = listOf(where, 'lengths', lengths)
  const batch = paddedSequences.size(batchFirst ? 0 : 1)
  if (all.length !== batch) throw new ArgumentError(`${where}: lengths must be ${batch} integers, one for each sequence, got ${valueText(all)}.`)
  return all.map((length, i) => paddedSequences.select(batchFirst ? 0 : 1, i).narrow(0, 0, length))
}

/**
 * Packs sequences of different lengths. PyTorch's `nn.utils.rnn.pack_sequence`.
 *
 * Shapes: sequences [length, ..] give data [sum of the lengths, ..].
 *
 * @throws ShapeError unless the sequences are alike but for their lengths; ArgumentError if they are not sorted and `enforceSorted` is true.
 * @example nn.utils.rnn.packSequence([torch.tensor([1, 2]), torch.tensor([3])]).data.toArray() // [1, 3, 2]
 */
export function packSequence(sequences: Iterable<Tensor>, enforceSorted = true): PackedSequence {
  checkCount('packSequence', arguments, 2)
  const list = sequencesOf('nn.utils.rnn.packSequence', sequences)
  const lengths = list.map((s) => s.size(0))
  return packPaddedSequence(padSequence(list), lengths, { enforceSorted })
}

/**
 * The sequences that were packed. PyTorch's `nn.utils.rnn.unpack_sequence`.
 *
 * Shapes: data [sum of the lengths, ..] gives sequences [length, ..].
 *
 * @throws ArgumentError if the argument is not a PackedSequence.
 * @example nn.utils.rnn.unpackSequence(nn.utils.rnn.packSequence([torch.tensor([1, 2]), torch.tensor([3])])).map((t) => t.toArray()) // [[1, 2], [3]]
 */
export function unpackSequence(packedSequences: PackedSequence): readonly Tensor[] {
  checkCount('unpackSequence', arguments, 1)
  const [padded, lengths] = padPackedSequence(packedSequences)
  return unpadSequence(padded, lengths)
}

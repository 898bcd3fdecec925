// randomSplit: a dataset in parts of random samples.
import { ArgumentError } from '../errors/index.ts'
import { checkArray, checkCount, checkOptions, valueText } from '../protocol/index.ts'
import type { Generator } from '../tensor/index.ts'
import { Subset, checkIndexed } from './dataset.ts'
import type { MapDataset } from './dataset.ts'
import { permutation } from './permutation.ts'

/**
 * Parts of a dataset with random samples, of these lengths, or of these fractions of all if they add up to 1. PyTorch's `random_split`.
 *
 * @throws ArgumentError unless the lengths add up to the number of samples.
 * @example const [train, validation] = randomSplit(dataset, [0.9, 0.1], { generator: new torch.Generator(7) })
 */
export function randomSplit<T, const Lengths extends readonly number[]>(
  dataset: MapDataset<T> | readonly T[],
  lengths: Lengths,
  options?: { readonly generator?: Generator },
): { -readonly [Part in keyof Lengths]: Subset<T> }
export function randomSplit<T>(
  dataset: MapDataset<T> | readonly T[],
  lengths: readonly number[],
  options: { readonly generator?: Generator } = {},
): Subset<T>[] {
  checkCount('randomSplit', arguments, 3)
  checkIndexed('randomSplit', 'dataset', dataset)
  checkArray('randomSplit', 'lengths', lengths)
  checkOptions('randomSplit', options, { generator: true })
  const sizes = sizesOf(dataset.length, lengths)
  const order = permutation(dataset.length, options.generator ?? null)
  let end = 0
  return sizes.map((size) => new Subset(dataset, order.slice(end, (end += size))))
}

/** The lengths in samples: what fractions leave goes to the first parts, one each in turn. */
function sizesOf(count: number, lengths: readonly number[]): readonly number[] {
  const total = lengths.reduce((sum, length) => sum + length, 0)
  const mustAddUp = (what: string): ArgumentError =>
    new ArgumentError(`randomSplit: ${what}; lengths must add up to the ${count} samples of the dataset, or be fractions that add up to 1.`)
  for (const length of lengths) if (!(length >= 0)) throw mustAddUp(`a length is ${valueText(length)}`)
  if (lengths.every(Number.isInteger) && total === count) return lengths
  if (!(lengths.every((length) => length <= 1) && Math.abs(total - 1) < 1e-6)) throw mustAddUp(`the lengths add up to ${total}`)
  const sizes = lengths.map((fraction) => Math.floor(count * fraction))
  const rest = count - sizes.reduce((sum, size) => sum + size, 0)
  for (let i = 0; i < rest; i++) sizes[i % sizes.length] = (sizes[i % sizes.length] ?? 0) + 1
  return sizes
}

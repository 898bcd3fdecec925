// einsum: sums of products in Einstein's notation, computed as matrix products, two operands at a time from left to right.
import type { Size } from '../../protocol/index.ts'
import { ArgumentError, ShapeError } from '../../errors/index.ts'
import { formatShape, sizeAdd, sizeEq, sizeMul, sizeProduct } from '../../tensor/index.ts'
import type { Tensor } from '../../tensor/index.ts'
import type { OpFunction } from '../define/declaration.ts'
import { defineOp } from '../define/defineOp.ts'
import { sum } from '../reduction/sum.ts'
import { sizeAt } from '../shared/shapes.ts'
import { permute } from '../view/permute.ts'
import { reshape } from '../view/reshape.ts'
import { slice } from '../view/slicing.ts'
import { expand } from '../view/windows.ts'
import { bmm } from './mm.ts'

/** A tensor whose dimensions have labels: letters, and '0', '1', … (counted from the last) for those of an ellipsis. */
interface Labelled {
  readonly tensor: Tensor
  readonly labels: readonly string[]
}

/**
 * Sums of products in Einstein's notation: equal letters run together, and letters that the output lacks are summed over; `...` stands for dimensions that
 * broadcast. Without `->`, the output has the letters that occur once, in alphabetical order. PyTorch's `torch.einsum`.
 *
 * Shapes: those that the equation says. Sizes of one letter agree, or are 1.
 *
 * @throws ArgumentError if the equation is malformed, or does not have as many operands as there are tensors.
 * @throws ShapeError if the sizes of one letter differ.
 * @example torch.einsum('ij,j->i', torch.tensor([[1, 2], [3, 4]]), torch.tensor([1, 10])).toArray() // [21, 43]
 */
export const einsum: OpFunction<(equation: string, ...tensors: readonly Tensor[] | [readonly Tensor[]]) => Tensor> = defineOp({
  schema: 'einsum(str equation, Tensor[] tensors) -> Tensor',
  decompose: (equation, tensors) => {
    const [left = '', right] = equation.replaceAll(' ', '').split('->')
    const terms = left.split(',')
    if (terms.length !== tensors.length)
      throw new ArgumentError(`torch.einsum: the equation '${equation}' has ${terms.length} operand(s), but ${tensors.length} tensor(s) were given.`)
    const given = tensors.map((tensor, i) => ({ tensor, labels: labelsOf(terms[i] ?? '', tensor, equation) }))
    const output = right === undefined ? impliedOutput(given) : outputLabels(right, given, equation)
    const operands = given.map(diagonals)
    checkSizes(operands, equation)
    const product = operands.reduce((result, operand, i) => {
      const later = new Set([...output, ...operands.slice(i + 1).flatMap((o) => o.labels)])
      return contract(sumOut(result, new Set([...later, ...operand.labels])), sumOut(operand, new Set([...later, ...result.labels])), later)
    })
    return arrange(sumOut(product, new Set(output)), output)
  },
})

function letters(term: string, equation: string): [readonly string[], string | null, readonly string[]] {
  const [before = '', after, ...more] = term.split('...')
  if (more.length > 0 || !/^[A-Za-z]*$/.test(before + (after ?? '')))
    throw new ArgumentError(`torch.einsum: '${term}' in '${equation}' is not an operand; it may have letters and one '...'.`)
  return [[...before], after ?? null, [...(after ?? '')]]
}

function labelsOf(term: string, tensor: Tensor, equation: string): string[] {
  const [before, ellipsis, after] = letters(term, equation)
  const rest = tensor.ndim - before.length - after.length
  if (rest < 0 || (rest > 0 && ellipsis === null))
    throw new ShapeError(
      `torch.einsum: '${term}' in '${equation}' has ${before.length + after.length} letters for a tensor of shape ${formatShape(tensor.symSizes)}.`,
    )
  return [...before, ...Array.from({ length: rest }, (_, i) => String(rest - 1 - i)), ...after]
}

/** Dimensions of an ellipsis, then the letters that occur once. */
function impliedOutput(operands: readonly Labelled[]): string[] {
  const all = operands.flatMap((o) => o.labels)
  const once = all.filter((label) => /[A-Za-z]/.test(label) && all.indexOf(label) === all.lastIndexOf(label))
  return [...ellipsisOf(operands), ...once.toSorted()]
}

const ellipsisOf = (operands: readonly Labelled[]): string[] =>
  [...new Set(operands.flatMap((o) => o.labels).filter((label) => /\d/.test(label)))].toSorted((a, b) => Number(b) - Number(a))

function outputLabels(term: string, operands: readonly Labelled[], equation: string): string[] {
  const [before, ellipsis, after] = letters(term, equation)
  const labels = [...before, ...(ellipsis === null ? [] : ellipsisOf(operands)), ...after]
  const known = new Set(operands.flatMap((o) => o.labels))
  for (const label of labels)
    if (!known.has(label)) throw new ArgumentError(`torch.einsum: the output of '${equation}' has '${label}', which no operand has.`)
  if (new Set(labels).size < labels.length) throw new ArgumentError(`torch.einsum: the output of '${equation}' has a letter twice.`)
  return labels
}

function checkSizes(operands: readonly Labelled[], equation: string): void {
  const sizes = new Map<string, Size>()
  for (const { tensor, labels } of operands) {
    for (const [i, label] of labels.entries()) {
      const size = sizeAt(tensor.symSizes, i)
      const known = sizes.get(label) ?? 1
      const isOne = sizeEq(size, 1)
      if (!isOne && !sizeEq(known, 1) && !sizeEq(known, size))
        throw new ShapeError(`torch.einsum: '${label}' in '${equation}' is ${known.toString()} in one operand and ${size.toString()} in another.`)
      if (!isOne) sizes.set(label, size)
    }
  }
}

/** Takes the diagonal of dimensions with the same label. */
function diagonals({ tensor, labels }: Labelled): Labelled {
  const twice = labels.find((label, i) => labels.indexOf(label) !== i)
  if (twice === undefined) return { tensor, labels }
  const [first, second] = [labels.indexOf(twice), labels.lastIndexOf(twice)]
  const others = labels.map((_, i) => i).filter((i) => i !== first && i !== second)
  const moved = permute(tensor, [...others, first, second])
  const [n, other] = [sizeAt(tensor.symSizes, first), sizeAt(tensor.symSizes, second)]
  if (!sizeEq(other, n))
    throw new ShapeError(`torch.einsum: '${twice}' occurs twice in an operand, with the sizes ${n.toString()} and ${other.toString()}.`)
  const flat = reshape(moved, [...moved.symSizes.slice(0, -2), sizeMul(n, n)])
  return diagonals({
    tensor: slice(flat, flat.ndim - 1, 0, sizeMul(n, n), sizeAdd(n, 1)),
    labels: [...labels.filter((_, i) => others.includes(i)), twice],
  })
}

/** Sums over the dimensions that are not needed. */
function sumOut({ tensor, labels }: Labelled, needed: ReadonlySet<string>): Labelled {
  const gone = labels.flatMap((label, i) => (needed.has(label) ? [] : [i]))
  return gone.length === 0 ? { tensor, labels } : { tensor: sum(tensor, gone), labels: labels.filter((label) => needed.has(label)) }
}

/** The product of two operands, summed over the labels that are not needed later, as one batch of matrix products. */
function contract(a: Labelled, b: Labelled, later: ReadonlySet<string>): Labelled {
  const size = (label: string): Size => (sizeEq(sizeIn(a, label), 1) ? sizeIn(b, label) : sizeIn(a, label))
  const shared = a.labels.filter((label) => b.labels.includes(label))
  const batch = shared.filter((label) => later.has(label))
  const summed = shared.filter((label) => !later.has(label))
  const left = a.labels.filter((label) => !shared.includes(label))
  const right = b.labels.filter((label) => !shared.includes(label))
  const count = (labels: readonly string[]): Size => sizeProduct(labels.map(size))
  const asMatrices = (operand: Labelled, rows: readonly string[], columns: readonly string[]): Tensor => {
    const order = [...batch, ...rows, ...columns]
    const full = expand(arrange(operand, order), order.map(size))
    return reshape(full, [count(batch), count(rows), count(columns)])
  }
  const product = bmm(asMatrices(a, left, summed), asMatrices(b, summed, right))
  const labels = [...batch, ...left, ...right]
  return { tensor: reshape(product, labels.map(size)), labels }
}

const sizeIn = ({ tensor, labels }: Labelled, label: string): Size => tensor.symSizes[labels.indexOf(label)] ?? 1

function arrange({ tensor, labels }: Labelled, order: readonly string[]): Tensor {
  return order.every((label, i) => labels[i] === label)
    ? tensor
    : permute(
        tensor,
        order.map((label) => labels.indexOf(label)),
      )
}

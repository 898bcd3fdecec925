// einsum: sums of products by Einstein's convention, as products of matrices. Two operands at a time, from left to right.
import { ArgumentError, ShapeError } from '../../errors/index.ts'
import { formatShape } from '../../tensor/index.ts'
import type { Tensor } from '../../tensor/index.ts'
import { defineOp } from '../defineOp.ts'
import type { OpFunction } from '../defineOp.ts'
import { sum } from '../reduction/sum.ts'
import { expand, permute, reshape, slice } from '../view/index.ts'
import { bmm } from './mm.ts'

/** A tensor whose dimensions have names. The dimensions of an ellipsis are called '0', '1', … counted from the last. */
interface Labelled {
  readonly tensor: Tensor
  readonly labels: readonly string[]
}

/**
 * `einsum('bij,bjk->bik', x, y)`: equal letters run together, letters that the output lacks are summed over; `...` stands for dimensions that broadcast.
 * Without `->` the output has the letters that occur once, in alphabetical order. PyTorch's `torch.einsum`.
 */
export const einsum: OpFunction<(equation: string, ...tensors: readonly Tensor[] | [readonly Tensor[]]) => Tensor> = defineOp({
  schema: 'einsum(str equation, Tensor[] tensors) -> Tensor',
  decompose: (equation: string, tensors: readonly Tensor[]): Tensor => {
    const [left = '', right] = equation.replaceAll(' ', '').split('->')
    const terms = left.split(',')
    if (terms.length !== tensors.length)
      throw new ArgumentError(`torch.einsum: the equation '${equation}' has ${terms.length} operand(s), but ${tensors.length} tensor(s) were given.`)
    const operands = terms.map((term, i) => diagonals({ tensor: tensors[i] as Tensor, labels: labelsOf(term, tensors[i] as Tensor, equation) }))
    const output = right === undefined ? impliedOutput(operands) : outputLabels(right, operands, equation)
    checkSizes(operands, equation)
    const [first, ...rest] = operands as [Labelled, ...Labelled[]]
    let result = first
    for (const [i, operand] of rest.entries()) {
      const later = new Set([...output, ...rest.slice(i + 1).flatMap((o) => o.labels)])
      result = contract(sumOut(result, new Set([...later, ...operand.labels])), sumOut(operand, new Set([...later, ...result.labels])), later)
    }
    return arrange(sumOut(result, new Set(output)), output)
  },
})

function letters(term: string, equation: string): [readonly string[], string | null, readonly string[]] {
  const [before = '', after, ...more] = term.split('...')
  if (more.length > 0 || !/^[A-Za-z]*$/.test(before + (after ?? '')))
    throw new ArgumentError(`torch.einsum: '${term}' in '${equation}' is no operand; it may have letters and one '...'.`)
  return [[...before], after ?? null, [...(after ?? '')]]
}

function labelsOf(term: string, tensor: Tensor, equation: string): string[] {
  const [before, ellipsis, after] = letters(term, equation)
  const rest = tensor.ndim - before.length - after.length
  if (rest < 0 || (rest > 0 && ellipsis === null))
    throw new ShapeError(
      `torch.einsum: '${term}' in '${equation}' has ${before.length + after.length} letters for a tensor of shape ${formatShape(tensor.shape)}.`,
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
  const sizes = new Map<string, number>()
  for (const { tensor, labels } of operands) {
    for (const [i, label] of labels.entries()) {
      const size = tensor.shape[i] as number
      const known = sizes.get(label) ?? 1
      if (known !== 1 && size !== 1 && known !== size)
        throw new ShapeError(`torch.einsum: '${label}' in '${equation}' is ${known} in one operand and ${size} in another.`)
      if (size !== 1 || known === 1) sizes.set(label, size)
    }
  }
}

/** Takes the diagonal of dimensions of the same name. */
function diagonals({ tensor, labels }: Labelled): Labelled {
  const twice = labels.find((label, i) => labels.indexOf(label) !== i)
  if (twice === undefined) return { tensor, labels }
  const [first, second] = [labels.indexOf(twice), labels.lastIndexOf(twice)]
  const others = labels.map((_, i) => i).filter((i) => i !== first && i !== second)
  const moved = permute(tensor, [...others, first, second])
  const n = tensor.shape[first] as number
  if (tensor.shape[second] !== n)
    throw new ShapeError(`torch.einsum: '${twice}' occurs twice in an operand, with the sizes ${n} and ${String(tensor.shape[second])}.`)
  const flat = reshape(moved, [...moved.shape.slice(0, -2), n * n])
  return diagonals({ tensor: slice(flat, flat.ndim - 1, 0, n * n, n + 1), labels: [...others.map((i) => labels[i] as string), twice] })
}

/** Sums over the dimensions that nobody needs. */
function sumOut({ tensor, labels }: Labelled, needed: ReadonlySet<string>): Labelled {
  const gone = labels.map((_, i) => i).filter((i) => !needed.has(labels[i] as string))
  return gone.length === 0 ? { tensor, labels } : { tensor: sum(tensor, gone), labels: labels.filter((label) => needed.has(label)) }
}

/** The product of two operands, summed over what is not needed later, as one batch of products of matrices. */
function contract(a: Labelled, b: Labelled, later: ReadonlySet<string>): Labelled {
  const size = (label: string): number => Math.max(sizeIn(a, label), sizeIn(b, label))
  const shared = a.labels.filter((label) => b.labels.includes(label))
  const batch = shared.filter((label) => later.has(label))
  const summed = shared.filter((label) => !later.has(label))
  const left = a.labels.filter((label) => !shared.includes(label))
  const right = b.labels.filter((label) => !shared.includes(label))
  const count = (labels: readonly string[]): number => labels.reduce((n, label) => n * size(label), 1)
  const asMatrices = (operand: Labelled, rows: readonly string[], columns: readonly string[]): Tensor => {
    const order = [...batch, ...rows, ...columns]
    const full = expand(arrange(operand, order), order.map(size))
    return reshape(full, [count(batch), count(rows), count(columns)])
  }
  const product = bmm(asMatrices(a, left, summed), asMatrices(b, summed, right))
  const labels = [...batch, ...left, ...right]
  return { tensor: reshape(product, labels.map(size)), labels }
}

const sizeIn = ({ tensor, labels }: Labelled, label: string): number => tensor.shape[labels.indexOf(label)] ?? 1

function arrange({ tensor, labels }: Labelled, order: readonly string[]): Tensor {
  return order.every((label, i) => labels[i] === label)
    ? tensor
    : permute(
        tensor,
        order.map((label) => labels.indexOf(label)),
      )
}

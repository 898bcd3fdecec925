// Slices of tensors along a dimension, and results stacked again: what scan and map share.
import { ArgumentError } from '../errors/index.ts'
import { select, stack } from '../ops/index.ts'
import { Tensor, formatShape } from '../tensor/index.ts'

const isTensor = (value: unknown): value is Tensor => value instanceof Tensor

/** The slices of all `xs` along `dim`: one list per position. Throws ArgumentError unless these are tensors of one size of at least 1 in that dimension. */
export function slicesOf(op: string, xs: readonly unknown[], dim: number): { readonly count: number; readonly at: (i: number) => readonly Tensor[] } {
  const tensors = xs.filter(isTensor)
  if (xs.length === 0 || tensors.length < xs.length) throw new ArgumentError(`${op}: xs must hold at least one tensor, and nothing else.`)
  const sizes = tensors.map((x) => x.shape.at(dim))
  const [count] = sizes
  if (count === undefined || sizes.some((size) => size !== count))
    throw new ArgumentError(
      `${op}: all xs must have the same size in dimension ${dim}, got shapes ${tensors.map((x) => formatShape(x.shape)).join(', ')}.`,
    )
  if (count === 0) throw new ArgumentError(`${op}: xs must have at least one slice in dimension ${dim}.`)
  return { count, at: (i) => tensors.map((x) => select(x, dim, i)) }
}

/** One tensor per value of the rows, with a new first dimension. Throws ArgumentError for values that are not tensors. */
export function stacked(op: string, rows: readonly (readonly unknown[])[]): readonly Tensor[] {
  const [first = []] = rows
  return first.map((_, i) => {
    const column = rows.map((row) => row[i])
    const tensors = column.filter(isTensor)
    if (tensors.length < column.length)
      throw new ArgumentError(`${op}: the function must return tensors only, but value ${i} is ${typeof column[0]}.`)
    return stack(tensors)
  })
}

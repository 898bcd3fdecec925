// The layout of a tensor as symbols: one for each size, and strides as products of sizes wherever they are.
import { ArgumentError } from '../errors/index.ts'
import { mul } from './arithmetic.ts'
import { integer } from './expression.ts'
import type { Expr } from './expression.ts'
import type { Constraint, DimDynamic, SymbolMaker } from './dimensions.ts'
import type { SymInt } from './symValues.ts'

/** Sizes, strides and where the tensor begins in its storage, each as a number or symbolic. */
export interface SymbolicLayout {
  readonly sizes: readonly (SymInt | number)[]
  readonly strides: readonly (SymInt | number)[]
  readonly storageOffset: SymInt | number
}

export interface SymbolicLayoutOptions {
  /** How each dimension becomes a symbol. Default 'duck' for all. */
  readonly dims?: readonly DimDynamic[]
  /** What is promised of each dimension. */
  readonly constraints?: readonly (Constraint | null)[]
}

/**
 * Symbols for the layout of a tensor. PyTorch's `create_symbolic_sizes_strides_storage_offset`.
 *
 *     const { sizes, strides } = createSymbolicLayout(new ShapeEnv(), [3, 4], [4, 1]) // [s0, s1] and [s1, 1]
 *
 * @throws ArgumentError if there are not as many strides, dims or constraints as sizes.
 */
export function createSymbolicLayout(
  env: SymbolMaker,
  sizes: readonly number[],
  strides: readonly number[],
  { dims = [], constraints = [] }: SymbolicLayoutOptions = {},
): SymbolicLayout {
  for (const [name, list] of Object.entries({ strides, dims, constraints }))
    if (list.length !== sizes.length && (list.length > 0 || name === 'strides'))
      throw new ArgumentError(`createSymbolicLayout: '${name}' must have one entry for each of the ${sizes.length} sizes, got ${list.length}.`)
  const symbols = sizes.map((size, i) => env.createSymbol(size, dims[i] ?? 'duck', constraints[i] ?? null))
  const found = symbolicStrides(env, sizes, strides, symbols)
  return { sizes: symbols.map((size) => env.toSymInt(size)), strides: found.map((stride) => env.toSymInt(stride)), storageOffset: 0 }
}

/** From the smallest stride on: a stride is the product of another stride and its size if their numbers say so, and otherwise a symbol. */
function symbolicStrides(env: SymbolMaker, sizes: readonly number[], strides: readonly number[], symbols: readonly Expr[]): readonly Expr[] {
  const found = strides.map((): Expr | null => null)
  const products = new Map<number, Expr>()
  const order = strides.map((_, i) => i).toSorted((a, b) => (strides[a] ?? 0) - (strides[b] ?? 0) || b - a)
  for (const i of order) {
    const value = strides[i] ?? 1
    const inner = found[i + 1]
    const innerSize = symbols[i + 1]
    const contiguous = inner !== undefined && inner !== null && innerSize !== undefined && value === (sizes[i + 1] ?? 0) * (strides[i + 1] ?? 0)
    const stride: Expr =
      value === 0 || value === 1 ? integer(value) : contiguous ? mul(innerSize, inner) : (products.get(value) ?? env.createSymbol(value, 'dynamic'))
    found[i] = stride
    const size = symbols[i]
    if (size !== undefined) products.set((sizes[i] ?? 0) * value, mul(size, stride))
  }
  return found.map((stride) => stride ?? integer(1))
}

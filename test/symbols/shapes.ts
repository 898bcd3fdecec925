// Operators run on fake tensors with symbolic sizes, and the same calls with numbers in the place of the symbols.
import { FakeTensorMode, withMode } from 'tensorfx/dispatch'
import { torch } from 'tensorfx'
import type { DType, Tensor } from 'tensorfx'
import { ShapeEnv, SymInt, compileExpr } from '../../src/symbols/index.ts'
import type { DimDynamic, Expr, SymbolExpr } from '../../src/symbols/index.ts'

/** Sizes, strides and offset of a tensor, as numbers or symbols. */
export interface SymbolicSpec {
  readonly sizes: readonly (number | SymInt)[]
  readonly strides: readonly (number | SymInt)[]
  readonly offset: number | SymInt
  readonly dtype: DType
}

const numberOrSym = (size: unknown): number | SymInt => {
  if (typeof size === 'number' || size instanceof SymInt) return size
  throw new Error('neither a number nor a SymInt')
}

export const specOf = (tensor: Tensor): SymbolicSpec => ({
  sizes: tensor.symSizes.map(numberOrSym),
  strides: tensor.symSteps.map(numberOrSym),
  offset: numberOrSym(tensor.symOffset),
  dtype: tensor.dtype,
})

export const exprOf = (size: number | SymInt): Expr | number => (typeof size === 'number' ? size : size.expr)

/** A run of a program on symbolic inputs. */
export interface SymbolicRun {
  readonly env: ShapeEnv
  readonly inputs: readonly SymbolicSpec[]
  readonly results: readonly SymbolicSpec[]
}

/** Runs `program` on fake tensors whose sizes of at least 2 are symbols. */
export function runSymbolically(
  inputs: readonly Tensor[],
  program: (...tensors: readonly Tensor[]) => unknown,
  { dims = 'dynamic', env = new ShapeEnv() }: { readonly dims?: DimDynamic; readonly env?: ShapeEnv } = {},
): SymbolicRun {
  const mode = new FakeTensorMode({ shapeEnv: env })
  const fakes = inputs.map((x) => mode.fromTensor(x, { dims: x.shape.map(() => dims) }))
  const before = fakes.map(specOf)
  const results = withMode(mode, () => program(...fakes))
  return { env, inputs: before, results: tensorsIn(results).map(specOf) }
}

export const tensorsIn = (value: unknown): readonly Tensor[] =>
  value instanceof torch.Tensor ? [value] : Array.isArray(value) ? value.flatMap(tensorsIn) : []

/** The values of all symbols by which sizes can be computed. */
export type Assignment = ReadonlyMap<SymbolExpr, number>

export function evaluateAt(expr: Expr | number, values: Assignment): number {
  if (typeof expr === 'number') return expr
  return compileExpr(expr, [...values.keys()])([...values.values()])
}

export const numbersAt = (spec: SymbolicSpec, values: Assignment): { shape: number[]; strides: number[]; offset: number; dtype: DType } => ({
  shape: spec.sizes.map((size) => evaluateAt(exprOf(size), values)),
  strides: spec.strides.map((size) => evaluateAt(exprOf(size), values)),
  offset: evaluateAt(exprOf(spec.offset), values),
  dtype: spec.dtype,
})

/** Draws values of the symbols that satisfy the guards of a run: at most `count`, fewer where guards leave few. `random` gives numbers in [0, 1). */
export function assignments(env: ShapeEnv, count: number, random: () => number): readonly Assignment[] {
  const symbols = [...env.values.keys()]
  const found = new Map<string, Assignment>()
  for (let attempt = 0; attempt < 20 * count && found.size < count; attempt++) {
    const values = new Map(symbols.map((symbol) => [symbol, drawn(env.values.get(symbol) ?? 2, random)]))
    // A symbol that was replaced has the value of what replaces it.
    for (let round = 0; round < symbols.length; round++)
      for (const symbol of symbols) {
        const replacement = env.replacements.get(symbol)
        if (replacement !== undefined) values.set(symbol, evaluateAt(replacement, values))
      }
    const isPossible = symbols.every((symbol) => Number.isInteger(values.get(symbol)) && isWithin(env, symbol, values.get(symbol) ?? NaN))
    if (isPossible && env.guards.every(({ expr }) => evaluateAt(expr, values) === 1)) found.set([...values.values()].join(), values)
  }
  return [...found.values()]
}

function isWithin(env: ShapeEnv, symbol: SymbolExpr, value: number): boolean {
  const range = env.ranges.get(symbol)
  if (range?.kind !== 'exact') throw new Error(`no range of ${symbol.name}`)
  const [lower, upper] = [range.lower, range.upper].map(({ p, q }) => Number(p) / Number(q))
  return value >= (lower ?? NaN) && value <= (upper ?? NaN)
}

/** The value of the run, one close to it, or any small one. */
function drawn(value: number, random: () => number): number {
  const kind = random()
  if (kind < 0.3) return value
  if (kind < 0.6) return Math.max(2, value + Math.floor(random() * 5) - 2)
  return 2 + Math.floor(random() * 12)
}

/** Numbers in [0, 1), the same ones for the same seed. */
export function randomNumbers(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    return state / 2 ** 32
  }
}

// Tensors as plain numbers: the arguments and the expected results of value cases, and the float64 references that compute one from the other. Nothing here uses
// an operator.
import type { DType } from 'tensorfx'

/** 'float' is the floating-point dtype that a case runs in, and 'int' the integer one: a case runs in all that can hold its numbers. */
export type Kind = 'float' | 'int' | DType
type Nested = number | boolean | readonly Nested[]

export class Plain {
  readonly shape: readonly number[]
  /** In row-major order. */
  readonly data: readonly number[]
  readonly kind: Kind

  constructor(shape: readonly number[], data: readonly number[], kind: Kind = 'float') {
    if (data.length !== sizeOf(shape)) throw new Error(`${data.length} numbers for the shape [${shape.join(', ')}]`)
    this.shape = shape
    this.data = data
    this.kind = kind
  }

  /** The element at an index; each index may be out of range by broadcasting (a size of 1). */
  at(...index: readonly number[]): number {
    const lead = index.length - this.shape.length
    const flat = this.shape.reduce((n, size, d) => n * size + (size === 1 ? 0 : (index[d + lead] ?? NaN)), 0)
    return this.data[flat] ?? NaN
  }

  map(fn: (value: number, i: number) => number, kind: Kind = this.kind): Plain {
    return new Plain(this.shape, this.data.map(fn), kind)
  }

  as(kind: Kind): Plain {
    return new Plain(this.shape, this.data, kind)
  }

  reshape(...shape: readonly number[]): Plain {
    return new Plain(shape, this.data, this.kind)
  }
}

const sizeOf = (shape: readonly number[]): number => shape.reduce((a, b) => a * b, 1)

/** A tensor from nested arrays; of booleans, a bool one. */
export function t(nested: Nested, kind?: Kind): Plain {
  const shape: number[] = []
  const flat: (number | boolean)[] = []
  const visit = (level: Nested, depth: number): void => {
    if (typeof level !== 'object') return void flat.push(level)
    shape[depth] = level.length
    for (const item of level) visit(item, depth + 1)
  }
  visit(nested, 0)
  return new Plain(shape, flat.map(Number), kind ?? (typeof flat[0] === 'boolean' ? 'bool' : 'float'))
}

/** Tensors of the integer dtype that a case runs in. */
export const ints = (nested: Nested): Plain => t(nested, 'int')

/** int64 tensors: indices, and sums of integers. */
export const longs = (nested: Nested): Plain => t(nested, 'int64')

/** A tensor whose elements a function computes from their indices. */
export function build(shape: readonly number[], fn: (...index: number[]) => number, kind: Kind = 'float'): Plain {
  const data = Array.from({ length: sizeOf(shape) }, (_, flat) => {
    let rest = flat
    const index = shape.map(() => 0)
    for (let d = shape.length - 1; d >= 0; d--) {
      const size = shape[d] ?? 1
      index[d] = rest % size
      rest = Math.floor(rest / size)
    }
    return fn(...index)
  })
  return new Plain(shape, data, kind)
}

/** Numbers that are never the same, nor near an integer or a half of one: no kink of an operator is near. */
export function sample(shape: readonly number[], seed = 1, low = -1.5, high = 1.5): Plain {
  return build(shape, (...index) => {
    const i = index.reduce((n, v, d) => n * (shape[d] ?? 1) + v, 0)
    const x = Math.sin((i + 1) * 12.9898 + seed * 78.233) * 43758.5453
    const value = low + (high - low) * (x - Math.floor(x))
    const distance = value * 2 - Math.round(value * 2)
    return Math.abs(distance) < 0.1 ? value + (distance < 0 ? -0.06 : 0.06) : value
  })
}

/** The shape to which tensors broadcast. */
function broadcast(tensors: readonly Plain[]): readonly number[] {
  const rank = Math.max(0, ...tensors.map((x) => x.shape.length))
  return Array.from({ length: rank }, (_, d) =>
    tensors.reduce((size, x) => {
      const own = x.shape[d - rank + x.shape.length] ?? 1
      return own === 1 ? size : own
    }, 1),
  )
}

/** A reference that computes each element from those of the arguments, which broadcast. Options objects are not passed on. */
export const each =
  (fn: (...values: number[]) => number, kind: Kind = 'float') =>
  (...args: readonly unknown[]): Plain => {
    const operands = args.filter((arg): arg is Plain | number => arg instanceof Plain || typeof arg === 'number')
    const tensors = operands.filter((arg) => arg instanceof Plain)
    return build(broadcast(tensors), (...index) => fn(...operands.map((arg) => (typeof arg === 'number' ? arg : arg.at(...index)))), kind)
  }

/** The values of a tensor by lines: `fn` gets the elements that differ only in `dims`, in order. */
export function reduce(x: Plain, dims: readonly number[], keepdim: boolean, fn: (line: readonly number[]) => number, kind: Kind = x.kind): Plain {
  const rank = x.shape.length
  const reduced = new Set(dims.map((d) => (d < 0 ? d + rank : d)))
  const all = x.shape.map((_, d) => reduced.size === 0 || reduced.has(d))
  const kept = x.shape.map((size, d) => (all[d] === true ? 1 : size))
  const inner = x.shape.map((size, d) => (all[d] === true ? size : 1))
  const out = build(
    kept,
    (...at) => {
      const line = build(inner, (...index) => x.at(...index.map((i, d) => (all[d] === true ? i : (at[d] ?? 0)))))
      return fn(line.data)
    },
    kind,
  )
  return keepdim
    ? out
    : new Plain(
        x.shape.filter((_, d) => all[d] !== true),
        out.data,
        kind,
      )
}

export const total = (values: readonly number[]): number => values.reduce((a, b) => a + b, 0)

/** sum over k < n of fn(k) */
export function sumOf(n: number, fn: (k: number) => number): number {
  let sum = 0
  for (let k = 0; k < n; k++) sum += fn(k)
  return sum
}

/** The error function, by its power series and, far from 0, its continued fraction. */
export function erf(x: number): number {
  const a = Math.abs(x)
  if (a > 3) {
    let fraction = 0
    for (let k = 60; k >= 1; k--) fraction = k / 2 / (a + fraction)
    return Math.sign(x) * (1 - Math.exp(-a * a) / ((a + fraction) * Math.sqrt(Math.PI)))
  }
  let [term, sum] = [a, a]
  for (let n = 1; n < 100; n++) {
    term *= (-a * a) / n
    sum += term / (2 * n + 1)
  }
  return (Math.sign(x) * 2 * sum) / Math.sqrt(Math.PI)
}

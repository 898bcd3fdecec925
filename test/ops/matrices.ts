// Small matrices as the tests of linear algebra write them, and reference algorithms on them.
import { Plain, build, sumOf, t } from './plain.ts'
import type { ValueCase } from './valueCases.ts'

export const size = (a: Plain): number => a.shape.at(-1) ?? 0
export const mm = (a: Plain, b: Plain): Plain => build([a.shape[0] ?? 0, size(b)], (i, j) => sumOf(size(a), (k) => a.at(i, k) * b.at(k, j)))
export const turned = (a: Plain): Plain => build([size(a), a.shape[0] ?? 0], (i, j) => a.at(j, i))
export const diagonal = (...values: number[]): Plain => build([values.length, values.length], (i, j) => (i === j ? (values[i] ?? 0) : 0))
export const cholesky = (a: Plain): Plain => {
  const out: number[][] = []
  for (let i = 0; i < size(a); i++) {
    out.push([])
    for (let j = 0; j < size(a); j++) {
      const rest = a.at(i, j) - sumOf(j, (k) => (out[i]?.[k] ?? 0) * (out[j]?.[k] ?? 0))
      out[i]?.push(j > i ? 0 : i === j ? Math.sqrt(rest) : rest / (out[j]?.[j] ?? NaN))
    }
  }
  return t(out)
}
export const householder = (v: readonly number[], tau: number): Plain =>
  build([v.length, v.length], (i, j) => Number(i === j) - tau * (v[i] ?? 0) * (v[j] ?? 0))
/** The product of both reflections whose vectors are the columns of a. */
export const reflections = (a: Plain, tau: Plain): Plain =>
  mm(householder([1, a.at(1, 0), a.at(2, 0)], tau.at(0)), householder([0, 1, a.at(2, 1)], tau.at(1)))
export const NOT_HALF = { notInHalf: 'the reference does not round as the algorithm does' }
export const LOOSE = { ...NOT_HALF, tolerance: 2e-5 }
export const exactly = (
  args: readonly unknown[],
  gives: (...given: Plain[]) => Plain | readonly Plain[],
  more: Partial<ValueCase> = {},
): ValueCase => ({
  args,
  gives: (...given: never[]) => gives(...(given as readonly unknown[]).filter((arg) => arg instanceof Plain)),
  ...LOOSE,
  ...more,
})
export const int32s = (values: number | number[]): Plain => t(values, 'int32')

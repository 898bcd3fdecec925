// Whether the results of a node are what they should be.
import { formatShape, sameShape } from '../../tensor/index.ts'
import type { Tensor } from '../../tensor/index.ts'
import { errorOf, toleranceOf } from '../closeness/closeness.ts'
import type { Explained } from '../closeness/closeness.ts'

/** A rule that a backend has to keep, apart from computing the right numbers. */
export type Rule = 'overwrites an input' | 'overwrites a weight' | 'overwrites an earlier output'

/** The result of one node on one backend. */
export interface Measured {
  /**
   * `failed`: it could not be run; `flaky`: it is right in some runs and not in others; `skipped`: it cannot be compared. A result that `differs` is wrong, or `rule`
   * says which one the backend breaks.
   */
  readonly status: 'ok' | 'differs' | 'failed' | 'flaky' | 'skipped'
  /** See `tol`; NaN if nothing was compared. */
  readonly error: number
  readonly reason: string | null
  /** The rule that the backend breaks, while its results are right; null if it breaks none. */
  readonly rule: Rule | null
  /** How many of the runs were not right, from 0 to 1. */
  readonly rate: number
  /** What the backend threw; null if it did not throw. */
  readonly thrown: unknown
}

/** What results should be. */
export interface Expected {
  /** The values. */
  readonly want: readonly Tensor[]
  /** Tensors with the shapes and dtypes that the results should have: those of eager kernels. */
  readonly like: readonly Tensor[]
  /** For each result, the absolute difference that rounding explains in any element. This and the rest is asked for only where results differ by more than the tolerance. Default: 0. */
  readonly slack?: () => readonly number[]
  /** All results again, several times, moved by what rounding explains. Default: none. */
  readonly runs?: () => readonly (readonly Tensor[])[]
  /** All results again, as they may be as well. Default: none. */
  readonly alternatives?: () => readonly (readonly Tensor[])[]
}

export const RIGHT: Measured = { status: 'ok', error: 0, reason: null, rule: null, rate: 0, thrown: null }

const differs = (reason: string): Measured => ({ ...RIGHT, status: 'differs', error: Infinity, reason, rate: 1 })

const none = (): readonly never[] => []

const nth = (runs: readonly (readonly Tensor[])[], i: number): readonly Tensor[] => runs.flatMap((results) => results[i] ?? [])

/** Compares the results of a node. */
export function measure({ want, like, slack = none, runs = none, alternatives = none }: Expected, got: readonly Tensor[], tol: number): Measured {
  if (got.length !== like.length) return differs(`${got.length} tensors instead of ${like.length}`)
  let worst = RIGHT
  for (const [i, expected] of like.entries()) {
    const [value, exact] = [got[i], want[i]]
    if (value === undefined || exact === undefined) continue
    if (!sameShape(value.shape, expected.shape)) return differs(`shape ${formatShape(value.shape)} instead of ${formatShape(expected.shape)}`)
    if (value.dtype !== expected.dtype) return differs(`dtype ${value.dtype} instead of ${expected.dtype}`)
    const limit = toleranceOf(value.dtype, tol)
    const explained = (): Explained => ({ eager: expected, slack: slack()[i] ?? 0, others: nth(runs(), i), alternatives: nth(alternatives(), i) })
    const plain = errorOf(exact, value, tol, { eager: expected })
    const error = plain > limit ? errorOf(exact, value, tol, explained()) : plain
    const fails = error > limit
    if (error > worst.error || (fails && worst.status === 'ok'))
      worst = { ...RIGHT, status: fails ? 'differs' : worst.status, error, rate: fails ? 1 : worst.rate }
  }
  return worst
}

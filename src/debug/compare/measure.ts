// Whether the results of a node are what they should be.
import { formatShape, sameShape } from '../../tensor/index.ts'
import type { Tensor } from '../../tensor/index.ts'
import { errorOf, toleranceOf } from './error.ts'

/** The result of one node on one backend. */
export interface Measured {
  /** `failed`: it could not be run; `skipped`: it cannot be compared. */
  readonly status: 'ok' | 'differs' | 'failed' | 'skipped'
  /** See `tol`; NaN if nothing was compared. */
  readonly error: number
  readonly reason: string | null
}

/** Compares the results of a node. `like` have the shapes and dtypes that they should have. */
export function measure(want: readonly Tensor[], like: readonly Tensor[], got: readonly Tensor[], scale: number, tol: number): Measured {
  const differs = (reason: string): Measured => ({ status: 'differs', error: Infinity, reason })
  if (got.length !== like.length) return differs(`${got.length} tensors instead of ${like.length}`)
  let worst: Measured = { status: 'ok', error: 0, reason: null }
  for (const [i, expected] of like.entries()) {
    const [value, exact] = [got[i], want[i]]
    if (value === undefined || exact === undefined) continue
    if (!sameShape(value.shape, expected.shape)) return differs(`shape ${formatShape(value.shape)} instead of ${formatShape(expected.shape)}`)
    if (value.dtype !== expected.dtype && like !== want) return differs(`dtype ${value.dtype} instead of ${expected.dtype}`)
    const error = errorOf(exact, value, scale, tol)
    const fails = error > toleranceOf(value.dtype, tol)
    if (error > worst.error || (fails && worst.status === 'ok')) worst = { status: fails ? 'differs' : worst.status, error, reason: null }
  }
  return worst
}

// The differences from PyTorch that stay. Each has a row in docs/differences-from-pytorch.md, which says why.
import type { Kind } from './judge.ts'

interface Reason {
  /** The id of the row. */
  readonly row: string
  readonly kind: Kind
  /** `ops softmax#3`, or `ops softmax` for all of its cases. */
  readonly cases: readonly string[]
}

const each = (database: string, text: string): readonly string[] =>
  text
    .trim()
    .split(/\s+/)
    .map((key) => `${database} ${key}`)

export const reasons: readonly Reason[] = [
  {
    row: 'numbers-for-tensors',
    kind: 'accepted',
    cases: each('errs', 'atan2#0 fmax#0 fmin#0 logaddexp#0 minimum#0 logical_and#0 heaviside#0 igammac#0 hypot#0'),
  },
  { row: 'numbers-are-floats', kind: 'dtype', cases: each('ops', 'arange#7 arange#10 arange#13') },
  {
    row: 'own-triangle',
    kind: 'refuted',
    cases: each(
      'ops',
      'cholesky_inverse#4 cholesky_inverse#5 cholesky_inverse#6 cholesky_inverse#7 cholesky_solve#4 cholesky_solve#5 cholesky_solve#6 cholesky_solve#7',
    ),
  },
  {
    row: 'outside-the-window',
    kind: 'refuted',
    cases: each(
      'ops',
      'as_strided_scatter#0 as_strided_scatter#1 as_strided_scatter#2 as_strided_scatter#3 as_strided_scatter#4 as_strided_scatter#5 as_strided_scatter#6',
    ),
  },
  { row: 'channels-second', kind: 'refused', cases: each('ops', 'nn.functional.batch_norm#2') },
]

/** The reason of a case. */
export const reasonOf: ReadonlyMap<string, Reason> = new Map(reasons.flatMap((reason) => reason.cases.map((key) => [key, reason])))

// Decompositions of operators whose kernels compute in float32 where their tensors are float16 or bfloat16: only the results are rounded, as in the kernels.
import { isNarrow } from '../../kernels/index.ts'
import type { Tensor } from '../../tensor/index.ts'
import { to } from '../pointwise/cast.ts'

/** Casts to the dtype that is computed with beside `input`. */
export const wideFor =
  ({ dtype }: Tensor) =>
  <A extends Tensor | null>(arg: A): A | Tensor =>
    arg === null || !isNarrow(dtype) ? arg : to(arg, 'float32')

/** Three tensors in the dtype of `input`. */
export const narrowTo = ({ dtype }: Tensor, [a, b, c]: readonly [Tensor, Tensor, Tensor]): readonly [Tensor, Tensor, Tensor] => [
  to(a, dtype),
  to(b, dtype),
  to(c, dtype),
]

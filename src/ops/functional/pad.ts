// Padding, PyTorch's F.pad.
import { UnsupportedError } from '../../errors/index.ts'
import type { Tensor } from '../../tensor/index.ts'
import type { OpFunction } from '../declaration.ts'
import { defineOp } from '../defineOp.ts'
import { constantPadNd } from '../join.ts'

export interface PadOptions {
  /** Only 'constant' is supported. */
  readonly mode?: 'constant'
  /** What to pad with; default 0. */
  readonly value?: number | null
}

/**
 * Pads with a value; `pad` lists the amounts before and after, the last dimension first. Negative amounts cut. PyTorch's `F.pad`.
 *
 * Shape: that of `input`, with the amounts added.
 *
 * @throws ArgumentError unless `pad` holds a pair per dimension, for at most all dimensions.
 * @throws UnsupportedError for any `mode` but 'constant'.
 * @example F.pad(torch.tensor([[1, 2]]), [1, 0], { value: 9 }).toArray() // [[9, 1, 2]]
 */
export const pad: OpFunction<(input: Tensor, pad: readonly number[], options?: PadOptions) => Tensor> = defineOp({
  schema: "pad(Tensor input, int[] pad, str mode='constant', float? value=None) -> Tensor",
  namespace: 'torch.nn.functional',
  recordAs: 'keywords',
  decompose: (input, amounts, mode, value) => {
    if (mode !== 'constant')
      throw new UnsupportedError(
        `torch.nn.functional.pad: mode '${mode}' is not supported, only 'constant'; build the border with slice, flip and torch.cat.`,
      )
    return constantPadNd(input, amounts, value ?? 0)
  },
})

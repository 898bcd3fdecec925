// Padding, PyTorch's F.pad.
import { UnsupportedError } from '../../errors/index.ts'
import type { Tensor } from '../../tensor/index.ts'
import { defineOp } from '../defineOp.ts'
import type { OpFunction } from '../defineOp.ts'
import { constantPadNd } from '../join.ts'

export interface PadOptions {
  /** Only 'constant'. */
  readonly mode?: 'constant'
  /** What to pad with; default 0. */
  readonly value?: number | null
}

/** Pads with a value; `pad` lists the amounts before and after of the last dimension first; negative ones cut. PyTorch's `F.pad`. */
export const pad: OpFunction<(input: Tensor, pad: readonly number[], options?: PadOptions) => Tensor> = defineOp({
  schema: "pad(Tensor input, int[] pad, str mode='constant', float? value=None) -> Tensor",
  namespace: 'torch.nn.functional',
  recordAs: 'keywords',
  decompose: (input: Tensor, amounts: readonly number[], mode: string, value: number | null): Tensor => {
    if (mode !== 'constant')
      throw new UnsupportedError(
        `torch.nn.functional.pad: mode '${mode}' is not supported, only 'constant'; build the border with slice, flip and torch.cat.`,
      )
    return constantPadNd(input, amounts, value ?? 0)
  },
})

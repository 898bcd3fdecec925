// The activations of torch.nn.functional that also exist as torch.*: operators of their own name, so that graphs print what the user wrote.
import { ArgumentError } from '../../errors/index.ts'
import type { DType } from '../../kernels/index.ts'
import type { Tensor } from '../../tensor/index.ts'
import { defineOp } from '../defineOp.ts'
import type { OpFunction } from '../defineOp.ts'
import * as activation from '../pointwise/activation.ts'
import { to } from '../pointwise/cast.ts'
import { relu_ } from '../pointwise/inplace.ts'
import * as unary from '../pointwise/unary.ts'
import * as soft from '../reduction/softmax.ts'

const namespace = 'torch.nn.functional'

/** max(x, 0); `inplace` writes into the input. PyTorch's `F.relu`. */
export const relu: OpFunction<(input: Tensor, options?: { readonly inplace?: boolean }) => Tensor> = defineOp({
  schema: 'relu(Tensor input, bool inplace=False) -> Tensor',
  namespace,
  recordAs: 'keywords',
  decompose: (input: Tensor, inplace: boolean): Tensor => (inplace ? relu_(input) : activation.relu(input)),
})

/** 1 / (1 + e^-x). PyTorch's `F.sigmoid`. */
export const sigmoid: OpFunction<(input: Tensor) => Tensor> = defineOp({
  schema: 'sigmoid(Tensor input) -> Tensor',
  namespace,
  recordAs: 'method',
  decompose: (input: Tensor): Tensor => unary.sigmoid(input),
})

/** Hyperbolic tangent. PyTorch's `F.tanh`. */
export const tanh: OpFunction<(input: Tensor) => Tensor> = defineOp({
  schema: 'tanh(Tensor input) -> Tensor',
  namespace,
  recordAs: 'method',
  decompose: (input: Tensor): Tensor => unary.tanh(input),
})

export interface SoftmaxOptions {
  readonly dim: number
  /** The input is cast to this dtype first. */
  readonly dtype?: DType | null
}

function softmaxLike(
  name: string,
  compute: (input: Tensor, dim: number) => Tensor,
): OpFunction<(input: Tensor, dim: number | SoftmaxOptions) => Tensor> {
  return defineOp({
    schema: `${name}(Tensor input, int? dim=None, ScalarType? dtype=None) -> Tensor`,
    namespace,
    recordAs: 'keywords',
    decompose: (input: Tensor, dim: number | null, dtype: DType | null): Tensor => {
      if (dim === null) throw new ArgumentError(`${namespace}.${name}: say along which dimension: argument 'dim' is missing.`)
      return compute(dtype === null ? input : to(input, dtype), dim)
    },
  })
}

/** exp(x) normalized to sum 1 along `dim`. PyTorch's `F.softmax`. */
export const softmax: OpFunction<(input: Tensor, dim: number | SoftmaxOptions) => Tensor> = softmaxLike('softmax', soft.softmax)

/** log(softmax(x)), computed without overflow. PyTorch's `F.log_softmax`. */
export const logSoftmax: OpFunction<(input: Tensor, dim: number | SoftmaxOptions) => Tensor> = softmaxLike('log_softmax', soft.logSoftmax)

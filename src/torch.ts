// The namespace object `torch`: what PyTorch users write, and what generated code prints (`torch.nn.functional.gelu(x)`).
import { Function, backward, enableGrad, grad, inferenceMode, isGradEnabled, noGrad, setGradEnabled } from './autograd/index.ts'
import { cond, condOp, map, mapOp, scan, scanOp, whileLoop, whileLoopOp } from './controlFlow/index.ts'
import { installTensors } from './install/tensors.ts'
import { promoteTypes } from './kernels/index.ts'
import type { DType } from './kernels/index.ts'
import * as nn from './nn/index.ts'
import * as internal from './ops/generated/internal.ts'
import * as operators from './ops/generated/torch.ts'
import { allclose, canCast, equal, resultType, tensor } from './ops/index.ts'
import * as optim from './optim/index.ts'
import {
  Generator,
  Tensor,
  dtypeAliases,
  finfo,
  getDefaultDtype,
  getRngState,
  iinfo,
  manualSeed,
  setDefaultDtype,
  setRngState,
} from './tensor/index.ts'

installTensors()

/** The type of {@link torch}. */
export type Torch = typeof operators & {
  readonly tensor: typeof tensor
  readonly allclose: typeof allclose
  readonly equal: typeof equal
  readonly nn: typeof nn
  readonly optim: typeof optim
  /** PyTorch's `torch.autograd`: gradients without `.grad`, and operators with a backward of your own. */
  readonly autograd: { readonly Function: typeof Function; readonly grad: typeof grad; readonly backward: typeof backward }
  /** Internal primitives, as they appear in captured graphs. */
  readonly ops: { readonly tensorfx: typeof internal; readonly higher_order: typeof higherOrder }
  readonly cond: typeof cond
  readonly whileLoop: typeof whileLoop
  readonly scan: typeof scan
  readonly map: typeof map
  readonly Tensor: typeof Tensor
  readonly Generator: typeof Generator
  readonly manualSeed: typeof manualSeed
  readonly getRngState: typeof getRngState
  readonly setRngState: typeof setRngState
  readonly noGrad: typeof noGrad
  readonly enableGrad: typeof enableGrad
  readonly setGradEnabled: typeof setGradEnabled
  readonly isGradEnabled: typeof isGradEnabled
  readonly inferenceMode: typeof inferenceMode
  readonly getDefaultDtype: typeof getDefaultDtype
  readonly setDefaultDtype: typeof setDefaultDtype
  readonly promoteTypes: typeof promoteTypes
  readonly resultType: typeof resultType
  readonly canCast: typeof canCast
  readonly finfo: typeof finfo
  readonly iinfo: typeof iinfo
} & typeof dtypeAliases & { readonly [D in DType]: D }

/** The operators of control flow, as graphs name them. */
const higherOrder: { cond: typeof condOp; whileLoop: typeof whileLoopOp; scan: typeof scanOp; mapImpl: typeof mapOp } = {
  cond: condOp,
  whileLoop: whileLoopOp,
  scan: scanOp,
  mapImpl: mapOp,
}

/** PyTorch's `torch` module. */
export const torch: Torch = {
  ...operators,
  tensor,
  allclose,
  equal,
  nn,
  optim,
  autograd: { Function, grad, backward },
  ops: { tensorfx: internal, higher_order: higherOrder },
  cond,
  whileLoop,
  scan,
  map,
  Tensor,
  Generator,
  manualSeed,
  getRngState,
  setRngState,
  noGrad,
  enableGrad,
  setGradEnabled,
  isGradEnabled,
  inferenceMode,
  getDefaultDtype,
  setDefaultDtype,
  promoteTypes,
  resultType,
  canCast,
  finfo,
  iinfo,
  ...dtypeAliases,
  bool: 'bool',
  uint8: 'uint8',
  int8: 'int8',
  int16: 'int16',
  int32: 'int32',
  int64: 'int64',
  float16: 'float16',
  bfloat16: 'bfloat16',
  float32: 'float32',
  float64: 'float64',
}

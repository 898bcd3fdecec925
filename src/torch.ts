// The namespace object `torch`: what PyTorch users write, and what generated code prints (`torch.nn.functional.gelu(x)`).
import { Function, backward, enableGrad, grad, inferenceMode, isGradEnabled, noGrad, setGradEnabled } from './autograd/index.ts'
import { cond, condOp, map, mapOp, scan, scanOp, whileLoop, whileLoopOp } from './controlFlow/index.ts'
import { installTensors } from './install/tensors.ts'
import { customOp, defineOp, operatorNamespaces, registerAutograd, registerFake } from './library/index.ts'
import type { OperatorNamespace } from './library/index.ts'
import * as nn from './nn/index.ts'
import * as internal from './ops/generated/internal.ts'
import * as operators from './ops/generated/torch.ts'
import { allclose, equal, tensor } from './ops/index.ts'
import * as optim from './optim/index.ts'
import { Generator, Tensor, getRngState, manualSeed, setRngState } from './tensor/index.ts'

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
  /** Operators by namespace, as they appear in captured graphs: internal primitives, control flow, and what programs define with `torch.library`. */
  readonly ops: { readonly tensorfx: typeof internal; readonly higher_order: typeof higherOrder } & {
    readonly [namespace: string]: OperatorNamespace
  }
  /** PyTorch's `torch.library`: operators of your own. `tensorfx/library` has the same functions, and `opcheck`. */
  readonly library: {
    readonly customOp: typeof customOp
    readonly defineOp: typeof defineOp
    readonly registerFake: typeof registerFake
    readonly registerAutograd: typeof registerAutograd
  }
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
  readonly float32: 'float32'
  readonly float64: 'float64'
  readonly int32: 'int32'
  readonly bool: 'bool'
}

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
  ops: Object.assign(operatorNamespaces, { tensorfx: internal, higher_order: higherOrder }),
  library: { customOp, defineOp, registerFake, registerAutograd },
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
  float32: 'float32',
  float64: 'float64',
  int32: 'int32',
  bool: 'bool',
}

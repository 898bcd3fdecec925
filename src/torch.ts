// The namespace object `torch`: what PyTorch users write, and what generated code prints (`torch.nn.functional.gelu(x)`).
import { Generator, getRngState, manualSeed, setRngState } from './tensor/index.ts'
import { Tensor } from './tensor/index.ts'
import { enableGrad, inferenceMode, isGradEnabled, noGrad, setGradEnabled } from './autograd/index.ts'
import { cond, condOp, map, mapOp, scan, scanOp, whileLoop, whileLoopOp } from './controlFlow/index.ts'
import * as core from './ops/core.ts'
import * as nn from './nn/index.ts'
import * as optim from './optim/index.ts'
import { variance } from './ops/reduction/mean.ts'
import { allOps } from './ops/index.ts'
import type { TargetFunction } from './protocol/index.ts'

/** The type of {@link torch}. */
export type Torch = typeof core & {
  readonly var: typeof variance
  readonly nn: typeof nn
  readonly optim: typeof optim
  /** Internal primitives, as they appear in captured graphs. */
  readonly ops: { readonly tensorfx: Readonly<Record<string, TargetFunction>>; readonly higher_order: typeof higherOrder }
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

const internal: Record<string, TargetFunction> = {}
for (const op of allOps()) if (op.qualname.startsWith('torch.ops.tensorfx.')) internal[op.fn.name] = op.fn

/** Control flow as it stands in graphs. */
const higherOrder: { cond: typeof condOp; whileLoop: typeof whileLoopOp; scan: typeof scanOp; mapImpl: typeof mapOp } = {
  cond: condOp,
  whileLoop: whileLoopOp,
  scan: scanOp,
  mapImpl: mapOp,
}

/** PyTorch's `torch` module. */
export const torch: Torch = {
  ...core,
  var: variance,
  nn,
  optim,
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
  float32: 'float32',
  float64: 'float64',
  int32: 'int32',
  bool: 'bool',
}

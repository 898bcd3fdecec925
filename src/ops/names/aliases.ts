// PyTorch's other names of operators: one table. Each is an operator of its own name, which traces record, and computes what the one that it stands for does.
import { dispatch } from '../../dispatch/index.ts'
import type { Result } from '../../dispatch/index.ts'
import { attributeName } from '../../protocol/index.ts'
import { Tensor } from '../../tensor/index.ts'
import type { OpFunction } from '../define/declaration.ts'
import { makeOp } from '../define/defineOp.ts'
import {
  abs_,
  acos_,
  acosh_,
  asin_,
  asinh_,
  atan2_,
  atan_,
  atanh_,
  div_,
  ge_,
  gt_,
  le_,
  lt_,
  mul_,
  ne_,
  neg_,
  sub_,
  rrelu_,
  threshold_,
} from '../generated/inPlace.ts'
import { outer } from '../linalg/matmul.ts'
import { rrelu } from '../nn/activation/smoothActivations.ts'
import { chunk, split, unbind } from '../join/join.ts'
import { householderProduct } from '../linalg/householder.ts'
import { bilinear } from '../nn/bilinear.ts'
import { conv1d, conv2d } from '../nn/conv/conv.ts'
import { conv3d } from '../nn/conv/conv3d.ts'
import { convTranspose1d, convTranspose2d, convTranspose3d } from '../nn/conv/convTranspose.ts'
import { cosineSimilarity, pairwiseDistance, pdist } from '../nn/distances.ts'
import { alphaDropout, dropout, featureAlphaDropout } from '../nn/dropout.ts'
import { groupNorm } from '../nn/norm/groupNorm.ts'
import { layerNorm } from '../nn/norm/layerNorm.ts'
import { channelShuffle, pixelShuffle, pixelUnshuffle } from '../nn/sample/pixels.ts'
import { maxPool2d } from '../nn/pool/maxPool2d.ts'
import { adaptiveAvgPool1d } from '../nn/pool/adaptivePool.ts'
import { avgPool1d, maxPool1d, maxPool3d } from '../nn/pool/pool3d.ts'
import { rmsNorm } from '../nn/norm/rmsNorm.ts'
import { fill, fill_, zero_ } from '../pointwise/fill.ts'
import { hardshrink, prelu, threshold } from '../pointwise/hardActivations.ts'
import { abs, div, mul, neg, sub } from '../pointwise/arithmetic.ts'
import { ge, gt, le, lt, ne } from '../pointwise/comparison.ts'
import { positive } from '../pointwise/variations.ts'
import { acos, acosh, asin, asinh, atan, atan2, atanh } from '../pointwise/trigonometry.ts'
import { trapezoid } from '../reduction/scans.ts'
import { vstack } from '../join/stacks.ts'
import { unfold } from '../view/arrange.ts'
import { diagonal } from '../view/diagonal.ts'
import { permute, t, transpose } from '../view/permute.ts'
import { clone, squeeze, unsqueeze, view } from '../view/reshape.ts'
import { select, slice } from '../view/slicing.ts'
import { asStrided } from '../view/strided.ts'
import { detach, expand } from '../view/windows.ts'

/** The operator `fn` under another name, or in another namespace. A method of the same name is left as it is. */
function aliasOf<F extends OpFunction>(fn: F, name: string, namespace?: string, copied?: boolean): F
function aliasOf(fn: OpFunction, name: string, namespace?: string, copied = false): OpFunction {
  const { op } = fn
  const other = attributeName(name)
  return makeOp({
    schema: op.schema.text.replace(/^\w+/, other),
    namespace: namespace ?? op.qualname.slice(0, -op.name.length - 1),
    method: op.method && other !== op.name && !copied,
    tags: op.tags.has('mutates') ? ['mutates'] : [],
    aliasOf: fn,
    decompose: (...args) => (copied ? copyOf(dispatch(op, args)) : dispatch(op, args)),
  })
}

/** Copies of the views that an operator gives. */
const copyOf = (views: Result): Result => (views instanceof Tensor ? clone(views) : views.map((view) => clone(view)))

function made<T extends Readonly<Record<string, OpFunction>>>(table: T, namespace?: string, copied = false): T {
  const aliases = { ...table }
  for (const [name, fn] of Object.entries(table)) Reflect.set(aliases, name, aliasOf(fn, name, namespace, copied))
  return aliases
}

/** By their names: functions of torch, most of them methods of tensors too. */
const OF_TORCH = {
  absolute: abs,
  arccos: acos,
  arccosh: acosh,
  arcsin: asin,
  arcsinh: asinh,
  arctan: atan,
  arctan2: atan2,
  arctanh: atanh,
  divide: div,
  ger: outer,
  greater: gt,
  greaterEqual: ge,
  less: lt,
  lessEqual: le,
  multiply: mul,
  negative: neg,
  notEqual: ne,
  rowStack: vstack,
  subtract: sub,
  trapz: trapezoid,
  absolute_: abs_,
  arccos_: acos_,
  arccosh_: acosh_,
  arcsin_: asin_,
  arcsinh_: asinh_,
  arctan_: atan_,
  arctanh_: atanh_,
  negative_: neg_,
  splitWithSizes: split,
  unsafeChunk: chunk,
  unsafeSplit: split,
  unsafeSplitWithSizes: split,
}

/** Functions of torch that have the same arguments in torch.nn.functional, torch.linalg or as methods of tensors. */
const ALSO_OF_TORCH = {
  adaptiveAvgPool1d,
  alphaDropout,
  avgPool1d,
  bilinear,
  channelShuffle,
  conv1d,
  conv2d,
  conv3d,
  convTranspose1d,
  convTranspose2d,
  convTranspose3d,
  cosineSimilarity,
  dropout,
  featureAlphaDropout,
  fill,
  fill_,
  groupNorm,
  hardshrink,
  layerNorm,
  maxPool1d,
  maxPool2d,
  maxPool3d,
  orgqr: householderProduct,
  pairwiseDistance,
  pdist,
  pixelShuffle,
  pixelUnshuffle,
  prelu,
  rmsNorm,
  rrelu,
  rrelu_,
  threshold,
  threshold_,
  zero_,
}

/** Functions of torch that give copies of what the views of these names show. */
const COPIES = {
  aliasCopy: positive,
  asStridedCopy: asStrided,
  detachCopy: detach,
  diagonalCopy: diagonal,
  expandCopy: expand,
  permuteCopy: permute,
  selectCopy: select,
  sliceCopy: slice,
  splitCopy: split,
  splitWithSizesCopy: split,
  squeezeCopy: squeeze,
  tCopy: t,
  transposeCopy: transpose,
  unbindCopy: unbind,
  unfoldCopy: unfold,
  unsqueezeCopy: unsqueeze,
  viewCopy: view,
}

/** Methods of tensors only. */
const OF_TENSORS = {
  arctan2_: atan2_,
  divide_: div_,
  greater_: gt_,
  greaterEqual_: ge_,
  less_: lt_,
  lessEqual_: le_,
  multiply_: mul_,
  notEqual_: ne_,
  subtract_: sub_,
}

/** The functions of torch that are other names of operators. */
export const torchAliases: typeof OF_TORCH & typeof ALSO_OF_TORCH & typeof COPIES = /* @__PURE__ */ {
  ...made(OF_TORCH),
  ...made(ALSO_OF_TORCH, 'torch'),
  ...made(COPIES, 'torch', true),
}

/** All operators that are other names of operators. */
export const allAliases: readonly OpFunction[] = /* @__PURE__ */ Object.values<OpFunction>({ ...torchAliases, ...made(OF_TENSORS) })

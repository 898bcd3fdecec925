// Convolutions: the primitive `convolution` and its backward, and the public conv1d and conv2d on top. Kernels: convGemm.ts (float32), convLoops.ts (others).
import { ArgumentError, ShapeError } from '../../errors/index.ts'
import { formatShape, Tensor } from '../../tensor/index.ts'
import type { TensorSpec } from '../../tensor/index.ts'
import { defineOp } from '../defineOp.ts'
import type { OpFunction } from '../defineOp.ts'
import { add } from '../pointwise/arithmetic.ts'
import { sum } from '../reduction/sum.ts'
import { contiguous, squeeze, unsqueeze } from '../view/index.ts'
import { runConvGemm } from './convGemm.ts'
import { runConvLoops } from './convLoops.ts'
import { convGeometry, pair, windowCount } from './convShapes.ts'
import type { ConvGeometry, Pair } from './convShapes.ts'
import { constantPadNd } from '../join.ts'

const CONV2D = 'torch.nn.functional.conv2d'

/** Options of convolutions. */
export interface ConvOptions {
  readonly stride?: Pair
  /** Zeros around the input; 'same' keeps the size (stride 1), 'valid' is 0. */
  readonly padding?: Pair | 'same' | 'valid'
  readonly dilation?: Pair
  readonly groups?: number
}

type ConvArgs = [input: Tensor, weight: Tensor, bias: Tensor | null, stride: Pair, padding: Pair, dilation: Pair, groups: number]

const run = (direction: 'forward' | 'input' | 'weight', geometry: ConvGeometry, tensors: readonly Tensor[], input: Tensor): void =>
  ((tensors[0] as Tensor).dtype === 'float32' ? runConvGemm : runConvLoops)(direction, geometry, tensors, input)

function convMeta(...[input, weight, bias, stride, padding, dilation, groups]: ConvArgs): TensorSpec {
  const g = convGeometry(CONV2D, input, weight, bias, stride, padding, dilation, groups)
  return { shape: [g.batch, g.groups * g.features, g.outHeight, g.outWidth], dtype: input.dtype }
}

/** Gradients of a convolution: [input, weight], each only where asked for (else an empty tensor); the bias' gradient is a sum. Internal. */
export const convolutionBackward: OpFunction<
  (
    grad: Tensor,
    input: Tensor,
    weight: Tensor,
    stride: Pair,
    padding: Pair,
    dilation: Pair,
    groups: number,
    needInput: boolean,
    needWeight: boolean,
  ) => readonly Tensor[]
> = defineOp({
  schema:
    'convolution_backward(Tensor grad, Tensor input, Tensor weight, int[2] stride, int[2] padding, int[2] dilation, int groups, bool need_input, bool need_weight) -> (Tensor, Tensor)',
  namespace: 'torch.ops.tensorfx',
  template: 'convolution_weight_gradient',
  meta: (
    _g: Tensor,
    input: Tensor,
    weight: Tensor,
    _s: Pair,
    _p: Pair,
    _d: Pair,
    _groups: number,
    needInput: boolean,
    needWeight: boolean,
  ): readonly TensorSpec[] => [
    { shape: needInput ? input.shape : [0], dtype: input.dtype },
    { shape: needWeight ? weight.shape : [0], dtype: weight.dtype },
  ],
  kernel: (
    grad: Tensor,
    input: Tensor,
    weight: Tensor,
    stride: Pair,
    padding: Pair,
    dilation: Pair,
    groups: number,
    needInput: boolean,
    needWeight: boolean,
  ): readonly Tensor[] => {
    const geometry = convGeometry(CONV2D, input, weight, null, stride, padding, dilation, groups)
    const g = contiguous(grad)
    const gi = Tensor.empty(needInput ? input.shape : [0], input.dtype)
    const gw = Tensor.empty(needWeight ? weight.shape : [0], weight.dtype)
    if (needInput) run('input', geometry, [gi, g, contiguous(weight)], gi)
    if (needWeight) run('weight', geometry, [gw, g, input], input)
    return [gi, gw]
  },
  // Both gradients are bilinear in (grad, weight) and (grad, input), so their derivatives are convolutions again.
  derivative: ([ggi, ggw], { args, needs }) => {
    const [grad, input, weight, stride, padding, dilation, groups] = args as unknown as [Tensor, Tensor, Tensor, Pair, Pair, Pair, number]
    const rest = [stride, padding, dilation, groups] as const
    const usedInput = ggi !== null && ggi !== undefined && ggi.numel > 0
    const usedWeight = ggw !== null && ggw !== undefined && ggw.numel > 0
    const byWeight = usedInput ? convolution(ggi, weight, null, ...rest) : null
    const byInput = usedWeight ? convolution(input, ggw, null, ...rest) : null
    const gGrad = byWeight !== null && byInput !== null ? add(byWeight, byInput) : (byWeight ?? byInput)
    const gInput = usedWeight && needs[1] === true ? (convolutionBackward(grad, input, ggw, ...rest, true, false)[0] as Tensor) : null
    const gWeight = usedInput && needs[2] === true ? (convolutionBackward(grad, ggi, weight, ...rest, false, true)[1] as Tensor) : null
    return [gGrad, gInput, gWeight, null, null, null, null, null, null]
  },
})

/** The two-dimensional convolution (cross-correlation) of NCHW input with OIHW weight. Internal: `conv2d` is the public form. */
export const convolution: OpFunction<
  (input: Tensor, weight: Tensor, bias: Tensor | null, stride: Pair, padding: Pair, dilation: Pair, groups: number) => Tensor
> = defineOp({
  schema: 'convolution(Tensor input, Tensor weight, Tensor? bias, int[2] stride, int[2] padding, int[2] dilation, int groups) -> Tensor',
  namespace: 'torch.ops.tensorfx',
  tags: ['template'],
  template: 'convolution',
  meta: convMeta,
  kernel: (...args: ConvArgs): Tensor => {
    const [input, weight, bias, stride, padding, dilation, groups] = args
    const geometry = convGeometry(CONV2D, input, weight, bias, stride, padding, dilation, groups)
    const out = Tensor.empty([geometry.batch, groups * geometry.features, geometry.outHeight, geometry.outWidth], input.dtype)
    run('forward', geometry, bias === null ? [out, input, contiguous(weight)] : [out, input, contiguous(weight), contiguous(bias)], input)
    return out
  },
  derivative: ([g], { args, needs }) => {
    const [input, weight, , stride, padding, dilation, groups] = args as unknown as ConvArgs
    const grad = g as Tensor
    const [gi, gw] =
      needs[0] === true || needs[1] === true
        ? convolutionBackward(grad, input, weight, stride, padding, dilation, groups, needs[0] === true, needs[1] === true)
        : [null, null]
    return [
      needs[0] === true ? (gi as Tensor) : null,
      needs[1] === true ? (gw as Tensor) : null,
      needs[2] === true ? sum(grad, [0, 2, 3]) : null,
      null,
      null,
      null,
      null,
    ]
  },
})

/** Padding that keeps the size; where the total is odd, the extra zero goes to the end, as in PyTorch. */
function samePadding(
  op: string,
  input: Tensor,
  kernel: readonly [number, number],
  stride: readonly [number, number],
  dilation: readonly [number, number],
): [Tensor, [number, number]] {
  if (stride[0] !== 1 || stride[1] !== 1)
    throw new ArgumentError(`${op}: padding 'same' needs stride 1, got [${stride.join(', ')}]. Give the padding as a number.`)
  const total = [dilation[0] * (kernel[0] - 1), dilation[1] * (kernel[1] - 1)] as const
  const half: [number, number] = [total[0] >> 1, total[1] >> 1]
  const odd = [total[0] & 1, total[1] & 1] as const
  return [odd[0] + odd[1] === 0 ? input : constantPadNd(input, [0, odd[1], 0, odd[0]], 0), half]
}

function conv2dDecompose(
  input: Tensor,
  weight: Tensor,
  bias: Tensor | null,
  stride: Pair,
  padding: Pair | 'same' | 'valid',
  dilation: Pair,
  groups: number,
): Tensor {
  if (input.ndim === 3) return squeeze(conv2dDecompose(unsqueeze(input, 0), weight, bias, stride, padding, dilation, groups), 0)
  const s = pair(CONV2D, 'stride', stride, 1)
  const d = pair(CONV2D, 'dilation', dilation, 1)
  if (padding === 'same' && weight.ndim === 4 && input.ndim === 4) {
    const [padded, half] = samePadding(CONV2D, input, [weight.shape[2] as number, weight.shape[3] as number], s, d)
    return convolution(padded, weight, bias, s, half, d, groups)
  }
  if (typeof padding === 'string' && padding !== 'valid' && padding !== 'same') {
    throw new ArgumentError(`${CONV2D}: padding must be a number, two numbers, 'same' or 'valid', got '${String(padding)}'.`)
  }
  return convolution(input, weight, bias, s, pair(CONV2D, 'padding', typeof padding === 'string' ? 0 : padding, 0), d, groups)
}

function conv2dMeta(
  input: Tensor,
  weight: Tensor,
  bias: Tensor | null,
  stride: Pair,
  padding: Pair | 'same' | 'valid',
  dilation: Pair,
  groups: number,
): TensorSpec {
  if (padding === 'same') return { shape: [...input.shape.slice(0, -3), weight.shape[0] as number, ...input.shape.slice(-2)], dtype: input.dtype }
  const batched = input.ndim === 3 ? Tensor.fake({ shape: [1, ...input.shape], dtype: input.dtype }) : input
  const spec = convMeta(batched, weight, bias, stride, padding === 'valid' ? 0 : padding, dilation, groups)
  return input.ndim === 3 ? { shape: spec.shape.slice(1), dtype: spec.dtype } : spec
}

type Conv = {
  (input: Tensor, weight: Tensor, bias?: Tensor | null, stride?: Pair, padding?: Pair | 'same' | 'valid', dilation?: Pair, groups?: number): Tensor
  (input: Tensor, weight: Tensor, bias: Tensor | null | undefined, options: ConvOptions): Tensor
  (input: Tensor, weight: Tensor, options: ConvOptions & { readonly bias?: Tensor | null }): Tensor
}

/**
 * Two-dimensional convolution: input [N, C, H, W] (or [C, H, W]), weight [O, C / groups, KH, KW], bias [O]. PyTorch's `F.conv2d`.
 * Throws ShapeError where channels or sizes do not fit.
 */
export const conv2d: OpFunction<Conv> = defineOp({
  schema: 'conv2d(Tensor input, Tensor weight, Tensor? bias=None, any stride=1, any padding=0, any dilation=1, int groups=1) -> Tensor',
  namespace: 'torch.nn.functional',
  meta: conv2dMeta,
  decompose: conv2dDecompose,
})

const CONV1D = 'torch.nn.functional.conv1d'
const single = (name: string, value: Pair): number => (typeof value === 'number' ? value : (value[0] ?? fail(name, value)))
function fail(name: string, value: Pair): never {
  throw new ArgumentError(`${CONV1D}: ${name} must be a number or a list of one, got ${JSON.stringify(value)}.`)
}

/** One-dimensional convolution: input [N, C, L], weight [O, C / groups, K]; runs as a convolution of height 1. PyTorch's `F.conv1d`. */
export const conv1d: OpFunction<Conv> = defineOp({
  schema: 'conv1d(Tensor input, Tensor weight, Tensor? bias=None, any stride=1, any padding=0, any dilation=1, int groups=1) -> Tensor',
  namespace: 'torch.nn.functional',
  meta: (input: Tensor, weight: Tensor, _bias: Tensor | null, stride: Pair, padding: Pair | 'same' | 'valid', dilation: Pair): TensorSpec => {
    const length = input.shape[input.ndim - 1] as number
    const pad = padding === 'valid' ? 0 : padding === 'same' ? 0 : single('padding', padding)
    const count =
      padding === 'same' ? length : windowCount(length, weight.shape[2] as number, single('stride', stride), pad, single('dilation', dilation))
    return { shape: [...input.shape.slice(0, -2), weight.shape[0] as number, count], dtype: input.dtype }
  },
  decompose: (
    input: Tensor,
    weight: Tensor,
    bias: Tensor | null,
    stride: Pair,
    padding: Pair | 'same' | 'valid',
    dilation: Pair,
    groups: number,
  ): Tensor => {
    if ((input.ndim !== 3 && input.ndim !== 2) || weight.ndim !== 3) {
      throw new ShapeError(
        `${CONV1D}: expected input [batch, channels, length] and weight [outChannels, inChannels / groups, kernel], got shapes ${formatShape(input.shape)} and ${formatShape(weight.shape)}.`,
      )
    }
    const pad: Pair | 'same' | 'valid' = typeof padding === 'string' ? padding : [0, single('padding', padding)]
    const out = conv2d(
      unsqueeze(input, -2),
      unsqueeze(weight, -2),
      bias,
      [1, single('stride', stride)],
      pad,
      [1, single('dilation', dilation)],
      groups,
    )
    return squeeze(out, -2)
  },
})

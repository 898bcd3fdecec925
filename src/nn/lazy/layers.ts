// The lazy linear layers and convolutions of torch.nn: inFeatures and inChannels follow from the first input.
import { isPlainObject } from '../../protocol/index.ts'
import type { Pair } from '../../ops/index.ts'
import { getRngState } from '../../tensor/index.ts'
import { Conv1d, Conv2d, Conv3d } from '../conv/conv.ts'
import type { ConvArguments } from '../conv/conv.ts'
import { ConvTranspose1d, ConvTranspose2d, ConvTranspose3d } from '../conv/convTranspose.ts'
import type { ConvTransposeArguments } from '../conv/convTranspose.ts'
import { conv1d, conv2d, conv3d, convTranspose1d, convTranspose2d, convTranspose3d } from '../functional.ts'
import { Linear } from '../linear.ts'
import type { LinearOptions } from '../linear.ts'
import { readRequired } from '../options.ts'
import type { Named, Trailing } from '../options.ts'
import { makeLazy, ordinary, spatialChannels } from './lazy.ts'
import type { LazyFamily } from './lazy.ts'
import type { FunctionFacts, LayerFacts } from '../layerFacts.ts'

/** The options of a convolution, from its properties. */
const convOptions = ({ stride, padding, dilation, groups, bias, paddingMode, weight }: Conv1d | Conv2d | Conv3d) => ({
  stride,
  padding,
  dilation,
  groups,
  bias: bias !== null,
  paddingMode,
  dtype: weight.dtype,
})

const transposedOptions = (layer: ConvTranspose1d | ConvTranspose2d | ConvTranspose3d) => {
  const { stride, padding, outputPadding, dilation, groups, bias, weight } = layer
  return { stride, padding, outputPadding, dilation, groups, bias: bias !== null, dtype: weight.dtype }
}

/** The arguments of a lazy convolution whose others, after the kernel size, are `A`. */
type LazyConvArguments<A extends readonly unknown[]> =
  | [outChannels: number, kernelSize: Pair, ...options: A]
  | Named<[['outChannels', number], ['kernelSize', Pair]], A>

/** The place of `groups` among the optional arguments of convolutions, transposed or not. */
const GROUPS = 3

/** The arguments of the ordinary convolution: as many input channels as there are groups, until the first input comes. */
function withInputs<A extends readonly unknown[]>(where: string, args: readonly unknown[]): readonly [number, number, Pair, ...A] {
  const [outChannels, kernelSize, ...options] = readRequired<[outChannels: number, kernelSize: Pair], A>(where, ['outChannels', 'kernelSize'], args)
  const last: unknown = options.at(-1)
  const groups: unknown = (isPlainObject(last) ? last['groups'] : undefined) ?? options[GROUPS]
  return [typeof groups === 'number' ? groups : 1, outChannels, kernelSize, ...options]
}

const CONVOLUTION: LazyFamily<Conv1d | Conv2d | Conv3d> = {
  property: 'inChannels',
  sizeOf: spatialChannels,
  sizeIn: ({ groups }, name, tensor) => (name === 'weight' ? (tensor.shape[1] ?? 0) * groups : null),
  make(layer, size) {
    const Ordinary = ordinary([Conv1d, Conv2d, Conv3d], layer.constructor.layer)
    return new Ordinary(size, layer.outChannels, layer.kernelSize, convOptions(layer))
  },
}

const TRANSPOSED: LazyFamily<ConvTranspose1d | ConvTranspose2d | ConvTranspose3d> = {
  property: 'inChannels',
  sizeOf: spatialChannels,
  sizeIn: (_, name, tensor) => (name === 'weight' ? (tensor.shape[0] ?? null) : null),
  make(layer, size) {
    const Ordinary = ordinary([ConvTranspose1d, ConvTranspose2d, ConvTranspose3d], layer.constructor.layer)
    return new Ordinary(size, layer.outChannels, layer.kernelSize, transposedOptions(layer))
  },
}

const LINEAR: LazyFamily<Linear> = {
  property: 'inFeatures',
  sizeOf: (_, input) => input.shape.at(-1) ?? 0,
  sizeIn: (_, name, tensor) => (name === 'weight' ? (tensor.shape[1] ?? null) : null),
  make: ({ outFeatures, bias, weight }, size) => new Linear(size, outFeatures, { bias: bias !== null, dtype: weight.dtype }),
}

/** {@link Linear} whose `inFeatures` follows from the first input. PyTorch's `nn.LazyLinear`. */
export class LazyLinear extends Linear {
  /** @internal */
  static override readonly layer: LayerFacts = { name: 'nn.LazyLinear' }

  constructor(outFeatures: number, ...options: Trailing<[bias: boolean], LinearOptions>)
  constructor(...args: Named<[['outFeatures', number]], Trailing<[bias: boolean], LinearOptions>>)
  constructor(...args: readonly unknown[]) {
    const [outFeatures, ...options] = readRequired<[outFeatures: number], Trailing<[bias: boolean], LinearOptions>>(
      'nn.LazyLinear',
      ['outFeatures'],
      args,
    )
    const state = getRngState()
    super(1, outFeatures, ...options)
    makeLazy(this, LINEAR, state)
  }
}

/** {@link Conv1d} whose `inChannels` follows from the first input. PyTorch's `nn.LazyConv1d`. */
export class LazyConv1d extends Conv1d {
  /** @internal */
  static override readonly layer: FunctionFacts<typeof conv1d> = { name: 'nn.LazyConv1d', spatial: 1, fn: conv1d }

  constructor(...args: LazyConvArguments<ConvArguments>) {
    const state = getRngState()
    const [inChannels, outChannels, kernelSize, ...options] = withInputs<ConvArguments>(new.target.layer.name, args)
    super(inChannels, outChannels, kernelSize, ...options)
    makeLazy(this, CONVOLUTION, state)
  }
}

/** {@link Conv2d} whose `inChannels` follows from the first input. PyTorch's `nn.LazyConv2d`. */
export class LazyConv2d extends Conv2d {
  /** @internal */
  static override readonly layer: FunctionFacts<typeof conv2d> = { name: 'nn.LazyConv2d', spatial: 2, fn: conv2d }

  constructor(...args: LazyConvArguments<ConvArguments>) {
    const state = getRngState()
    const [inChannels, outChannels, kernelSize, ...options] = withInputs<ConvArguments>(new.target.layer.name, args)
    super(inChannels, outChannels, kernelSize, ...options)
    makeLazy(this, CONVOLUTION, state)
  }
}

/** {@link Conv3d} whose `inChannels` follows from the first input. PyTorch's `nn.LazyConv3d`. */
export class LazyConv3d extends Conv3d {
  /** @internal */
  static override readonly layer: FunctionFacts<typeof conv3d> = { name: 'nn.LazyConv3d', spatial: 3, fn: conv3d }

  constructor(...args: LazyConvArguments<ConvArguments>) {
    const state = getRngState()
    const [inChannels, outChannels, kernelSize, ...options] = withInputs<ConvArguments>(new.target.layer.name, args)
    super(inChannels, outChannels, kernelSize, ...options)
    makeLazy(this, CONVOLUTION, state)
  }
}

/** {@link ConvTranspose1d} whose `inChannels` follows from the first input. PyTorch's `nn.LazyConvTranspose1d`. */
export class LazyConvTranspose1d extends ConvTranspose1d {
  /** @internal */
  static override readonly layer: FunctionFacts<typeof convTranspose1d> = { name: 'nn.LazyConvTranspose1d', spatial: 1, fn: convTranspose1d }

  constructor(...args: LazyConvArguments<ConvTransposeArguments>) {
    const state = getRngState()
    const [inChannels, outChannels, kernelSize, ...options] = withInputs<ConvTransposeArguments>(new.target.layer.name, args)
    super(inChannels, outChannels, kernelSize, ...options)
    makeLazy(this, TRANSPOSED, state)
  }
}

/** {@link ConvTranspose2d} whose `inChannels` follows from the first input. PyTorch's `nn.LazyConvTranspose2d`. */
export class LazyConvTranspose2d extends ConvTranspose2d {
  /** @internal */
  static override readonly layer: FunctionFacts<typeof convTranspose2d> = { name: 'nn.LazyConvTranspose2d', spatial: 2, fn: convTranspose2d }

  constructor(...args: LazyConvArguments<ConvTransposeArguments>) {
    const state = getRngState()
    const [inChannels, outChannels, kernelSize, ...options] = withInputs<ConvTransposeArguments>(new.target.layer.name, args)
    super(inChannels, outChannels, kernelSize, ...options)
    makeLazy(this, TRANSPOSED, state)
  }
}

/** {@link ConvTranspose3d} whose `inChannels` follows from the first input. PyTorch's `nn.LazyConvTranspose3d`. */
export class LazyConvTranspose3d extends ConvTranspose3d {
  /** @internal */
  static override readonly layer: FunctionFacts<typeof convTranspose3d> = { name: 'nn.LazyConvTranspose3d', spatial: 3, fn: convTranspose3d }

  constructor(...args: LazyConvArguments<ConvTransposeArguments>) {
    const state = getRngState()
    const [inChannels, outChannels, kernelSize, ...options] = withInputs<ConvTransposeArguments>(new.target.layer.name, args)
    super(inChannels, outChannels, kernelSize, ...options)
    makeLazy(this, TRANSPOSED, state)
  }
}

// The lazy linear layers and convolutions of torch.nn: inFeatures and inChannels follow from the first input.
import { checkCount } from '../../protocol/index.ts'
import type { Module } from '../../module/index.ts'
import type { Pair } from '../../ops/index.ts'
import { getRngState } from '../../tensor/index.ts'
import type { Tensor } from '../../tensor/index.ts'
import { Conv1d, Conv2d, Conv3d } from '../conv/conv.ts'
import type { ConvArguments } from '../conv/conv.ts'
import { ConvTranspose1d, ConvTranspose2d, ConvTranspose3d } from '../conv/convTranspose.ts'
import type { ConvTransposeArguments } from '../conv/convTranspose.ts'
import { conv1d, conv2d, conv3d, convTranspose1d, convTranspose2d, convTranspose3d } from '../functional.ts'
import { Linear } from '../linear.ts'
import type { LinearOptions } from '../linear.ts'
import { readRequired } from '../options.ts'
import type { Named, OutputSize, Trailing } from '../options.ts'
import { channelsOf, groupsIn, initialize, uninitialize } from './lazy.ts'
import type { Lazy, LazyFamily } from './lazy.ts'
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

const transposedOptions = ({
  stride,
  padding,
  outputPadding,
  dilation,
  groups,
  bias,
  weight,
}: ConvTranspose1d | ConvTranspose2d | ConvTranspose3d) => ({
  stride,
  ...(typeof padding === 'string' ? {} : { padding }),
  outputPadding,
  dilation,
  groups,
  bias: bias !== null,
  dtype: weight.dtype,
})

/** The arguments of a lazy convolution whose others, after the kernel size, are `A`. */
type LazyConvArguments<A extends readonly unknown[]> =
  | [outChannels: number, kernelSize: Pair, ...options: A]
  | Named<[['outChannels', number], ['kernelSize', Pair]], A>

function readLazyConv<A extends readonly unknown[]>(where: string, args: readonly unknown[]): readonly [number, Pair, ...A] {
  return readRequired<[outChannels: number, kernelSize: Pair], A>(where, ['outChannels', 'kernelSize'], args)
}

const CONVOLUTION: LazyFamily<Lazy & { readonly groups: number }> = {
  property: 'inChannels',
  sizeIn: (name, tensor, { groups }) => (name === 'weight' ? (tensor.shape[1] ?? 0) * groups : null),
}

const TRANSPOSED: LazyFamily = { property: 'inChannels', sizeIn: (name, tensor) => (name === 'weight' ? (tensor.shape[0] ?? null) : null) }

const LINEAR: LazyFamily = { property: 'inFeatures', sizeIn: (name, tensor) => (name === 'weight' ? (tensor.shape[1] ?? null) : null) }

/** {@link Linear} whose `inFeatures` follows from the first input. PyTorch's `nn.LazyLinear`. */
export class LazyLinear extends Linear implements Lazy {
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
    uninitialize(this, LINEAR, state)
  }

  sized(size: number): Module {
    return new Linear(size, this.outFeatures, { bias: this.bias !== null, dtype: this.weight.dtype })
  }

  override forward(input: Tensor): Tensor {
    checkCount(this, arguments, 1)
    initialize(this, input.shape.at(-1) ?? 0)
    return super.forward(input)
  }
}

/** {@link Conv1d} whose `inChannels` follows from the first input. PyTorch's `nn.LazyConv1d`. */
export class LazyConv1d extends Conv1d implements Lazy {
  /** @internal */
  static override readonly layer: FunctionFacts<typeof conv1d> = { name: 'nn.LazyConv1d', spatial: 1, fn: conv1d }

  constructor(...args: LazyConvArguments<ConvArguments>) {
    const [outChannels, kernelSize, ...options] = readLazyConv<ConvArguments>(new.target.layer.name, args)
    const state = getRngState()
    super(groupsIn(options), outChannels, kernelSize, ...options)
    uninitialize(this, CONVOLUTION, state)
  }

  sized(size: number): Module {
    return new Conv1d(size, this.outChannels, this.kernelSize, convOptions(this))
  }

  override forward(input: Tensor): Tensor {
    checkCount(this, arguments, 1)
    initialize(this, channelsOf(LazyConv1d.layer.name, input, [3], 2))
    return super.forward(input)
  }
}

/** {@link Conv2d} whose `inChannels` follows from the first input. PyTorch's `nn.LazyConv2d`. */
export class LazyConv2d extends Conv2d implements Lazy {
  /** @internal */
  static override readonly layer: FunctionFacts<typeof conv2d> = { name: 'nn.LazyConv2d', spatial: 2, fn: conv2d }

  constructor(...args: LazyConvArguments<ConvArguments>) {
    const [outChannels, kernelSize, ...options] = readLazyConv<ConvArguments>(new.target.layer.name, args)
    const state = getRngState()
    super(groupsIn(options), outChannels, kernelSize, ...options)
    uninitialize(this, CONVOLUTION, state)
  }

  sized(size: number): Module {
    return new Conv2d(size, this.outChannels, this.kernelSize, convOptions(this))
  }

  override forward(input: Tensor): Tensor {
    checkCount(this, arguments, 1)
    initialize(this, channelsOf(LazyConv2d.layer.name, input, [4], 3))
    return super.forward(input)
  }
}

/** {@link Conv3d} whose `inChannels` follows from the first input. PyTorch's `nn.LazyConv3d`. */
export class LazyConv3d extends Conv3d implements Lazy {
  /** @internal */
  static override readonly layer: FunctionFacts<typeof conv3d> = { name: 'nn.LazyConv3d', spatial: 3, fn: conv3d }

  constructor(...args: LazyConvArguments<ConvArguments>) {
    const [outChannels, kernelSize, ...options] = readLazyConv<ConvArguments>(new.target.layer.name, args)
    const state = getRngState()
    super(groupsIn(options), outChannels, kernelSize, ...options)
    uninitialize(this, CONVOLUTION, state)
  }

  sized(size: number): Module {
    return new Conv3d(size, this.outChannels, this.kernelSize, convOptions(this))
  }

  override forward(input: Tensor): Tensor {
    checkCount(this, arguments, 1)
    initialize(this, channelsOf(LazyConv3d.layer.name, input, [5], 4))
    return super.forward(input)
  }
}

/** {@link ConvTranspose1d} whose `inChannels` follows from the first input. PyTorch's `nn.LazyConvTranspose1d`. */
export class LazyConvTranspose1d extends ConvTranspose1d implements Lazy {
  /** @internal */
  static override readonly layer: FunctionFacts<typeof convTranspose1d> = { name: 'nn.LazyConvTranspose1d', spatial: 1, fn: convTranspose1d }

  constructor(...args: LazyConvArguments<ConvTransposeArguments>) {
    const [outChannels, kernelSize, ...options] = readLazyConv<ConvTransposeArguments>(new.target.layer.name, args)
    const state = getRngState()
    super(groupsIn(options), outChannels, kernelSize, ...options)
    uninitialize(this, TRANSPOSED, state)
  }

  sized(size: number): Module {
    return new ConvTranspose1d(size, this.outChannels, this.kernelSize, transposedOptions(this))
  }

  override forward(input: Tensor, outputSize: OutputSize = null): Tensor {
    checkCount(this, arguments, 2)
    initialize(this, channelsOf(LazyConvTranspose1d.layer.name, input, [3], 2))
    return super.forward(input, outputSize)
  }
}

/** {@link ConvTranspose2d} whose `inChannels` follows from the first input. PyTorch's `nn.LazyConvTranspose2d`. */
export class LazyConvTranspose2d extends ConvTranspose2d implements Lazy {
  /** @internal */
  static override readonly layer: FunctionFacts<typeof convTranspose2d> = { name: 'nn.LazyConvTranspose2d', spatial: 2, fn: convTranspose2d }

  constructor(...args: LazyConvArguments<ConvTransposeArguments>) {
    const [outChannels, kernelSize, ...options] = readLazyConv<ConvTransposeArguments>(new.target.layer.name, args)
    const state = getRngState()
    super(groupsIn(options), outChannels, kernelSize, ...options)
    uninitialize(this, TRANSPOSED, state)
  }

  sized(size: number): Module {
    return new ConvTranspose2d(size, this.outChannels, this.kernelSize, transposedOptions(this))
  }

  override forward(input: Tensor, outputSize: OutputSize = null): Tensor {
    checkCount(this, arguments, 2)
    initialize(this, channelsOf(LazyConvTranspose2d.layer.name, input, [4], 3))
    return super.forward(input, outputSize)
  }
}

/** {@link ConvTranspose3d} whose `inChannels` follows from the first input. PyTorch's `nn.LazyConvTranspose3d`. */
export class LazyConvTranspose3d extends ConvTranspose3d implements Lazy {
  /** @internal */
  static override readonly layer: FunctionFacts<typeof convTranspose3d> = { name: 'nn.LazyConvTranspose3d', spatial: 3, fn: convTranspose3d }

  constructor(...args: LazyConvArguments<ConvTransposeArguments>) {
    const [outChannels, kernelSize, ...options] = readLazyConv<ConvTransposeArguments>(new.target.layer.name, args)
    const state = getRngState()
    super(groupsIn(options), outChannels, kernelSize, ...options)
    uninitialize(this, TRANSPOSED, state)
  }

  sized(size: number): Module {
    return new ConvTranspose3d(size, this.outChannels, this.kernelSize, transposedOptions(this))
  }

  override forward(input: Tensor, outputSize: OutputSize = null): Tensor {
    checkCount(this, arguments, 2)
    initialize(this, channelsOf(LazyConvTranspose3d.layer.name, input, [5], 4))
    return super.forward(input, outputSize)
  }
}

// The lazy norms of torch.nn: numFeatures follows from the first input.
import { checkCount } from '../../protocol/index.ts'
import type { Module } from '../../module/index.ts'
import { getRngState } from '../../tensor/index.ts'
import type { Tensor } from '../../tensor/index.ts'
import { BatchNorm1d, BatchNorm2d, BatchNorm3d, InstanceNorm1d, InstanceNorm2d, InstanceNorm3d } from '../batchNorm.ts'
import type { BatchNormArguments } from '../batchNorm.ts'
import { channelsOf, initialize, uninitialize } from './lazy.ts'
import type { Lazy, LazyFamily } from './lazy.ts'
import type { LayerFacts, SpatialFacts } from '../layerFacts.ts'

const NORM: LazyFamily = { property: 'numFeatures', sizeIn: (_, tensor) => tensor.shape[0] ?? null }

interface Norm {
  readonly eps: number
  readonly momentum: number | null
  readonly affine: boolean
  readonly trackRunningStats: boolean
  readonly weight: Tensor | null
  readonly bias: Tensor | null
  readonly runningMean: Tensor | null
}

const normOptions = ({ eps, momentum, affine, trackRunningStats, weight, bias, runningMean }: Norm) => {
  const like = weight ?? runningMean
  return { eps, momentum, affine, trackRunningStats, bias: weight === null || bias !== null, ...(like === null ? {} : { dtype: like.dtype }) }
}

/** {@link BatchNorm1d} whose `numFeatures` follows from the first input. PyTorch's `nn.LazyBatchNorm1d`. */
export class LazyBatchNorm1d extends BatchNorm1d implements Lazy {
  /** @internal */
  static override readonly layer: LayerFacts = { name: 'nn.LazyBatchNorm1d' }

  constructor(...options: BatchNormArguments) {
    const state = getRngState()
    super(1, ...options)
    uninitialize(this, NORM, state)
  }

  sized(size: number): Module {
    return new BatchNorm1d(size, normOptions(this))
  }

  override forward(input: Tensor): Tensor {
    checkCount(this, arguments, 1)
    initialize(this, channelsOf(LazyBatchNorm1d.layer.name, input, [2, 3], null))
    return super.forward(input)
  }
}

/** {@link BatchNorm2d} whose `numFeatures` follows from the first input. PyTorch's `nn.LazyBatchNorm2d`. */
export class LazyBatchNorm2d extends BatchNorm2d implements Lazy {
  /** @internal */
  static override readonly layer: LayerFacts = { name: 'nn.LazyBatchNorm2d' }

  constructor(...options: BatchNormArguments) {
    const state = getRngState()
    super(1, ...options)
    uninitialize(this, NORM, state)
  }

  sized(size: number): Module {
    return new BatchNorm2d(size, normOptions(this))
  }

  override forward(input: Tensor): Tensor {
    checkCount(this, arguments, 1)
    initialize(this, channelsOf(LazyBatchNorm2d.layer.name, input, [4], null))
    return super.forward(input)
  }
}

/** {@link BatchNorm3d} whose `numFeatures` follows from the first input. PyTorch's `nn.LazyBatchNorm3d`. */
export class LazyBatchNorm3d extends BatchNorm3d implements Lazy {
  /** @internal */
  static override readonly layer: LayerFacts = { name: 'nn.LazyBatchNorm3d' }

  constructor(...options: BatchNormArguments) {
    const state = getRngState()
    super(1, ...options)
    uninitialize(this, NORM, state)
  }

  sized(size: number): Module {
    return new BatchNorm3d(size, normOptions(this))
  }

  override forward(input: Tensor): Tensor {
    checkCount(this, arguments, 1)
    initialize(this, channelsOf(LazyBatchNorm3d.layer.name, input, [5], null))
    return super.forward(input)
  }
}

/** {@link InstanceNorm1d} whose `numFeatures` follows from the first input. PyTorch's `nn.LazyInstanceNorm1d`. */
export class LazyInstanceNorm1d extends InstanceNorm1d implements Lazy {
  /** @internal */
  static override readonly layer: SpatialFacts = { name: 'nn.LazyInstanceNorm1d', spatial: 1 }

  constructor(...options: BatchNormArguments) {
    const state = getRngState()
    super(1, ...options)
    uninitialize(this, NORM, state)
  }

  sized(size: number): Module {
    return new InstanceNorm1d(size, normOptions(this))
  }

  override forward(input: Tensor): Tensor {
    checkCount(this, arguments, 1)
    initialize(this, channelsOf(LazyInstanceNorm1d.layer.name, input, [3], 2))
    return super.forward(input)
  }
}

/** {@link InstanceNorm2d} whose `numFeatures` follows from the first input. PyTorch's `nn.LazyInstanceNorm2d`. */
export class LazyInstanceNorm2d extends InstanceNorm2d implements Lazy {
  /** @internal */
  static override readonly layer: SpatialFacts = { name: 'nn.LazyInstanceNorm2d', spatial: 2 }

  constructor(...options: BatchNormArguments) {
    const state = getRngState()
    super(1, ...options)
    uninitialize(this, NORM, state)
  }

  sized(size: number): Module {
    return new InstanceNorm2d(size, normOptions(this))
  }

  override forward(input: Tensor): Tensor {
    checkCount(this, arguments, 1)
    initialize(this, channelsOf(LazyInstanceNorm2d.layer.name, input, [4], 3))
    return super.forward(input)
  }
}

/** {@link InstanceNorm3d} whose `numFeatures` follows from the first input. PyTorch's `nn.LazyInstanceNorm3d`. */
export class LazyInstanceNorm3d extends InstanceNorm3d implements Lazy {
  /** @internal */
  static override readonly layer: SpatialFacts = { name: 'nn.LazyInstanceNorm3d', spatial: 3 }

  constructor(...options: BatchNormArguments) {
    const state = getRngState()
    super(1, ...options)
    uninitialize(this, NORM, state)
  }

  sized(size: number): Module {
    return new InstanceNorm3d(size, normOptions(this))
  }

  override forward(input: Tensor): Tensor {
    checkCount(this, arguments, 1)
    initialize(this, channelsOf(LazyInstanceNorm3d.layer.name, input, [5], 4))
    return super.forward(input)
  }
}

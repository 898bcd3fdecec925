// The lazy norms of torch.nn: numFeatures follows from the first input.
import type { Tensor } from '../../tensor/index.ts'
import { BatchNorm1d, BatchNorm2d, BatchNorm3d, InstanceNorm1d, InstanceNorm2d, InstanceNorm3d, batchedRanks } from '../batchNorm.ts'
import type { BatchNormArguments } from '../batchNorm.ts'
import { channelsOf, makeLazy, ordinary, spatialChannels } from './lazy.ts'
import type { LazyFamily } from './lazy.ts'
import type { SpatialFacts } from '../layerFacts.ts'

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

/** What the families of norms share. */
const norms = { property: 'numFeatures', sizeIn: (_: Norm, __: string, tensor: Tensor): number | null => tensor.shape[0] ?? null }

const BATCH: LazyFamily<BatchNorm1d | BatchNorm2d | BatchNorm3d> = {
  ...norms,
  sizeOf(layer, input) {
    const { name, spatial } = layer.constructor.layer
    return channelsOf(name, input, batchedRanks(spatial), null)
  },
  make: (layer, size) => new (ordinary([BatchNorm1d, BatchNorm2d, BatchNorm3d], layer.constructor.layer))(size, normOptions(layer)),
}

const INSTANCE: LazyFamily<InstanceNorm1d | InstanceNorm2d | InstanceNorm3d> = {
  ...norms,
  sizeOf: spatialChannels,
  make: (layer, size) => new (ordinary([InstanceNorm1d, InstanceNorm2d, InstanceNorm3d], layer.constructor.layer))(size, normOptions(layer)),
}

/** {@link BatchNorm1d} whose `numFeatures` follows from the first input. PyTorch's `nn.LazyBatchNorm1d`. */
export class LazyBatchNorm1d extends BatchNorm1d {
  /** @internal */
  static override readonly layer: SpatialFacts = { name: 'nn.LazyBatchNorm1d', spatial: 1 }

  constructor(...options: BatchNormArguments) {
    super(1, ...options)
    makeLazy(this, BATCH)
  }
}

/** {@link BatchNorm2d} whose `numFeatures` follows from the first input. PyTorch's `nn.LazyBatchNorm2d`. */
export class LazyBatchNorm2d extends BatchNorm2d {
  /** @internal */
  static override readonly layer: SpatialFacts = { name: 'nn.LazyBatchNorm2d', spatial: 2 }

  constructor(...options: BatchNormArguments) {
    super(1, ...options)
    makeLazy(this, BATCH)
  }
}

/** {@link BatchNorm3d} whose `numFeatures` follows from the first input. PyTorch's `nn.LazyBatchNorm3d`. */
export class LazyBatchNorm3d extends BatchNorm3d {
  /** @internal */
  static override readonly layer: SpatialFacts = { name: 'nn.LazyBatchNorm3d', spatial: 3 }

  constructor(...options: BatchNormArguments) {
    super(1, ...options)
    makeLazy(this, BATCH)
  }
}

/** {@link InstanceNorm1d} whose `numFeatures` follows from the first input. PyTorch's `nn.LazyInstanceNorm1d`. */
export class LazyInstanceNorm1d extends InstanceNorm1d {
  /** @internal */
  static override readonly layer: SpatialFacts = { name: 'nn.LazyInstanceNorm1d', spatial: 1 }

  constructor(...options: BatchNormArguments) {
    super(1, ...options)
    makeLazy(this, INSTANCE)
  }
}

/** {@link InstanceNorm2d} whose `numFeatures` follows from the first input. PyTorch's `nn.LazyInstanceNorm2d`. */
export class LazyInstanceNorm2d extends InstanceNorm2d {
  /** @internal */
  static override readonly layer: SpatialFacts = { name: 'nn.LazyInstanceNorm2d', spatial: 2 }

  constructor(...options: BatchNormArguments) {
    super(1, ...options)
    makeLazy(this, INSTANCE)
  }
}

/** {@link InstanceNorm3d} whose `numFeatures` follows from the first input. PyTorch's `nn.LazyInstanceNorm3d`. */
export class LazyInstanceNorm3d extends InstanceNorm3d {
  /** @internal */
  static override readonly layer: SpatialFacts = { name: 'nn.LazyInstanceNorm3d', spatial: 3 }

  constructor(...options: BatchNormArguments) {
    super(1, ...options)
    makeLazy(this, INSTANCE)
  }
}

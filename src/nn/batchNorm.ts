// Batch normalization, with running statistics as buffers.
import { ShapeError } from '../errors/index.ts'
import type { DType } from '../kernels/index.ts'
import { noGrad } from '../autograd/index.ts'
import { Module } from '../module/index.ts'
import { empty, ones, tensor, zeros } from '../ops/index.ts'
import { Tensor, formatShape, getDefaultDtype, sizeEq } from '../tensor/index.ts'
import { channelsLastHint, checkCount, py, pyFloat } from '../protocol/index.ts'
import { batchNorm, instanceNorm } from './functional.ts'
import { ones_, zeros_ } from './init.ts'
import { checkInteger, readOptions, readRequired } from './options.ts'
import type { Named, Trailing } from './options.ts'
import { Parameter } from './parameter.ts'
import type { SpatialFacts } from './layerFacts.ts'

/** Options of {@link BatchNorm1d} and {@link BatchNorm2d}. */
export interface BatchNormLayerOptions {
  /** Added to the variance; default 1e-5. */
  readonly eps?: number
  /** Weight of the new batch in the running statistics; null for their plain average. Default 0.1. */
  readonly momentum?: number | null
  /** Learn a scale and a shift per channel. */
  readonly affine?: boolean
  /** Keep running statistics for evaluation; without, each batch's own are always used. */
  readonly trackRunningStats?: boolean
  /** Learn a shift when affine. */
  readonly bias?: boolean
  readonly dtype?: DType
}

export type BatchNormArguments = Trailing<[eps: number, momentum: number | null, affine: boolean, trackRunningStats: boolean], BatchNormLayerOptions>

/** The ranks of the inputs of a batch norm over that many spatial dimensions. */
export const batchedRanks = (spatial: number): readonly number[] => (spatial === 1 ? [2, 3] : [spatial + 2])

/** What the batch norms share. */
abstract class BatchNormLayer extends Module {
  /** @internal */
  declare static readonly layer: SpatialFacts
  /** @internal */
  declare readonly ['constructor']: typeof BatchNormLayer
  /** @internal Whether a scale is learned and statistics are kept if the options do not say. */
  static readonly usual: boolean = true

  /** Attributes that FxGraphDrawer prints, in this order; PyTorch's `__constants__`. */
  static readonly constants: readonly string[] = ['track_running_stats', 'momentum', 'eps', 'num_features', 'affine']
  readonly numFeatures: number
  readonly eps: number
  momentum: number | null
  readonly affine: boolean
  readonly trackRunningStats: boolean
  /** [numFeatures] */
  weight: Parameter | null
  /** [numFeatures] */
  bias: Parameter | null
  declare runningMean: Tensor | null
  declare runningVar: Tensor | null
  /** How many batches the running statistics have seen (an int64 scalar). */
  declare numBatchesTracked: Tensor | null

  constructor(numFeatures: number, ...options: BatchNormArguments)
  constructor(...args: Named<[['numFeatures', number]], BatchNormArguments>)
  constructor(...args: readonly unknown[]) {
    const where = new.target.layer.name
    const { usual } = new.target
    const [numFeatures, ...options] = readRequired<[numFeatures: number]>(where, ['numFeatures'], args)
    super()
    const defaults: Required<BatchNormLayerOptions> = {
      eps: 1e-5,
      momentum: 0.1,
      affine: usual,
      trackRunningStats: usual,
      bias: true,
      dtype: getDefaultDtype(),
    }
    const { eps, momentum, affine, trackRunningStats, bias, dtype } = readOptions(where, defaults, options)
    checkInteger(where, 'numFeatures', numFeatures)
    this.numFeatures = numFeatures
    this.eps = eps
    this.momentum = momentum
    this.affine = affine
    this.trackRunningStats = trackRunningStats
    this.weight = affine ? new Parameter(empty([numFeatures], { dtype })) : null
    this.bias = affine && bias ? new Parameter(empty([numFeatures], { dtype })) : null
    this.registerBuffer('runningMean', trackRunningStats ? zeros([numFeatures], { dtype }) : null)
    this.registerBuffer('runningVar', trackRunningStats ? ones([numFeatures], { dtype }) : null)
    this.registerBuffer('numBatchesTracked', trackRunningStats ? tensor(0, { dtype: 'int64' }) : null)
    if (this.weight !== null) ones_(this.weight)
    if (this.bias !== null) zeros_(this.bias)
  }

  /** Statistics as of a new layer. */
  resetRunningStats(): void {
    if (this.runningMean !== null) zeros_(this.runningMean)
    if (this.runningVar !== null) ones_(this.runningVar)
    if (this.numBatchesTracked !== null) zeros_(this.numBatchesTracked)
  }

  /** Scale 1, shift 0, new statistics. */
  resetParameters(): void {
    this.resetRunningStats()
    if (this.weight !== null) ones_(this.weight)
    if (this.bias !== null) zeros_(this.bias)
  }

  /** Throws ShapeError for an input of the wrong number of dimensions or channels. */
  protected checkInput(input: Tensor): void {
    const { name, spatial } = this.constructor.layer
    const { numFeatures } = this
    const ranks = batchedRanks(spatial)
    if (ranks.includes(input.ndim) && sizeEq(input.symSizes[1], numFeatures)) return
    const form = ['[N, C] or [N, C, L]', '[N, C, H, W]', '[N, C, D, H, W]'][spatial - 1] ?? ''
    const hint = channelsLastHint('input', input.shape, numFeatures)
    throw new ShapeError(`${name}: expected input ${form} with ${numFeatures} channels, got shape ${formatShape(input.shape)}.${hint}`)
  }

  override forward(input: Tensor): Tensor {
    checkCount(this, arguments, 1)
    // A traced value has no shape to look at.
    if (input instanceof Tensor) this.checkInput(input)
    let momentum = this.momentum ?? 0
    if (this.training && this.trackRunningStats && this.numBatchesTracked !== null) {
      const count = this.numBatchesTracked
      noGrad(() => count.add_(1))
      if (this.momentum === null) momentum = 1 / Number(count.item())
    }
    const { runningMean, runningVar, weight, bias, eps } = this
    const training = this.training || (runningMean === null && runningVar === null)
    const update = !this.training || this.trackRunningStats
    return batchNorm(input, update ? runningMean : null, update ? runningVar : null, { weight, bias, training, momentum, eps })
  }

  override extraRepr(): string {
    const { numFeatures, eps, momentum, affine, trackRunningStats } = this
    const bias = py(!affine || this.bias !== null)
    return `${numFeatures}, eps=${pyFloat(eps)}, momentum=${momentum === null ? 'None' : pyFloat(momentum)}, affine=${py(affine)}, bias=${bias}, track_running_stats=${py(trackRunningStats)}`
  }
}

/** Normalizes each channel of [N, C] or [N, C, L]. PyTorch's `nn.BatchNorm1d`. */
export class BatchNorm1d extends BatchNormLayer {
  /** @internal */
  static override readonly layer: SpatialFacts = { name: 'nn.BatchNorm1d', spatial: 1 }
}

/** Normalizes each channel of [N, C, H, W]. PyTorch's `nn.BatchNorm2d`. */
export class BatchNorm2d extends BatchNormLayer {
  /** @internal */
  static override readonly layer: SpatialFacts = { name: 'nn.BatchNorm2d', spatial: 2 }
}

/** Normalizes each channel of [N, C, D, H, W]. PyTorch's `nn.BatchNorm3d`. */
export class BatchNorm3d extends BatchNormLayer {
  /** @internal */
  static override readonly layer: SpatialFacts = { name: 'nn.BatchNorm3d', spatial: 3 }
}

/** What the instance norms share: nothing is learned, and no statistics are kept, unless asked for. */
abstract class InstanceNormLayer extends BatchNormLayer {
  /** @internal */
  static override readonly usual: boolean = false

  protected override checkInput(input: Tensor): void {
    const { name, spatial } = this.constructor.layer
    const form = ['[N, C, L] or [C, L]', '[N, C, H, W] or [C, H, W]', '[N, C, D, H, W] or [C, D, H, W]'][spatial - 1] ?? ''
    const rank = spatial + 2
    if ((input.ndim === rank || input.ndim === rank - 1) && sizeEq(input.symSizes[input.ndim - rank + 1], this.numFeatures)) return
    const hint = channelsLastHint('input', input.shape, this.numFeatures, input.ndim === rank ? 1 : 0)
    throw new ShapeError(`${name}: expected input ${form} with ${this.numFeatures} channels, got shape ${formatShape(input.shape)}.${hint}`)
  }

  override forward(input: Tensor): Tensor {
    checkCount(this, arguments, 1)
    // A traced value has no shape to look at.
    if (!(input instanceof Tensor)) return this.normalize(input)
    this.checkInput(input)
    return input.ndim === this.constructor.layer.spatial + 1 ? this.normalize(input.unsqueeze(0)).squeeze(0) : this.normalize(input)
  }

  private normalize(input: Tensor): Tensor {
    const { runningMean, runningVar, weight, bias, eps } = this
    const momentum = this.momentum ?? 0
    return instanceNorm(input, runningMean, runningVar, weight, bias, this.training || runningMean === null, momentum, eps)
  }
}

/** Normalizes each channel of each sample of [N, C, L]. PyTorch's `nn.InstanceNorm1d`. */
export class InstanceNorm1d extends InstanceNormLayer {
  /** @internal */
  static override readonly layer: SpatialFacts = { name: 'nn.InstanceNorm1d', spatial: 1 }
}

/** Normalizes each channel of each sample of [N, C, H, W]. PyTorch's `nn.InstanceNorm2d`. */
export class InstanceNorm2d extends InstanceNormLayer {
  /** @internal */
  static override readonly layer: SpatialFacts = { name: 'nn.InstanceNorm2d', spatial: 2 }
}

/** Normalizes each channel of each sample of [N, C, D, H, W]. PyTorch's `nn.InstanceNorm3d`. */
export class InstanceNorm3d extends InstanceNormLayer {
  /** @internal */
  static override readonly layer: SpatialFacts = { name: 'nn.InstanceNorm3d', spatial: 3 }
}

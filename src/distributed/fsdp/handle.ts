// The parameters of one unit as one vector, of which each rank stores a shard: gathering it, freeing it, and showing its parts as the modules' parameters.
import { attachGradNode, noGrad, registerPostAccumulateGradHook } from '../../autograd/index.ts'
import { dispatchState, freeStorage } from '../../dispatch/index.ts'
import { disposeBlock, dtypeInfo, reviveBlock } from '../../kernels/index.ts'
import type { DType } from '../../kernels/index.ts'
import { zeros } from '../../ops/index.ts'
import { Tensor } from '../../tensor/index.ts'
import { lend, setAttribute } from '../../module/index.ts'
import type { Module } from '../../module/index.ts'
import { recordInstant } from '../stats.ts'
import { flatLayout, shardMetadata, shardParamInfos, shardPadding } from './flatParameter.ts'
import type { FlatLayout, FlatShardMetadata, ShardParamInfo } from './flatParameter.ts'
import { countFull } from './memory.ts'
import type { Settings } from './options.ts'
import { checkFlattenable, markFlattened } from './parameters.ts'
import type { UnitParameters } from './parameters.ts'

/** The name under which a unit shows its shard, unless it shows the original parameters. */
export const FLAT_PARAM = '_flat_param'

/** What the gaps between parameters hold; they are never read. PyTorch's value, so that dumps compare. */
const GAP_VALUE = 42

/** The places of a backward pass and of a forward that a unit has come to. */
interface Progress {
  needsForward: boolean
  needsBackward: boolean
  isPrefetched: boolean
  ranPreBackward: boolean
  ranPostBackward: boolean
}

/** Parameters on their way. */
export interface Gathering {
  isCompleted(): boolean
  wait(): void
}

const bytesOf = ({ numel, dtype }: Tensor): number => numel * dtypeInfo[dtype].size

/** Writes to a tensor the numbers that it had before it was freed, without a new version: what forward has saved stays valid. */
export function keepingVersion(tensor: Tensor, write: () => void): void {
  const { storage } = tensor
  const version = storage?.version ?? 0
  write()
  if (storage !== null) storage.version = version
}

export class FlatHandle {
  readonly layout: FlatLayout
  readonly settings: Settings
  /** Which shard this rank stores. */
  readonly rank: number
  readonly infos: readonly ShardParamInfo[]
  /** This rank's part: what is trained, or what the trained parameters are views of. */
  readonly local: Tensor
  /** All of it, in the dtype that forward computes in: the leaf of the tape. Its memory comes and goes, unless nothing is divided. */
  readonly full: Tensor
  /** Parts of `local`, one per parameter, that stand for the parameters between steps. Empty without `useOrigParams`. */
  readonly pieces: readonly Tensor[]
  readonly progress: Progress = { needsForward: false, needsBackward: false, isPrefetched: false, ranPreBackward: false, ranPostBackward: false }
  /** For timelines: the class of the module and the first parameter. */
  readonly title: string
  /** Whether gradients of `noSync` are shown in `grad` of the parameters. */
  showsUnreduced = false
  /** The sharded gradients meanwhile. */
  hiddenGrads: (Tensor | null)[] = []
  #isFull: boolean
  #gathering: Gathering | null = null
  /** The version of the shard that was gathered: a step makes what is gathered out of date. */
  #gatheredVersion = -1
  readonly #owner: Module
  readonly #parameters: UnitParameters
  readonly #isDivided: boolean

  constructor(owner: Module, parameters: UnitParameters, settings: Settings, onGradient: (handle: FlatHandle) => void) {
    checkFlattenable(parameters, settings.useOrigParams)
    const dtype: DType = parameters.tensors[0]?.dtype ?? 'float32'
    const computeDtype = settings.mixedPrecision.paramDtype ?? dtype
    const isSharded = settings.strategy !== 'NO_SHARD'
    this.settings = settings
    this.#owner = owner
    this.#parameters = parameters
    this.layout = this.makeLayout(parameters, isSharded ? settings.shardGroup.size : 1, computeDtype)
    this.rank = isSharded ? settings.shardGroup.rank : 0
    this.infos = this.makeInfos()
    this.title = `${owner.getName()}:${this.layout.names[0] ?? ''}`
    this.#isDivided = isSharded || computeDtype !== dtype
    this.#isFull = !this.#isDivided
    this.local = noGrad(() => this.#flatten(parameters.tensors, dtype))
    this.full = this.#isDivided ? Tensor.empty([this.layout.paddedNumel], computeDtype) : new Tensor(this.local.sizes, dtype, this.local.storage)
    if (this.#isDivided) disposeBlock(this.full.realize().block)
    const { tensors } = parameters
    this.full.requiresGrad = tensors.some(({ requiresGrad }) => requiresGrad)
    this.local.requiresGrad = this.full.requiresGrad
    if (this.full.requiresGrad) registerPostAccumulateGradHook(this.full, () => onGradient(this))
    this.pieces = settings.useOrigParams ? tensors.map((tensor, i) => this.#piece(i, tensor.requiresGrad)) : []
    this.local.isParameter = !settings.useOrigParams
    markFlattened(parameters, `the unit ${owner.getName()}`)
    this.showShards()
  }

  /** This rank's part of the parameters. */
  #flatten(tensors: readonly Tensor[], dtype: DType): Tensor {
    const flat = zeros([this.layout.paddedNumel], { dtype })
    for (const { offset, numel, isPadding } of this.layout.segments) if (isPadding) flat.narrow(0, offset, numel).fill_(GAP_VALUE)
    tensors.forEach((tensor, i) => {
      flat.narrow(0, this.layout.offsets[i] ?? 0, tensor.numel).copy_(tensor.detach().reshape([tensor.numel]))
    })
    return this.ownPart(flat).clone()
  }

  /** Where the parameters lie. */
  protected makeLayout(parameters: UnitParameters, shards: number, computeDtype: DType): FlatLayout {
    return flatLayout(parameters.entries, {
      shards,
      worldSize: this.settings.shardGroup.size,
      align: this.settings.useOrigParams ? Math.floor(16 / dtypeInfo[computeDtype].size) : 0,
      shared: parameters.shared,
    })
  }

  /** Which part of each parameter this rank stores. */
  protected makeInfos(): readonly ShardParamInfo[] {
    return shardParamInfos(this.layout, this.rank)
  }

  /** The shape in which this rank shows its part of a parameter. */
  protected pieceShape(index: number): readonly number[] {
    const { shape = [] } = this.layout.entries[index] ?? {}
    return this.settings.strategy === 'NO_SHARD' ? shape : [this.infos[index]?.numelInShard ?? 0]
  }

  /** What lies in the order of the parameters, in the order of the ranks' shards: the same here. */
  byRank(full: Tensor): Tensor {
    return full
  }

  /** This rank's shard of what lies in the order of the parameters. */
  ownPart(full: Tensor): Tensor {
    return this.byRank(full).narrow(0, this.rank * this.layout.shardNumel, this.layout.shardNumel)
  }

  /** This rank's part of a parameter's whole values, as a vector. Empty if it has none. */
  partOf(whole: Tensor, index: number): Tensor {
    const { intraParamStartIdx, numelInShard } = this.infos[index] ?? {}
    return whole
      .detach()
      .reshape([whole.numel])
      .narrow(0, intraParamStartIdx ?? 0, numelInShard ?? 0)
  }

  #piece(index: number, requiresGrad: boolean): Tensor {
    const { offsetInShard } = this.infos[index] ?? {}
    const piece = new Tensor(this.pieceShape(index), this.local.dtype, this.local.storage, undefined, offsetInShard ?? 0)
    piece.isParameter = true
    piece.requiresGrad = requiresGrad
    return piece
  }

  /** The tensors that are trained. */
  get trained(): readonly Tensor[] {
    return this.settings.useOrigParams ? this.pieces : [this.local]
  }

  get isFull(): boolean {
    return this.#isFull
  }

  /** Whether the memory of `full` comes and goes. */
  get isDivided(): boolean {
    return this.#isDivided
  }

  get owner(): Module {
    return this.#owner
  }

  get places(): UnitParameters['places'] {
    return this.#parameters.places
  }

  /** What this rank's shard holds; null if nothing is divided. */
  shardMetadata(): FlatShardMetadata | null {
    return this.settings.strategy === 'NO_SHARD' ? null : shardMetadata(this.layout, this.rank)
  }

  /** How many elements of the shard only fill it up. */
  get shardPadding(): number {
    return shardPadding(this.layout, this.rank)
  }

  /** Starts to gather the parameters, unless they are there. */
  startUnshard(): void {
    const version = this.local.storage?.version ?? 0
    const isCurrent = this.#isFull && (!this.#isDivided || this.#gatheredVersion === version)
    recordInstant(isCurrent ? 'unshard(noop)' : 'unshard', this.title)
    if (isCurrent) return
    if (!this.#isFull) {
      reviveBlock(this.full.realize().block)
      countFull(1, bytesOf(this.full))
    }
    this.#isFull = true
    this.#gatheredVersion = version
    this.#gathering = this.gatherInto(this.full)
  }

  /** Fills a tensor of the padded size with all ranks' shards: those of the parameters, unless others are given. */
  gatherInto(target: Tensor, shard: Tensor = this.local): Gathering | null {
    const input = noGrad(() => shard.detach().to(target.dtype))
    if (this.layout.shards > 1) return this.settings.shardGroup.start({ kind: 'allgather', input, output: target })
    const copy = (): void => void noGrad(() => target.detach().copy_(input))
    // Memory that comes and goes gets the numbers that it had. Without sharding it stays, and is written when the numbers have changed.
    if (this.settings.strategy === 'NO_SHARD') copy()
    else keepingVersion(target, copy)
    return null
  }

  /** Whether parameters are on their way. */
  get isGathering(): boolean {
    return this.#gathering?.isCompleted() === false
  }

  /** Waits until the parameters are there. */
  waitUnshard(): void {
    this.#gathering?.wait()
    this.#gathering = null
  }

  /** Frees the full parameters, or only notes that this might have been done. */
  reshard(free: boolean): void {
    recordInstant(free && this.#isDivided ? 'reshard free' : 'reshard keep', this.title)
    if (!free || !this.#isDivided || !this.#isFull) return
    this.waitUnshard()
    freeStorage(this.full.realize(), false)
    countFull(-1, bytesOf(this.full))
    this.#isFull = false
  }

  /** Tensors over the full parameters, one per parameter. */
  #views(full: Tensor): Tensor[] {
    return this.layout.entries.map(({ shape }, i) => new Tensor([...shape], full.dtype, full.storage, undefined, this.layout.offsets[i] ?? 0))
  }

  /** The modules compute with the full parameters, and gradients go to `full`. */
  showViews(): void {
    const views = this.#views(this.full)
    const wanted = views.filter((_, i) => this.#requiresGrad(i))
    if (dispatchState.gradEnabled && wanted.length > 0) {
      const indices = views.flatMap((_, i) => (this.#requiresGrad(i) ? [i] : []))
      attachGradNode(wanted, [this.full], (grads) => [this.#flatGradient(grads, indices)], { name: 'FlatParameterBackward' })
    }
    this.#show(views)
  }

  #requiresGrad(index: number): boolean {
    return (this.settings.useOrigParams ? this.pieces[index] : this.local)?.requiresGrad === true
  }

  #flatGradient(grads: readonly (Tensor | null)[], indices: readonly number[]): Tensor {
    const flat = zeros([this.full.numel], { dtype: this.full.dtype })
    grads.forEach((grad, at) => {
      const offset = this.layout.offsets[indices[at] ?? 0] ?? 0
      if (grad !== null) flat.narrow(0, offset, grad.numel).copy_(grad.detach().reshape([grad.numel]))
    })
    return flat
  }

  #show(tensors: readonly Tensor[]): void {
    for (const { module, name, index } of this.#parameters.places) {
      lend(module)
      setAttribute(module, name, tensors[index])
    }
  }

  /** The modules show what this rank stores: parts of parameters under their names, or `_flat_param`. */
  showShards(): void {
    if (this.settings.useOrigParams) return this.#show(this.pieces)
    this.#show(this.#views(this.full))
    setAttribute(this.#owner, FLAT_PARAM, this.local)
  }

  /** The modules show whole parameters over `full`. Returns them. */
  showParameters(full: Tensor): readonly Tensor[] {
    if (!this.settings.useOrigParams) Reflect.deleteProperty(this.#owner, FLAT_PARAM)
    const parameters = this.#views(full)
    parameters.forEach((parameter, i) => {
      parameter.isParameter = true
      parameter.requiresGrad = this.#requiresGrad(i)
    })
    this.#show(parameters)
    return parameters
  }
}

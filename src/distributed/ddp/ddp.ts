// DistributedDataParallel: every rank has the whole model and a part of the batch; gradients are averaged during backward.
import { dispatchState } from '../../dispatch/index.ts'
import { ArgumentError } from '../../errors/index.ts'
import { Module } from '../../module/index.ts'
import { checkCallable, checkCount, checkMethod, checkModule, checkOptions, valueText } from '../../protocol/index.ts'
import { treeLeaves } from '../../pytree/index.ts'
import { Tensor } from '../../tensor/index.ts'
import { broadcastState } from '../broadcastState.ts'
import { broadcast } from '../inPlace.ts'
import { allGatherObject } from '../objects.ts'
import { groupOr } from '../processGroup.ts'
import type { ProcessGroup } from '../processGroup.ts'
import { DistributedError } from '../errors.ts'
import { agreeOnRound, exhausted } from './join.ts'
import type { AgreedRound } from './join.ts'
import { Reducer } from './reducer.ts'
import type { CommFuture, GradBucket, NamedParameter } from './reducer.ts'

/** Options of {@link DistributedDataParallel}. */
export interface DdpOptions {
  /** How much a bucket of gradients holds, in MiB. Default 25. */
  readonly bucketCapMb?: number
  /** Whether rank 0's buffers are sent to all before each forward but those that follow one in `noSync` or `noGrad`. Default true. */
  readonly broadcastBuffers?: boolean
  /** Whether forward may leave out parameters. It costs a walk of the graph, and one small collective, per step. Default false. */
  readonly findUnusedParameters?: boolean
  /** Whether gradients are views of the buckets, which saves a copy. Default false. */
  readonly gradientAsBucketView?: boolean
  /**
   * Whether every iteration uses the same parameters, the same number of times. Then the first backward shows which are not used, and a parameter may get several gradients in a
   * backward, as with checkpointing. Default false.
   */
  readonly staticGraph?: boolean
  /** Default: all ranks. */
  readonly processGroup?: ProcessGroup
}

/** Options of `join`. */
export interface JoinOptions {
  /** Default true. */
  readonly divideByInitialWorldSize?: boolean
  /** Default true. */
  readonly enable?: boolean
  /** Default false. */
  readonly throwOnEarlyTermination?: boolean
}

const MIB = 2 ** 20

/**
 * Trains a copy of `module` on every rank: parameters start equal, and backward leaves in `grad` the mean of the ranks' gradients, which are sent while backward
 * goes on. PyTorch's `DistributedDataParallel`.
 *
 * @throws ArgumentError if no parameter requires a gradient, or the ranks' parameters differ in number or shape.
 * @example
 * await initProcessGroup()
 * const model = new DistributedDataParallel(new Net())
 * const optimizer = new optim.SGD(model.parameters(), { lr: 0.1 })
 * loss(model(x), y).backward() // x, y: this rank's part of the batch
 * optimizer.step()
 */
export class DistributedDataParallel<M extends Module = Module> extends Module {
  readonly module: M

  constructor(module: M, options: DdpOptions = {}) {
    checkCount('DistributedDataParallel', arguments, 2)
    super()
    const where = 'DistributedDataParallel'
    checkOptions(where, options, {
      bucketCapMb: 'number',
      broadcastBuffers: 'boolean',
      findUnusedParameters: 'boolean',
      gradientAsBucketView: 'boolean',
      staticGraph: 'boolean',
      processGroup: true,
    })
    checkModule(where, 'module', module)
    const {
      bucketCapMb = 25,
      broadcastBuffers: sendsBuffers = true,
      findUnusedParameters = false,
      gradientAsBucketView = false,
      staticGraph = false,
    } = options
    if (!(bucketCapMb > 0)) throw new ArgumentError(`${where}: bucketCapMb must be a positive number of MiB, got ${valueText(bucketCapMb)}.`)
    const group = groupOr(options.processGroup)
    const parameters: NamedParameter[] = []
    for (const [name, tensor] of module.namedParameters()) if (tensor instanceof Tensor && tensor.requiresGrad) parameters.push({ name, tensor })
    if (parameters.length === 0)
      throw new ArgumentError("DistributedDataParallel is not needed when a module doesn't have any parameter that requires a gradient.")
    checkSameModel(parameters, group)
    this.module = module
    broadcastState([...module.parameters(), ...module.buffers()], group)
    const reducer = new Reducer(parameters, group, {
      capBytes: Math.floor(bucketCapMb * MIB),
      gradientAsBucketView,
      findUnusedParameters,
      staticGraph,
    })
    states.set(this, { reducer, group, broadcastBuffers: sendsBuffers, sync: true, hasReduced: true, joining: null })
  }

  /** Calls the module; a following backward sends the gradients. */
  override forward(...args: Parameters<M['forward']>): ReturnType<M['forward']> {
    const state = stateOf(this)
    const { joining } = state
    const own = { reduces: state.sync && dispatchState.gradEnabled, sendsBuffers: state.broadcastBuffers && state.hasReduced }
    const round = joining === null ? null : agreeOnRound(state.group, own)
    if (round !== null && joining !== null) begin(state, joining, round)
    if (own.sendsBuffers) broadcastBuffers(this.module, state.group, round)
    const output = this.module.call(...args)
    state.hasReduced = own.reduces
    if (own.reduces) state.reducer.prepare(treeLeaves(output).filter((leaf) => leaf instanceof Tensor))
    return output
  }

  /**
   * Runs `fn`; backward of what is computed in it adds to this rank's gradients, and sends nothing. The next backward outside sends the sums. PyTorch's
   * `no_sync`.
   */
  noSync<T>(fn: () => T): T {
    checkMethod(this, 'noSync', arguments, 1)
    checkCallable('noSync', 'fn', fn)
    const state = stateOf(this)
    const outer = state.sync
    state.sync = false
    try {
      return fn()
    } finally {
      state.sync = outer
    }
  }

  /**
   * Runs `fn`, a training loop, while ranks may have different numbers of inputs. A rank whose `fn` has returned takes part in what the others send, with gradients of zero, until all have
   * returned; then all ranks get the parameters and buffers of the last that trained. Every rank calls it. PyTorch's `join`. Throws ArgumentError if `fn` is async.
   *
   * `divideByInitialWorldSize`: whether gradients are divided by the number of all ranks (default) or of those that still have inputs. `enable: false` only runs `fn`.
   * `throwOnEarlyTermination`: all ranks throw DistributedError as soon as one has no more inputs.
   *
   * @example model.join(() => { for (const [x, y] of ownBatches) trainStep(x, y) })
   */
  join<T>(fn: () => T, options: JoinOptions = {}): T {
    checkMethod(this, 'join', arguments, 2)
    checkCallable('join', 'fn', fn)
    checkOptions('join', options, { divideByInitialWorldSize: 'boolean', enable: 'boolean', throwOnEarlyTermination: 'boolean' })
    const state = stateOf(this)
    if (options.enable === false) return fn()
    if (state.joining !== null) throw new DistributedError('join does not nest: this model is in a join already.')
    const joining: Joining = { options, last: null }
    state.joining = joining
    state.reducer.isFrozen = true
    try {
      const result = fn()
      if (result instanceof Promise)
        throw new ArgumentError('join: fn must not be async, since this rank would count as done at its first await. Read the inputs before.')
      this.#follow(state, joining)
      return result
    } finally {
      state.joining = null
      state.reducer.isFrozen = false
      state.reducer.divisor = state.group.size
    }
  }

  /** Takes part in the rounds of other ranks until none is left, and gets what they have trained. */
  #follow(state: State, joining: Joining): void {
    const { group, reducer } = state
    for (let round = agreeOnRound(group, null); round.active.length > 0; round = agreeOnRound(group, null)) {
      begin(state, joining, round)
      if (round.sendsBuffers) broadcastBuffers(this.module, group, round)
      state.hasReduced = round.reduces
      if (round.reduces) reducer.shadow()
    }
    const source = joining.last?.active.at(-1)
    if (source !== undefined) broadcastState([...this.module.parameters(), ...this.module.buffers()], group, source)
  }

  /** Lets `hook` send the buckets instead of the mean over the ranks. It returns the gradients, or what to wait for: a Work, or an object whose `wait` returns them. PyTorch's `register_comm_hook`. */
  registerCommHook<S>(state: S, hook: (state: S, bucket: GradBucket) => Tensor | CommFuture): void {
    checkMethod(this, 'registerCommHook', arguments, 2)
    checkCallable('registerCommHook', 'hook', hook)
    stateOf(this).reducer.hook = (bucket) => hook(state, bucket)
  }

  /** The parameters of each bucket, by name, as the next backward sends them. */
  get buckets(): readonly (readonly string[])[] {
    return stateOf(this).reducer.buckets
  }
}

interface State {
  readonly reducer: Reducer
  readonly group: ProcessGroup
  readonly broadcastBuffers: boolean
  sync: boolean
  /** Whether the last forward was followed by a backward that sends gradients, or could be. Buffers are only sent then: between such steps they stay a rank's own. */
  hasReduced: boolean
  /** What `join` does; null outside of it. */
  joining: Joining | null
}

/** A join under way. */
interface Joining {
  readonly options: JoinOptions
  /** The last round that had inputs. */
  last: AgreedRound | null
}

/** A round of a join begins. Throws DistributedError if a rank has no more inputs, and that is asked for. */
function begin({ reducer, group }: State, joining: Joining, round: AgreedRound): void {
  const { divideByInitialWorldSize = true, throwOnEarlyTermination = false } = joining.options
  if (throwOnEarlyTermination && round.active.length < group.size) throw exhausted()
  joining.last = round
  reducer.divisor = divideByInitialWorldSize ? group.size : round.active.length
}

/** Sends buffers: those of the first rank, or in a join of the last that still has inputs. */
function broadcastBuffers(module: Module, group: ProcessGroup, round: AgreedRound | null): void {
  const source = group.ranks[round?.active.at(-1) ?? 0] ?? 0
  for (const buffer of module.buffers()) if (buffer instanceof Tensor) broadcast(buffer, source, { group })
}

// Not fields: modules list and copy their own properties.
const states = new WeakMap<object, State>()

function stateOf(module: object): State {
  const state = states.get(module)
  if (state === undefined)
    throw new ArgumentError('this DistributedDataParallel is a copy, and copies are not connected. Copy its module, and wrap the copy.')
  return state
}

/** Throws ArgumentError on every rank if the ranks' parameters differ. */
function checkSameModel(parameters: readonly NamedParameter[], group: ProcessGroup): void {
  const shapes = allGatherObject(
    parameters.map(({ tensor }) => tensor.shape),
    group,
  )
  const counts = shapes.map((list) => (Array.isArray(list) ? list.length : 0))
  const own = counts[group.rank]
  const other = counts.findIndex((count) => count !== own)
  if (other >= 0)
    throw new ArgumentError(
      `DDP expects same model across all ranks, but Rank ${group.rank} has ${own} params, while rank ${other} has inconsistent ${counts[other]} params.`,
    )
  const [first] = shapes
  shapes.forEach((list, rank) => {
    if (!Array.isArray(list) || !Array.isArray(first)) return
    const at = list.findIndex((shape, i) => JSON.stringify(shape) !== JSON.stringify(first[i]))
    if (at >= 0)
      throw new ArgumentError(
        `[${rank}]: params[${at}] in this process with sizes [${String(list[at]).replaceAll(',', ', ')}] appears not to match sizes of the same param in process 0.`,
      )
  })
}

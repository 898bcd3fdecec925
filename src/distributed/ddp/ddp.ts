// DistributedDataParallel: every rank has the whole model and a part of the batch; gradients are averaged during backward.
import { dispatchState } from '../../dispatch/index.ts'
import { ArgumentError } from '../../errors/index.ts'
import { Module } from '../../module/index.ts'
import { checkCallable, checkOptions, isModule, valueText } from '../../protocol/index.ts'
import { treeLeaves } from '../../pytree/index.ts'
import { Tensor } from '../../tensor/index.ts'
import { broadcastState } from '../broadcastState.ts'
import { broadcast } from '../inPlace.ts'
import { allGatherObject } from '../objects.ts'
import { groupOr } from '../processGroup.ts'
import type { ProcessGroup } from '../processGroup.ts'
import type { Work } from '../work.ts'
import { Reducer } from './reducer.ts'
import type { GradBucket, NamedParameter } from './reducer.ts'

/** Options of {@link DistributedDataParallel}. */
export interface DdpOptions {
  /** How much a bucket of gradients holds, in MiB. Default 25. */
  readonly bucketCapMb?: number
  /** Whether rank 0's buffers are sent to all before each forward. Default true. */
  readonly broadcastBuffers?: boolean
  /** Whether forward may leave out parameters. It costs a walk of the graph, and one small collective, per step. Default false. */
  readonly findUnusedParameters?: boolean
  /** Whether gradients are views of the buckets, which saves a copy. Default false. */
  readonly gradientAsBucketView?: boolean
  /** Default: all ranks. */
  readonly processGroup?: ProcessGroup
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
    super()
    const where = 'DistributedDataParallel'
    checkOptions(where, options, {
      bucketCapMb: true,
      broadcastBuffers: true,
      findUnusedParameters: true,
      gradientAsBucketView: true,
      processGroup: true,
    })
    if (!isModule(module)) throw new ArgumentError(`${where}: module must be a Module, got ${valueText(module)}.`)
    const { bucketCapMb = 25, broadcastBuffers = true, findUnusedParameters = false, gradientAsBucketView = false } = options
    if (!(bucketCapMb > 0)) throw new ArgumentError(`${where}: bucketCapMb must be a positive number of MiB, got ${valueText(bucketCapMb)}.`)
    const group = groupOr(options.processGroup)
    const parameters: NamedParameter[] = []
    for (const [name, tensor] of module.namedParameters()) if (tensor instanceof Tensor && tensor.requiresGrad) parameters.push({ name, tensor })
    if (parameters.length === 0)
      throw new ArgumentError("DistributedDataParallel is not needed when a module doesn't have any parameter that requires a gradient.")
    checkSameModel(parameters, group)
    this.module = module
    broadcastState([...module.parameters(), ...module.buffers()], group)
    const reducer = new Reducer(parameters, group, { capBytes: Math.floor(bucketCapMb * MIB), gradientAsBucketView, findUnusedParameters })
    states.set(this, { reducer, group, broadcastBuffers, sync: true })
  }

  /** Calls the module; a following backward sends the gradients. */
  override forward(...args: Parameters<M['forward']>): ReturnType<M['forward']> {
    const state = stateOf(this)
    if (state.sync && state.broadcastBuffers) {
      for (const buffer of this.module.buffers()) if (buffer instanceof Tensor) broadcast(buffer, state.group.ranks[0] ?? 0, { group: state.group })
    }
    const output = this.module.call(...args)
    if (state.sync && dispatchState.gradEnabled) state.reducer.prepare(treeLeaves(output).filter((leaf) => leaf instanceof Tensor))
    return output
  }

  /**
   * Runs `fn`; backward of what is computed in it adds to this rank's gradients, and sends nothing. The next backward outside sends the sums. PyTorch's
   * `no_sync`.
   */
  noSync<T>(fn: () => T): T {
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

  /** Lets `hook` send the buckets instead of the mean over the ranks. It returns the gradients, or a Work. PyTorch's `register_comm_hook`. */
  registerCommHook<S>(state: S, hook: (state: S, bucket: GradBucket) => Tensor | Work): void {
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

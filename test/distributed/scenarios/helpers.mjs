// What scenarios share: how results are written down, and the wrapped models of the goldens.
import { optim } from 'tensorfx'
import { getRank, newGroup, recordCollectives } from 'tensorfx/distributed'
import { FullyShardedDataParallel, ModuleWrapPolicy, alwaysWrapPolicy, cleanName, summonFullParams } from 'tensorfx/distributed/fsdp'
import { Block, UnitModule, init, models } from './fsdpModels.mjs'

/** The numbers of a tensor. */
export const flat = (t) => (t === null || t === undefined ? null : (t.toArray().flat?.(Infinity) ?? [t.item()]))

/** A tensor as the recordings have it. */
export const tensor = (t) => (t === null || t === undefined ? null : { shape: t.shape, data: flat(t) })

/** Tensors by name, of `[name, tensor]` pairs. */
export const named = (entries, of = (t) => t) => Object.fromEntries([...entries].map(([name, t]) => [name, tensor(of(t))]))

/** The same in order, without the names of wrappers. */
export const listed = (entries, of = (t) => t) => [...entries].map(([name, t]) => [cleanName(name), tensor(of(t))])

export const grads = (model) => listed(model.namedParameters(), (p) => p.grad)

/** Whole parameters by name. */
export const whole = (model) => summonFullParams(model, () => Object.fromEntries(listed(model.namedParameters())), { writeback: false })

/** What a call throws. */
export function message(fn) {
  try {
    fn()
  } catch (error) {
    return `${error.name}: ${error.message}`
  }
  return 'no error'
}

/** The optimizer of most goldens. */
export const sgd = (model) => new optim.SGD(model.parameters(), { lr: 0.1, momentum: 0.9, weightDecay: 0.01 })

/** Groups of half the ranks each, and the pairs of ranks with the same shard. */
let groups
function hybridGroups() {
  if (groups !== undefined) return groups
  const made = [
    [0, 1],
    [2, 3],
    [0, 2],
    [1, 3],
  ].map((ranks) => newGroup(ranks))
  groups = [made[getRank() < 2 ? 0 : 1], made[getRank() % 2 === 0 ? 2 : 3]]
  return groups
}

const policies = {
  Mlp: null,
  Odd: null,
  Tied: null,
  ConvBn: alwaysWrapPolicy,
  Tower: new ModuleWrapPolicy([Block]),
  CompositeModel: new ModuleWrapPolicy([UnitModule]),
}

/** A wrapped model of the goldens. */
export function wrapped(name, shardingStrategy, options = {}) {
  return new FullyShardedDataParallel(init(new models[name]()), {
    shardingStrategy,
    autoWrapPolicy: policies[name],
    ...(shardingStrategy.includes('HYBRID') ? { processGroup: hybridGroups() } : {}),
    ...options,
  })
}

const STEPS = { allgather: 'all_gather', reducescatter: 'reduce_scatter_single', allreduce: 'all_reduce' }

/** What one rank does in `fn`, in the words of the goldens. */
export const orderOf = (fn) =>
  recordCollectives(fn).map(({ name, cat, args }) => {
    const [, numel] = /\[(\d+)\]/.exec(args.description) ?? []
    if (cat !== 'fsdp') return `${STEPS[name] ?? name} ${numel}`
    return name.startsWith('reshard') ? `reshard ${args.description} ${name.split(' ')[1]}` : `${name} ${args.description}`
  })

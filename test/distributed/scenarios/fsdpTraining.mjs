// FullyShardedDataParallel: training steps as in the goldens, for every strategy.
import { readFileSync } from 'node:fs'
import { optim } from 'tensorfx'
import { getRank, getWorldSize, newGroup, recordCollectives } from 'tensorfx/distributed'
import {
  FullyShardedDataParallel,
  ModuleWrapPolicy,
  alwaysWrapPolicy,
  cleanName,
  fullParameterStats,
  resetFullParameterStats,
  summonFullParams,
} from 'tensorfx/distributed/fsdp'
import { Block, UnitModule, init, loss, models, part } from './fsdpModels.mjs'

const flat = (tensor) => (tensor === null ? null : tensor.toArray().flat(Infinity))

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

function recordedRuns(world) {
  const { cases } = JSON.parse(readFileSync(new URL('../../goldens/distributed/fsdp-train.json', import.meta.url), 'utf8'))
  return Object.keys(cases).flatMap((name) => (name.endsWith(`_w${world}`) ? [name.slice('train_'.length, -3)] : []))
}

const optimizers = {
  sgd: (parameters) => new optim.SGD(parameters, { lr: 0.1, momentum: 0.9, weightDecay: 0.01 }),
  adamw: (parameters) => new optim.AdamW(parameters, { lr: 0.05, weightDecay: 0.1 }),
}

function train(name, strategy, useOrigParams, kind, options = {}, steps = 5) {
  resetFullParameterStats()
  const model = wrapped(name, strategy, { useOrigParams, ...options })
  const optimizer = optimizers[kind](model.parameters())
  const result = { losses: [] }
  for (let step = 0; step < steps; step++) {
    const [x, y] = part(name, step, getRank(), getWorldSize())
    optimizer.zeroGrad()
    const value = loss(name, model(x), y)
    value.backward()
    result.grads ??= [...model.namedParameters()].map(([key, p]) => [cleanName(key), flat(p.grad)])
    optimizer.step()
    result.losses.push(value.item())
  }
  result.final = summonFullParams(model, () => Object.fromEntries([...model.namedParameters()].map(([key, p]) => [cleanName(key), flat(p)])))
  result.peak = fullParameterStats()
  return result
}

/** What the goldens have: model, strategy, style and optimizer. */
export const trained = () =>
  Object.fromEntries(
    recordedRuns(getWorldSize()).map((key) => {
      const [, name, strategy, style, kind] = /^([a-zA-Z]+)_(.+)_(flat|orig)_([a-z]+)$/.exec(key)
      return [key, train(name, strategy, style === 'orig', kind)]
    }),
  )

/** Without prefetching a unit is gathered only when it computes. */
export const withoutPrefetch = () => train('Tower', 'FULL_SHARD', false, 'sgd', { backwardPrefetch: null })

const STEPS = { allgather: 'all_gather', reducescatter: 'reduce_scatter_single', allreduce: 'all_reduce' }

/** What one rank does in `fn`, in the words of the goldens. */
export const orderOf = (fn) =>
  recordCollectives(fn).map(({ name, cat, args }) => {
    const [, numel] = /\[(\d+)\]/.exec(args.description) ?? []
    if (cat !== 'fsdp') return `${STEPS[name] ?? name} ${numel}`
    return name.startsWith('reshard') ? `reshard ${args.description} ${name.split(' ')[1]}` : `${name} ${args.description}`
  })

/** Two steps of a strategy. */
function order(strategy, options) {
  const model = wrapped('Tower', strategy, options)
  const optimizer = optimizers.sgd(model.parameters())
  const log = []
  for (const step of [0, 1]) {
    const [x, y] = part('Tower', step, getRank(), getWorldSize())
    let value
    log.push(`-- forward ${step}`, ...orderOf(() => (value = loss('Tower', model(x), y))))
    log.push(`-- backward ${step}`, ...orderOf(() => value.backward()), '-- step')
    optimizer.step()
    optimizer.zeroGrad()
  }
  return log
}

export function orders() {
  const results = {}
  for (const strategy of ['FULL_SHARD', 'SHARD_GRAD_OP', 'NO_SHARD', 'HYBRID_SHARD', '_HYBRID_SHARD_ZERO2']) {
    if (strategy.includes('HYBRID') && getWorldSize() !== 4) continue
    results[strategy] = {}
    for (const backwardPrefetch of ['BACKWARD_PRE', 'BACKWARD_POST', null])
      for (const [forwardPrefetch, limitAllGathers] of [
        [false, true],
        [false, false],
        [true, true],
      ]) {
        const title = (on) => (on ? 'True' : 'False')
        results[strategy][`${backwardPrefetch ?? 'None'}/forward_prefetch=${title(forwardPrefetch)}/limit=${title(limitAllGathers)}`] = order(
          strategy,
          {
            backwardPrefetch,
            forwardPrefetch,
            limitAllGathers,
          },
        )
      }
  }
  return results
}

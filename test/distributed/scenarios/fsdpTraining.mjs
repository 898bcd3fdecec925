// FullyShardedDataParallel: training steps as in the goldens, for every strategy.
import { readFileSync } from 'node:fs'
import { optim } from 'tensorfx'
import { getRank, getWorldSize } from 'tensorfx/distributed'
import { cleanName, fullParameterStats, resetFullParameterStats, summonFullParams } from 'tensorfx/distributed/fsdp'
import { loss, part } from './fsdpModels.mjs'
import { flat, orderOf, sgd, wrapped } from './helpers.mjs'

function recordedRuns(world) {
  const { cases } = JSON.parse(readFileSync(new URL('../../goldens/distributed/fsdp-train.json', import.meta.url), 'utf8'))
  return Object.keys(cases).flatMap((name) => (name.endsWith(`_w${world}`) ? [name.slice('train_'.length, -3)] : []))
}

const optimizers = {
  sgd,
  adamw: (model) => new optim.AdamW(model.parameters(), { lr: 0.05, weightDecay: 0.1 }),
}

function train(name, strategy, useOrigParams, kind, options = {}, steps = 5) {
  resetFullParameterStats()
  const model = wrapped(name, strategy, { useOrigParams, ...options })
  const optimizer = optimizers[kind](model)
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

/** Two steps of a strategy. */
function order(strategy, options) {
  const model = wrapped('Tower', strategy, options)
  const optimizer = sgd(model)
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

// What FullyShardedDataParallel offers besides training, on the inputs of the goldens.
import { nn, optim, torch } from 'tensorfx'
import { getRank, getWorldSize, recordCollectives } from 'tensorfx/distributed'
import {
  FullyShardedDataParallel,
  ModuleWrapPolicy,
  ShardedGradScaler,
  cleanName,
  fullOptimStateDict,
  optimStateDict,
  optimStateDictToLoad,
  rekeyOptimStateDict,
  scatterFullOptimStateDict,
  shardFullOptimStateDict,
  stateDictType,
  summonFullParams,
} from 'tensorfx/distributed/fsdp'
import { init, input, loss, models, part } from './fsdpModels.mjs'
import { grads, listed, message, orderOf, sgd, tensor, whole, wrapped } from './helpers.mjs'

const STYLES = { flat: false, orig: true }
const shapes = (model) => [...model.namedParameters()].map(([name, p]) => [cleanName(name), p.shape])
const backward = (model, name, step) => {
  const [x, y] = part(name, step, getRank(), getWorldSize())
  const value = loss(name, model(x), y)
  value.backward()
  return value.item()
}
const byStyle = (fn) => Object.fromEntries(Object.entries(STYLES).map(([style, useOrigParams]) => [style, fn(useOrigParams, style)]))

/** Two backwards inside noSync and one outside. */
export const noSync = () =>
  Object.fromEntries(
    ['FULL_SHARD', 'SHARD_GRAD_OP', 'NO_SHARD'].map((strategy) => [
      strategy,
      byStyle((useOrigParams) => {
        const model = wrapped('CompositeModel', strategy, { useOrigParams })
        const events = orderOf(() => model.noSync(() => [0, 1].forEach((step) => backward(model, 'CompositeModel', step))))
        const inside = [...model.namedParameters()].map(([name, p]) => [cleanName(name), p.shape, p.grad?.shape ?? null])
        events.push('-- after no_sync', ...orderOf(() => backward(model, 'CompositeModel', 2)))
        return { events, inside, grads: grads(model) }
      }),
    ]),
  )

/** noSync, dropped by zeroGrad, and then an ordinary step: nothing of it is left. */
export const droppedNoSync = () =>
  byStyle((useOrigParams) => {
    const [one, two] = [0, 1].map(() => wrapped('CompositeModel', 'FULL_SHARD', { useOrigParams }))
    one.noSync(() => backward(one, 'CompositeModel', 0))
    one.zeroGrad()
    for (const model of [one, two]) backward(model, 'CompositeModel', 1)
    return [grads(one), grads(two)]
  })

export const summoned = () =>
  Object.fromEntries(
    ['FULL_SHARD', 'SHARD_GRAD_OP', 'NO_SHARD'].map((strategy) => [
      strategy,
      byStyle((useOrigParams) => {
        const make = () => wrapped('CompositeModel', strategy, { useOrigParams })
        const result = {}
        for (const writeback of [true, false]) {
          const model = make()
          const seen = summonFullParams(
            model,
            () => {
              torch.noGrad(() => [...model.parameters()].forEach((p) => p.add_(getRank() + 1)))
              return shapes(model)
            },
            { writeback },
          )
          result[`writeback=${writeback ? 'True' : 'False'}`] = { seen, after_local: listed(model.namedParameters()), after_full: whole(model) }
        }
        const model = make()
        result.rank0_only = summonFullParams(model, () => shapes(model), { rank0Only: true, writeback: false })
        result['recurse=False'] = summonFullParams(model, () => shapes(model), { recurse: false })
        result.after = shapes(model)
        result.err_writeback_rank0_only = message(() => summonFullParams(model, () => 0, { rank0Only: true }))
        result.nested = message(() => summonFullParams(model, () => summonFullParams(model, () => 0)))
        result.forward_inside = message(() => summonFullParams(model, () => model(input([1, 8], 1))))
        backward(model, 'CompositeModel', 0)
        result.with_grads = useOrigParams
          ? summonFullParams(model, () => grads(model), { withGrads: true })
          : message(() => summonFullParams(model, () => 0, { withGrads: true }))
        result.afterWithGrads = grads(model)
        return result
      }),
    ]),
  )

export const clipped = () =>
  Object.fromEntries(
    ['FULL_SHARD', 'NO_SHARD'].map((strategy) => [
      strategy,
      byStyle((useOrigParams) => {
        const result = {}
        for (const normType of [2, 1, Infinity]) {
          const model = wrapped('Tower', strategy, { useOrigParams })
          backward(model, 'Tower', 0)
          const total = model.clipGradNorm_(0.05, { normType })
          result[normType === Infinity ? 'inf' : `${normType}.0`] = { total: total.item(), grads_after_local: grads(model) }
        }
        const model = wrapped('Tower', strategy, { useOrigParams })
        const optimizer = sgd(model)
        result.train = { losses: [], norms: [] }
        for (let step = 0; step < 5; step++) {
          optimizer.zeroGrad()
          result.train.losses.push(backward(model, 'Tower', step))
          result.train.norms.push(model.clipGradNorm_(0.05).item())
          optimizer.step()
        }
        const inner = [...model.module.blocks][0]
        result.child = message(() => inner.clipGradNorm_(1))
        return result
      }),
    ]),
  )

const sharded = (t) =>
  t.metadata === undefined
    ? tensor(t)
    : {
        size: t.shape,
        metadata: t.metadata.map(({ offsets, sizes, rank }) => [offsets, sizes, `rank:${rank}/cpu`]),
        local: t.localShards.map((shard) => [shard.offsets, shard.tensor.shape, tensor(shard.tensor)]),
      }

/** State dicts after one step, and what loading them into another model gives. */
export const stateDicts = () =>
  Object.fromEntries(
    ['Mlp', 'Odd', 'Tied', 'Tower', 'ConvBn'].map((name) => [
      name,
      byStyle((useOrigParams) => {
        const policy = name === 'ConvBn' ? { autoWrapPolicy: null } : {}
        const model = wrapped(name, 'FULL_SHARD', { useOrigParams, ...policy })
        const optimizer = sgd(model)
        // The recording of batch norms starts from the first weights.
        if (name !== 'ConvBn') {
          backward(model, name, 0)
          optimizer.step()
        }
        const result = { plain: [...model.stateDict().keys()] }
        const expected = JSON.stringify(whole(model))
        for (const type of ['FULL_STATE_DICT', 'LOCAL_STATE_DICT', 'SHARDED_STATE_DICT']) {
          const state = stateDictType(model, type, () => model.stateDict())
          const other = wrapped(name, 'FULL_SHARD', { useOrigParams, ...policy })
          torch.noGrad(() => [...other.parameters()].forEach((p) => p.zero_()))
          const load = message(() => stateDictType(other, type, () => other.loadStateDict(state)))
          result[type.split('_')[0]] = {
            keys: [...state.keys()],
            values: Object.fromEntries([...state].map(([key, t]) => [key, sharded(t)])),
            load,
            loadedEquals: JSON.stringify(whole(other)) === expected,
          }
        }
        const fresh = wrapped(name, 'FULL_SHARD', { useOrigParams, ...policy })
        result.initial = Object.fromEntries(
          [...stateDictType(fresh, 'SHARDED_STATE_DICT', () => fresh.stateDict())].map(([key, t]) => [key, sharded(t)]),
        )
        result.rank0 = stateDictType(model, 'FULL_STATE_DICT', () => Object.fromEntries([...model.stateDict()].map(([key, t]) => [key, tensor(t)])), {
          rank0Only: true,
        })
        const renamed = new Map([...model.stateDict()].map(([key, t], i) => [i === 0 ? 'extra' : key, t]))
        result.strict = message(() => model.loadStateDict(renamed))
        result.nonstrict = model.loadStateDict(renamed, { strict: false })
        return result
      }),
    ]),
  )

const optimizers = {
  adam: (model) => new optim.Adam(model.parameters(), { lr: 0.05 }),
  sgd,
}
const stateOf = (state) =>
  Object.fromEntries(
    Object.entries(state).map(([key, values]) => [
      key,
      Object.fromEntries(Object.entries(values).map(([name, value]) => [name, typeof value === 'number' ? value : sharded(value)])),
    ]),
  )

/** States of optimizers after two steps, in all forms. */
export const optimizerStates = () =>
  Object.fromEntries(
    ['Mlp', 'Tied', 'Tower'].map((name) => [
      name,
      byStyle((useOrigParams) =>
        Object.fromEntries(
          Object.entries(optimizers).map(([kind, make]) => {
            const model = wrapped(name, 'FULL_SHARD', { useOrigParams })
            const optimizer = make(model)
            const losses = []
            for (const step of [0, 1]) {
              optimizer.zeroGrad()
              losses.push(backward(model, name, step))
              optimizer.step()
            }
            const full = fullOptimStateDict(model, optimizer, false)
            const [shard, scattered] = [
              shardFullOptimStateDict(full, model, optimizer),
              scatterFullOptimStateDict(getRank() === 0 ? full : null, model, optimizer),
            ]
            const numbered = rekeyOptimStateDict(full, 'PARAM_ID', model)
            const result = {
              losses,
              numbered: { ids: Object.keys(numbered.state), groups: numbered.paramGroups },
              onRank0: stateOf(stateDictType(model, 'FULL_STATE_DICT', () => optimStateDict(model, optimizer), { rank0Only: true }).state),
              local: stateOf(optimizer.stateDict().state),
              full: stateOf(full.state),
              groups: full.paramGroups,
              rank0: Object.keys(fullOptimStateDict(model, optimizer).state),
              shard: stateOf(shard.state),
              scattered: stateOf(scattered.state),
              names: Object.keys(rekeyOptimStateDict(numbered, 'PARAM_NAME', model).state),
            }
            for (const type of ['FULL_STATE_DICT', 'SHARDED_STATE_DICT']) {
              const named = stateDictType(model, type, () => optimStateDict(model, optimizer))
              result[type] = stateOf(named.state)
              const other = make(model)
              other.loadStateDict(optimStateDictToLoad(model, other, named))
              result[`${type} loaded`] = stateOf(other.stateDict().state)
            }
            return [kind, result]
          }),
        ),
      ),
    ]),
  )

/** One rank's gradients overflow in the third step. */
export function gradScaler() {
  const model = wrapped('Mlp', 'FULL_SHARD')
  const optimizer = sgd(model)
  const scaler = new ShardedGradScaler({ initScale: 64, growthInterval: 2 })
  const steps = []
  for (let step = 0; step < 5; step++) {
    const [x, y] = part('Mlp', step, getRank(), getWorldSize())
    optimizer.zeroGrad()
    const value = loss('Mlp', model(x), y)
    scaler.scale(value).backward()
    if (step === 2 && getRank() === 1) torch.noGrad(() => [...model.parameters()][0].grad.narrow(0, 0, 1).fill_(Infinity))
    const stepped = scaler.step(optimizer)
    scaler.update()
    steps.push({ loss: value.item(), scale: scaler.getScale(), stepped })
  }
  return { steps, state: scaler.stateDict(), final: whole(model) }
}

class Unused extends nn.Module {
  a = new nn.Linear(4, 4)
  u = new nn.Linear(4, 4)
  b = new nn.Linear(4, 2)
  forward(x) {
    return this.b(this.a(x))
  }
}

export function unused() {
  const run = (options) => {
    const model = new FullyShardedDataParallel(init(new Unused()), options)
    const rows = 3 * getWorldSize()
    const [x, y] = [input([rows, 4], 1000), input([rows, 2], 2000)].map((t) => t.narrow(0, 3 * getRank(), 3))
    torch.nn.functional.mseLoss(model(x), y).backward()
    return grads(model)
  }
  return { flat: run({}), orig: run({ useOrigParams: true }), wrapped: run({ autoWrapPolicy: new ModuleWrapPolicy([nn.Linear]) }) }
}

/** What happens at the edges: a step after an evaluation, an exception in forward, roots, copies. */
export function edges() {
  const result = {}
  const reference = wrapped('Mlp', 'FULL_SHARD')
  const model = wrapped('Mlp', 'FULL_SHARD')
  for (const [m, evaluates] of [
    [reference, false],
    [model, true],
  ]) {
    const optimizer = sgd(m)
    backward(m, 'Mlp', 0)
    if (evaluates) torch.noGrad(() => m(part('Mlp', 1, getRank(), getWorldSize())[0]))
    optimizer.step()
    optimizer.zeroGrad()
    backward(m, 'Mlp', 1)
  }
  result.stepAfterEvaluation = [grads(reference), grads(model)]
  const failing = wrapped('Mlp', 'FULL_SHARD')
  result.failure = message(() => failing(torch.zeros([1, 4])))
  backward(failing, 'Mlp', 0)
  const fresh = wrapped('Mlp', 'FULL_SHARD')
  backward(fresh, 'Mlp', 0)
  result.afterFailure = [grads(fresh), grads(failing)]
  const tower = wrapped('Tower', 'FULL_SHARD')
  const block = [...tower.module.blocks][0]
  block(input([1, 8], 1))
  result.childFirst = message(() => tower(input([1, 8], 1)))
  result.apply = (() => {
    const m = wrapped('Mlp', 'FULL_SHARD')
    m.apply((module) => {
      if (module instanceof nn.Linear) torch.noGrad(() => module.weight.fill_(0.25))
    })
    return whole(m)
  })()
  const synced = init(new models.Mlp())
  torch.noGrad(() => [...synced.parameters()].forEach((p) => p.fill_(getRank() + 1)))
  result.synced = whole(new FullyShardedDataParallel(synced, { syncModuleStates: true }))
  result.fallsThrough = new FullyShardedDataParallel(new nn.Linear(2, 3)).outFeatures
  return result
}

const MIXED = {
  param_bf16: { paramDtype: 'bfloat16' },
  reduce_bf16: { reduceDtype: 'bfloat16' },
  param_f16: { paramDtype: 'float16' },
  param_f64: { paramDtype: 'float64' },
  all_bf16: { paramDtype: 'bfloat16', reduceDtype: 'bfloat16', bufferDtype: 'bfloat16' },
  keep_low: { paramDtype: 'bfloat16', keepLowPrecisionGrads: true },
}

/** Two steps in mixed precision: forward sees one dtype, the optimizer float32. */
function mixedStep(mixedPrecision, useOrigParams) {
  const model = wrapped('Mlp', 'FULL_SHARD', { useOrigParams, mixedPrecision })
  const optimizer = sgd(model)
  const seen = []
  model.module.net[0].registerForwardPreHook((module, [x]) => void seen.push([x.dtype, module.weight.dtype]))
  const losses = []
  const events = recordCollectives(() => {
    for (const step of [0, 1]) {
      const [x, y] = part('Mlp', step, getRank(), getWorldSize())
      const value = torch.nn.functional.mseLoss(model(x).to('float32'), y)
      optimizer.zeroGrad()
      value.backward()
      seen.push(['grad', ...[...model.parameters()].map(({ grad }) => grad?.dtype ?? null)])
      optimizer.step()
      losses.push(value.item())
    }
  })
  return {
    seen,
    losses,
    events: events.map(({ name, cat, args }) => (cat === 'fsdp' ? [name.split(' ')[0], args.description] : [name, args.description])),
    dtypes: [...model.parameters()].map(({ dtype: own }) => own),
    final: whole(model),
  }
}

export const mixed = () =>
  Object.fromEntries(
    Object.entries(MIXED).flatMap(([name, settings]) =>
      Object.entries(STYLES).map(([style, useOrigParams]) => [`${name}_${style}`, mixedStep(settings, useOrigParams)]),
    ),
  )

/** Inputs that are not converted meet weights of another dtype. */
export const notCast = () => {
  const model = wrapped('Mlp', 'FULL_SHARD', { mixedPrecision: { paramDtype: 'bfloat16', castRootForwardInputs: false } })
  return message(() => model(part('Mlp', 0, getRank(), getWorldSize())[0]))
}

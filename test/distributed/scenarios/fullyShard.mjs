// fullyShard: training steps as in the goldens, and its methods.
import { nn, optim, torch } from 'tensorfx'
import { getRank, getWorldSize, recordCollectives } from 'tensorfx/distributed'
import {
  fullyShard,
  getShardedModuleTreeWithModuleNameToFqns,
  optimStateDict,
  optimStateDictToLoad,
  stateDictType,
  summonFullParams,
} from 'tensorfx/distributed/fsdp'
import { large, small } from './collectives.mjs'
import { Block, UnitModule, init, input, loss, models, part } from './fsdpModels.mjs'
import { message, named, sgd } from './helpers.mjs'

const inner = { Tower: Block, CompositeModel: UnitModule }
const STEPS = { allgather: 'all_gather_single', reducescatter: 'reduce_scatter_single' }

function make(name, options = {}) {
  const model = init(new models[name]())
  for (const module of [...model.modules()]) if (inner[name] !== undefined && module instanceof inner[name]) fullyShard(module, options)
  fullyShard(model, options)
  return model
}

function batchOf(name, step) {
  if (name !== 'Scalarish') return part(name, step, getRank(), getWorldSize())
  const rows = 3 * getWorldSize()
  return [input([rows, 2], 1000 + step), input([rows, 2], 2000 + step)].map((t) => t.narrow(0, 3 * getRank(), 3))
}

function train(name, reshardAfterForward) {
  const model = make(name, { reshardAfterForward })
  const optimizer = sgd(model)
  const result = { text: String(model), params: named(model.namedParameters()), losses: [], events: [] }
  const note = (title, fn) => {
    result.events.push(`-- ${title}`)
    for (const { name: kind, cat, args } of recordCollectives(fn))
      if (cat === 'collective') result.events.push(`${STEPS[kind]} ${/\[(\d+)\]/.exec(args.description)[1]}`)
  }
  for (let step = 0; step < 3; step++) {
    const [x, y] = batchOf(name, step)
    let value
    note(`step ${step}`, () => (value = loss(name, model(x), y)))
    note('backward', () => value.backward())
    result.grads ??= named(model.namedParameters(), (p) => p.grad)
    optimizer.step()
    optimizer.zeroGrad()
    result.losses.push(value.item())
  }
  result.state = named([...model.namedParameters()])
  result.full = summonFullParams(model, () => named(model.namedParameters()), { writeback: false })
  return result
}

export const trained = () =>
  Object.fromEntries(
    ['Mlp', 'Odd', 'Tower', 'CompositeModel', 'Tied', 'ConvBn', 'Scalarish'].flatMap((name) =>
      [true, false].map((reshard) => [`${name}_reshard=${reshard ? 'True' : 'False'}`, train(name, reshard)]),
    ),
  )

export function api() {
  const result = {}
  const tower = make('Tower')
  const step = (model, i) => {
    const [x, y] = batchOf('Tower', i)
    loss('Tower', model(x), y).backward()
  }
  step(tower, 0)
  result.clip = tower.clipGradNorm_(0.05).item()
  result.clipped = named(tower.namedParameters(), (p) => p.grad)
  const [apart, together] = [make('Tower'), make('Tower')]
  apart.setRequiresGradientSync(false)
  for (const i of [0, 1]) step(apart, i)
  result.unsynced = Object.fromEntries([...apart.namedParameters()].map(([name, { grad }]) => [name, grad === null]))
  apart.setRequiresGradientSync(true)
  step(apart, 2)
  for (const i of [0, 1, 2]) step(together, i)
  result.accumulated = [apart, together].map((model) => named(model.namedParameters(), (p) => p.grad))
  const mlp = make('Mlp')
  const shapes = () => [...mlp.namedParameters()].map(([name, p]) => [name, p.shape])
  const before = shapes()
  mlp.unshard()
  const whole = shapes()
  mlp.reshard()
  result.shapes = [before, whole, shapes()]
  result.list = message(() => fullyShard(new nn.ModuleList([new nn.Linear(2, 2)])))
  result.twice = message(() => fullyShard(mlp))
  const mixed = make('Mlp', { mixedPrecision: { paramDtype: 'bfloat16' } })
  const [x, y] = batchOf('Mlp', 0)
  const output = mixed(x)
  result.mixed = [output.dtype]
  loss('Mlp', output.to('float32'), y).backward()
  result.mixed.push(...[...mixed.parameters()].map(({ grad }) => grad.dtype))
  result.mixedGrads = named(mixed.namedParameters(), (p) => p.grad)
  result.tree = getShardedModuleTreeWithModuleNameToFqns(tower)
  result.tree = { tree: result.tree.tree, names: Object.fromEntries(result.tree.names) }
  const other = make('Mlp')
  torch.noGrad(() => [...other.parameters()].forEach((p) => p.zero_()))
  other.loadStateDict(stateDictType(other, 'FULL_STATE_DICT', () => mlp.stateDict()))
  result.loaded = [named(mlp.stateDict()), named(other.stateDict())]
  return result
}

class Conv extends nn.Module {
  conv = new nn.Conv2d(4, 8, 3)
  head = new nn.Linear(8, 4)
  forward(x) {
    return this.head(torch.relu(this.conv(x)).mean([2, 3]))
  }
}

/** Parameters divided along other dimensions than rows, beside the same model divided by rows. */
export function placements() {
  const columns = (p) => (p.ndim > 1 ? 1 : null)
  const train = (shardPlacementFn) => {
    const model = init(new Conv())
    fullyShard(model, shardPlacementFn === undefined ? {} : { shardPlacementFn })
    const optimizer = new optim.Adam(model.parameters(), { lr: 0.1 })
    const losses = []
    const step = (i) => {
      optimizer.zeroGrad()
      const value = model(input([2, 4, 5, 5], 300 + 10 * i + getRank()))
        .pow(2)
        .mean()
      value.backward()
      model.clipGradNorm_(0.5)
      optimizer.step()
      losses.push(value.item())
    }
    for (const i of [0, 1]) step(i)
    // Through whole states, and back.
    const states = optimStateDict(model, optimizer)
    optimizer.loadStateDict(optimStateDictToLoad(model, optimizer, states))
    const whole = () => new Map([...model.stateDict()].map(([name, t]) => [name, t.detach().clone()]))
    const saved = summonFullParams(model, whole, { writeback: false })
    summonFullParams(model, () => void model.loadStateDict(saved))
    step(2)
    const full = summonFullParams(model, () => named(model.namedParameters()), { writeback: false })
    const grads = summonFullParams(model, () => named(model.namedParameters(), (p) => p.grad), { withGrads: true })
    const moments = Object.entries(optimStateDict(model, optimizer).state).map(([name, { expAvg }]) => [name, expAvg])
    return { losses, full, parts: named(model.namedParameters()), grads, moments: named(moments) }
  }
  const mlp = (shardPlacementFn) => {
    const model = init(new models.Mlp())
    fullyShard(model, { shardPlacementFn })
    return named(model.namedParameters())
  }
  return {
    rows: train(),
    columns: train(columns),
    negative: train((p) => (p.ndim > 1 ? 1 - p.ndim : null)).parts,
    mlp: mlp((p) => (p.ndim === 2 && p.shape[1] % 2 === 0 ? 1 : 0)),
    uneven: message(() => mlp(columns)),
    outside: message(() => mlp(() => 2)),
    notANumber: message(() => mlp(() => 'rows')),
  }
}

/** The last scenario: so many collectives have run that the next ones are not compared. */
export async function unchecked() {
  let wrong
  const [{ args }] = recordCollectives(() => (wrong = large()))
  return { sequence: args.sequence, wrong: [...wrong, ...(await small([undefined]))] }
}

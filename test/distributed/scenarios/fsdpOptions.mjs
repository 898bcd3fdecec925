// Every pair of options of FullyShardedDataParallel with every policy, against one process: weights, statistics of the optimizer, and what is saved and loaded again.
import { nn, optim, torch } from 'tensorfx'
import { getRank, getWorldSize, initDeviceMesh } from 'tensorfx/distributed'
import {
  CustomPolicy,
  FullyShardedDataParallel,
  ModuleWrapPolicy,
  alwaysWrapPolicy,
  lambdaAutoWrapPolicy,
  optimStateDict,
  optimStateDictToLoad,
  sizeBasedAutoWrapPolicy,
  stateDictType,
  transformerAutoWrapPolicy,
} from 'tensorfx/distributed/fsdp'
import { Block, init, input, lossOf } from './data.mjs'
import { flat, whole } from './helpers.mjs'
import { pairwise } from './pairwise.mjs'

const STEPS = 2

/** Modules in lists and dicts, parameters in a list, and a buffer. */
class Nested extends nn.Module {
  isHeadIgnored = false
  inp = new nn.Linear(8, 8)
  blocks = new nn.ModuleList([new Block(), new Block()])
  gates = new nn.ParameterList([torch.ones([8]), torch.ones([8])])
  heads = new nn.ModuleDict({ a: new nn.Linear(8, 2), b: new nn.Linear(8, 2) })
  constructor() {
    super()
    this.registerBuffer('offset', torch.zeros([2]))
  }
  forward(x) {
    x = this.inp(x)
    let i = 0
    for (const block of this.blocks) x = block(x).mul(this.gates.at(i++).to(x.dtype))
    const [a, b] = [this.heads.get('a'), this.heads.get('b')]
    // What is ignored keeps its dtype under mixed precision.
    return a(x)
      .add(b(this.isHeadIgnored ? x.float() : x))
      .add(this.offset)
  }
}

/** All ranks as a line, as copies that each rank divides among itself alone, as one copy that all divide, and as two of each where that is possible. */
let made
function meshes() {
  if (made !== undefined) return made
  const size = getWorldSize()
  const named = (shape) => initDeviceMesh('cpu', shape, { meshDimNames: ['replicate', 'shard'] })
  made = { line: initDeviceMesh('cpu', [size]), copies: named([size, 1]), divided: named([1, size]), ...(size === 4 ? { both: named([2, 2]) } : {}) }
  return made
}

const isLinear = (module) => module instanceof nn.Linear

const FACTORS = {
  policy: {
    none: null,
    moduleWrap: new ModuleWrapPolicy([Block]),
    always: alwaysWrapPolicy,
    size: sizeBasedAutoWrapPolicy(70),
    lambda: lambdaAutoWrapPolicy(isLinear),
    transformer: transformerAutoWrapPolicy([Block]),
    custom: new CustomPolicy((module) => module instanceof Block && { backwardPrefetch: null, forwardPrefetch: true }),
    // The blocks are divided among all ranks, also where the model is divided among some.
    ownMesh: new CustomPolicy((module) => module instanceof Block && { shardingStrategy: 'SHARD_GRAD_OP', deviceMesh: meshes().line }),
    lists: new ModuleWrapPolicy([nn.ModuleList, nn.ModuleDict, nn.ParameterList, nn.LayerNorm]),
  },
  useOrigParams: { flat: false, orig: true },
  shardingStrategy: { full: 'FULL_SHARD', grad: 'SHARD_GRAD_OP', no: 'NO_SHARD', hybrid: 'HYBRID_SHARD', hybridGrad: '_HYBRID_SHARD_ZERO2' },
  /** For the hybrid strategies; the others divide among all ranks, by default, as a line, or as the only dimension of a mesh that has several. */
  mesh: {
    copies: (isHybrid) => (isHybrid ? { deviceMesh: meshes().copies } : {}),
    divided: (isHybrid) => ({ deviceMesh: isHybrid ? meshes().divided : meshes().line }),
    both: (isHybrid) => ({ deviceMesh: isHybrid ? (meshes().both ?? meshes().copies) : meshes().divided.get('shard') }),
  },
  syncModuleStates: { same: false, synced: true },
  ignored: {
    none: () => ({}),
    modules: (m) => ({ ignoredModules: [m.heads.get('b')] }),
    states: (m) => ({ ignoredStates: [m.gates.at(0), m.heads.get('b')] }),
  },
  mixedPrecision: {
    float32: null,
    float64: { paramDtype: 'float64', reduceDtype: 'float64' },
    reduce64: { reduceDtype: 'float64' },
    bfloat16: { paramDtype: 'bfloat16', reduceDtype: 'float32', bufferDtype: 'bfloat16' },
    buffers64: { bufferDtype: 'float64', reduceDtype: 'float64', keepLowPrecisionGrads: true },
    inputs: { paramDtype: 'float64', castForwardInputs: true, castRootForwardInputs: true },
  },
  backwardPrefetch: { pre: 'BACKWARD_PRE', post: 'BACKWARD_POST', off: null },
  forwardPrefetch: { later: false, early: true },
  limitAllGathers: { two: true, any: false },
  cpuOffload: { off: null, on: { offloadParams: true } },
  optimizer: { sgd: (ps) => new optim.SGD(ps, { lr: 0.1, momentum: 0.9 }), adamw: (ps) => new optim.AdamW(ps, { lr: 0.02 }) },
  saved: { full: 'FULL_STATE_DICT', sharded: 'SHARDED_STATE_DICT', local: 'LOCAL_STATE_DICT' },
}

const ROWS = 12

function step(model, optimizer, number, rank, size) {
  const rows = (t) => t.narrow(0, (rank * ROWS) / size, ROWS / size)
  optimizer.zeroGrad()
  lossOf(model(rows(input([ROWS, 8], 700 + number))), rows(input([ROWS, 2], 800 + number))).backward()
  optimizer.step()
}

/** What one process computes: weights by name, and the statistics of the optimizer by the name of the parameter. */
function reference(drawn) {
  const model = init(new Nested())
  freeze(drawn, model)
  const optimizer = drawn.optimizer([...model.parameters()])
  for (let i = 0; i < STEPS + 1; i++) step(model, optimizer, i, 0, 1)
  const names = [...model.namedParameters()].map(([name]) => name)
  const state = Object.fromEntries(Object.entries(optimizer.stateDict().state).map(([id, values]) => [names[id], values]))
  return { weights: Object.fromEntries([...model.namedParameters()].map(([name, p]) => [name, flat(p)])), state, offset: flat(model.offset) }
}

/** What is ignored is not trained: its gradients are of one rank's rows. */
function freeze({ ignored }, model) {
  const { ignoredModules = [], ignoredStates = [] } = ignored(model)
  const items = [...ignoredModules, ...ignoredStates]
  for (const item of items) item.requiresGrad_(false)
  model.isHeadIgnored = items.includes(model.heads.get('b'))
}

function wrapped(drawn) {
  const { policy, ignored, mesh, optimizer: _optimizer, saved: _saved, ...options } = drawn
  const model = init(new Nested())
  freeze(drawn, model)
  const { ignoredModules = [], ignoredStates = [] } = ignored(model)
  const kept = new Set([...ignoredModules, ...ignoredStates].flatMap((item) => (item instanceof nn.Module ? [...item.parameters()] : [item])))
  if (drawn.syncModuleStates)
    torch.noGrad(() => {
      for (const t of [...model.parameters(), ...model.buffers()]) if (!kept.has(t)) t.add_(getRank())
    })
  return new FullyShardedDataParallel(model, {
    ...options,
    ...mesh(options.shardingStrategy.includes('HYBRID')),
    ...ignored(model),
    autoWrapPolicy: policy,
  })
}

const furthest = (ours, theirs) =>
  ours === undefined || ours === null || ours.length !== theirs.length ? Infinity : Math.max(0, ...ours.map((v, i) => Math.abs(v - theirs[i])))

/** How far a run with these options is from one process, by what differs; nothing if it is near. */
function differences(drawn) {
  const expected = reference(drawn)
  const model = wrapped(drawn)
  const optimizer = drawn.optimizer([...model.parameters()])
  const [rank, size] = [getRank(), getWorldSize()]
  for (let i = 0; i < STEPS; i++) step(model, optimizer, i, rank, size)
  // The last step is that of another model, which goes on from what this one saved.
  const resumed = wrapped(drawn)
  torch.noGrad(() => [...resumed.parameters()].forEach((p) => p.requiresGrad && p.zero_()))
  const isLocal = drawn.saved === 'LOCAL_STATE_DICT'
  // Local ones hold flat parameters: with original ones they are refused, as in PyTorch. Optimizer states have no local form.
  const states = isLocal ? 'FULL_STATE_DICT' : drawn.saved
  const weightsType = isLocal && drawn.useOrigParams ? 'FULL_STATE_DICT' : drawn.saved
  const state = stateDictType(model, weightsType, () => model.stateDict())
  stateDictType(resumed, weightsType, () => resumed.loadStateDict(state))
  const second = drawn.optimizer([...resumed.parameters()])
  second.loadStateDict(
    optimStateDictToLoad(
      resumed,
      second,
      stateDictType(model, states, () => optimStateDict(model, optimizer)),
    ),
  )
  step(resumed, second, STEPS, rank, size)

  const tolerance = drawn.mixedPrecision?.paramDtype === 'bfloat16' ? 0.1 : 2e-4
  const wrong = []
  const check = (what, ours, theirs) => {
    const far = furthest(ours, theirs)
    if (!(far <= tolerance)) wrong.push(`${what} is off by ${far}`)
  }
  const weights = whole(resumed)
  for (const [name, values] of Object.entries(expected.weights)) check(name, weights[name]?.data, values)
  check('the buffer', flat(resumed.module.offset), expected.offset)
  const named = stateDictType(resumed, 'FULL_STATE_DICT', () => optimStateDict(resumed, second)).state
  for (const [name, values] of Object.entries(expected.state))
    for (const [key, value] of Object.entries(values)) {
      const numbers = (v) => (typeof v === 'number' ? [v] : flat(v))
      check(`${key} of ${name}`, numbers(named[name]?.[key] ?? null), numbers(value))
    }
  return wrong
}

/** Of each drawn combination what differs from one process. */
export const combinations = () =>
  pairwise(FACTORS, Number(process.env.TENSORFX_FSDP_SEED ?? 1)).map(({ names, values }) => {
    try {
      return { names, wrong: differences(values) }
    } catch (error) {
      return { names, wrong: [String(error.stack).split('\n').slice(0, 4).join(' ')] }
    }
  })

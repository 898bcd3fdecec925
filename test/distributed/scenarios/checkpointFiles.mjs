// saveCheckpoint and loadCheckpoint on several ranks: relays of ways to divide a model and of numbers of ranks, each rank's own state, and what one rank cannot do.
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { noGrad, optim, torch } from 'tensorfx'
import { loadCheckpoint, saveCheckpoint } from 'tensorfx/checkpoint'
import { DataLoader } from 'tensorfx/data'
import { DistributedDataParallel, DistributedSampler, barrier, broadcastObject, getRank, getWorldSize, newGroup } from 'tensorfx/distributed'
import { FullyShardedDataParallel, ModuleWrapPolicy, fullyShard, summonFullParams } from 'tensorfx/distributed/fsdp'
import { Block, init, input, lossOf, models } from './data.mjs'
import { flat } from './helpers.mjs'

const ROWS = 12

let made
/** A group of the first `size` ranks; the groups of two dimensions that a hybrid strategy needs. */
function groups() {
  const world = getWorldSize()
  if (made !== undefined) return made
  made = { first: {}, hybrid: null }
  for (const size of [1, 2, 3, 4].filter((n) => n <= world)) made.first[size] = newGroup([...Array(size).keys()])
  if (world === 4) {
    const pairs = [
      [0, 1],
      [2, 3],
      [0, 2],
      [1, 3],
    ].map((ranks) => newGroup(ranks))
    made.hybrid = [pairs.slice(0, 2), pairs.slice(2)].map((two) => two.find((group) => group !== null))
  }
  return made
}

const blocks = new ModuleWrapPolicy([Block])
const tower = () => init(new models.Tower())
const fsdp = (processGroup, options) => new FullyShardedDataParallel(tower(), { autoWrapPolicy: blocks, processGroup, ...options })

const ways = {
  plain: () => tower(),
  ddp: (processGroup) => new DistributedDataParallel(tower(), { processGroup }),
  full: (group) => fsdp(group, {}),
  gradOp: (group) => fsdp(group, { shardingStrategy: 'SHARD_GRAD_OP' }),
  noShard: (group) => fsdp(group, { shardingStrategy: 'NO_SHARD' }),
  hybrid: () => fsdp(groups().hybrid, { shardingStrategy: 'HYBRID_SHARD' }),
  orig: (group) => fsdp(group, { useOrigParams: true }),
  rows: (processGroup) => {
    const model = tower()
    for (const module of [...model.modules()]) if (module instanceof Block) fullyShard(module, { processGroup })
    fullyShard(model, { processGroup })
    return model
  },
}

const trainingOf = (model) => {
  const optimizer = new optim.AdamW(model.parameters(), { lr: 0.05 })
  return { model, optimizer, schedulers: new optim.StepLR(optimizer, 2, { gamma: 0.5 }) }
}

const WIDTHS = (() => {
  const matrices = [...new models.Tower().parameters()].map(({ shape }) => shape).filter((shape) => shape.length === 2)
  return [matrices[0][1], matrices.at(-1)[0]]
})()

/** A step on the same rows, however many ranks share them. */
function train({ model, optimizer, schedulers }, step, { rank, size }) {
  const rows = (t) => t.narrow(0, (rank * ROWS) / size, ROWS / size)
  const [x, y] = [input([ROWS, WIDTHS[0]], 400 + step), input([ROWS, WIDTHS[1]], 500 + step)].map(rows)
  optimizer.zeroGrad()
  lossOf(model(x), y).backward()
  optimizer.step()
  schedulers.step()
}

const isWhole = (way) => way === 'plain' || way === 'ddp'
const wholeOf = (way, model) =>
  isWhole(way) ? [...model.parameters()].map(flat) : summonFullParams(model, () => [...model.parameters()].map(flat), { writeback: false })

/** A folder that all ranks see, removed at the end. */
async function inFolder(work) {
  const folder = broadcastObject(getRank() === 0 ? mkdtempSync(join(tmpdir(), 'tensorfx-scenario-checkpoint-')) : '', 0)
  try {
    return await work(folder)
  } finally {
    barrier()
    if (getRank() === 0) rmSync(folder, { recursive: true, force: true })
  }
}

/** Two steps in each way, on so many ranks; what the first rank has at the end, and the folder. */
const relay = (legs) =>
  inFolder(async (folder) => {
    let result = null
    for (const [leg, [way, size]] of legs.entries()) {
      const group = groups().first[size]
      if (group !== null) {
        const parts = trainingOf(ways[way](group))
        const options = way === 'plain' ? {} : { group }
        const loaded = await loadCheckpoint(folder, parts, options)
        if ((loaded?.extra.step ?? 0) !== 2 * leg) throw new Error(`leg ${leg} loaded step ${loaded?.extra.step}`)
        for (let step = 2 * leg; step < 2 * leg + 2; step++) train(parts, step, group)
        await saveCheckpoint(folder, { ...parts, extra: { step: 2 * leg + 2 } }, { ...options, keep: 10 })
        if (leg === legs.length - 1) result = wholeOf(way, parts.model)
      }
      barrier()
    }
    return result
  })

const RELAYS = {
  2: [
    [
      ['full', 2],
      ['plain', 1],
      ['rows', 2],
    ],
    [
      ['plain', 1],
      ['ddp', 2],
      ['orig', 2],
    ],
    [
      ['gradOp', 2],
      ['noShard', 2],
      ['plain', 1],
    ],
  ],
  4: [
    [
      ['full', 2],
      ['rows', 4],
      ['plain', 1],
    ],
    [
      ['plain', 1],
      ['hybrid', 4],
      ['gradOp', 3],
    ],
    [
      ['orig', 3],
      ['noShard', 2],
      ['hybrid', 4],
    ],
    [
      ['ddp', 4],
      ['full', 4],
      ['ddp', 2],
    ],
  ],
}

export async function relays() {
  groups()
  const found = {}
  for (const legs of RELAYS[getWorldSize()]) found[legs.map(([way, size]) => `${way} on ${size}`).join(', ')] = await relay(legs)
  return {
    expected: await relay([
      ['plain', 1],
      ['plain', 1],
      ['plain', 1],
    ]),
    found,
  }
}

/** A part that the last rank refuses to load, or cannot save. */
const refusing = (method) => ({
  stateDict: () => (method === 'save' && getRank() === getWorldSize() - 1 ? { f: () => 1 } : { a: 1 }),
  loadStateDict() {
    if (method === 'load' && getRank() === getWorldSize() - 1) throw new Error('not this one')
  },
})

const rejection = (promise) =>
  promise.then(
    () => null,
    (error) => `${error.name}: ${error.message}`,
  )

/** Each rank's random numbers and its place in the data; what happens on fewer ranks; what the others hear of a rank that fails; who writes what. */
export const own = () =>
  inFolder(async (folder) => {
    const world = groups().first[getWorldSize()]
    const model = ways[getWorldSize() === 4 ? 'hybrid' : 'full'](world)
    const samples = Array.from({ length: 24 }, (_, i) => torch.tensor([i]))
    const loader = () => new DataLoader(samples, { batchSize: 2, sampler: new DistributedSampler(samples) })
    const data = loader()
    torch.manualSeed(10 + getRank())
    const next = []
    let drawn = null
    for await (const batch of data) {
      if (drawn !== null) next.push(...batch.toArray().flat())
      else {
        await saveCheckpoint(folder, { model, data })
        drawn = torch.rand([2]).toArray()
      }
    }

    torch.manualSeed(99)
    const other = loader()
    await loadCheckpoint(folder, { model, data: other })
    const redrawn = torch.rand([2]).toArray()
    const resumed = []
    for await (const batch of other) resumed.push(...batch.toArray().flat())
    const result = { next, resumed, drawn, redrawn, files: readdirSync(join(folder, 'checkpoint-00000001')).toSorted() }

    const fewer = groups().first[getWorldSize() / 2]
    if (fewer !== null) {
      const half = ways.full(fewer)
      result.refused = await rejection(loadCheckpoint(folder, { model: half, data: loader() }, { group: fewer }))
      torch.manualSeed(7)
      await loadCheckpoint(folder, { model: half }, { group: fewer })
      const left = torch.rand([1]).item()
      torch.manualSeed(7)
      result.isLeft = left === torch.rand([1]).item()
    }
    barrier()

    result.unsaved = await rejection(saveCheckpoint(folder, { model, scaler: refusing('save') }))
    result.afterUnsaved = (await loadCheckpoint(folder, { model }))?.path.slice(folder.length + 1)
    await saveCheckpoint(folder, { model, scaler: refusing('none') })
    const before = wholeOf('full', model)
    noGrad(() => {
      for (const parameter of model.parameters()) parameter.add_(1)
    })
    result.unloaded = await rejection(loadCheckpoint(folder, { model, scaler: refusing('load') }))
    const after = wholeOf('full', model)
    result.isUntouched = after.every((values, i) => values.every((value, j) => Math.abs(value - before[i][j] - 1) < 1e-5))
    return result
  })

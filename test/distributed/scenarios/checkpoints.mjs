// Checkpoints that another number of ranks reads: training goes on as in one process. Groups of fewer ranks stand for smaller worlds; what is saved travels as JSON
// between them, as it would in files.
import { optim, torch } from 'tensorfx'
import { ShardedTensor, allGatherObject, barrier, getWorldSize, newGroup } from 'tensorfx/distributed'
import {
  FullyShardedDataParallel,
  ModuleWrapPolicy,
  fullyShard,
  optimStateDict,
  optimStateDictToLoad,
  stateDictType,
  summonFullParams,
} from 'tensorfx/distributed/fsdp'
import { Block, init, input, lossOf, models } from './data.mjs'
import { flat, message } from './helpers.mjs'

const ROWS = 12
const LAST = 4

let made
/** A group of the first `size` ranks, on these; null on others. */
function groups() {
  made ??= Object.fromEntries([1, 2, 3, 4].filter((size) => size <= getWorldSize()).map((size) => [size, newGroup([...Array(size).keys()])]))
  return made
}

/** The ways to divide a model: of each, how it is made, and how whole parameters are read and written. */
const ways = {
  flat: (group) => wrap(group, {}),
  orig: (group) => wrap(group, { useOrigParams: true }),
  fullyShard: (group) => {
    const model = init(new models.Tower())
    for (const module of [...model.modules()]) if (module instanceof Block) fullyShard(module, { processGroup: group })
    fullyShard(model, { processGroup: group })
    return model
  },
}
const wrap = (processGroup, options) =>
  new FullyShardedDataParallel(init(new models.Tower()), { autoWrapPolicy: new ModuleWrapPolicy([Block]), processGroup, ...options })

const adam = (model) => new optim.AdamW(model.parameters(), { lr: 0.05 })

/** A step on the same rows, however many ranks share them. */
function train(model, optimizer, step, group) {
  const rows = (t) => t.narrow(0, (group.rank * ROWS) / group.size, ROWS / group.size)
  const [x, y] = [input([ROWS, WIDTHS[0]], 400 + step), input([ROWS, WIDTHS[1]], 500 + step)].map(rows)
  optimizer.zeroGrad()
  lossOf(model(x), y).backward()
  optimizer.step()
}
const WIDTHS = (() => {
  const model = new models.Tower()
  const shapes = [...model.parameters()].map(({ shape }) => shape)
  const matrices = shapes.filter((shape) => shape.length === 2)
  return [matrices[0][1], matrices.at(-1)[0]]
})()

const plain = (t) => ({ shape: t.shape, dtype: t.dtype, data: flat(t) })
const restored = ({ shape, dtype, data }) => torch.tensor(data, { dtype }).view(shape)

/** This rank's file: of each tensor the parts that it holds; whole ones are in the file of the first rank only. */
const written = (values, group) =>
  values.map(([name, value]) => {
    if (value instanceof ShardedTensor)
      return { name, shape: value.shape, dtype: value.dtype, parts: value.localShards.map(({ tensor, offsets }) => ({ offsets, ...plain(tensor) })) }
    if (typeof value === 'number') return { name, value }
    return { name, whole: group.rank === 0 ? plain(value) : null }
  })

/** A value of all files: a rank of the group reads each `group.size`-th of them. */
function read(files, at, group) {
  const [first] = files
  const { shape, dtype, value } = first[at]
  if (value !== undefined) return value
  if (shape === undefined) return restored(first[at].whole)
  const own = files.filter((_, i) => i % group.size === group.rank)
  const shards = own.flatMap((file) => file[at].parts.map((part) => ({ offsets: part.offsets, tensor: restored(part) })))
  return ShardedTensor.fromLocalShards(shards, shape, dtype, group)
}

const isFsdp2 = (model) => !(model instanceof FullyShardedDataParallel)

function save(model, optimizer, type, group) {
  return stateDictType(model, type, () => {
    const state = optimStateDict(model, optimizer)
    const values = Object.entries(state.state).flatMap(([name, of]) => Object.entries(of).map(([key, value]) => [JSON.stringify([name, key]), value]))
    // Parameters of fullyShard are this rank's rows: whole ones are read inside summonFullParams.
    const parameters = isFsdp2(model)
      ? summonFullParams(model, () => [...model.stateDict()].map(([name, t]) => [name, t.detach().clone()]), { writeback: false })
      : [...model.stateDict()]
    return { parameters: written(parameters, group), states: written(values, group), groups: state.paramGroups }
  })
}

function load(model, optimizer, type, files, group) {
  stateDictType(model, type, () => {
    const all = (part) =>
      files[0][part].map(({ name }, at) => [
        name,
        read(
          files.map((file) => file[part]),
          at,
          group,
        ),
      ])
    const parameters = new Map(all('parameters'))
    if (isFsdp2(model)) summonFullParams(model, () => void model.loadStateDict(parameters))
    else model.loadStateDict(parameters)
    const state = {}
    for (const [name, value] of all('states')) {
      const [parameter, key] = JSON.parse(name)
      ;(state[parameter] ??= {})[key] = value
    }
    optimizer.loadStateDict(optimStateDictToLoad(model, optimizer, { state, paramGroups: files[0].groups }))
  })
}

const wholeOf = (model) => summonFullParams(model, () => [...model.parameters()].map(flat), { writeback: false })

/** One step on each number of ranks, and the rest on the last; what the first rank has at the end. */
function relay(make, type, sizes) {
  let files = []
  let result = null
  for (const [step, size] of sizes.entries()) {
    const group = groups()[size]
    let own = null
    if (group !== null) {
      const model = make(group)
      const optimizer = adam(model)
      if (step > 0) load(model, optimizer, type, files, group)
      const isLast = step === sizes.length - 1
      for (let i = step; i < (isLast ? LAST : step + 1); i++) train(model, optimizer, i, group)
      own = save(model, optimizer, type, group)
      if (isLast) result = wholeOf(model)
    }
    files = allGatherObject(own).filter((file) => file !== null)
    barrier()
  }
  return result
}

export function worldSizes() {
  const relays =
    getWorldSize() === 4
      ? [
          [2, 4, 1],
          [3, 4, 3, 1],
        ]
      : [
          [2, 1, 2],
          [1, 2],
        ]
  return Object.fromEntries(
    Object.entries(ways).map(([way, make]) => [
      way,
      {
        expected: relay(make, 'FULL_STATE_DICT', [1]),
        found: [
          relay(make, 'FULL_STATE_DICT', relays[0]),
          relay(make, 'SHARDED_STATE_DICT', relays[0]),
          relay(make, 'FULL_STATE_DICT', relays[1]),
          relay(make, 'SHARDED_STATE_DICT', relays[1]),
        ],
      },
    ]),
  )
}

/** Files that do not fit: one is lost, a part is there twice or too large, a local state dict of more ranks, and names that are missing. */
export function unfit() {
  const group = groups()[getWorldSize()]
  const model = ways.flat(group)
  const own = stateDictType(model, 'SHARDED_STATE_DICT', () => written([...model.stateDict()], group))
  const files = allGatherObject(own)
  const before = JSON.stringify(wholeOf(model))
  const loads = (change) =>
    message(() => {
      const changed = change(structuredClone(files))
      const state = new Map(own.map(({ name }, at) => [name, read(changed, at, group)]))
      stateDictType(model, 'SHARDED_STATE_DICT', () => model.loadStateDict(state))
    })
  const first = (list, edit) => {
    edit(list[0][0])
    return list
  }
  const result = {
    lost: loads((list) => list.slice(0, -1)),
    twice: loads((list) => [...list, list[0]]),
    outside: loads((list) => first(list, ({ parts }) => (parts[0].offsets[0] = 1000))),
    negative: loads((list) => first(list, ({ parts }) => (parts[0].offsets[0] = -1))),
    otherDtype: loads((list) => first(list, ({ parts }) => (parts[0].dtype = 'float64'))),
    unnamed: message(() =>
      stateDictType(model, 'SHARDED_STATE_DICT', () =>
        model.loadStateDict(new Map(own.slice(1).map(({ name }, at) => [name, read(files, at + 1, group)]))),
      ),
    ),
  }
  const local = stateDictType(model, 'LOCAL_STATE_DICT', () => model.stateDict())
  const smaller = groups()[getWorldSize() / 2]
  if (smaller !== null) {
    const other = ways.flat(smaller)
    for (const strict of [true, false])
      result[`local ${strict}`] = message(() => stateDictType(other, 'LOCAL_STATE_DICT', () => other.loadStateDict(local, { strict })))
  }
  result.unchanged = JSON.stringify(wholeOf(model)) === before
  return result
}

// Every collective, on the inputs of the goldens.
import { torch } from 'tensorfx'
import * as dist from 'tensorfx/distributed'
import { input, tokens } from './data.mjs'
import { message } from './helpers.mjs'

const rank = () => dist.getRank()
const world = () => dist.getWorldSize()
const list = (tensor) => tensor.toArray()
const own = () => input([6], 50 + rank(), 4)
const FLOATS = ['float32', 'float64', 'float16', 'bfloat16']
const OPS = ['sum', 'avg', 'product', 'min', 'max', 'band', 'bor', 'bxor']

function operand(dtype) {
  if (FLOATS.includes(dtype)) return input([6], 50 + rank(), dtype.endsWith('16') ? 1 : 4).to(dtype)
  const n = { uint8: 20, bool: 2 }[dtype] ?? 100
  return tokens([6], 50 + rank(), n).to(dtype)
}

export function reductions() {
  const results = {}
  for (const dtype of [...FLOATS, 'int32', 'int64', 'uint8', 'bool'])
    for (const op of OPS) {
      const x = operand(dtype)
      const error = message(() => dist.allReduce(x, { op }))
      results[`all_reduce/${dtype}/${op.toUpperCase()}`] = error === 'no error' ? list(x) : { error }
    }
  return results
}

export function moves() {
  const W = world()
  const results = {}
  const outputs = Array.from({ length: W }, () => torch.zeros([6]))
  dist.allGather(outputs, own())
  results.all_gather = outputs.map(list)
  const joined = torch.zeros([6 * W])
  dist.allGatherIntoTensor(joined, own())
  results.all_gather_into_tensor = list(joined)
  const stacked = torch.zeros([W, 6])
  dist.allGatherIntoTensor(stacked, own())
  results.stacked = list(stacked)
  const big = () => input([3 * W], 70 + rank())
  const part = torch.zeros([3])
  dist.reduceScatterTensor(part, big())
  results.reduce_scatter_tensor = list(part)
  dist.reduceScatterTensor(part, big(), { op: 'avg' })
  results.reduce_scatter_tensor_avg = list(part)
  dist.reduceScatter(part, [...big().split(3)])
  results.reduce_scatter = list(part)
  const all = torch.zeros([3 * W])
  dist.allToAllSingle(all, big())
  results.all_to_all_single = list(all)
  const parts = Array.from({ length: W }, () => torch.zeros([3]))
  dist.allToAll(parts, [...big().split(3)])
  results.all_to_all = parts.map(list)
  const inSplits = Array.from({ length: W }, (_, i) => i + 1)
  const outSplits = Array.from({ length: W }, () => rank() + 1)
  const total = inSplits.reduce((a, b) => a + b, 0)
  const uneven = torch.zeros([W * (rank() + 1)])
  dist.allToAllSingle(uneven, input([total], 80 + rank()), outSplits, inSplits)
  results.all_to_all_single_splits = list(uneven)
  const x = own()
  dist.broadcast(x, 1)
  results.broadcast_src1 = list(x)
  const y = own()
  dist.reduce(y, 1)
  results.reduce_dst1 = rank() === 1 ? list(y) : 'undefined'
  const gathered = rank() === 1 ? Array.from({ length: W }, () => torch.zeros([6])) : null
  dist.gather(own(), gathered, 1)
  results.gather_dst1 = gathered?.map(list) ?? null
  const scattered = torch.zeros([3])
  dist.scatter(scattered, rank() === 0 ? [...input([3 * W], 99).split(3)] : null, 0)
  results.scatter_src0 = list(scattered)
  return results
}

export function messages() {
  const [W, me] = [world(), rank()]
  const received = torch.zeros([6])
  const ring = [dist.isend(own(), (me + 1) % W), dist.irecv(received, (me + W - 1) % W)]
  for (const work of ring) work.wait()
  const result = { ring: list(received), source: ring[1].source }
  if (me === 0) dist.send(own(), 1)
  if (me === 1) {
    const x = torch.zeros([6])
    result.fromAny = [dist.recv(x), list(x)]
  }
  // Tags: the second message is asked for first.
  if (me === 0) {
    const works = [dist.isend(torch.tensor([1]), 1, { tag: 7 }), dist.isend(torch.tensor([2]), 1, { tag: 8 })]
    for (const work of works) work.wait()
  }
  if (me === 1) {
    const [a, b] = [torch.zeros([1]), torch.zeros([1])]
    dist.recv(a, 0, { tag: 8 })
    dist.recv(b, 0, { tag: 7 })
    result.byTag = [list(a), list(b)]
  }
  dist.barrier()
  return result
}

export function objects() {
  return {
    all: dist.allGatherObject({ rank: rank(), x: Array.from({ length: rank() }, () => 1) }),
    fromOne: dist.broadcastObject(rank() === 1 ? { a: [1, 'ü'] } : null, 1),
    broadcast: dist.broadcastObject(rank() === 0 ? [{ a: 1 }, 1] : null, 0),
    scattered: dist.scatterObject(rank() === 0 ? Array.from({ length: world() }, (_, to) => ({ to })) : null, 0),
    scatterLength: message(() => dist.scatterObject([1], rank())),
    noJson: message(() => dist.allGatherObject(undefined)),
    wrong: ['{"a"', '{"a":1,"a":2}', '['.repeat(300), '{"b":[{"__proto__":1}]}'].map((text) => fromRank1(new TextEncoder().encode(text))),
    wrongLength: fromRank1([], -1),
    length: fromRank1([], 2 ** 29),
  }
}

/** What broadcastObject says to bytes that rank 1 sends with the operations that it uses, and to the number of bytes. */
function fromRank1(bytes, length = bytes.length) {
  if (rank() !== 1) return message(() => dist.broadcastObject(null, 1))
  dist.broadcast(torch.tensor([length], { dtype: 'int32' }), 1)
  if (length === bytes.length) dist.broadcast(torch.tensor([...bytes], { dtype: 'uint8' }), 1)
  return null
}

export function groups() {
  const results = []
  for (const ranks of [[0, 1], [1], [...Array(world()).keys()].toReversed(), [0, world() - 1]]) {
    const group = dist.newGroup(ranks)
    if (group === null) {
      results.push(null)
      continue
    }
    const x = own()
    dist.allReduce(x, { group })
    results.push([list(x), dist.getRank(group), dist.getWorldSize(group), dist.getProcessGroupRanks(group)])
  }
  return { results, twice: message(() => dist.newGroup([0, 0])), far: message(() => dist.newGroup([9])) }
}

export async function asynchronous() {
  const [x, y, z] = [own(), own(), own()]
  const first = dist.allReduce(x, { asyncOp: true })
  const second = dist.allReduce(y, { op: 'max', asyncOp: true })
  // In another order than they were started.
  second.wait()
  first.wait()
  await dist.allReduce(z, { op: 'avg', asyncOp: true })
  return { x: list(x), y: list(y), z: list(z), completed: first.isCompleted() }
}

/** All-reduces that MPI runs in pieces, with a small one behind them, of which odd ranks wait for the last one first. */
export function large() {
  const n = 400_001
  const count = torch.arange(n).to('float32')
  const x = count.mul(rank() + 1)
  const y = torch.full([n], rank(), { dtype: 'float64' })
  const small = torch.tensor([rank()])
  const works = [x, y, small].map((tensor) => dist.allReduce(tensor, { asyncOp: true }))
  for (const work of rank() % 2 === 0 ? works : works.toReversed()) work.wait()
  const wrong = (tensor, expected) => tensor.ne(expected).sum().item()
  const ranks = Array.from({ length: world() }, (_, i) => i)
  const sum = (list) => list.reduce((a, b) => a + b, 0)
  return [wrong(x, count.mul(sum(ranks) + world())), wrong(y, sum(ranks)), small.item() - sum(ranks)]
}

/** Small all-reduces, up to the limit of what ranks exchange through shared memory and beyond, all started before one is waited for. Returns those that are wrong. */
export async function small(groups = [dist.newGroup(), dist.newGroup()]) {
  const total = (world() * (world() + 1)) / 2
  const cases = ['float32', 'float64', 'int32'].flatMap((dtype) =>
    [1, 127, 128, 129, 255, 256, 257].flatMap((n) =>
      Object.entries({ sum: total, max: world(), min: 1 }).map(([op, factor]) => {
        const count = torch.arange(n).add(1).to(dtype)
        return { name: `${op} of ${n} ${dtype}`, op, x: count.mul(rank() + 1), expected: count.mul(factor) }
      }),
    ),
  )
  const works = cases.map(({ x, op }, i) => dist.allReduce(x, { op, group: groups[i % groups.length], asyncOp: true }))
  for (const work of rank() % 2 === 0 ? works : works.toReversed())
    if (rank() === 0) await work
    else work.wait()
  return cases.filter(({ x, expected }) => x.ne(expected).any().item()).map(({ name }) => name)
}

/** Two groups whose collectives are waited for in different orders: each must make progress while the other is waited for. */
export function crossed() {
  const [a, b] = [dist.newGroup(), dist.newGroup()]
  const [x, y] = [own(), own()]
  if (rank() === 0) {
    const first = dist.allReduce(x, { group: a, asyncOp: true })
    dist.allReduce(y, { group: b })
    first.wait()
  } else {
    const second = dist.allReduce(y, { group: b, asyncOp: true })
    dist.allReduce(x, { group: a })
    second.wait()
  }
  return [list(x), list(y)]
}

export function layouts() {
  const x = torch.zeros([6, 2])
  x.select(1, 0).copy_(own())
  dist.allReduce(x.select(1, 0))
  const big = torch.ones([300_000]).mul(rank() + 1)
  dist.allReduce(big)
  const empty = torch.zeros([0])
  dist.allReduce(empty)
  const scalar = torch.tensor(rank() + 1)
  dist.allReduce(scalar)
  const parameter = own().requiresGrad_()
  const version = torch.noGrad(() => {
    dist.allReduce(parameter)
    return parameter.requiresGrad
  })
  const values = big.toTypedArray()
  return {
    columns: x.toArray(),
    big: [big.shape, values.every((value) => value === values[0]), values.at(-1)],
    empty: empty.shape,
    scalar: scalar.item(),
    version,
  }
}

/** Writing to a tensor that backward needs is noticed, as for any in-place operator. */
export function raisesVersions() {
  const x = torch.tensor([2]).requiresGrad_()
  const h = x.mul(3)
  const y = h.mul(h)
  dist.allReduce(h.detach())
  return message(() => y.sum().backward())
}

export function refuses() {
  const t = torch.zeros([6])
  return {
    size: message(() => dist.allGatherIntoTensor(torch.zeros([7]), t)),
    dtype: message(() => dist.allGatherIntoTensor(torch.zeros([6 * world()]).double(), t)),
    scatterSize: message(() => dist.reduceScatterTensor(torch.zeros([4]), torch.zeros([6]))),
    noTensor: message(() => dist.allReduce([1, 2])),
    root: message(() => dist.broadcast(t, 5)),
    self: message(() => dist.send(t, rank())),
    listLength: message(() => dist.allGather([t], t)),
    op: message(() => dist.allReduce(t, { op: 'mean' })),
    option: message(() => dist.allReduce(t, { async: true })),
    splits: message(() => dist.allToAllSingle(torch.zeros([6]), t, [1], [6])),
    divides: message(() => dist.allToAllSingle(torch.zeros([5]), torch.zeros([5]))),
    second: dist.isInitialized(),
    barrier: message(() => dist.monitoredBarrier({ timeout: 10_000 })),
    ops: Object.values(dist.ReduceOp),
  }
}

export function functional() {
  const f = dist.functional
  const x = () => input([2, 3 * world()], 11 + rank()).requiresGrad_()
  const results = {}
  for (const [name, fn] of Object.entries({
    allReduce: (t) => f.allReduce(t),
    average: (t) => f.allReduce(t, 'avg'),
    allGather: (t) => f.allGatherTensor(t, 0),
    allGather1: (t) => f.allGatherTensor(t, 1),
    reduceScatter1: (t) => f.reduceScatterTensor(t, 'sum', 1),
    allToAll: (t) => f.allToAllSingle(t.t().contiguous()),
    broadcast: (t) => f.broadcast(t.detach(), 1).add(t.mul(0)),
  })) {
    const t = x()
    const y = fn(t)
    y.mul(input(y.shape, 31 + rank()))
      .sum()
      .backward()
    results[name] = { value: y.toArray(), grad: t.grad.toArray() }
  }
  return results
}

/** Nothing is sent, so the group works afterwards. */
export function mismatch() {
  const error = message(() => dist.allReduce(torch.ones([rank() === 0 ? 4 : 5])))
  const data = torch.ones([4])
  const kinds = message(() => (rank() === 0 ? dist.allReduce(data) : dist.broadcast(data, 0)))
  const x = torch.ones([2])
  dist.allReduce(x)
  return { error, kinds, after: list(x) }
}

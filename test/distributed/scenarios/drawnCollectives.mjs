// Drawn collectives of every kind, dtype and reduction, with sizes around those at which ranks change the way that data goes, against what one process computes.
import { setSoftLimit, heapStats } from 'tensorfx/kernels'
import { Tensor, torch } from 'tensorfx'
import * as dist from 'tensorfx/distributed'
import { randomFrom } from '../../../scripts/fuzz/random.mjs'

const CASES = 60

/** Bytes at which shared memory takes another step, or MPI moves the data instead. */
const LIMITS = [0, 64, 2 ** 11, 2 ** 14, 2 ** 16, 2 ** 17, 2 ** 18]
/** The last of them, which few cases have, since it takes long. */
const LARGEST = 2 ** 22
const DTYPES = ['float32', 'float64', 'float16', 'bfloat16', 'int8', 'uint8', 'int16', 'int32', 'int64', 'bool']
const SIZES = { float32: 4, float64: 8, float16: 2, bfloat16: 2, int8: 1, uint8: 1, int16: 2, int32: 4, int64: 8, bool: 1 }
const KINDS = ['allReduce', 'reduce', 'broadcast', 'allGather', 'gather', 'scatter', 'reduceScatter', 'allToAll', 'barrier']

const REDUCE = {
  sum: (a, b) => (a.dtype === 'bool' ? a.logicalOr(b) : a.add(b)),
  avg: (a, b) => a.add(b),
  product: (a, b) => (a.dtype === 'bool' ? a.logicalAnd(b) : a.mul(b)),
  min: (a, b) => (a.dtype === 'bool' ? a.logicalAnd(b) : torch.minimum(a, b)),
  max: (a, b) => (a.dtype === 'bool' ? a.logicalOr(b) : torch.maximum(a, b)),
  band: (a, b) => torch.bitwiseAnd(a, b),
  bor: (a, b) => torch.bitwiseOr(a, b),
  bxor: (a, b) => torch.bitwiseXor(a, b),
}

/** What all ranks draw alike: a collective and its size. */
function draw(random, world) {
  const kind = random.pick(KINDS)
  const dtype = random.pick(DTYPES)
  const isFloat = dtype.includes('float')
  const op = random.pick(Object.keys(REDUCE).filter((name) => (isFloat ? !name.startsWith('b') : name !== 'avg')))
  const around = (random.int(50) === 0 ? LARGEST : random.pick(LIMITS)) / SIZES[dtype] / random.pick([1, 1, world])
  const n = Math.max(0, Math.floor(around) + random.pick([-1, 0, 1, random.int(40)]))
  return {
    kind,
    dtype,
    op,
    n,
    root: random.int(world),
    seed: random.int(2 ** 30),
    asyncOp: random.int(3) === 0,
    spilled: random.int(8) === 0,
  }
}

/** Small whole numbers: their sums and products are exact in every dtype, whatever their order. */
function operand({ dtype, seed }, rank, n) {
  torch.manualSeed(seed + rank)
  return dtype === 'bool' ? torch.randint(0, 2, [n]).bool() : torch.randint(1, 4, [n]).to(dtype)
}

const MARGIN = 8

/** The tensor between margins that nothing may write to. */
function placed(tensor) {
  const room = torch.ones([tensor.numel + 2 * MARGIN], { dtype: tensor.dtype })
  const inside = room.narrow(0, MARGIN, tensor.numel)
  inside.copy_(tensor)
  return inside
}

/** Whether the margins are as they were. */
const hasMargins = (inside) => {
  const room = inside.asStrided([inside.numel + 2 * MARGIN], [1], inside.offset - MARGIN)
  return [room.narrow(0, 0, MARGIN), room.narrow(0, MARGIN + inside.numel, MARGIN)].every((margin) => margin.eq(1).all().item())
}

const reduceAll = ({ op, dtype }, tensors) => {
  const isHalf = dtype === 'float16' || dtype === 'bfloat16'
  const [first, ...others] = tensors.map((t) => (isHalf ? t.float() : t))
  const sum = others.reduce(REDUCE[op], first)
  return (op === 'avg' ? sum.div(tensors.length) : sum).to(dtype)
}

/** Starts the collective, and returns the tensor that it writes with what one process puts there; null where nothing is written. */
function start(drawn, me, world, group) {
  const { kind, n, root, op, dtype } = drawn
  const options = { group, asyncOp: drawn.asyncOp }
  const ranks = [...Array(world).keys()]
  const of = (rank, count) => operand(drawn, rank, count)
  const check = (work, actual, expected) => ({ work, actual, expected })
  switch (kind) {
    case 'allReduce': {
      const x = placed(of(me, n))
      return check(dist.allReduce(x, { ...options, op }), x, () =>
        reduceAll(
          drawn,
          ranks.map((r) => of(r, n)),
        ),
      )
    }
    case 'reduce': {
      const x = placed(of(me, n))
      return check(dist.reduce(x, root, { ...options, op }), x, () =>
        me === root
          ? reduceAll(
              drawn,
              ranks.map((r) => of(r, n)),
            )
          : null,
      )
    }
    case 'broadcast': {
      const x = placed(of(me, n))
      return check(dist.broadcast(x, root, options), x, () => of(root, n))
    }
    case 'allGather': {
      const out = placed(torch.zeros([n * world], { dtype }))
      return check(dist.allGatherIntoTensor(out, of(me, n), options), out, () => torch.cat(ranks.map((r) => of(r, n))))
    }
    case 'gather': {
      const outputs = me === root ? ranks.map(() => torch.zeros([n], { dtype })) : null
      const work = dist.gather(of(me, n), outputs, root, options)
      return check(
        work,
        () => torch.cat(outputs ?? [torch.zeros([0])]),
        () => (outputs === null ? null : torch.cat(ranks.map((r) => of(r, n)))),
      )
    }
    case 'scatter': {
      const out = placed(torch.zeros([n], { dtype }))
      const part = (rank) => of(root, n * world).narrow(0, rank * n, n)
      return check(dist.scatter(out, me === root ? ranks.map(part) : null, root, options), out, () => part(me))
    }
    case 'reduceScatter': {
      const out = placed(torch.zeros([n], { dtype }))
      const work = dist.reduceScatterTensor(out, of(me, n * world), { ...options, op })
      return check(work, out, () =>
        reduceAll(
          drawn,
          ranks.map((r) => of(r, n * world)),
        ).narrow(0, me * n, n),
      )
    }
    case 'allToAll': {
      // Rank a sends n + a + b elements to rank b; every third pair none.
      const count = (a, b) => ((a + b) % 3 === 2 ? 0 : n + a + b)
      const total = (counts) => counts.reduce((a, b) => a + b, 0)
      const sent = (a) => ranks.map((b) => count(a, b))
      const received = ranks.map((a) => count(a, me))
      const out = placed(torch.zeros([total(received)], { dtype }))
      const work = dist.allToAllSingle(out, of(me, total(sent(me))), received, sent(me), options)
      return check(work, out, () => torch.cat(ranks.map((a) => of(a, total(sent(a))).split(sent(a))[me])))
    }
    default:
      return check(dist.barrier(options), null, () => null)
  }
}

/** Of each drawn collective that is wrong, what it was. */
export function drawn() {
  const [me, world] = [dist.getRank(), dist.getWorldSize()]
  const seed = Number(process.env.TENSORFX_COLLECTIVES_SEED ?? 1)
  const random = randomFrom(seed)
  const groups = [dist.newGroup(), dist.newGroup()]
  const wrong = []
  const open = []
  const finish = ({ text, run }) => {
    run.work?.wait()
    const expected = run.expected()
    const actual = typeof run.actual === 'function' ? run.actual() : run.actual
    if (run.actual instanceof Tensor && !hasMargins(actual)) wrong.push(`${text} wrote beyond its tensor`)
    if (expected !== null && (actual.numel !== expected.numel || actual.ne(expected).any().item())) wrong.push(text)
  }
  for (let i = 0; i < CASES; i++) {
    const what = draw(random, world)
    const group = groups[random.int(2)]
    const { softLimit } = heapStats()
    if (what.spilled) setSoftLimit(0)
    try {
      open.push({ text: JSON.stringify(what), run: start(what, me, world, group) })
    } finally {
      setSoftLimit(softLimit)
    }
    // Ranks wait for what is under way at different times and in different orders, and some come late.
    if (open.length > 1 + ((i * 7 + me * 3) % 5)) for (const one of me % 2 === 0 ? open.splice(0) : open.splice(0).toReversed()) finish(one)
    if ((i + me) % 40 === 0) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 20)
  }
  for (const one of open) finish(one)
  return wrong
}

/** Sums of any numbers have the same bits on every rank. Returns the sizes at which they have not. */
export function sameBits() {
  const [me, world] = [dist.getRank(), dist.getWorldSize()]
  return [3, 500, 513, 5000, 16385, 60000].flatMap((n) =>
    ['float32', 'float64'].flatMap((dtype) => {
      torch.manualSeed(n + me)
      const x = torch.randn([n]).to(dtype)
      dist.allReduce(x)
      const all = torch.zeros([n * world], { dtype })
      dist.allGatherIntoTensor(all, x)
      return all.view([world, n]).ne(x).any().item() ? [`${n} ${dtype}`] : []
    }),
  )
}

/** A large sum is under way on rank 0 while it waits for a small one, which the others start only after the large one. Returns both. */
export function overtaken() {
  const [large, small] = [torch.ones([2 ** 20]), torch.ones([1])]
  const work = dist.allReduce(large, { asyncOp: true })
  if (dist.getRank() !== 0) work.wait()
  dist.allReduce(small)
  work.wait()
  return [large.min().item(), large.max().item(), small.item()]
}

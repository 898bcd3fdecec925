// npm run fuzz:heap -- N [seed]: random tensors, views, writes, disposals, failing allocations and spilling, on the checked heap, next to a model in plain arrays.
// Every value must be as in the model at any time, and at the end the heap must be as it was.
import { randomFrom } from './random.mjs'

/** Bytes that may be in use beyond those after the first third: one large tensor. */
const ALLOWED = 300_000

const SIZES = [0, 1, 3, 16, 100, 1000, 20_000, 70_000]

/** Runs one program of random steps. Throws an Error that names the step if something is wrong. `api` holds torch, compile and the functions of tensorfx/kernels. */
export function fuzzHeap(api, seed, steps = 40) {
  const { torch, kernels, compiled } = api
  const random = randomFrom(seed)
  /** A tensor, and the positions of its elements in the values of its storage. */
  const live = []
  const log = []
  const fail = (what) => {
    throw new Error(`fuzz:heap, seed ${seed}: ${what}\n${log.join('\n')}`)
  }
  // Typed arrays, which the collector need not look into: it runs often here.
  const own = (tensor, values) => ({ tensor, storage: { values, disposed: false }, positions: new Int32Array(values.length).map((_, i) => i) })
  const valuesOf = ({ storage, positions }) => {
    const values = new Float32Array(positions.length)
    for (let i = 0; i < values.length; i++) values[i] = storage.values[positions[i]]
    return values
  }
  const check = (entry, where) => {
    if (entry.storage.disposed && entry.positions.length > 0) {
      try {
        entry.tensor.toTypedArray()
      } catch (error) {
        if (error.code === 'TFX_ARGUMENT') return
        throw error
      }
      fail(`${where}: a disposed tensor was read`)
    }
    const actual = entry.tensor.toTypedArray()
    const expected = valuesOf(entry)
    const wrong = expected.findIndex((value, i) => !Object.is(value, actual[i]))
    if (actual.length !== expected.length || wrong >= 0) fail(`${where}: element ${wrong} is ${actual[wrong]}, not ${expected[wrong]}`)
  }
  /** Runs what allocates, and perhaps lets one of its allocations fail. null if that happened. */
  const attempt = (run) => {
    if (random.next() > 0.25) return run()
    const nth = 1 + random.int(3)
    const { outcome, failed } = kernels.withFailingAllocation(nth, run)
    if ('returned' in outcome) return outcome.returned
    if (!failed || outcome.threw?.code !== 'TFX_OUT_OF_MEMORY') throw outcome.threw
    log.push(`  (allocation ${nth} failed)`)
    return null
  }
  const usable = () => live.filter((entry) => !entry.storage.disposed)
  const kinds = {
    create() {
      const n = random.pick(SIZES)
      const value = random.int(100)
      log.push(`arange(${n}).add(${value})`)
      const made = attempt(() => torch.arange(n).add(value))
      if (made !== null)
        live.push(
          own(
            made,
            new Float32Array(n).map((_, i) => i + value),
          ),
        )
    },
    view() {
      const base = random.pick(usable().filter((entry) => entry.positions.length > 1))
      if (base === undefined) return
      const n = base.positions.length
      const [from, step] = [random.int(n - 1), 1 + random.int(3)]
      log.push(`slice(${from}, ${n}, ${step}) of ${live.indexOf(base)}`)
      live.push({
        tensor: base.tensor.slice(0, from, n, step),
        storage: base.storage,
        positions: base.positions.filter((_, i) => i >= from && (i - from) % step === 0),
      })
    },
    compute() {
      const entry = random.pick(usable())
      if (entry === undefined) return
      const how = random.pick(['eager', 'compiled', 'cumulative'])
      log.push(`${how} of ${live.indexOf(entry)}`)
      const values = valuesOf(entry)
      const run =
        how === 'eager' ? () => entry.tensor.mul(2).add(1) : how === 'compiled' ? () => compiled(entry.tensor) : () => torch.flip(entry.tensor, [0])
      const made = attempt(run)
      if (made !== null) live.push(own(made, how === 'cumulative' ? values.toReversed() : values.map((value) => value * 2 + 1)))
    },
    write() {
      const entry = random.pick(usable())
      if (entry === undefined) return
      const value = random.int(50)
      log.push(`fill ${live.indexOf(entry)} with ${value}`)
      if (attempt(() => entry.tensor.fill_(value)) !== null) for (const at of entry.positions) entry.storage.values[at] = value
    },
    dispose() {
      const entry = random.pick(live)
      if (entry === undefined) return
      log.push(`dispose ${live.indexOf(entry)}`)
      entry.tensor.dispose()
      entry.storage.disposed = true
    },
    drop() {
      if (live.length > 0) live.splice(random.int(live.length), 1)
    },
    misuse() {
      const entry = random.pick(usable())
      if (entry === undefined) return
      const { tensor } = entry
      const run = random.pick([
        () => tensor.asStrided([tensor.numel + 70_001], [1], 0),
        () => torch.zeros([2 ** 31]),
        () => torch.zeros([1e15]),
        () => tensor.asStrided([2], [2 ** 40], 0),
      ])
      try {
        run()
      } catch (error) {
        if (typeof error.code === 'string' && error.code !== 'TFX_INTERNAL') return
        throw error
      }
      fail('a call that is impossible returned')
    },
    limit() {
      const softLimit = random.pick([0, 2 ** 16, 2 ** 20, 512 * 2 ** 20])
      log.push(`soft limit ${softLimit}`)
      kernels.setSoftLimit(softLimit)
    },
    collect() {
      // A collection takes longer than all the other steps of a program.
      if (random.next() < 0.2) kernels.collectBlocks()
    },
  }
  const names = [
    'create',
    'create',
    'create',
    'view',
    'view',
    'compute',
    'compute',
    'compute',
    'write',
    'write',
    'dispose',
    'drop',
    'misuse',
    'limit',
    'collect',
  ]
  const { softLimit } = kernels.heapStats()
  const synchronous = kernels.setSynchronousCollection(random.next() < 0.2)
  try {
    for (let step = 0; step < steps; step++) {
      kinds[random.pick(names)]()
      const some = random.pick(live)
      if (some !== undefined) check(some, `step ${step}`)
    }
    live.forEach((entry, i) => check(entry, `tensor ${i} at the end`))
    for (const { tensor } of live) tensor.dispose()
    // Freed memory is compared as it is given back, so that the next program has less to compare.
    api.heap.release()
    api.heap.verify()
    // Otherwise calls of later programs run eagerly, as too many shapes were compiled.
    api.reset()
  } catch (error) {
    if (String(error.message).startsWith('fuzz:heap')) throw error
    throw new Error(`fuzz:heap, seed ${seed}: ${error.message}\n${log.join('\n')}`, { cause: error })
  } finally {
    kernels.setSoftLimit(softLimit)
    kernels.setSynchronousCollection(synchronous)
  }
}

/** Runs `count` programs with the seeds from `seed` on. Throws at the first that fails, or if memory is left in use. */
export async function fuzzHeapMany(api, count, seed) {
  const settled = async () => {
    await new Promise((resolve) => setImmediate(resolve))
    api.kernels.collectBlocks()
    return api.kernels.heapStats().inUse
  }
  // What kernels and compiled programs keep for themselves grows to what the largest call needs, which the first third finds out.
  const third = Math.ceil(count / 3)
  for (let i = 0; i < third; i++) fuzzHeap(api, seed + i)
  const before = await settled()
  for (let i = third; i < count; i++) fuzzHeap(api, seed + i)
  let after = await settled()
  // Frames and compiled code may refer to a few tensors a little longer.
  for (let attempt = 0; attempt < 5 && after > before + ALLOWED; attempt++) after = await settled()
  if (after > before + ALLOWED)
    throw new Error(`fuzz:heap, seeds ${seed} to ${seed + count - 1}: ${after - before} more bytes are in use than before`)
  return { before, after }
}

/** What the fuzzer needs of the library, on the checked heap; `load` imports an entry. Must come before the first tensor. */
export async function heapApi(load) {
  const kernels = await load('kernels')
  const heap = kernels.checkHeap()
  const { torch, compile } = await load('tensorfx')
  const { reset } = await load('compile')
  return { torch, kernels, heap, reset, compiled: compile((x) => x.mul(2).add(1)) }
}

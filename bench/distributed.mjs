// Collectives against the same calls from C, the bytes that each strategy sends against theory, and the full parameters that a rank holds.
//
//   npm run bench:distributed                    two ranks on MPI; without MPI, only what needs no ranks
//
// C is compiled with mpicc (or the compiler that MPICC names). C and ours run in turns, each giving the smallest of many times; medians of the turns are printed.
import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { nn, optim, torch } from 'tensorfx'
import * as dist from 'tensorfx/distributed'
import { FullyShardedDataParallel, describeUnits, fullParameterStats, resetFullParameterStats } from 'tensorfx/distributed/fsdp'

const SMALL = { elements: 2, calls: 500, rounds: 60 }
const LARGE = { elements: 2 ** 24, calls: 1, rounds: 8 }
const RANKS = 2
const TURNS = 7
const MISMATCHES = 50
const MPICC = process.env.MPICC ?? 'mpicc'

/** One rank under mpirun: the times of an all-reduce that is not checked. */
async function rank() {
  await dist.initProcessGroup()
  const time = ({ elements, calls, rounds }) => {
    const x = torch.ones([elements])
    // A sum grows: halved by what it is added to, it stays.
    dist.allReduce(x, { op: 'max' })
    // The best of many short rounds: other programs only make calls slower.
    let best = Infinity
    for (let round = 0; round < rounds; round++) {
      dist.barrier()
      const start = performance.now()
      for (let i = 0; i < calls; i++) dist.allReduce(x, { op: 'max' })
      best = Math.min(best, ((performance.now() - start) * 1000) / calls)
    }
    return best
  }
  // The first thousand collectives of a group are compared, later ones only at powers of two.
  const x = torch.ones([1])
  for (let i = 0; i < 1100; i++) dist.allReduce(x)
  const result = { small: time(SMALL), large: time(LARGE), mismatch: mismatch() }
  if (dist.getRank() === 0) console.log(JSON.stringify(result))
  dist.destroyProcessGroup()
}

/** Milliseconds from a call that does not fit those of the other ranks to its error: the median. */
function mismatch() {
  const group = dist.newGroup()
  const x = torch.ones([4 + dist.getRank()])
  const times = Array.from({ length: MISMATCHES }, () => {
    dist.barrier()
    const start = performance.now()
    try {
      dist.allReduce(x, { group })
    } catch (error) {
      if (error instanceof dist.CollectiveMismatchError) return performance.now() - start
      throw error
    }
    throw new Error('ranks with different sizes have run an all-reduce')
  })
  return median(times)
}

const median = (values) => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)]

const mpirun = (...command) =>
  JSON.parse(
    execFileSync('mpirun', ['-n', String(RANKS), '--oversubscribe', '--bind-to', 'none', ...command], {
      encoding: 'utf8',
      env: { ...process.env, OMPI_ALLOW_RUN_AS_ROOT: '1', OMPI_ALLOW_RUN_AS_ROOT_CONFIRM: '1' },
    }),
  )

const runs = (command) => {
  try {
    execFileSync(command, ['--version'], { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}

function latency() {
  for (const command of ['mpirun', MPICC])
    if (!runs(command))
      return console.log(`${command} is not installed, so all-reduce is not compared with C (apt-get install openmpi-bin libopenmpi-dev)`)
  const folder = mkdtempSync(join(tmpdir(), 'tensorfx-bench-'))
  try {
    const program = join(folder, 'allreduce')
    try {
      execFileSync(MPICC, ['-O2', fileURLToPath(new URL('allreduce.c', import.meta.url)), '-o', program], { stdio: 'pipe' })
    } catch (error) {
      return console.log(`${MPICC} cannot compile MPI programs (${error.stderr.toString().split('\n')[0]}), so all-reduce is not compared with C`)
    }
    const sizes = [SMALL, LARGE].flatMap(({ elements, calls, rounds }) => [elements, calls, rounds]).map(String)
    const inC = () => mpirun(program, ...sizes)
    const own = () => mpirun(process.execPath, fileURLToPath(import.meta.url), 'rank')
    // In turns: what else the machine does changes slowly.
    const turns = Array.from({ length: TURNS }, () => ({ c: inC(), js: own() }))
    for (const [size, title, digits] of [
      ['small', '8 bytes', 2],
      ['large', '64 MiB', 0],
    ]) {
      const against = (name) => {
        const more = median(turns.map(({ c, js }) => js[size] - c[name]))
        const times = median(turns.map(({ c, js }) => js[size] / c[name]))
        const time = median(turns.map(({ c }) => c[name])).toFixed(digits)
        return `${time} µs (${size === 'small' ? `${more.toFixed(2)} µs more` : `${times.toFixed(2)} times`})`
      }
      const time = median(turns.map(({ js }) => js[size])).toFixed(digits)
      console.log(
        `all-reduce of ${title}, ${RANKS} ranks: tensorfx ${time} µs; C with MPI_Allreduce ${against(size)}, with MPI_Iallreduce and MPI_Test ${against(`${size}Tested`)}`,
      )
    }
    const slowest = Math.max(...turns.map(({ js }) => js.mismatch))
    console.log(`from a call that does not fit to CollectiveMismatchError: ${slowest.toFixed(2)} ms`)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

class Block extends nn.Module {
  up = new nn.Linear(64, 256)
  down = new nn.Linear(256, 64)
  forward(x) {
    return x.add(this.down(torch.relu(this.up(x))))
  }
}
const net = () => new nn.Sequential(new nn.Linear(64, 64), ...Array.from({ length: 6 }, () => new Block()), new nn.Linear(64, 8))

/** One training step, and what it sent: P are the bytes of all units, with what fills them up, r the outermost's. */
function step(wrap) {
  const model = wrap(net())
  const optimizer = new optim.SGD(model.parameters(), { lr: 0.1 })
  resetFullParameterStats()
  for (let i = 0; i < 2; i++) {
    dist.resetCollectiveStats()
    optimizer.zeroGrad()
    model(torch.ones([4, 64]))
      .sum()
      .backward()
    optimizer.step()
  }
  const sent = Object.values(dist.collectiveStats()).reduce((sum, { bytes }) => sum + bytes, 0)
  return { model, sent, peak: fullParameterStats() }
}

async function strategies() {
  for (const worldSize of [2, 4, 8]) {
    await dist.initProcessGroup({ backend: 'fake', worldSize })
    const share = (size) => (size - 1) / size
    const groups = [[...Array(worldSize / 2).keys()], [0, worldSize / 2]].map((ranks) => dist.newGroup(ranks))
    const half = worldSize / 2
    const theories = {
      FULL_SHARD: (P, r) => share(worldSize) * (3 * P - r),
      SHARD_GRAD_OP: (P) => 2 * share(worldSize) * P,
      NO_SHARD: (P) => 2 * share(worldSize) * P,
      HYBRID_SHARD: (P, r) => share(half) * (3 * P - r) + (2 * share(2) * P) / half,
      _HYBRID_SHARD_ZERO2: (P) => 2 * share(half) * P + (2 * share(2) * P) / half,
    }
    const rows = Object.entries(theories).flatMap(([shardingStrategy, theory]) => {
      if (shardingStrategy.includes('HYBRID') && worldSize === 2) return []
      const options = { shardingStrategy, ...(shardingStrategy.includes('HYBRID') ? { processGroup: groups } : {}) }
      const wrap = (more) => (module) =>
        new FullyShardedDataParallel(module, { autoWrapPolicy: (part, recurse) => recurse || part instanceof Block, ...options, ...more })
      const { model, sent, peak } = step(wrap({}))
      const calm = step(wrap({ backwardPrefetch: null })).peak
      const bytes = describeUnits(model).map(({ layout }) => 4 * layout.paddedNumel)
      const expected = theory(
        bytes.reduce((a, b) => a + b, 0),
        bytes[0],
      )
      return [
        {
          strategy: shardingStrategy,
          sent,
          theory: expected,
          agree: sent === expected,
          'peak units': peak.peakUnits,
          'without prefetch': calm.peakUnits,
          units: bytes.length,
        },
      ]
    })
    const ddp = step((module) => new dist.DistributedDataParallel(module))
    const P = 4 * [...ddp.model.parameters()].reduce((sum, { numel }) => sum + numel, 0)
    rows.push({ strategy: 'DistributedDataParallel', sent: ddp.sent, theory: 2 * share(worldSize) * P, agree: ddp.sent === 2 * share(worldSize) * P })
    console.log(`\nbytes per step that a rank sends, ${worldSize} ranks`)
    console.table(rows)
    dist.destroyProcessGroup()
  }
}

if (process.argv[2] === 'rank') await rank()
else {
  latency()
  await strategies()
}

// Collectives of two ranks, on MPI and on threads, against the same calls from C: from 8 bytes to 64 MiB. Part of bench/distributed.mjs.
//
// C is compiled with mpicc (or the compiler that MPICC names). C and ours run in turns, since what else the machine does changes slowly.
import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { torch } from 'tensorfx'
import * as dist from 'tensorfx/distributed'

const RANKS = 2
const TURNS = 3
const MISMATCHES = 50
const MPICC = process.env.MPICC ?? 'mpicc'
const KINDS = ['allReduce', 'reduceScatter', 'allGather', 'broadcast']
const BYTES = [8, 2 ** 10, 2 ** 12, 2 ** 14, 2 ** 16, 2 ** 18, 2 ** 20, 2 ** 22, 2 ** 26]

/** How often a collective of that size runs in a round, and how many rounds there are. */
const effort = (bytes) =>
  bytes <= 2 ** 12 ? { calls: 100, rounds: 30 } : bytes <= 2 ** 18 ? { calls: 10, rounds: 40 } : { calls: 1, rounds: bytes > 2 ** 24 ? 4 : 12 }

const CASES = KINDS.flatMap((kind) => BYTES.map((bytes) => ({ kind, bytes, ...effort(bytes) })))

const median = (values) => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)]

function measure({ kind, bytes, calls, rounds }) {
  const [whole, own] = [torch.ones([bytes / 4]), torch.ones([bytes / 4 / dist.getWorldSize()])]
  const call = {
    // A sum would grow.
    allReduce: () => dist.allReduce(whole, { op: 'max' }),
    reduceScatter: () => dist.reduceScatterTensor(own, whole, { op: 'max' }),
    allGather: () => dist.allGatherIntoTensor(whole, own),
    broadcast: () => dist.broadcast(whole, 0),
  }[kind]
  call()
  const times = Array.from({ length: rounds }, () => {
    dist.barrier()
    const start = performance.now()
    for (let i = 0; i < calls; i++) call()
    return ((performance.now() - start) * 1000) / calls
  })
  return { least: Math.min(...times), median: median(times) }
}

/** Milliseconds from a call that does not match the other ranks' to its error: the median. */
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

/** One rank of a world: the times of all cases. */
export default async function rank() {
  await dist.initProcessGroup()
  // The first thousand collectives of a group are compared, later ones only at powers of two.
  const x = torch.ones([1])
  for (let i = 0; i < 1100; i++) dist.allReduce(x)
  const result = { times: CASES.map(measure), mismatch: mismatch() }
  if (dist.getRank() === 0 && dist.getBackend() === 'mpi') console.log(JSON.stringify(result))
  dist.destroyProcessGroup()
  return result
}

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

const SIZE_NAMES = ['bytes', 'KiB', 'MiB']
const sizeText = (bytes) => {
  const unit = Math.min(2, Math.floor(Math.log2(bytes) / 10))
  return `${bytes / 2 ** (10 * unit)} ${SIZE_NAMES[unit]}`
}

/** Compares the collectives with C, and prints tables: of each turn's rounds the least time and the median, and of these the least and the median over the turns. */
export async function compareCollectives() {
  for (const command of ['mpirun', MPICC])
    if (!runs(command))
      return console.log(`${command} is not installed, so collectives are not compared with C (apt-get install openmpi-bin libopenmpi-dev)`)
  const folder = mkdtempSync(join(tmpdir(), 'tensorfx-bench-'))
  try {
    const program = join(folder, 'collectives')
    try {
      execFileSync(MPICC, ['-O2', fileURLToPath(new URL('collectives.c', import.meta.url)), '-o', program], { stdio: 'pipe' })
    } catch (error) {
      return console.log(`${MPICC} cannot compile MPI programs (${error.stderr.toString().split('\n')[0]}), so collectives are not compared with C`)
    }
    const cases = CASES.flatMap(({ kind, bytes, calls, rounds }) => [kind, bytes, calls, rounds].map(String))
    const turns = []
    for (let i = 0; i < TURNS; i++) {
      const c = mpirun(program, ...cases)
      const mpi = mpirun(process.execPath, fileURLToPath(import.meta.url), 'rank')
      const [threads] = await dist.runRanks(RANKS, import.meta.url)
      turns.push({ c, mpi: mpi.times, threads: threads.times, mismatch: mpi.mismatch })
    }
    for (const kind of KINDS) {
      console.log(`\n${kind} of float32, ${RANKS} ranks, µs (least / median), and how many times C's`)
      console.table(
        CASES.flatMap(({ kind: of, bytes }, i) => {
          if (of !== kind) return []
          const least = (who) => Math.min(...turns.map((turn) => turn[who][i].least))
          const usual = (who) => median(turns.map((turn) => turn[who][i].median))
          const text = (who) => `${least(who).toFixed(1)} / ${usual(who).toFixed(1)}`
          const times = (who) => `${(least(who) / least('c')).toFixed(2)} / ${(usual(who) / usual('c')).toFixed(2)}`
          return [
            {
              size: sizeText(bytes),
              C: text('c'),
              MPI: text('mpi'),
              'MPI : C': times('mpi'),
              threads: text('threads'),
              'threads : C': times('threads'),
            },
          ]
        }),
      )
    }
    const slowest = Math.max(...turns.map((turn) => turn.mismatch))
    console.log(`from a call that does not match to CollectiveMismatchError: ${slowest.toFixed(2)} ms`)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

if (process.argv[2] === 'rank' && import.meta.url === pathToFileURL(process.argv[1]).href) await rank()

// Runs scenario files (test/distributed/scenarios) as worlds of ranks: threads everywhere, MPI where it is installed. A world runs all of them, one after the other,
// and the suites (test/distributed/suites) look at what the ranks have found.
import { execFile, execFileSync } from 'node:child_process'
import { promisify } from 'node:util'
import { beforeAll, describe, expect, test } from 'vitest'
import { bundledFile } from '../../scripts/bundled.mjs'

/** The program of a scenario. */
export const scenario = (name: string): string => bundledFile(`test/distributed/scenarios/${name}.mjs`)

/** What one rank found: of each scenario file, a result per scenario, or its error. */
type RankResults = Readonly<Record<string, Readonly<Record<string, unknown>>>>

/** A world whose ranks have run all scenarios. */
export interface World {
  readonly kind: 'threads' | 'mpi'
  readonly size: number
  /** What the ranks have found in a scenario file. To be called when tests run. */
  results<T>(scenario: string): readonly T[]
}

const isLaunchable = (command: string): boolean => {
  try {
    execFileSync(command, ['--version'], { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}

/** The launcher: another one than the usual is for MPICH beside Open MPI. */
const MPIRUN = process.env['TENSORFX_MPIRUN'] ?? 'mpirun'

export const hasMpi: boolean = isLaunchable(MPIRUN)

/** The worlds that can be started here. Without MPI the tests of its world say so in their names. */
export const worlds: readonly ('threads' | 'mpi')[] = hasMpi ? ['threads', 'mpi'] : ['threads']

/** Open MPI refuses to run as root, in containers too, unless it is told twice. */
export const MPI_ENV = { OMPI_ALLOW_RUN_AS_ROOT: '1', OMPI_ALLOW_RUN_AS_ROOT_CONFIRM: '1' }

/**
 * As if the two halves of the ranks were on machines of their own: groups with ranks of both share no memory, and Open MPI sends everything through sockets.
 */
export const SEVERAL_NODES = { TENSORFX_MPI_NODES: '2', OMPI_MCA_btl: 'tcp,self' }

/** Open MPI wants to hear that ranks may share cores; MPICH does not know the option. */
const mpirunOptions = (): string[] =>
  execFileSync(MPIRUN, ['--version'], { encoding: 'utf8' }).includes('Open MPI') ? ['--oversubscribe', '--bind-to', 'none'] : []

const RUN = scenario('run')

/** Collectives come first: only the first thousand of a group are all compared, and they look for what that finds. */
export const SCENARIOS: readonly string[] = [
  'collectives',
  'functional',
  'ddp',
  'ddpHooks',
  'fsdpTraining',
  'fsdpApi',
  'fsdpErrors',
  'checkpoints',
  'checkpointFiles',
  'fullyShard',
  'autocast',
  'fit',
]

/** The command that starts a program: itself, or mpirun with that many ranks of it. */
export const command = (world: 'threads' | 'mpi', size: number, args: readonly string[]): readonly [file: string, args: readonly string[]] =>
  world === 'threads' ? [process.execPath, args] : [MPIRUN, ['-n', String(size), ...mpirunOptions(), process.execPath, ...args]]

/** Runs scenarios on `size` ranks of a world. */
async function runScenarios(
  kind: 'threads' | 'mpi',
  size: number,
  scenarios: readonly string[],
  env: Readonly<Record<string, string>>,
): Promise<readonly RankResults[]> {
  const args = [RUN, kind, String(size), ...scenarios.map(scenario)]
  const { stdout } = await promisify(execFile)(...command(kind, size, args), {
    env: { ...process.env, ...MPI_ENV, ...env },
    timeout: 600_000,
    maxBuffer: 2 ** 28,
  })
  const line = stdout.split('\n').find((text) => text.startsWith('RESULTS '))
  if (line === undefined) throw new Error(`the ranks printed no results: ${stdout}`)
  return JSON.parse(line.slice('RESULTS '.length)) as readonly RankResults[]
}

/** Starts a world, and runs suites on what its ranks found in the scenario files `scenarios`. `env` is added to the environment of the ranks. */
export function describeWorld(
  kind: 'threads' | 'mpi',
  size: number,
  suites: readonly ((world: World) => void)[],
  scenarios = SCENARIOS,
  env: Readonly<Record<string, string>> = {},
): void {
  if (!worlds.includes(kind)) {
    test(`${kind} is not installed here, so its world of ${size} is not tested`, () => expect(hasMpi).toBe(false))
    return
  }
  describe(`${size} ranks on ${kind}${env === SEVERAL_NODES ? ' of two machines' : ''}`, () => {
    let ranks: readonly RankResults[] = []
    beforeAll(async () => {
      ranks = await runScenarios(kind, size, scenarios, env)
    }, 600_000)

    test('no scenario fails', () => {
      expect(ranks).toHaveLength(size)
      for (const rank of ranks)
        for (const [file, results] of Object.entries(rank))
          for (const [name, result] of Object.entries(results))
            if (typeof result === 'object' && result !== null && 'stack' in result) expect(result.stack, `${file} ${name}`).toBeUndefined()
    })

    for (const suite of suites) suite({ kind, size, results: <T>(scenario: string) => ranks.map((rank) => rank[scenario] as T) })
  })
}

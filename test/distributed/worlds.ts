// Runs scenario files (test/distributed/scenarios) as worlds of ranks: threads everywhere, MPI where it is installed.
import { execFile, execFileSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

const at = (path: string): string => fileURLToPath(new URL(path, import.meta.url))

/** What one rank found: a result per scenario, or its error. */
export type RankResults = Readonly<Record<string, never>>

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

const MPI_ENV = { OMPI_ALLOW_RUN_AS_ROOT: '1', OMPI_ALLOW_RUN_AS_ROOT_CONFIRM: '1' }

/** Open MPI wants to hear that ranks may share cores; MPICH does not know the option. */
const mpirunOptions = (): string[] =>
  execFileSync(MPIRUN, ['--version'], { encoding: 'utf8' }).includes('Open MPI') ? ['--oversubscribe', '--bind-to', 'none'] : []

const RUN = at('scenarios/run.mjs')

/** The command that starts a program: itself, or mpirun with that many ranks of it. */
export const command = (world: 'threads' | 'mpi', size: number, args: readonly string[]): readonly [file: string, args: readonly string[]] =>
  world === 'threads' ? [process.execPath, args] : [MPIRUN, ['-n', String(size), ...mpirunOptions(), process.execPath, ...args]]

/** Runs a scenario file on `size` ranks of a world. */
export async function runScenarios(world: 'threads' | 'mpi', size: number, name: string): Promise<readonly RankResults[]> {
  const file = at(`scenarios/${name}.mjs`)
  const args = world === 'threads' ? [RUN, 'threads', String(size), file] : [RUN, 'mpi', '0', file]
  const { stdout } = await promisify(execFile)(...command(world, size, args), {
    env: { ...process.env, ...MPI_ENV },
    timeout: 120_000,
    maxBuffer: 2 ** 28,
  })
  const line = stdout.split('\n').find((text) => text.startsWith('RESULTS '))
  if (line === undefined) throw new Error(`the ranks printed no results: ${stdout}`)
  return JSON.parse(line.slice('RESULTS '.length)) as readonly RankResults[]
}

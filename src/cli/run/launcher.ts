// Whether ranks can be processes here: that takes a launcher of MPI, and koffi, through which MPI is called.
import { spawnSync } from 'node:child_process'
import { environmentVariable } from '../../protocol/index.ts'

/** The command that starts processes as ranks. */
export interface Launcher {
  readonly command: string
  readonly isOpenMpi: boolean
}

/** The launcher of MPI; null if there is none. TENSORFX_MPIRUN names another than `mpirun`. */
export function findLauncher(command: string = environmentVariable('TENSORFX_MPIRUN') ?? 'mpirun'): Launcher | null {
  const { status, stdout } = spawnSync(command, ['--version'], { encoding: 'utf8' })
  return status === 0 ? { command, isOpenMpi: stdout.includes('Open MPI') } : null
}

/** Whether koffi can be loaded. */
export async function hasKoffi(): Promise<boolean> {
  const name = 'koffi'
  return import(name).then(
    () => true,
    () => false,
  )
}

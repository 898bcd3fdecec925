// Which rank of a job this process is, as the launcher of MPI has told it.
import { environmentVariable } from '../../protocol/index.ts'

const RANKS = ['OMPI_COMM_WORLD_RANK', 'PMI_RANK', 'PMIX_RANK']
const SIZES = ['OMPI_COMM_WORLD_SIZE', 'PMI_SIZE']
/** Ranks on this machine. */
const LOCAL_SIZES = ['OMPI_COMM_WORLD_LOCAL_SIZE', 'MPI_LOCALNRANKS']

function numberOf(names: readonly string[]): number | null {
  for (const name of names) {
    const text = environmentVariable(name)
    if (text !== undefined && /^\d+$/.test(text)) return Number(text)
  }
  return null
}

/** Whether `mpirun`, `srun` or a relative of them started this process. */
export const isLaunchedByMpi = (): boolean => numberOf(SIZES) !== null || numberOf(RANKS) !== null

/** A process of a job. */
export interface Launched {
  readonly rank: number
  readonly size: number
  /** Whether all ranks are known to be on this machine. */
  readonly isOneMachine: boolean
}

/** This process in its job; null if nothing tells. */
export function launched(): Launched | null {
  const [rank, size] = [numberOf(RANKS), numberOf(SIZES)]
  return rank === null || size === null ? null : { rank, size, isOneMachine: numberOf(LOCAL_SIZES) === size }
}

/** The names of the variables that tell, for messages. */
export const LAUNCHER_VARIABLES: readonly string[] = [...RANKS, ...SIZES]

// Which rank of a job this process is, as the launcher of MPI has told it.
import { DistributedError } from '../../distributed/errors.ts'
import { environmentVariable } from '../../protocol/index.ts'

const RANKS = ['OMPI_COMM_WORLD_RANK', 'PMI_RANK', 'PMIX_RANK']
const SIZES = ['OMPI_COMM_WORLD_SIZE', 'PMI_SIZE']

function numberOf(names: readonly string[]): number | null {
  for (const name of names) {
    const text = environmentVariable(name)
    if (text !== undefined && /^\d+$/.test(text)) return Number(text)
  }
  return null
}

/** The rank of this process, and the number of ranks. Throws DistributedError if nothing tells. */
export function launchedRank(): { readonly rank: number; readonly size: number } {
  const [rank, size] = [numberOf(RANKS), numberOf(SIZES)]
  if (rank === null || size === null)
    throw new DistributedError(`the launcher did not tell this process its rank: none of ${[...RANKS, ...SIZES].join(', ')} is set.`)
  return { rank, size }
}

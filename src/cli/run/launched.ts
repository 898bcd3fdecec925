// Which rank of a job this process is.
import { DistributedError } from '../../distributed/errors.ts'
import { LAUNCHER_VARIABLES, launched } from '../../distributed/mpi/launched.ts'
import type { Launched } from '../../distributed/mpi/launched.ts'

/** The rank of this process, and the number of ranks. Throws DistributedError if nothing tells. */
export function launchedRank(): Launched {
  const place = launched()
  if (place === null) throw new DistributedError(`the launcher did not tell this process its rank: none of ${LAUNCHER_VARIABLES.join(', ')} is set.`)
  return place
}

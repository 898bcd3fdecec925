// How much memory the process may use, as far as the host says.
import { ArgumentError } from '../../errors/index.ts'
import { environmentVariable, hostProcess, isAllowed, valueText } from '../../protocol/index.ts'

const MIB = 2 ** 20

/** The limit where the host does not say how much memory there is: in browsers, and in Deno without --allow-sys. */
const UNKNOWN_HOST_LIMIT = 4096 * MIB

/** The variable of the environment that sets the limit, in every process and worker that inherits it. */
const LIMIT_VARIABLE = 'TENSORFX_MEMORY_LIMIT'

/** The memory of the machine and that of the container (cgroup v1 or v2), in bytes; undefined where it is unknown. */
export interface HostMemory {
  readonly total: number | undefined
  readonly container: number | undefined
}

/** What the host says. Deno is asked only for what its flags allow. */
function hostMemory(): HostMemory {
  const unknown = { total: undefined, container: undefined }
  if (!isAllowed({ name: 'sys', kind: 'systemMemoryInfo' })) return unknown
  try {
    const host = hostProcess()
    const os = globalThis.process?.getBuiltinModule?.('node:os')
    return { total: os?.totalmem(), container: host?.constrainedMemory?.() }
  } catch {
    return unknown
  }
}

/**
 * The limit that follows from what the host has: the memory of the container or of the machine, whichever is less, minus a tenth, at least 256 MiB and at most half, for JavaScript
 * and the rest of the process.
 */
export function limitWithin({ total, container }: HostMemory): number {
  // Without a container, Node reports 0 or more than there can be.
  const sizes = [total, container].filter((bytes) => bytes !== undefined && bytes > 0)
  if (sizes.length === 0) return UNKNOWN_HOST_LIMIT
  const most = Math.min(...sizes.map(Number))
  return Math.floor(most - Math.min(most / 2, Math.max(most / 10, 256 * MIB)))
}

/** A limit that a user gave. Throws ArgumentError, which says `where`, unless it is a number of bytes. */
export function checkedLimit(where: string, value: unknown): number {
  if (typeof value === 'number' && value >= 1) return Math.floor(value)
  throw new ArgumentError(
    `${where} must be a number of bytes, at least 1, such as ${512 * MIB} (512 MiB), or Infinity for no limit; got ${valueText(value)}.`,
  )
}

let known: number | null = null

/** The limit that follows from the host. */
export const hostLimit = (): number => (known ??= limitWithin(hostMemory()))

/** The limit of a program that sets none: the environment's, or the host's. */
export function defaultLimit(): number {
  const text = environmentVariable(LIMIT_VARIABLE)
  if (text === undefined) return hostLimit()
  return checkedLimit(`${LIMIT_VARIABLE}=${text}: config.memoryLimit`, text.trim() === '' ? text : Number(text))
}

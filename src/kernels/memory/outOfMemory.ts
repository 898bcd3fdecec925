// The error that ends a request for memory, and what it says about those who have it.
import { TensorfxError } from '../../errors/index.ts'
import { budget, memoryLimit, scratchUses } from './budget.ts'
import { MAX_BYTES, heapStats, largestFree } from './heap.ts'
import { memoryOwners, ownerText, recordedOnHeap, recordsLines } from './owners.ts'
import { sizeText } from '../../protocol/sizeText.ts'
import type { MemoryOwner } from './owners.ts'

/** How many owners a message lists. */
const LISTED = 5

/** Memory of a device. */
interface MemoryElsewhere {
  readonly message: string
  readonly limit: number
  readonly allocated: number
}

/**
 * There is no memory for a tensor, or for what a kernel needs beside its tensors. The message says how much was asked for, and what uses the rest: the largest owners with operator,
 * shape and dtype, and with the lines that made them if `config.memoryHistory` is on. What failed has changed nothing, and the program can go on.
 *
 * Fix: use smaller batches, run inference inside `torch.noGrad`, release large tensors early with `dispose()`, or raise `config.memoryLimit`.
 */
export class OutOfMemoryError extends TensorfxError {
  /** The size of the request, in bytes. */
  readonly bytes: number
  /** What may be in use, in bytes. */
  readonly limit: number
  /** What was in use, in bytes. */
  readonly allocated: number
  /** Who had it, largest first. */
  readonly owners: readonly MemoryOwner[]

  /** `elsewhere` is set for memory that is not the program's: what is to be said, and what may be and is in use there. */
  constructor(bytes: number, use: string = 'a tensor', elsewhere: MemoryElsewhere | null = null) {
    const owners = elsewhere === null ? memoryOwners() : []
    const text = elsewhere?.message ?? `there is no room for ${bytes} bytes for ${use}: ${usageText(bytes)}${ownersText(owners)}${fix(owners)}`
    super('TFX_OUT_OF_MEMORY', text)
    this.bytes = bytes
    this.limit = elsewhere?.limit ?? memoryLimit()
    this.allocated = elsewhere?.allocated ?? heapStats().inUse + budget.spilled
    this.owners = owners
  }
}

/** `1000 of at most 5000 are in use, 900 by tensors and 100 by …; the largest free piece of the heap has 70000`. */
function usageText(bytes: number): string {
  const { inUse, capacity } = heapStats()
  const limit = memoryLimit()
  const others = scratchUses()
  const tensors = others.reduce((rest, [, bytes]) => rest - bytes, inUse)
  const parts = [`${Math.max(0, tensors)} by tensors`, ...others.map(([use, bytes]) => `${bytes} by ${use}`)]
  if (budget.spilled > 0) parts.push(`${budget.spilled} outside the heap`)
  const most = Number.isFinite(limit) ? `${limit} (config.memoryLimit)` : `${MAX_BYTES} on the heap`
  if (bytes > MAX_BYTES || !(bytes >= 0)) return `one tensor has at most ${MAX_BYTES}.`
  return `${inUse + budget.spilled} of at most ${most} are in use, ${parts.join(', ')}; the largest free piece of the heap has ${largestFree(capacity)}.`
}

function ownersText(owners: readonly MemoryOwner[]): string {
  if (owners.length === 0) return ''
  const listed = owners.slice(0, LISTED).map((owner) => `\n  ${sizeText(owner.bytes).padStart(10)}  ${ownerText(owner)}`)
  const rest = heapStats().inUse - scratchUses().reduce((sum, [, bytes]) => sum + bytes, 0) - recordedOnHeap().bytes
  const others = owners.slice(LISTED).reduce((sum, { bytes }) => sum + bytes, Math.max(0, rest))
  return `\nThe largest owners:${listed.join('')}${others > 0 ? `\n  ${sizeText(others).padStart(10)}  others` : ''}`
}

function fix(owners: readonly MemoryOwner[]): string {
  const lines =
    owners.length === 0 || recordsLines() ? '' : ' To see the lines that made them, set config.memoryHistory = true or TENSORFX_MEMORY_HISTORY=1.'
  return `${owners.length === 0 ? ' ' : '\n'}Release tensors with dispose(), use smaller ones, or raise config.memoryLimit.${lines}`
}

// Whether the iterations of a loop touch elements that another iteration writes, for the sizes and addresses of a call. It answers no only where that is certain.
import { accessSites, rangeAt, sizeIn } from '../ir/ranges.ts'
import type { AccessSite } from '../ir/ranges.ts'
import { dtypeInfo } from '../numbers/dtype.ts'
import type { ForStmt, LoopVar, Memory, Param } from '../ir/loopIr.ts'

type Values = ReadonlyMap<Param, number>

/** The places of a loop that are compared, made once. */
export interface LoopSites {
  readonly loop: LoopVar
  readonly byMemory: ReadonlyMap<Memory, readonly AccessSite[]>
  readonly stored: ReadonlySet<Memory>
  /** Whether iterations write what they, or others, read. Running one twice would then give another result. */
  readonly rereads: boolean
}

/** `ownScratch`: whether each thread has all scratch memory for itself. */
export function sitesOf(stmt: ForStmt, ownScratch = false): LoopSites {
  const byMemory = new Map<Memory, AccessSite[]>()
  const stored = new Set<Memory>()
  let rereads = false
  for (const site of accessSites([stmt], [], true)) {
    if (site.buffer.kind === 'scratch' && (ownScratch || site.buffer.per === 'thread')) continue
    const known = byMemory.get(site.buffer)
    if (known === undefined) byMemory.set(site.buffer, [site])
    else known.push(site)
    if (site.stores) stored.add(site.buffer)
    if (site.combines) rereads = true
  }
  for (const memory of stored) if (byMemory.get(memory)?.some(({ stores }) => !stores)) rereads = true
  return { loop: stmt.loop, byMemory, stored, rereads }
}

const strideOf = ({ index }: AccessSite, loop: LoopVar, values: Values): number =>
  index.terms.reduce((sum, term) => (term.loop === loop ? sum + sizeIn(term.stride, values) : sum), 0)

/** Whether each iteration has a window of the memory for itself, or all sites walk over the same elements, and to none twice. */
function areApart(sites: readonly AccessSite[], loop: LoopVar, values: Values): boolean {
  const [one] = sites
  if (one === undefined) return true
  const stride = strideOf(one, loop, values)
  if (stride === 0 || sites.some((site) => strideOf(site, loop, values) !== stride)) return false
  let [lowest, highest] = [Infinity, -Infinity]
  for (const site of sites) {
    const range = rangeAt({ ...site, index: { ...site.index, terms: site.index.terms.filter((term) => term.loop !== loop) } }, values)
    if (range === null) return false
    lowest = Math.min(lowest, range[0])
    highest = Math.max(highest, range[1])
  }
  if (highest - lowest < Math.abs(stride) * loop.step) return true
  const walks = new Set(sites.map((site) => walkText(site, loop, values)))
  return walks.size === 1 && isInjective(one, values)
}

interface Step {
  readonly stride: number
  readonly count: number
}

function stepsOf({ index }: AccessSite, values: Values): readonly Step[] {
  const steps = index.terms.map(({ loop, stride }) => ({
    stride: Math.abs(sizeIn(stride, values)) * loop.step,
    count: Math.ceil(sizeIn(loop.extent, values) / loop.step),
  }))
  return steps.filter(({ count }) => count > 1).toSorted((a, b) => a.stride - b.stride)
}

/** A site's elements in a text that is the same for sites that come to the same elements in an iteration of `loop`. */
function walkText({ index }: AccessSite, loop: LoopVar, values: Values): string {
  const terms = index.terms.map(
    (term) => `${term.loop === loop ? 'this' : ''} ${sizeIn(term.loop.extent, values)} ${term.loop.step} ${sizeIn(term.stride, values)}`,
  )
  return `${sizeIn(index.base, values)} ${terms.toSorted().join()}`
}

/** Whether different values of the loop variables are different elements: each stride is beyond what the smaller ones reach. */
function isInjective(site: AccessSite, values: Values): boolean {
  let reach = 0
  for (const { stride, count } of stepsOf(site, values)) {
    if (stride <= reach) return false
    reach += stride * (count - 1)
  }
  return true
}

/** The bytes that sites may access in memory; null if that is not known. */
function bytesOf(memory: Memory, sites: readonly AccessSite[], values: Values): readonly [number, number] | null {
  const start = memory.kind === 'buffer' ? (values.get(memory) ?? 0) : 0
  const { size } = dtypeInfo[memory.dtype]
  let [lowest, highest] = [Infinity, -Infinity]
  for (const site of sites) {
    const range = rangeAt(site, values)
    if (range === null) return null
    lowest = Math.min(lowest, range[0])
    highest = Math.max(highest, range[1])
  }
  return [start + lowest * size, start + (highest + 1) * size]
}

/** Whether two memories are certainly not the same bytes. One that is read at places which are read themselves has no known end; operators see to it that it is another tensor. */
function areDistinct(written: Memory, other: Memory, { byMemory }: LoopSites, values: Values): boolean {
  if (other.kind === 'scratch') return true
  const a = bytesOf(written, byMemory.get(written) ?? [], values)
  const b = bytesOf(other, byMemory.get(other) ?? [], values)
  if (a === null) return false
  const start = values.get(other) ?? 0
  if (b === null) return start < a[0] || start >= a[1]
  return a[1] <= b[0] || b[1] <= a[0]
}

/** What `canDivide` found: whether iterations are apart, and whether one may be run a second time. */
export interface Division {
  readonly apart: boolean
  readonly repeatable: boolean
}

/** Whether no iteration touches what another one writes, in a call with these values. */
export function divisionOf(all: LoopSites, values: Values): Division {
  const { loop, stored } = all
  // What lies in loops that do not run in this call is not accessed: the rows that are left beside whole tiles.
  const isRun = (site: AccessSite): boolean => site.loops.every(({ extent }) => sizeIn(extent, values) > 0)
  const byMemory = new Map([...all.byMemory].map(([memory, sites]) => [memory, sites.filter(isRun)]))
  const sites = { ...all, byMemory }
  let repeatable = !sites.rereads
  for (const written of stored) {
    if (byMemory.get(written)?.length === 0) continue
    const own = byMemory.get(written) ?? []
    const same = [...own]
    for (const [other, others] of byMemory) {
      if (other === written || others.length === 0 || areDistinct(written, other, sites, values)) continue
      // The same tensor under another name: it must be walked through in the same way.
      if (values.get(other as Param) !== values.get(written as Param) || dtypeInfo[other.dtype].size !== dtypeInfo[written.dtype].size)
        return { apart: false, repeatable: false }
      same.push(...others)
      repeatable = false
    }
    if (!areApart(same, loop, values)) return { apart: false, repeatable: false }
  }
  return { apart: true, repeatable }
}

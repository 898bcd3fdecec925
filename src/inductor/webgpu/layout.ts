// Where the memory of a planned graph lies: its own in as few slabs as there must be, and which slabs each of its dispatches binds.
import { noRoom } from '../../gpu/buffers.ts'
import type { MemoryLimits } from '../../gpu/device.ts'
import type { Bindings, Dispatch, SlabCopy } from '../../gpu/requests.ts'
import { placeSpans } from '../../kernels/index.ts'
import type { DType } from '../../kernels/index.ts'
import { wordsPer } from '../../kernels/wgsl/shader.ts'
import type { Buffer } from '../ir.ts'

/** Buffers begin at multiples of this many words. */
const ALIGN = 64

/** A place in memory: the slab, and the word in it. */
export interface Place {
  readonly slab: number
  readonly start: number
}

/** A graph's own memory: buffers that share it where their lifetimes allow that, and others. */
export interface OwnMemory {
  readonly shared: readonly { readonly buffer: Buffer; readonly first: number; readonly last: number }[]
  readonly others: readonly { readonly buffer: Buffer; readonly words: number }[]
  /** Tables, with what they hold: they outlast a call. */
  readonly tables: readonly { readonly buffer: Buffer; readonly words: Uint32Array<ArrayBuffer> }[]
}

/** The places of a graph's own buffers, in slabs of these words. */
export interface Layout {
  readonly slabs: readonly number[]
  readonly places: ReadonlyMap<Buffer, Place>
}

/** Words of a dispatch's uniforms that say where a memory begins: that word of a buffer, and if there are several slabs, in which of them. */
export interface MemoryWord {
  readonly dispatch: number
  readonly at: number
  readonly slabAt: number | null
  readonly buffer: Buffer
  readonly start: number
}

/** A number of the call: which input, and where it goes. */
export interface CallNumber {
  readonly placeholder: number
  readonly dispatch: number
  readonly at: number
  readonly dtype: DType
}

/** The dispatches of a graph, for memory in one slab or in several. */
export interface DispatchForm {
  readonly dispatches: readonly Dispatch[]
  readonly memories: readonly MemoryWord[]
  readonly numbers: readonly CallNumber[]
}

const sizeOf = (buffer: Buffer): number => wordsPer(buffer.dtype) * buffer.numel

/** Lays memory out in slabs of at most `most` bytes. Throws OutOfMemoryError for a buffer that is larger. */
export function layoutOf(memory: OwnMemory, most = Infinity): Layout {
  const bins: { shared: OwnMemory['shared'][number][]; words: number; offsets: readonly number[] }[] = []
  const placed = (shared: OwnMemory['shared']): { words: number; offsets: readonly number[] } => {
    const { offsets, bytes } = placeSpans(shared.map(({ buffer, first, last }) => ({ bytes: 4 * sizeOf(buffer), first, last })))
    return { words: Math.ceil(bytes / 4), offsets }
  }
  const checked = (words: number, { name }: Buffer): number => {
    if (4 * words > most)
      throw noRoom(4 * words, `${name} of a graph needs ${4 * words} bytes, but a binding has at most ${most} (maxStorageBufferBindingSize)`, most, 0)
    return words
  }
  const whole = placed(memory.shared)
  if (4 * whole.words <= most) bins.push({ shared: [...memory.shared], ...whole })
  else
    for (const one of memory.shared) {
      checked(sizeOf(one.buffer), one.buffer)
      const room = bins.find((bin) => 4 * placed([...bin.shared, one]).words <= most)
      if (room === undefined) bins.push({ shared: [one], ...placed([one]) })
      else Object.assign(room, { shared: [...room.shared, one] }, placed([...room.shared, one]))
    }
  const places = new Map<Buffer, Place>()
  bins.forEach(({ shared, offsets }, slab) => shared.forEach(({ buffer }, i) => places.set(buffer, { slab, start: (offsets[i] ?? 0) / 4 })))
  const slabs = bins.map(({ words }) => words)
  for (const { buffer, words } of memory.others) {
    checked(words, buffer)
    const startIn = (used: number): number => Math.ceil(used / ALIGN) * ALIGN
    const found = slabs.findIndex((used) => 4 * (startIn(used) + words) <= most)
    const slab = found < 0 ? slabs.length : found
    const start = startIn(slabs[slab] ?? 0)
    slabs[slab] = start + words
    places.set(buffer, { slab, start })
  }
  return { slabs: slabs.length === 1 && slabs[0] === 0 ? [] : slabs, places }
}

/** The bytes that a graph's own memory takes. */
export const bytesOfMemory = (memory: OwnMemory): number => 4 * layoutOf(memory).slabs.reduce((sum, words) => sum + words, 0)

/** What dispatches compute in. */
export interface Binding {
  readonly form: DispatchForm
  /** What the uniforms of all dispatches hold, one after the other, without the numbers of the call. */
  readonly uniforms: Uint32Array<ArrayBuffer>
  readonly bindings: Bindings
  readonly copies: readonly SlabCopy[]
}

/** What is asked when memory is bound. */
export interface Bound {
  /** The form of the dispatches for one slab, and that for several. */
  readonly one: DispatchForm
  readonly several: (slabs: number) => DispatchForm
  readonly limits: MemoryLimits
  /** Where a buffer lies, and how many words of it there are. */
  readonly placeOf: (buffer: Buffer) => Place
  readonly wordsOf: (buffer: Buffer) => number
  /** Takes memory that lasts until the dispatches have run. */
  readonly take: (words: number) => Place
}

/** The uniforms of each dispatch begin here, if they lie one after the other. */
export function uniformStarts({ dispatches }: DispatchForm): readonly number[] {
  let end = 0
  return dispatches.map(({ words }) => (end += words.length) - words.length)
}

/** The uniforms of dispatches, one after the other. */
export function uniformsOf({ dispatches }: DispatchForm): Uint32Array<ArrayBuffer> {
  const uniforms = new Uint32Array(dispatches.reduce((sum, { words }) => sum + words.length, 0))
  let at = 0
  for (const { words } of dispatches) {
    uniforms.set(words, at)
    at += words.length
  }
  return uniforms
}

/** Says which slabs each dispatch binds. Where these are more than it can have, what is in the others is copied. Throws OutOfMemoryError if there is no room for that. */
export function bind(given: Bound): Binding {
  const { one, placeOf, limits } = given
  const slabs = one.dispatches.map(() => new Set<number>())
  for (const { dispatch, buffer } of one.memories) slabs[dispatch]?.add(placeOf(buffer).slab)
  const isOne = slabs.every(({ size }) => size <= 1)
  const form = isOne ? one : given.several(limits.buffers)
  const copies = slabs.flatMap((all, dispatch) => (all.size <= limits.buffers ? [] : copiesFor(given, dispatch, all)))
  const uniforms = uniformsOf(form)
  const starts = uniformStarts(form)
  const orders = slabs.map((all) => [...all])
  for (const { dispatch, at, slabAt, buffer, start } of form.memories) {
    const home = placeOf(buffer)
    const copy = copies.find((one) => one.dispatch === dispatch && isIn(home, one))
    const place = copy === undefined ? home : { slab: copy.slab, start: copy.start + home.start - copy.from.start }
    const first = starts[dispatch] ?? 0
    uniforms[first + at] = place.start + start
    if (slabAt !== null) uniforms[first + slabAt] = orders[dispatch]?.indexOf(place.slab) ?? 0
  }
  const isPlain = orders.every((order) => order.length === 0 || (order.length === 1 && order[0] === 0))
  return { form, uniforms, copies, bindings: isPlain ? '' : orders.map((order) => order.join(',')).join(';') }
}

const isIn = ({ slab, start }: Place, { from }: SlabCopy): boolean => slab === from.slab && start >= from.start && start <= from.start + from.length

/** What a dispatch copies that has more slabs than it can bind; `slabs` becomes those that it does bind. */
function copiesFor({ one, placeOf, wordsOf, take, limits }: Bound, dispatch: number, slabs: Set<number>): readonly SlabCopy[] {
  const ranges = mergedRanges(
    one.memories.filter((memory) => memory.dispatch === dispatch).map(({ buffer }) => ({ ...placeOf(buffer), length: wordsOf(buffer) })),
  )
  const inSlab = (slab: number): number => ranges.reduce((sum, range) => sum + (range.slab === slab ? range.length : 0), 0)
  const [...bySize] = [...slabs].sort((a, b) => inSlab(b) - inSlab(a))
  const kept = new Set(bySize.slice(0, limits.buffers - 1))
  const moved = ranges.filter(({ slab }) => !kept.has(slab))
  const words = moved.reduce((sum, { length }) => sum + length, 0)
  if (4 * words > limits.bytes)
    throw noRoom(
      4 * words,
      `kernel ${one.dispatches[dispatch]?.name ?? ''} computes in ${slabs.size} buffers, of which a kernel can have ${limits.buffers} (maxStorageBuffersPerShaderStage), and in the others there is more memory than can be copied: ${4 * words} bytes of at most ${limits.bytes}`,
      limits.bytes,
      0,
    )
  const temporary = take(words)
  slabs.clear()
  for (const slab of [...kept, temporary.slab]) slabs.add(slab)
  let { start } = temporary
  return moved.flatMap((from): readonly SlabCopy[] => {
    if (from.slab === temporary.slab) return []
    const copy = { dispatch, from, slab: temporary.slab, start }
    start += from.length
    return [copy]
  })
}

type Range = SlabCopy['from']

/** The ranges, those that overlap as one. */
function mergedRanges(ranges: readonly Range[]): readonly Range[] {
  const merged: Range[] = []
  for (const range of ranges.toSorted((a, b) => a.slab - b.slab || a.start - b.start)) {
    const last = merged.at(-1)
    if (last === undefined || last.slab !== range.slab || last.start + last.length < range.start) merged.push(range)
    else merged[merged.length - 1] = { ...last, length: Math.max(last.length, range.start + range.length - last.start) }
  }
  return merged
}

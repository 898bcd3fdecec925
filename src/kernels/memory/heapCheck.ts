// The checked heap, for tests: margins around every block show who wrote outside it, freed memory is filled with NaN and kept for a while, so that reading or
// writing it shows, and every launch of a kernel is compared with the blocks that its arguments point to.
import { InternalError } from '../../errors/index.ts'
import { dtypeInfo } from '../numbers/dtype.ts'
import { heapBytes, heapGuard, roundedSize, setHeapGuard } from './heap.ts'
import type { HeapGuard } from './heap.ts'
import type { Param, Stmt } from '../ir/loopIr.ts'
import { accessSites, rangeAt, sizeIn } from '../ir/ranges.ts'

/** Bytes before and after each block. */
const MARGIN = 64
const MARGIN_BYTE = 0xfb
/** What new and freed memory is filled with: NaN in every floating dtype, -1 in integers. */
const POISON = 0xff
/** The smallest block is that large, and addresses are multiples of it. */
const GRANULE = 16
/** Freed memory that is kept back, so that it is not given to the next who asks. */
const KEPT_BYTES = 32 * 2 ** 20
const KEPT_BLOCKS = 4096

interface Live {
  readonly address: number
  readonly bytes: number
  freed: boolean
}

/** The heap is not as it should be: a kernel wrote outside its tensors, or memory was used after it was freed. */
const broken = (what: string): InternalError => new InternalError(`checked heap: ${what}`)

/** The checked heap: margins around every tensor, freed memory that stays NaN for a while, and the bounds of every launch. */
export class HeapCheck implements HeapGuard {
  readonly #blocks = new Map<number, Live>()
  readonly #kept: Live[] = []
  #keptBytes = 0
  #inUse = 0
  /** For each granule of the heap, the number of the block that it belongs to; 0 for none. */
  #owners = new Int32Array(2 ** 16)
  readonly #byNumber: (Live | null)[] = [null]
  readonly #numbers = new Map<number, number>()
  readonly #freeNumbers: number[] = []
  #give: ((address: number, bytes: number) => void) | null = null
  /** How many launches were compared with their blocks. */
  launches = 0

  get inUse(): number {
    return this.#inUse
  }

  allocate(bytes: number, take: (bytes: number) => number): number {
    let base = take(bytes + 2 * MARGIN)
    if (base === 0 && this.#kept.length > 0) {
      this.release()
      base = take(bytes + 2 * MARGIN)
    }
    if (base === 0) return 0
    const address = base + MARGIN
    const live = { address, bytes, freed: false }
    heapBytes().fill(MARGIN_BYTE, base, address)
    heapBytes().fill(POISON, address, address + bytes)
    heapBytes().fill(MARGIN_BYTE, address + bytes, address + bytes + MARGIN)
    this.#blocks.set(address, live)
    this.#own(live)
    this.#inUse += roundedSize(bytes)
    return address
  }

  free(address: number, bytes: number, give: (address: number, bytes: number) => void): void {
    this.#give = give
    const live = this.#blocks.get(address)
    if (live === undefined || live.freed)
      throw broken(`${bytes} bytes at ${address} are freed, but ${live === undefined ? 'no block begins there' : 'were freed before'}`)
    if (live.bytes !== bytes) throw broken(`the block at ${address} has ${live.bytes} bytes, but ${bytes} are freed`)
    this.#checkMargins(live)
    live.freed = true
    heapBytes().fill(POISON, address, address + bytes)
    this.#inUse -= roundedSize(bytes)
    this.#kept.push(live)
    this.#keptBytes += bytes
    while (this.#keptBytes > KEPT_BYTES || this.#kept.length > KEPT_BLOCKS) this.#releaseOldest()
  }

  spill(): void {}

  kernel(name: string, params: readonly Param[], body: readonly Stmt[], run: (...args: number[]) => void): (...args: number[]) => void {
    const sites = accessSites(body)
    return (...args) => {
      this.launches++
      const values = new Map(params.map((param, i) => [param, args[i] ?? NaN]))
      const touched = new Set<Live>()
      for (const [param, value] of values) {
        if (param.kind === 'size' && (value | 0) !== value)
          throw broken(`kernel ${name}: the size ${param.name} is ${value}, which is not a 32-bit integer`)
        const live = param.kind === 'buffer' ? this.#blockAt(value) : null
        if (live !== null) touched.add(live)
      }
      for (const site of sites) {
        const range = rangeAt(site, values)
        const { buffer } = site
        if (range === null) continue
        const { size } = dtypeInfo[buffer.dtype]
        if (buffer.kind === 'buffer') {
          const start = values.get(buffer) ?? 0
          this.#checkRange(name, buffer.name, start + range[0] * size, start + (range[1] + 1) * size)
          continue
        }
        const elements = sizeIn(buffer.elements, values)
        if (range[0] < 0 || range[1] >= elements)
          throw broken(`kernel ${name}: elements ${range[0]} to ${range[1]} of ${buffer.name} would be accessed, which has ${elements}`)
      }
      run(...args)
      for (const live of touched) {
        if (!live.freed) this.#checkMargins(live, `kernel ${name}`)
      }
    }
  }

  /** Throws InternalError if anything was written outside blocks, or to a freed block that is still kept. */
  verify(): void {
    for (const live of this.#blocks.values()) {
      this.#checkMargins(live)
      if (live.freed) this.#checkPoison(live)
    }
  }

  /** Gives the kept blocks back. */
  release(): void {
    while (this.#kept.length > 0) this.#releaseOldest()
  }

  #releaseOldest(): void {
    const live = this.#kept.shift()
    if (live === undefined) return
    this.#checkMargins(live)
    this.#checkPoison(live)
    this.#keptBytes -= live.bytes
    this.#disown(live)
    this.#blocks.delete(live.address)
    this.#give?.(live.address - MARGIN, live.bytes + 2 * MARGIN)
  }

  #own(live: Live): void {
    const number = this.#freeNumbers.pop() ?? this.#byNumber.length
    this.#byNumber[number] = live
    this.#numbers.set(live.address, number)
    const [first, end] = granules(live)
    if (end > this.#owners.length) {
      const larger = new Int32Array(2 * end)
      larger.set(this.#owners)
      this.#owners = larger
    }
    this.#owners.fill(number, first, end)
  }

  #disown(live: Live): void {
    const number = this.#numbers.get(live.address) ?? 0
    this.#numbers.delete(live.address)
    this.#byNumber[number] = null
    this.#freeNumbers.push(number)
    const [first, end] = granules(live)
    this.#owners.fill(0, first, end)
  }

  #blockAt(address: number): Live | null {
    return this.#byNumber[this.#owners[Math.floor(address / GRANULE)] ?? 0] ?? null
  }

  #checkRange(kernel: string, buffer: string, start: number, end: number): void {
    const live = this.#blockAt(start)
    if (live === null) throw broken(`kernel ${kernel}: ${buffer} would be accessed at ${start}, where there is no block`)
    if (live.freed) throw broken(`kernel ${kernel}: ${buffer} is in a block that was freed`)
    if (start < live.address || end > live.address + live.bytes)
      throw broken(
        `kernel ${kernel}: ${buffer} would be accessed from byte ${start - live.address} to ${end - live.address} of a block of ${live.bytes} bytes`,
      )
  }

  #checkMargins(live: Live, by: string = 'something'): void {
    const bytes = heapBytes()
    const before = findOther(bytes, live.address - MARGIN, live.address, MARGIN_BYTE)
    const end = live.address + live.bytes
    const after = before >= 0 ? before : findOther(bytes, end, end + MARGIN, MARGIN_BYTE)
    if (after >= 0) throw broken(`${by} wrote to byte ${after - live.address} of a block of ${live.bytes} bytes`)
  }

  #checkPoison(live: Live): void {
    const at = findOther(heapBytes(), live.address, live.address + live.bytes, POISON)
    if (at >= 0) throw broken(`byte ${at - live.address} of a block of ${live.bytes} bytes was written after it was freed`)
  }
}

/** The granules of a block with its margins. */
const granules = ({ address, bytes }: Live): readonly [first: number, end: number] => [
  (address - MARGIN) / GRANULE,
  Math.ceil((address + bytes + MARGIN) / GRANULE),
]

/** The first position whose byte is another; -1 if there is none. */
function findOther(bytes: Uint8Array, start: number, end: number, byte: number): number {
  let i = start
  // Large blocks by words.
  if (end - start >= 64) {
    while (i % 4 !== 0) if (bytes[i++] !== byte) return i - 1
    const words = new Int32Array(bytes.buffer, 0, end >>> 2)
    const expected = Math.imul(byte, 0x01010101)
    let word = i >>> 2
    while (word < words.length && words[word] === expected) word++
    i = 4 * word
  }
  for (; i < end; i++) if (bytes[i] !== byte) return i
  return -1
}

/**
 * Checks the heap from now on, at some cost in time and memory: TENSORFX_CHECK_HEAP=1 runs the tests like that. Must come before the first tensor and the first
 * kernel. What is wrong is thrown as InternalError where it shows first; `verify` looks at the whole heap.
 */
export function checkHeap(): HeapCheck {
  const known = heapGuard()
  if (known instanceof HeapCheck) return known
  const check = new HeapCheck()
  setHeapGuard(check)
  return check
}

// The order of elements along lines, by the bits of the elements: a stable radix sort from the lowest digit to the highest, in JavaScript. NaN counts as the greatest and
// all NaN as equal, as do 0 and -0.
import { dtypeInfo } from '../../kernels/index.ts'
import { Tensor, windowOf } from '../../tensor/index.ts'
import { sizeAt } from '../shared/shapes.ts'

/** Lines up to that length are sorted by insertion: counting digits would cost more. */
const INSERTION = 32
/** Up to this many are chosen from a line that is at least four times as long without sorting it. */
const CHOSEN = 64
/** From this many elements on, fewer rounds of longer digits are faster. */
const MANY = 8192
const SIGN = -0x80000000

type Words = Int8Array | Int16Array | Int32Array | Uint8Array | Uint16Array

/** The memory of a tensor, in words of the size of its elements; an element of 64 bits has two, the lower one first. */
function wordsOf(tensor: Tensor): { readonly words: Words; readonly start: number; readonly perElement: 1 | 2 } {
  const { data, base } = windowOf(tensor)
  const perElement = dtypeInfo[tensor.dtype].size === 8 ? 2 : 1
  const are32Bits = data instanceof Float32Array || data instanceof Float64Array || data instanceof BigInt64Array
  const words = are32Bits ? new Int32Array(data.buffer, data.byteOffset, data.byteLength / 4) : data
  return { words, start: perElement * (base + tensor.offset), perElement }
}

/** Sorts lines of `n` elements, one after the other. */
class LineSorter {
  readonly #n: number
  readonly #dtype: Tensor['dtype']
  /** All bits of the keys where the order is descending. */
  readonly #flip: number
  /** Keys, whose order as unsigned integers is that of the elements. Those of 32 bits or less have only the lower word, and `high` is the same array. */
  readonly #low: Uint32Array
  readonly #high: Uint32Array
  /** What is in order so far, and memory for the next round. */
  #positions: Int32Array
  #next: Int32Array
  readonly #nextKeys: Uint32Array
  /** The bits of a digit. */
  readonly #bits: number
  readonly #counts: Int32Array

  constructor(n: number, dtype: Tensor['dtype'], descending: boolean) {
    this.#n = n
    this.#dtype = dtype
    this.#flip = descending ? -1 : 0
    this.#low = new Uint32Array(n)
    this.#high = dtypeInfo[dtype].size === 8 ? new Uint32Array(n) : this.#low
    this.#positions = new Int32Array(n)
    this.#next = new Int32Array(n)
    this.#nextKeys = new Uint32Array(n)
    this.#bits = n < MANY ? 8 : 11
    this.#counts = new Int32Array(1 << this.#bits)
  }

  /** The positions of the first `k` elements in order, at least; valid until the next call. The line begins at `words[start]`. */
  sorted(words: Words, start: number, k: number): Int32Array {
    const n = this.#n
    if (this.#high !== this.#low) this.#readLongKeys(words, start)
    else if (dtypeInfo[this.#dtype].floating) this.#readFloatKeys(words, start)
    else for (let i = 0; i < n; i++) this.#low[i] = (words[start + i] ?? 0) ^ SIGN ^ this.#flip
    if (n <= INSERTION || (k <= CHOSEN && 4 * k <= n)) this.#choose(Math.min(k, n))
    else this.#sort()
    return this.#positions
  }

  #readFloatKeys(words: Words, start: number): void {
    const [low, flip] = [this.#low, this.#flip]
    const shift = dtypeInfo[this.#dtype].size === 2 ? 16 : 0
    const infinity = this.#dtype === 'float16' ? 0x7c000000 : 0x7f800000
    for (let i = 0; i < this.#n; i++) {
      const bits = (words[start + i] ?? 0) << shift
      const magnitude = bits & ~SIGN
      low[i] = (magnitude > infinity ? -1 : bits >= 0 || magnitude === 0 ? magnitude | SIGN : ~bits) ^ flip
    }
  }

  /** The keys of float64 and int64. */
  #readLongKeys(words: Words, start: number): void {
    const [low, high, flip] = [this.#low, this.#high, this.#flip]
    const isFloating = this.#dtype === 'float64'
    for (let i = 0; i < this.#n; i++) {
      const lower = words[start + 2 * i] ?? 0
      const upper = words[start + 2 * i + 1] ?? 0
      if (!isFloating) {
        low[i] = lower ^ flip
        high[i] = upper ^ SIGN ^ flip
        continue
      }
      const magnitude = upper & ~SIGN
      const isMissing = magnitude > 0x7ff00000 || (magnitude === 0x7ff00000 && lower !== 0)
      const isNegative = upper < 0 && (magnitude | lower) !== 0
      low[i] = (isMissing ? -1 : isNegative ? ~lower : lower) ^ flip
      high[i] = (isMissing ? -1 : isNegative ? ~upper : magnitude | SIGN) ^ flip
    }
  }

  /** Keeps the first `k` of the elements seen so far in order. */
  #choose(k: number): void {
    const [low, high, positions] = [this.#low, this.#high, this.#positions]
    // The keys of the last one kept.
    let [lastUpper, lastLower] = [0, 0]
    for (let i = 0, count = 0; i < this.#n; i++) {
      const lower = low[i] ?? 0
      const upper = high[i] ?? 0
      if (count < k) count++
      else if (upper > lastUpper || (upper === lastUpper && lower >= lastLower)) continue
      let at = count - 1
      for (; at > 0; at--) {
        const other = positions[at - 1] ?? 0
        const otherUpper = high[other] ?? 0
        if (upper > otherUpper || (upper === otherUpper && lower >= (low[other] ?? 0))) break
        positions[at] = other
      }
      positions[at] = i
      const last = positions[count - 1] ?? 0
      lastUpper = high[last] ?? 0
      lastLower = low[last] ?? 0
    }
  }

  #sort(): void {
    for (let i = 0; i < this.#n; i++) this.#positions[i] = i
    this.#sortBy(this.#low)
    if (this.#high === this.#low) return
    const upper = this.#low
    for (let i = 0; i < this.#n; i++) upper[i] = this.#high[this.#positions[i] ?? 0] ?? 0
    this.#sortBy(upper)
  }

  /** Orders the positions by their `keys`, which move with them; positions of equal keys stay in the order that they had. */
  #sortBy(keys: Uint32Array): void {
    const n = this.#n
    const counts = this.#counts
    const mask = (1 << this.#bits) - 1
    let [from, to, fromKeys, toKeys] = [this.#positions, this.#next, keys, this.#nextKeys]
    for (let shift = 0; shift < 32; shift += this.#bits) {
      counts.fill(0)
      for (let i = 0; i < n; i++) {
        const digit = ((fromKeys[i] ?? 0) >>> shift) & mask
        counts[digit] = (counts[digit] ?? 0) + 1
      }
      // Where all keys have the same digit, nothing moves.
      if (counts[((fromKeys[0] ?? 0) >>> shift) & mask] === n) continue
      for (let digit = 0, sum = 0; digit <= mask; digit++) {
        const count = counts[digit] ?? 0
        counts[digit] = sum
        sum += count
      }
      for (let i = 0; i < n; i++) {
        const key = fromKeys[i] ?? 0
        const digit = (key >>> shift) & mask
        const place = counts[digit] ?? 0
        counts[digit] = place + 1
        toKeys[place] = key
        to[place] = from[i] ?? 0
      }
      ;[from, to, fromKeys, toKeys] = [to, from, toKeys, fromKeys]
    }
    this.#positions = from
    this.#next = to
  }
}

/**
 * The first `k` elements of each line in order, and their positions in the line, as int64. The lines are those of the last dimension of a contiguous tensor.
 */
export function orderedLines(lines: Tensor, k: number, descending: boolean): readonly [values: Tensor, positions: Tensor] {
  const n = sizeAt(lines.sizes, -1)
  const shape = [...lines.sizes.slice(0, -1), k]
  const [values, positions] = [Tensor.empty(shape, lines.dtype), Tensor.empty(shape, 'int64')]
  const sorter = new LineSorter(n, lines.dtype, descending)
  const [from, to, at] = [wordsOf(lines), wordsOf(values), wordsOf(positions)]
  const { perElement } = from
  for (let line = 0, out = 0; out < values.numel; line++) {
    const start = from.start + line * n * perElement
    const order = sorter.sorted(from.words, start, k)
    for (let i = 0; i < k; i++, out++) {
      const position = order[i] ?? 0
      for (let word = 0; word < perElement; word++)
        to.words[to.start + out * perElement + word] = from.words[start + position * perElement + word] ?? 0
      at.words[at.start + 2 * out] = position
      at.words[at.start + 2 * out + 1] = 0
    }
  }
  return [values, positions]
}

/** The positions of the elements of a contiguous tensor in ascending order. */
export function ascendingPositions(elements: Tensor): Int32Array {
  const { words, start } = wordsOf(elements)
  return new LineSorter(elements.numel, elements.dtype, false).sorted(words, start, elements.numel)
}

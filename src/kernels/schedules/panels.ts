// Packing for products: the lines of an operand (rows of A, columns of B) become panels of a few lines each, depth by depth, so that the product reads them in the order
// in which it needs them. Line l at depth k lies at l * stride + k * depthStride.
import { constant, declareArray, element, forLoop, load, localArray, loopVar, setElement, store } from '../ir/loopIr.ts'
import type { Expr, LoopVar, Memory, Size, Stmt } from '../ir/loopIr.ts'
import { roundedDown, sizeDifference, sizeProduct, sizeSum } from '../ir/sizes.ts'
import { QUAD, along, from, ones } from './notation.ts'
import type { Terms } from './notation.ts'

/** An operand as lines: its memory, the strides of the batch's loops, and those of lines and depths, in elements. */
export interface Lines {
  readonly memory: Memory
  readonly batch: Terms
  readonly stride: Size
  readonly depthStride: Size
}

/** A part of the lines: `extent` of them from `first` on, in panels of `width`. The last panel of a part that is `padded` is filled up with zeros. */
export interface Part {
  readonly first: Size
  readonly extent: Size
  readonly width: number
  readonly padded: boolean
}

/** Lines in whole panels, as many as there are, first of the first of these widths, then of the next. A width of 0, or one that was there, adds nothing. */
export function wholeParts(extent: Size, widths: readonly number[]): readonly Part[] {
  const parts: Part[] = []
  let first: Size = 0
  for (const width of new Set(widths)) {
    if (width === 0) continue
    const covered = roundedDown(sizeDifference(extent, first), width)
    if (covered !== 0) parts.push({ first, extent: covered, width, padded: false })
    first = sizeSum(first, covered)
  }
  return parts
}

/** Lines in whole panels, and one that is filled up with zeros for those that are left: as narrow as whole vectors allow, where their number is known. */
export function paddedParts(extent: Size, width: number): readonly Part[] {
  const whole = roundedDown(extent, width)
  const left = sizeDifference(extent, whole)
  const parts = wholeParts(extent, [width])
  if (left === 0) return parts
  return [...parts, { first: whole, extent: left, width: typeof left === 'number' ? Math.ceil(left / QUAD) * QUAD : width, padded: true }]
}

/** Where packed lines lie: line l at depth k of a panel that begins with the line `first` at first * depth + k * width + l - first. */
interface Packed {
  readonly memory: Memory
  readonly depth: Size
}

/** Packs lines, part by part. Where lines are neighbours, `together` panels are packed side by side, so that each cache line is read once. */
export const packing = (lines: Lines, parts: readonly Part[], to: Packed, together: number = 1): readonly Stmt[] =>
  parts.flatMap((part) => new Packing(lines, part, to).stmts(together))

class Packing {
  readonly #lines: Lines
  readonly #part: Part
  readonly #to: Packed

  constructor(lines: Lines, part: Part, to: Packed) {
    this.#lines = lines
    this.#part = part
    this.#to = to
  }

  stmts(together: number): readonly Stmt[] {
    const { width, padded } = this.#part
    const { stride, depthStride } = this.#lines
    if (padded) return [this.#padded()]
    if (stride === 1) return wholeParts(this.#part.extent, [width * together, width]).map((group) => this.#neighbours(group))
    if (depthStride === 1 && width % QUAD === 0) return [this.#transposed()]
    const panel = loopVar('panel', this.#part.extent, width)
    return [forLoop(panel, 'parallel', [this.#copied(panel, 0)])]
  }

  /** The value at the line `line` and the loops over lines, at the depth `depth` and the loops over depths. */
  #value(line: Size, lines: Terms, depth: Size, depths: Terms): Expr {
    const { memory, batch, stride, depthStride } = this.#lines
    const base = sizeSum(sizeProduct(line, stride), sizeProduct(depth, depthStride))
    return load(memory, from(base, ...batch, ...along(lines, stride), ...along(depths, depthStride)))
  }

  /** Stores a value into the panel that begins with the line `line`, and as many panels behind it as loops say. */
  #store(line: Size, within: Size, terms: Terms, value: Expr): Stmt {
    const { memory, depth } = this.#to
    return store(memory, from(sizeSum(sizeProduct(line, depth), within), ...terms), value)
  }

  /** The depths from `first` on of a panel, one element at a time: few are packed so, and the code is short. */
  #copied(panel: LoopVar, first: Size): Stmt {
    const { depth } = this.#to
    const { first: line, width } = this.#part
    const [k, l] = [loopVar('k', sizeDifference(depth, first)), loopVar('l', width)]
    const value = this.#value(line, ones(panel, l), first, ones(k))
    const to: Terms = [
      [panel, depth],
      [k, width],
      [l, 1],
    ]
    return forLoop(k, 'serial', [forLoop(l, 'serial', [this.#store(line, sizeProduct(first, width), to, value)])])
  }

  /** Some panels side by side, whose lines are neighbours. */
  #neighbours(group: Part): Stmt {
    const { depth } = this.#to
    const { width } = this.#part
    const [panel, k] = [loopVar('panel', group.extent, group.width), loopVar('k', depth)]
    const [p, l] = [loopVar('p', group.width / width), loopVar('l', width)]
    const line = sizeSum(this.#part.first, group.first)
    const value = this.#value(line, [...ones(panel, l), [p, width]], 0, ones(k))
    const to: Terms = [
      [panel, depth],
      [p, sizeProduct(depth, width)],
      [k, width],
      [l, 1],
    ]
    return forLoop(panel, 'parallel', [forLoop(k, 'serial', [forLoop(p, 'unroll', [forLoop(l, 'lanes', [this.#store(line, 0, to, value)])])])])
  }

  /** Depths are neighbours: blocks of four lines by four depths are transposed in registers. */
  #transposed(): Stmt {
    const { depth } = this.#to
    const { first, extent, width } = this.#part
    const whole = roundedDown(depth, QUAD)
    const [panel, k0, q] = [loopVar('panel', extent, width), loopVar('k0', whole, QUAD), loopVar('q', width, QUAD)]
    const [l, k] = [loopVar('l', QUAD), loopVar('k', QUAD)]
    const block = localArray('block', 'float32', [QUAD, QUAD])
    const value = this.#value(first, ones(panel, q, l), 0, ones(k0, k))
    const to: Terms = [
      [panel, depth],
      [k0, width],
      [k, width],
      [q, 1],
      [l, 1],
    ]
    const blocks = forLoop(k0, 'serial', [
      forLoop(q, 'unroll', [
        declareArray(block, constant('float32', 0)),
        forLoop(l, 'unroll', [forLoop(k, 'lanes', [setElement(block, [l, k], value)])]),
        forLoop(k, 'unroll', [forLoop(l, 'lanes', [this.#store(first, 0, to, element(block, l, k))])]),
      ]),
    ])
    return forLoop(panel, 'parallel', sizeDifference(depth, whole) === 0 ? [blocks] : [blocks, this.#copied(panel, whole)])
  }

  /** One panel with fewer lines than it has room for; none where no line is left. */
  #padded(): Stmt {
    const { first, extent, width } = this.#part
    const [panel, k] = [loopVar('panel', extent, width), loopVar('k', this.#to.depth)]
    const [l, line] = [loopVar('l', width), loopVar('line', extent)]
    const zero = this.#store(
      first,
      0,
      [
        [k, width],
        [l, 1],
      ],
      constant('float32', 0),
    )
    const copy = this.#store(
      first,
      0,
      [
        [k, width],
        [line, 1],
      ],
      this.#value(first, ones(line), 0, ones(k)),
    )
    return forLoop(panel, 'parallel', [
      forLoop(k, 'serial', [forLoop(l, 'lanes', [zero])]),
      this.#lines.stride === 1 ? forLoop(k, 'serial', [forLoop(line, 'simd', [copy])]) : forLoop(line, 'serial', [forLoop(k, 'simd', [copy])]),
    ])
  }
}

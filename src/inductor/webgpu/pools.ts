// Means over windows, and their gradients, as grids.
import { assign, call, cast, constant, declare, iota, local, loopVar, read, serialLoops, store } from '../../kernels/index.ts'
import type { DType, Expr, LoopVar } from '../../kernels/index.ts'
import { contiguousStrides } from '../../tensor/index.ts'
import type { Buffer } from '../ir.ts'
import { GridWriter, both, int, isInside, isView, loopsOver, pair, place } from './gridWriter.ts'
import type { Call, Grids } from './gridWriter.ts'

/** One dimension of the windows. */
interface Side {
  readonly kernel: number
  readonly step: number
  readonly pad: number
  readonly size: number
}

/** The windows of a call, by its arguments. */
class Windows {
  readonly sides: readonly [Side, Side]
  readonly #includePad: boolean
  readonly #divisor: number | null

  constructor(shape: readonly number[], [kernel, strides, padding, , includePad, divisor]: readonly unknown[]) {
    const [kernels, steps, pads] = [pair(kernel), pair(strides ?? kernel), pair(padding)]
    const side = (i: 0 | 1): Side => ({ kernel: kernels[i], step: steps[i], pad: pads[i], size: shape.at(i - 2) ?? 0 })
    this.sides = [side(0), side(1)]
    this.#includePad = includePad === true
    this.#divisor = divisor === null ? null : Number(divisor)
  }

  /** What the sum of a window is divided by. */
  divisor(positions: readonly [Expr, Expr], dtype: DType): Expr {
    if (this.#divisor !== null) return constant(dtype, this.#divisor)
    const [rows, columns] = this.sides.map(({ kernel, step, pad, size }, i) => {
      const start = call('sub', call('mul', positions[i] ?? int(0), int(step)), int(pad))
      const end = call('min', call('add', start, int(kernel)), int(this.#includePad ? size + pad : size))
      return call('sub', end, this.#includePad ? start : call('max', start, int(0)))
    })
    return cast(call('mul', rows ?? int(1), columns ?? int(1)), dtype)
  }
}

/** The last two loops. */
function pixelsOf(loops: readonly LoopVar[]): readonly [LoopVar, LoopVar] | null {
  const [row, column] = loops.slice(-2)
  return row === undefined || column === undefined ? null : [row, column]
}

/** The loops of a pool that writes `out`: over its elements, and over the taps of a window; null for a tensor without two dimensions. */
function poolOf(windows: Windows, out: Buffer) {
  const [vertical, horizontal] = windows.sides
  const loops = loopsOver(out.shape)
  const pixels = pixelsOf(loops)
  if (pixels === null) return null
  const taps = [loopVar('kh', vertical.kernel), loopVar('kw', horizontal.kernel)] as const
  return { windows, vertical, horizontal, loops, pixels, taps, total: local('total', out.dtype) }
}

export function avgPool({ name, args: [self, ...how], outs: [out] }: Call): Grids {
  if (!isView(self) || out === undefined) return null
  const pool = poolOf(new Windows(self.shape, how), out)
  if (pool === null) return null
  const { windows, vertical, horizontal, loops, pixels, taps, total } = pool
  const writer = new GridWriter()
  const met = (i: 0 | 1, { step, pad }: Side): Expr => call('sub', call('add', call('mul', iota(pixels[i]), int(step)), iota(taps[i])), int(pad))
  const [row, column] = [met(0, vertical), met(1, horizontal)]
  const mask = both(isInside(row, vertical.size), isInside(column, horizontal.size))
  const body = [
    // The only number that added to others changes none of them.
    declare(total, constant(out.dtype, -0)),
    ...serialLoops(taps, [assign(total, call('add', read(total), writer.load(self, [...loops.slice(0, -2), row, column], mask)))]),
    store(
      writer.target(out),
      place(loops, contiguousStrides(out.shape)),
      call('div', read(total), windows.divisor([iota(pixels[0]), iota(pixels[1])], out.dtype)),
    ),
  ]
  return [writer.grid(name, loops, body)]
}

/** A thread for each element of the image collects the shares of the windows that it lies in, in their order. */
export function avgPoolBackward({ name, args: [grad, self, ...how], outs: [out] }: Call): Grids {
  if (!isView(grad) || !isView(self) || out === undefined) return null
  const pool = poolOf(new Windows(self.shape, how), out)
  if (pool === null) return null
  const { windows, vertical, horizontal, loops, pixels, taps, total } = pool
  const writer = new GridWriter()
  /** The window whose tap, counted from the last, is at a pixel; and whether there is one. */
  const windowAt = (i: 0 | 1, { kernel, step, pad }: Side): { readonly at: Expr; readonly isThere: Expr } => {
    const distance = call('sub', call('add', iota(pixels[i]), int(pad)), call('sub', int(kernel - 1), iota(taps[i])))
    const at = call('floorDiv', distance, int(step))
    return { at, isThere: both(call('eq', call('remainder', distance, int(step)), int(0)), isInside(at, grad.shape.at(i - 2) ?? 0)) }
  }
  const [row, column] = [windowAt(0, vertical), windowAt(1, horizontal)]
  const isThere = both(row.isThere, column.isThere)
  const value = writer.load(grad, [...loops.slice(0, -2), row.at, column.at], isThere)
  const share = call('where', isThere, call('div', value, windows.divisor([row.at, column.at], out.dtype)), constant(out.dtype, 0))
  const body = [
    declare(total, constant(out.dtype, 0)),
    ...serialLoops(taps, [assign(total, call('add', read(total), share))]),
    store(writer.target(out), place(loops, contiguousStrides(out.shape)), read(total)),
  ]
  return [writer.grid(name, loops, body)]
}

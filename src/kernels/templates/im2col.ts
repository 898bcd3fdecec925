// Writes the im2col matrix of an image into scratch memory: row (channel, window y, window x), column (output y, output x); zero where the window lies
// outside the image. It takes any stride, padding and dilation. In the transposed form (the gradient of the input) the window moves the other way.
import type { Size } from '../loopIr.ts'
import type { FunctionBuilder } from '../wasm/assembler.ts'
import type { ConvGather } from '../gemmSpec.ts'
import type { Count, LoopWriter } from './loopWriter.ts'

type Sizes = { readonly [K in keyof ConvGather as ConvGather[K] extends boolean ? never : K]: Count }

const countsOf = (g: ConvGather, size: (s: Size) => Count): Sizes => ({
  channels: size(g.channels),
  height: size(g.height),
  width: size(g.width),
  kernelHeight: size(g.kernelHeight),
  kernelWidth: size(g.kernelWidth),
  outHeight: size(g.outHeight),
  outWidth: size(g.outWidth),
  strideH: size(g.strideH),
  strideW: size(g.strideW),
  padH: size(g.padH),
  padW: size(g.padW),
  dilationH: size(g.dilationH),
  dilationW: size(g.dilationW),
  channelStride: size(g.channelStride),
  rowStride: size(g.rowStride),
  colStride: size(g.colStride),
})

/** Where an output position reads: a local with the index and, in the transposed form, one that says whether the element exists. */
interface SourceIndex {
  readonly value: number
  readonly exists: number | null
}

/** Writes code that lays out the image at the address in `image` as a matrix at `target`. */
export function writeIm2col(w: LoopWriter, gather: ConvGather, size: (s: Size) => Count, image: number, target: number): void {
  new Im2col(w, gather, size).write(image, target)
}

class Im2col {
  readonly #w: LoopWriter
  readonly #f: FunctionBuilder
  readonly #s: Sizes
  readonly #transposed: boolean

  constructor(w: LoopWriter, gather: ConvGather, size: (s: Size) => Count) {
    this.#w = w
    this.#f = w.f
    this.#s = countsOf(gather, size)
    this.#transposed = gather.transposed
  }

  write(image: number, target: number): void {
    const w = this.#w
    const f = this.#f
    const s = this.#s
    const to = w.let(() => f.get(target))
    w.count(s.channels, 1, (channel) => {
      const plane = this.#element(image, channel, s.channelStride)
      w.count(s.kernelHeight, 1, (ky) => {
        w.count(s.kernelWidth, 1, (kx) => {
          w.count(s.outHeight, 1, (oy) => {
            const y = this.#sourceIndex(oy, ky, s.strideH, s.padH, s.dilationH)
            this.#isInside(y, s.height)
            f.if(
              () => this.#row(this.#element(plane, y.value, s.rowStride), to, kx),
              () => this.#zeros(to, s.outWidth),
            )
          })
        })
      })
    })
  }

  /** A new local with the address of an element. */
  #element(base: number, index: number, stride: Count): number {
    const f = this.#f
    return this.#w.let(() => {
      f.get(base)
      f.get(index)
      this.#w.push(stride)
      f.op('i32.mul')
      f.i32Const(2)
      f.op('i32.shl')
      f.op('i32.add')
    })
  }

  /** out * stride + window * dilation - pad; transposed: (out + pad - window * dilation) / stride, where the division is exact. */
  #sourceIndex(out: number, window: number, stride: Count, pad: Count, dilation: Count): SourceIndex {
    const w = this.#w
    const f = this.#f
    if (!this.#transposed) {
      const value = w.let(() => {
        f.get(out)
        w.push(stride)
        f.op('i32.mul')
        f.get(window)
        w.push(dilation)
        f.op('i32.mul')
        f.op('i32.add')
        w.push(pad)
        f.op('i32.sub')
      })
      return { value, exists: null }
    }
    const whole = w.let(() => {
      f.get(out)
      w.push(pad)
      f.op('i32.add')
      f.get(window)
      w.push(dilation)
      f.op('i32.mul')
      f.op('i32.sub')
    })
    const value = w.let(() => {
      f.get(whole)
      w.push(stride)
      f.op('i32.div_s')
    })
    // -1 / 2 is 0, so the quotient does not show that a negative number is outside.
    const exists = w.let(() => {
      f.get(whole)
      w.push(stride)
      f.op('i32.rem_s')
      f.op('i32.eqz')
      f.get(whole)
      f.i32Const(0)
      f.op('i32.ge_s')
      f.op('i32.and')
    })
    return { value, exists }
  }

  /** Pushes whether the index exists and 0 <= index < size. */
  #isInside(index: SourceIndex, size: Count): void {
    const f = this.#f
    f.get(index.value)
    this.#w.push(size)
    f.op('i32.lt_u')
    if (index.exists === null) return
    f.get(index.exists)
    f.op('i32.and')
  }

  /** Writes zeros at `to`, up to column `limit`, and advances `to`. */
  #zeros(to: number, limit: Count, start: Count = 0): void {
    const f = this.#f
    this.#w.count(
      limit,
      1,
      () => {
        f.get(to)
        f.f32Const(0)
        f.memory('f32.store')
        this.#w.advance(to, 4)
      },
      start,
    )
  }

  /** Writes one row of the matrix from a row of the image and advances `to`. */
  #row(row: number, to: number, kx: number): void {
    const f = this.#f
    const s = this.#s
    const isOne = (size: Count): void => {
      this.#w.push(size)
      f.i32Const(1)
      f.op('i32.eq')
    }
    isOne(s.strideW)
    isOne(s.colStride)
    f.op('i32.and')
    f.if(
      () => this.#shifted(row, to, kx),
      () => this.#elementwise(row, to, kx),
    )
  }

  /** Unit strides: a shifted copy with zeros at the ends. Column c reads pixel c + shift. */
  #shifted(row: number, to: number, kx: number): void {
    const w = this.#w
    const f = this.#f
    const s = this.#s
    const shift = w.let(() => {
      if (this.#transposed) w.push(s.padW)
      f.get(kx)
      w.push(s.dilationW)
      f.op('i32.mul')
      if (!this.#transposed) w.push(s.padW)
      f.op('i32.sub')
    })
    // first = clamp(-shift, 0, outWidth), last = clamp(width - shift, first, outWidth)
    const clamped = (from: Count, low: Count): number => {
      const value = w.let(() => {
        w.push(from)
        f.get(shift)
        f.op('i32.sub')
      })
      f.get(value)
      w.push(low)
      f.get(value)
      w.push(low)
      f.op('i32.gt_s')
      f.op('select')
      f.set(value)
      w.least({ local: value }, s.outWidth)
      f.set(value)
      return value
    }
    const first = clamped(0, 0)
    const last = clamped(s.width, { local: first })
    this.#zeros(to, { local: first })
    const from = w.let(() => {
      f.get(row)
      f.get(first)
      f.get(shift)
      f.op('i32.add')
      f.i32Const(2)
      f.op('i32.shl')
      f.op('i32.add')
    })
    const copy = (load: 'v128.load' | 'f32.load', store: 'v128.store' | 'f32.store', bytes: number): void => {
      f.get(to)
      f.get(from)
      f.memory(load)
      f.memory(store)
      w.advance(to, bytes)
      w.advance(from, bytes)
    }
    const vectorsEnd = w.let(() => {
      f.get(last)
      f.i32Const(3)
      f.op('i32.sub')
    })
    const copied = w.let(() => f.get(first))
    w.count(
      { local: vectorsEnd },
      4,
      () => {
        copy('v128.load', 'v128.store', 16)
        w.advance(copied, 4)
      },
      { local: first },
    )
    w.count({ local: last }, 1, () => copy('f32.load', 'f32.store', 4), { local: copied })
    this.#zeros(to, s.outWidth, { local: last })
  }

  #elementwise(row: number, to: number, kx: number): void {
    const f = this.#f
    const s = this.#s
    this.#w.count(s.outWidth, 1, (ox) => {
      const x = this.#sourceIndex(ox, kx, s.strideW, s.padW, s.dilationW)
      f.get(to)
      f.f32Const(0)
      f.memory('f32.store')
      this.#isInside(x, s.width)
      f.if(() => {
        f.get(to)
        f.get(this.#element(row, x.value, s.colStride))
        f.memory('f32.load')
        f.memory('f32.store')
      })
      this.#w.advance(to, 4)
    })
  }
}

// The matrix-product template: C = epilogue(A x B) in float32, with a register tile of 4 rows by 8 columns over packed operands.
//
// A is packed into panels of 4 rows, B into panels of 8 columns, both depth-major, so that the inner loop reads them in order. A convolution's
// B is first laid out by rows (im2col) in the scratch. Result rows go through a row buffer, from which the epilogue runs as ordinary loop IR.
import { InternalError } from '../errors/index.ts'
import type { CompiledKernel, ConvGather, GemmSpec, MatrixOperand } from './contracts.ts'
import { instantiate } from './compile.ts'
import { bufferParam, load } from './loopIr.ts'
import type { Expr, LoopVar, Size, Stmt } from './loopIr.ts'
import { printKernel } from './print.ts'
import { ModuleBuilder } from './wasm/assembler.ts'
import type { FunctionBuilder, ValueType } from './wasm/assembler.ts'
import { KernelEmitter, importMath } from './wasm/emitKernel.ts'

const ROWS = 4
const COLS = 8
/** Panels that are packed side by side. */
const PANELS = 4
/** Columns whose packed panels stay in the second-level cache while the rows of A go by. */
const COLUMN_BLOCK = 128

const up = (n: number, to: number): number => Math.ceil(n / to) * to

/** Bytes of scratch for a product of these sizes (k of one batch where batches are summed). */
export function gemmScratchBytes(m: number, n: number, k: number): number {
  return 4 * (up(m, ROWS) * k + 2 * up(n, COLS) * k + up(Math.max(n, 1), COLS) * k + up(m, ROWS) * up(n, COLS)) + 256
}

const cache = new Map<string, CompiledKernel>()

/** Compiles a product; the same problem is compiled once. */
export function compileGemm(spec: GemmSpec): CompiledKernel {
  const key = specKey(spec)
  let known = cache.get(key)
  if (known === undefined) {
    const wasm = new GemmEmitter(spec).emit()
    known = { kernel: { name: spec.name, params: spec.params }, run: instantiate(wasm), wasm }
    cache.set(key, known)
  }
  return known
}

function specKey(spec: GemmSpec): string {
  const size = (s: Size): unknown => (typeof s === 'number' ? s : s.name)
  const plain = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(plain)
    if (typeof value !== 'object' || value === null) return value
    if ((value as { kind?: string }).kind === 'size') return size(value as Size)
    if ((value as { kind?: string }).kind === 'buffer') return (value as { name: string }).name
    return Object.fromEntries(Object.entries(value).map(([k, v]) => [k, plain(v)]))
  }
  const acc = load(bufferParam('acc', 'float32'), { base: 0, terms: [{ loop: spec.cols, stride: 1 }], dynamic: [] })
  const { batch, rows, cols, depth, a, b, reduceBatch } = spec
  return `${JSON.stringify(plain({ batch, rows, cols, depth, a, b, reduceBatch }))}\n${printKernel({ name: 'epilogue', params: spec.params, body: spec.epilogue(acc) })}`
}

class GemmEmitter {
  readonly #spec: GemmSpec
  readonly #module = new ModuleBuilder()
  readonly #f: FunctionBuilder
  readonly #emitter: KernelEmitter
  readonly #param = new Map<unknown, number>()
  readonly #counters = new Map<LoopVar, number>()
  #m = 0
  #n = 0
  #k = 0
  /** Columns rounded up to whole panels. */
  #n8 = 0
  #packedA = 0
  #packedB = 0
  #gathered = 0
  #rowBuffer = 0

  constructor(spec: GemmSpec) {
    this.#spec = spec
    this.#module.importMemory()
    const imports = importMath(this.#module)
    const types = spec.params.map((p): ValueType =>
      p.kind === 'scalar' ? (p.dtype === 'float32' ? 'f32' : p.dtype === 'float64' ? 'f64' : 'i32') : 'i32',
    )
    this.#f = this.#module.function(types, [], 'run')
    this.#emitter = new KernelEmitter(this.#f, imports, false)
    spec.params.forEach((p, i) => this.#param.set(p, i))
  }

  emit(): Uint8Array {
    const { f } = { f: this.#f }
    const spec = this.#spec
    this.#emitter.bindParams(spec.params)
    this.#m = this.#sizeLocal(spec.rows.extent)
    this.#n = this.#sizeLocal(spec.cols.extent)
    this.#k = this.#sizeLocal(spec.depth)
    this.#n8 = this.#roundUp(this.#n, COLS)
    const m4 = this.#roundUp(this.#m, ROWS)
    const scratch = spec.params.length - 1
    // Scratch: packed A, packed B, gathered B, row buffer; 64-byte aligned start.
    this.#packedA = f.local('i32')
    f.get(scratch)
    f.i32Const(63)
    f.op('i32.add')
    f.i32Const(-64)
    f.op('i32.and')
    f.set(this.#packedA)
    this.#packedB = this.#after(this.#packedA, m4, this.#k)
    this.#gathered = this.#after(this.#packedB, this.#n8, this.#k)
    this.#rowBuffer = this.#after(this.#gathered, this.#n8, this.#k)
    // No rows or columns: nothing to do.
    f.block((end) => {
      for (const size of [this.#m, this.#n]) {
        f.get(size)
        f.i32Const(0)
        f.op('i32.le_s')
        f.brIf(end)
      }
      const kept = spec.batch.slice(0, spec.batch.length - spec.reduceBatch)
      const summed = spec.batch.slice(spec.batch.length - spec.reduceBatch)
      const packAOnce = spec.a.batchStrides.every((s) => s === 0)
      if (packAOnce) this.#packA()
      this.#nest(kept, () => {
        if (summed.length === 0) {
          if (!packAOnce) this.#packA()
          this.#packB()
          this.#product(false)
          return
        }
        this.#clearRows()
        this.#nest(summed, () => {
          if (!packAOnce) this.#packA()
          this.#packB()
          this.#product(true)
        })
        this.#count(this.#m, 1, (row) => this.#epilogueRow(row, row))
      })
    })
    return this.#module.finish()
  }

  // ---- small pieces ----

  #pushSize(size: Size): void {
    if (typeof size === 'number') this.#f.i32Const(size)
    else this.#f.get(this.#param.get(size) as number)
  }

  #sizeLocal(size: Size): number {
    const local = this.#f.local('i32')
    this.#pushSize(size)
    this.#f.set(local)
    return local
  }

  #roundUp(local: number, to: number): number {
    const f = this.#f
    const out = f.local('i32')
    f.get(local)
    f.i32Const(to - 1)
    f.op('i32.add')
    f.i32Const(-to)
    f.op('i32.and')
    f.set(out)
    return out
  }

  /** The address behind `rows * cols` floats at `start`. */
  #after(start: number, rows: number, cols: number): number {
    const f = this.#f
    const out = f.local('i32')
    f.get(start)
    f.get(rows)
    f.get(cols)
    f.op('i32.mul')
    f.i32Const(2)
    f.op('i32.shl')
    f.op('i32.add')
    f.set(out)
    return out
  }

  /** for (counter = 0; counter < limit; counter += step) body(counter) */
  #count(limit: number, step: number, body: (counter: number) => void, start: number | null = null): void {
    const f = this.#f
    const counter = f.local('i32')
    if (start === null) f.i32Const(0)
    else f.get(start)
    f.set(counter)
    f.block((end) => {
      f.get(counter)
      f.get(limit)
      f.op('i32.ge_s')
      f.brIf(end)
      f.loop((again) => {
        body(counter)
        f.get(counter)
        f.i32Const(step)
        f.op('i32.add')
        f.tee(counter)
        f.get(limit)
        f.op('i32.lt_s')
        f.brIf(again)
      })
    })
  }

  #nest(loops: readonly LoopVar[], body: () => void): void {
    const [first, ...rest] = loops
    if (first === undefined) return body()
    const limit = this.#sizeLocal(first.extent)
    this.#count(limit, 1, (counter) => {
      this.#counters.set(first, counter)
      this.#emitter.bindLoop(first, counter)
      this.#nest(rest, body)
    })
  }

  /** Address of an operand's element (0, 0) in the current batch. */
  #operandBase(operand: MatrixOperand): number {
    const f = this.#f
    const out = f.local('i32')
    f.get(this.#param.get(operand.buffer) as number)
    operand.batchStrides.forEach((stride, i) => {
      const counter = this.#counters.get(this.#spec.batch[i] as LoopVar)
      if (stride === 0 || counter === undefined) return
      this.#pushSize(stride)
      f.get(counter)
      f.op('i32.mul')
      f.i32Const(2)
      f.op('i32.shl')
      f.op('i32.add')
    })
    f.set(out)
    return out
  }

  /** out = base + (i * stride) * 4 */
  #at(base: number, i: number, stride: number): number {
    const f = this.#f
    const out = f.local('i32')
    f.get(base)
    f.get(i)
    f.get(stride)
    f.op('i32.mul')
    f.i32Const(2)
    f.op('i32.shl')
    f.op('i32.add')
    f.set(out)
    return out
  }

  // ---- packing ----

  #packA(): void {
    const { a } = this.#spec
    this.#pack(this.#operandBase(a), this.#sizeLocal(a.rowStride), this.#sizeLocal(a.colStride), this.#m, ROWS, this.#packedA)
  }

  #packB(): void {
    const { b } = this.#spec
    const base = this.#operandBase(b)
    if (b.gather === undefined) return this.#pack(base, this.#sizeLocal(b.colStride), this.#sizeLocal(b.rowStride), this.#n, COLS, this.#packedB)
    const plane = this.#im2col(base, b.gather)
    const one = this.#sizeLocal(1)
    if (b.gather.swapped) this.#pack(this.#gathered, plane, one, this.#n, COLS, this.#packedB)
    else this.#pack(this.#gathered, one, plane, this.#n, COLS, this.#packedB)
  }

  /**
   * Panels of `width` lines: element (line, depth) lies at base + line * lineStride + depth * depthStride. Lines past `count` are zero.
   */
  #pack(base: number, lineStride: number, depthStride: number, count: number, width: number, target: number): void {
    const f = this.#f
    const out = f.local('i32')
    f.get(target)
    f.set(out)
    // Neighbouring lines: several panels at a time, so that a cache line is read once.
    const wideEnd = f.local('i32')
    f.get(count)
    f.i32Const(-width * PANELS)
    f.op('i32.and')
    f.i32Const(0)
    f.get(lineStride)
    f.i32Const(1)
    f.op('i32.eq')
    f.op('select')
    f.set(wideEnd)
    this.#count(wideEnd, width * PANELS, (line) => this.#packWide(this.#at(base, line, lineStride), depthStride, width, out))
    const panel = (line: number): void => {
      const source = this.#at(base, line, lineStride)
      const whole = (): void => {
        f.get(line)
        f.i32Const(width)
        f.op('i32.add')
        f.get(count)
        f.op('i32.le_s')
      }
      const isOne = (stride: number): void => {
        f.get(stride)
        f.i32Const(1)
        f.op('i32.eq')
      }
      whole()
      isOne(lineStride)
      f.op('i32.and')
      f.if(
        () => this.#packRows(source, depthStride, width, out),
        () => {
          whole()
          isOne(depthStride)
          f.op('i32.and')
          f.if(
            () => this.#packTransposed(source, lineStride, width, out),
            () => this.#packScalar(source, lineStride, depthStride, line, count, width, out),
          )
        },
      )
      f.get(out)
      f.get(this.#k)
      f.i32Const(width * 4)
      f.op('i32.mul')
      f.op('i32.add')
      f.set(out)
    }
    this.#count(count, width, panel, wideEnd)
  }

  /** PANELS panels of neighbouring lines; moves `out` behind them. */
  #packWide(source: number, depthStride: number, width: number, out: number): void {
    const f = this.#f
    const [from, step] = [f.local('i32'), f.local('i32')]
    f.get(source)
    f.set(from)
    f.get(depthStride)
    f.i32Const(2)
    f.op('i32.shl')
    f.set(step)
    const targets = Array.from({ length: PANELS }, () => {
      const to = f.local('i32')
      f.get(out)
      f.set(to)
      f.get(out)
      f.get(this.#k)
      f.i32Const(width * 4)
      f.op('i32.mul')
      f.op('i32.add')
      f.set(out)
      return to
    })
    this.#count(this.#k, 1, () => {
      targets.forEach((to, p) => {
        for (let v = 0; v < width / 4; v++) {
          f.get(to)
          f.get(from)
          f.memory('v128.load', p * width * 4 + v * 16)
          f.memory('v128.store', v * 16)
        }
        this.#advanceBy(to, width * 4)
      })
      this.#advance(from, step)
    })
  }

  /** Lines are neighbours in memory: copy `width` floats per depth. */
  #packRows(source: number, depthStride: number, width: number, out: number): void {
    const f = this.#f
    const [from, to, step] = [f.local('i32'), f.local('i32'), f.local('i32')]
    f.get(source)
    f.set(from)
    f.get(out)
    f.set(to)
    f.get(depthStride)
    f.i32Const(2)
    f.op('i32.shl')
    f.set(step)
    this.#count(this.#k, 1, () => {
      for (let v = 0; v < width / 4; v++) {
        f.get(to)
        f.get(from)
        f.memory('v128.load', v * 16)
        f.memory('v128.store', v * 16)
      }
      this.#advance(from, step)
      this.#advanceBy(to, width * 4)
    })
  }

  #advance(local: number, by: number): void {
    const f = this.#f
    f.get(local)
    f.get(by)
    f.op('i32.add')
    f.set(local)
  }

  #advanceBy(local: number, by: number): void {
    const f = this.#f
    f.get(local)
    f.i32Const(by)
    f.op('i32.add')
    f.set(local)
  }

  /** Depths are neighbours in memory: transpose blocks of 4 lines by 4 depths. */
  #packTransposed(source: number, lineStride: number, width: number, out: number): void {
    const f = this.#f
    const rows = Array.from({ length: width }, (_, r) => {
      const local = f.local('i32')
      f.get(source)
      f.get(lineStride)
      f.i32Const(r * 4)
      f.op('i32.mul')
      f.op('i32.add')
      f.set(local)
      return local
    })
    const to = f.local('i32')
    f.get(out)
    f.set(to)
    const whole = f.local('i32')
    f.get(this.#k)
    f.i32Const(-4)
    f.op('i32.and')
    f.set(whole)
    const v = Array.from({ length: 8 }, () => f.local('v128'))
    this.#count(whole, 4, () => {
      for (let block = 0; block < width; block += 4) {
        for (let r = 0; r < 4; r++) {
          f.get(rows[block + r] as number)
          f.memory('v128.load')
          f.set(v[r] as number)
        }
        const shuffled = (target: number, a: number, b: number, lanes: readonly [number, number, number, number]): void => {
          f.get(v[a] as number)
          f.get(v[b] as number)
          f.shuffle32(lanes[0], lanes[1], lanes[2], lanes[3])
          f.set(v[target] as number)
        }
        shuffled(4, 0, 1, [0, 4, 1, 5])
        shuffled(5, 2, 3, [0, 4, 1, 5])
        shuffled(6, 0, 1, [2, 6, 3, 7])
        shuffled(7, 2, 3, [2, 6, 3, 7])
        const pairs = [
          [4, 5, [0, 1, 4, 5]],
          [4, 5, [2, 3, 6, 7]],
          [6, 7, [0, 1, 4, 5]],
          [6, 7, [2, 3, 6, 7]],
        ] as const
        pairs.forEach(([a, b, lanes], depth) => {
          f.get(to)
          f.get(v[a] as number)
          f.get(v[b] as number)
          f.shuffle32(lanes[0], lanes[1], lanes[2], lanes[3])
          f.memory('v128.store', (depth * width + block) * 4)
        })
      }
      for (const row of rows) this.#advanceBy(row, 16)
      this.#advanceBy(to, width * 16)
    })
    this.#count(
      this.#k,
      1,
      () => {
        rows.forEach((row, r) => {
          f.get(to)
          f.get(row)
          f.memory('f32.load')
          f.memory('f32.store', r * 4)
        })
        for (const row of rows) this.#advanceBy(row, 4)
        this.#advanceBy(to, width * 4)
      },
      whole,
    )
  }

  /** Any strides, and the panel that is not full. */
  #packScalar(source: number, lineStride: number, depthStride: number, line: number, count: number, width: number, out: number): void {
    const f = this.#f
    const to = f.local('i32')
    f.get(out)
    f.set(to)
    const lineBytes = f.local('i32')
    f.get(lineStride)
    f.i32Const(2)
    f.op('i32.shl')
    f.set(lineBytes)
    const depthBytes = f.local('i32')
    f.get(depthStride)
    f.i32Const(2)
    f.op('i32.shl')
    f.set(depthBytes)
    const from = f.local('i32')
    f.get(source)
    f.set(from)
    const valid = f.local('i32')
    f.get(count)
    f.get(line)
    f.op('i32.sub')
    f.set(valid)
    this.#count(this.#k, 1, () => {
      for (let r = 0; r < width; r++) {
        f.get(to)
        f.f32Const(0)
        f.memory('f32.store', r * 4)
        f.i32Const(r)
        f.get(valid)
        f.op('i32.lt_s')
        f.if(() => {
          f.get(to)
          f.get(from)
          f.get(lineBytes)
          f.i32Const(r)
          f.op('i32.mul')
          f.op('i32.add')
          f.memory('f32.load')
          f.memory('f32.store', r * 4)
        })
      }
      this.#advance(from, depthBytes)
      this.#advanceBy(to, width * 4)
    })
  }

  /** Lays the gathered matrix out as [channels * kernel area][out plane]. Returns the plane size. */
  #im2col(base: number, g: ConvGather): number {
    const f = this.#f
    const local = (size: Size): number => this.#sizeLocal(size)
    const [height, width, outHeight, outWidth] = [local(g.height), local(g.width), local(g.outHeight), local(g.outWidth)]
    const [strideH, strideW, padH, padW, dilationH, dilationW] = [
      local(g.strideH),
      local(g.strideW),
      local(g.padH),
      local(g.padW),
      local(g.dilationH),
      local(g.dilationW),
    ]
    const [channelStride, rowStride, colStride] = [local(g.channelStride), local(g.rowStride), local(g.colStride)]
    const plane = f.local('i32')
    f.get(outHeight)
    f.get(outWidth)
    f.op('i32.mul')
    f.set(plane)
    const to = f.local('i32')
    f.get(this.#gathered)
    f.set(to)
    this.#count(local(g.channels), 1, (channel) => {
      const image = this.#at(base, channel, channelStride)
      this.#count(local(g.kernelHeight), 1, (kh) => {
        this.#count(local(g.kernelWidth), 1, (kw) => {
          this.#count(outHeight, 1, (oh) => {
            // The image row that this output row reads, in the units of the loop: ih = oh * stride + kh * dilation - pad, or its inverse.
            const ih = this.#sourceIndex(oh, kh, strideH, padH, dilationH, g.transposed)
            const rowValid = f.local('i32')
            this.#inside(ih.value, height)
            if (ih.divisible !== null) {
              f.get(ih.divisible)
              f.op('i32.and')
            }
            f.set(rowValid)
            f.get(rowValid)
            f.if(
              () => {
                const row = this.#at(image, ih.value, rowStride)
                this.#gatherRow(row, to, kw, width, outWidth, strideW, padW, dilationW, colStride, g)
              },
              () => {
                this.#fillZero(to, outWidth)
              },
            )
            f.get(to)
            f.get(outWidth)
            f.i32Const(2)
            f.op('i32.shl')
            f.op('i32.add')
            f.set(to)
          })
        })
      })
    })
    return plane
  }

  /** The source index for output `o` and kernel position `k`. */
  #sourceIndex(
    o: number,
    k: number,
    stride: number,
    pad: number,
    dilation: number,
    transposed: boolean,
  ): { value: number; divisible: number | null } {
    const f = this.#f
    const value = f.local('i32')
    if (!transposed) {
      f.get(o)
      f.get(stride)
      f.op('i32.mul')
      f.get(k)
      f.get(dilation)
      f.op('i32.mul')
      f.op('i32.add')
      f.get(pad)
      f.op('i32.sub')
      f.set(value)
      return { value, divisible: null }
    }
    const whole = f.local('i32')
    const divisible = f.local('i32')
    f.get(o)
    f.get(pad)
    f.op('i32.add')
    f.get(k)
    f.get(dilation)
    f.op('i32.mul')
    f.op('i32.sub')
    f.set(whole)
    f.get(whole)
    f.get(stride)
    f.op('i32.rem_s')
    f.op('i32.eqz')
    f.set(divisible)
    f.get(whole)
    f.get(stride)
    f.op('i32.div_s')
    f.set(value)
    // -1 / 2 is 0: a negative whole is outside whatever the quotient says.
    f.get(divisible)
    f.get(whole)
    f.i32Const(0)
    f.op('i32.ge_s')
    f.op('i32.and')
    f.set(divisible)
    return { value, divisible }
  }

  /** Pushes 0 <= index < size. */
  #inside(index: number, size: number): void {
    const f = this.#f
    f.get(index)
    f.get(size)
    f.op('i32.lt_u')
  }

  #fillZero(to: number, count: number): void {
    const f = this.#f
    const at = f.local('i32')
    f.get(to)
    f.set(at)
    this.#count(count, 1, () => {
      f.get(at)
      f.f32Const(0)
      f.memory('f32.store')
      this.#advanceBy(at, 4)
    })
  }

  #gatherRow(
    row: number,
    to: number,
    kw: number,
    width: number,
    outWidth: number,
    strideW: number,
    padW: number,
    dilationW: number,
    colStride: number,
    g: ConvGather,
  ): void {
    const f = this.#f
    // Unit strides: a shifted copy with zeros at the ends.
    f.get(strideW)
    f.i32Const(1)
    f.op('i32.eq')
    f.get(colStride)
    f.i32Const(1)
    f.op('i32.eq')
    f.op('i32.and')
    f.if(
      () => {
        // iw = ow + shift
        const shift = f.local('i32')
        f.get(kw)
        f.get(dilationW)
        f.op('i32.mul')
        f.get(padW)
        f.op('i32.sub')
        if (g.transposed) {
          f.i32Const(-1)
          f.op('i32.mul')
        }
        f.set(shift)
        const [first, last] = [f.local('i32'), f.local('i32')]
        // first = clamp(-shift, 0, outWidth), last = clamp(width - shift, first, outWidth)
        const clampTo = (low: () => void, high: number, local: number): void => {
          f.set(local)
          f.get(local)
          low()
          f.get(local)
          low()
          f.op('i32.gt_s')
          f.op('select')
          f.set(local)
          f.get(local)
          f.get(high)
          f.get(local)
          f.get(high)
          f.op('i32.lt_s')
          f.op('select')
          f.set(local)
        }
        f.i32Const(0)
        f.get(shift)
        f.op('i32.sub')
        clampTo(() => f.i32Const(0), outWidth, first)
        f.get(width)
        f.get(shift)
        f.op('i32.sub')
        clampTo(() => f.get(first), outWidth, last)
        const at = f.local('i32')
        f.get(to)
        f.set(at)
        const zero = (): void => {
          f.get(at)
          f.f32Const(0)
          f.memory('f32.store')
          this.#advanceBy(at, 4)
        }
        this.#count(first, 1, zero)
        const from = f.local('i32')
        f.get(row)
        f.get(first)
        f.get(shift)
        f.op('i32.add')
        f.i32Const(2)
        f.op('i32.shl')
        f.op('i32.add')
        f.set(from)
        const whole = f.local('i32')
        f.get(last)
        f.i32Const(3)
        f.op('i32.sub')
        f.set(whole)
        const copied = f.local('i32')
        f.get(first)
        f.set(copied)
        this.#count(
          whole,
          4,
          (c) => {
            f.get(at)
            f.get(from)
            f.memory('v128.load')
            f.memory('v128.store')
            this.#advanceBy(at, 16)
            this.#advanceBy(from, 16)
            f.get(c)
            f.i32Const(4)
            f.op('i32.add')
            f.set(copied)
          },
          first,
        )
        this.#count(
          last,
          1,
          () => {
            f.get(at)
            f.get(from)
            f.memory('f32.load')
            f.memory('f32.store')
            this.#advanceBy(at, 4)
            this.#advanceBy(from, 4)
          },
          copied,
        )
        this.#count(outWidth, 1, zero, last)
      },
      () => {
        this.#count(outWidth, 1, (ow) => {
          const iw = this.#sourceIndex(ow, kw, strideW, padW, dilationW, g.transposed)
          const target = f.local('i32')
          f.get(to)
          f.get(ow)
          f.i32Const(2)
          f.op('i32.shl')
          f.op('i32.add')
          f.set(target)
          f.get(target)
          f.f32Const(0)
          f.memory('f32.store')
          this.#inside(iw.value, width)
          if (iw.divisible !== null) {
            f.get(iw.divisible)
            f.op('i32.and')
          }
          f.if(() => {
            const source = this.#at(row, iw.value, colStride)
            f.get(target)
            f.get(source)
            f.memory('f32.load')
            f.memory('f32.store')
          })
        })
      },
    )
  }

  // ---- the product ----

  /** All of C for the packed operands. `add`: sum into the row buffer, which holds all rows; else rows are finished four at a time. */
  #product(add: boolean): void {
    const f = this.#f
    const block = f.local('i32')
    const panelBytes = f.local('i32')
    f.get(this.#k)
    f.i32Const(COLS * 4)
    f.op('i32.mul')
    f.set(panelBytes)
    this.#count(this.#n, COLUMN_BLOCK, (first) => {
      // block = min(first + COLUMN_BLOCK, n)
      f.get(first)
      f.i32Const(COLUMN_BLOCK)
      f.op('i32.add')
      f.set(block)
      f.get(block)
      f.get(this.#n)
      f.get(block)
      f.get(this.#n)
      f.op('i32.lt_s')
      f.op('select')
      f.set(block)
      const panelA = f.local('i32')
      f.get(this.#packedA)
      f.set(panelA)
      this.#count(this.#m, ROWS, (row) => {
        const panelB = f.local('i32')
        f.get(this.#packedB)
        f.get(first)
        f.get(this.#k)
        f.op('i32.mul')
        f.i32Const(2)
        f.op('i32.shl')
        f.op('i32.add')
        f.set(panelB)
        this.#count(
          block,
          COLS,
          (col) => {
            // Row r of the tile at rowBuffer + ((add ? row : 0) + r) * n8 + col
            const target = f.local('i32')
            f.get(this.#rowBuffer)
            if (add) f.get(row)
            else f.i32Const(0)
            f.get(this.#n8)
            f.op('i32.mul')
            f.get(col)
            f.op('i32.add')
            f.i32Const(2)
            f.op('i32.shl')
            f.op('i32.add')
            f.set(target)
            this.#tile(panelA, panelB, target, add)
            this.#advance(panelB, panelBytes)
          },
          first,
        )
        if (!add) this.#finishRows(row, first, block)
        f.get(panelA)
        f.get(this.#k)
        f.i32Const(ROWS * 4)
        f.op('i32.mul')
        f.op('i32.add')
        f.set(panelA)
      })
    })
  }

  /** The register tile: 4 x 8 sums over the whole depth. */
  #tile(panelA: number, panelB: number, target: number, add: boolean): void {
    const f = this.#f
    const sums = Array.from({ length: 8 }, () => f.local('v128'))
    const [a, endA, b0, b1, value] = [f.local('i32'), f.local('i32'), f.local('v128'), f.local('v128'), f.local('v128')]
    const b = f.local('i32')
    for (const sum of sums) {
      f.f32x4Const(0)
      f.set(sum)
    }
    f.get(panelA)
    f.set(a)
    f.get(panelB)
    f.set(b)
    // Counted by the address: one instruction less in the loop, and unrolling it makes the engine spill registers.
    f.get(panelA)
    f.get(this.#k)
    f.i32Const(ROWS * 4)
    f.op('i32.mul')
    f.op('i32.add')
    f.set(endA)
    f.block((end) => {
      f.get(this.#k)
      f.op('i32.eqz')
      f.brIf(end)
      f.loop((again) => {
        f.get(b)
        f.memory('v128.load')
        f.set(b0)
        f.get(b)
        f.memory('v128.load', 16)
        f.set(b1)
        for (let r = 0; r < ROWS; r++) {
          f.get(a)
          f.memory('v128.load32_splat', r * 4)
          f.set(value)
          for (let h = 0; h < 2; h++) {
            const sum = sums[r * 2 + h] as number
            f.get(sum)
            f.get(value)
            f.get(h === 0 ? b0 : b1)
            f.op('f32x4.mul')
            f.op('f32x4.add')
            f.set(sum)
          }
        }
        this.#advanceBy(b, COLS * 4)
        f.get(a)
        f.i32Const(ROWS * 4)
        f.op('i32.add')
        f.tee(a)
        f.get(endA)
        f.op('i32.ne')
        f.brIf(again)
      })
    })
    const row = f.local('i32')
    f.get(target)
    f.set(row)
    for (let r = 0; r < ROWS; r++) {
      for (let h = 0; h < 2; h++) {
        f.get(row)
        f.get(sums[r * 2 + h] as number)
        if (add) {
          f.get(row)
          f.memory('v128.load', h * 16)
          f.op('f32x4.add')
        }
        f.memory('v128.store', h * 16)
      }
      f.get(row)
      f.get(this.#n8)
      f.i32Const(2)
      f.op('i32.shl')
      f.op('i32.add')
      f.set(row)
    }
  }

  /** Zeros the rows into which batches are summed. */
  #clearRows(): void {
    const f = this.#f
    const m4 = this.#roundUp(this.#m, ROWS)
    const total = f.local('i32')
    f.get(m4)
    f.get(this.#n8)
    f.op('i32.mul')
    f.set(total)
    const at = f.local('i32')
    f.get(this.#rowBuffer)
    f.set(at)
    this.#count(total, 4, () => {
      f.get(at)
      f.f32x4Const(0)
      f.memory('v128.store')
      this.#advanceBy(at, 16)
    })
  }

  /** The epilogue of up to four rows, over the columns first..block. */
  #finishRows(row: number, first: number, block: number): void {
    const f = this.#f
    const last = f.local('i32')
    f.get(row)
    f.i32Const(ROWS)
    f.op('i32.add')
    f.set(last)
    f.get(last)
    f.get(this.#m)
    f.get(last)
    f.get(this.#m)
    f.op('i32.lt_s')
    f.op('select')
    f.set(last)
    this.#count(
      last,
      1,
      (r) => {
        const inBuffer = f.local('i32')
        f.get(r)
        f.get(row)
        f.op('i32.sub')
        f.set(inBuffer)
        this.#epilogueRow(r, inBuffer, first, block)
      },
      row,
    )
  }

  /** Runs the epilogue on row `row`, whose sums lie in line `line` of the row buffer. */
  #epilogueRow(row: number, line: number, first: number | null = null, last: number | null = null): void {
    const f = this.#f
    const { rows, cols } = this.#spec
    const values = f.local('i32')
    f.get(this.#rowBuffer)
    f.get(line)
    f.get(this.#n8)
    f.op('i32.mul')
    f.i32Const(2)
    f.op('i32.shl')
    f.op('i32.add')
    f.set(values)
    this.#emitter.bindLoop(rows, row)
    const buffer = bufferParam('acc', 'float32')
    this.#emitter.bindBuffer(buffer, values)
    const acc: Expr = load(buffer, { base: 0, terms: [{ loop: cols, stride: 1 }], dynamic: [] })
    const stmts: readonly Stmt[] = this.#spec.epilogue(acc)
    if (stmts.length === 0) throw new InternalError(`gemm '${this.#spec.name}': the epilogue stores nothing`)
    this.#emitter.columns(cols, first, last, stmts)
  }
}

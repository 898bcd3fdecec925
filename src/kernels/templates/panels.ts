// Packing for the matrix product: an operand becomes panels of a few lines each (rows of A, columns of B), depth by depth, so that the inner loop of the
// product reads it in order. Element (line, depth) of the operand lies at base + line * lineStride + depth * depthStride; lines past the last are zero.
import type { FunctionBuilder } from '../wasm/assembler.ts'
import type { Count, LoopWriter } from './loopWriter.ts'

/** How many panels are packed side by side where lines are neighbours, so that each cache line is read once. */
const SIDE_BY_SIDE = 4

export interface PanelSource {
  /** Local with the address of element (0, 0). */
  readonly base: number
  readonly lines: Count
  readonly depth: Count
  /** In elements. */
  readonly lineStride: Count
  readonly depthStride: Count
}

type Vectors = readonly [number, number, number, number]

/** Writes code that packs `source` into panels of `width` lines (a multiple of four) at the address in `target`. */
export function writePacking(w: LoopWriter, source: PanelSource, width: number, target: number): void {
  new Packing(w, source, width, target).write()
}

class Packing {
  readonly #w: LoopWriter
  readonly #f: FunctionBuilder
  readonly #source: PanelSource
  readonly #width: number
  /** Where the next panel goes. */
  readonly #out: number
  readonly #lineBytes: number
  readonly #depthBytes: number
  readonly #panelBytes: number

  constructor(w: LoopWriter, source: PanelSource, width: number, target: number) {
    const { f } = w
    const times = (count: Count, bytes: number): number =>
      w.let(() => {
        w.push(count)
        f.i32Const(bytes)
        f.op('i32.mul')
      })
    this.#w = w
    this.#f = f
    this.#source = source
    this.#width = width
    this.#out = w.let(() => f.get(target))
    this.#lineBytes = times(source.lineStride, 4)
    this.#depthBytes = times(source.depthStride, 4)
    this.#panelBytes = times(source.depth, width * 4)
  }

  write(): void {
    const w = this.#w
    const f = this.#f
    const { base, lines } = this.#source
    const width = this.#width
    // The lines that are packed several panels at a time: all whole groups if lines are neighbours, otherwise none.
    const together = w.let(() => {
      w.push(lines)
      f.i32Const(-width * SIDE_BY_SIDE)
      f.op('i32.and')
      f.i32Const(0)
      this.#neighbours(this.#lineBytes)
      f.op('select')
    })
    const at = (line: number): number => w.address(base, line, { local: this.#lineBytes })
    w.count({ local: together }, width * SIDE_BY_SIDE, (line) => this.#neighbouringLines(at(line), SIDE_BY_SIDE))
    w.count(
      lines,
      width,
      (line) => {
        const from = at(line)
        this.#isWhole(line)
        f.if(
          () => {
            this.#neighbours(this.#lineBytes)
            f.if(
              () => this.#neighbouringLines(from, 1),
              () => {
                this.#neighbours(this.#depthBytes)
                f.if(
                  () => this.#transposed(from),
                  () => this.#oneByOne(from, line),
                )
              },
            )
          },
          () => this.#oneByOne(from, line),
        )
      },
      { local: together },
    )
  }

  #neighbours(bytes: number): void {
    this.#f.get(bytes)
    this.#f.i32Const(4)
    this.#f.op('i32.eq')
  }

  /** Pushes whether a whole panel starts at `line`. */
  #isWhole(line: number): void {
    const f = this.#f
    f.get(line)
    f.i32Const(this.#width)
    f.op('i32.add')
    this.#w.push(this.#source.lines)
    f.op('i32.le_s')
  }

  /** The start of the next panel; advances `out` past it. */
  #nextPanel(): number {
    const to = this.#w.let(() => this.#f.get(this.#out))
    this.#w.advance(this.#out, { local: this.#panelBytes })
    return to
  }

  /** Lines are neighbours in memory: whole vectors are copied, for `panels` panels at once. */
  #neighbouringLines(source: number, panels: number): void {
    const f = this.#f
    const width = this.#width
    const from = this.#w.let(() => f.get(source))
    const targets = Array.from({ length: panels }, () => this.#nextPanel())
    this.#w.count(this.#source.depth, 1, () => {
      targets.forEach((to, panel) => {
        for (let vector = 0; vector < width; vector += 4) {
          f.get(to)
          f.get(from)
          f.memory('v128.load', (panel * width + vector) * 4)
          f.memory('v128.store', vector * 4)
        }
        this.#w.advance(to, width * 4)
      })
      this.#w.advance(from, { local: this.#depthBytes })
    })
  }

  /** Depths are neighbours in memory: blocks of four lines by four depths are transposed. */
  #transposed(source: number): void {
    const f = this.#f
    const w = this.#w
    const width = this.#width
    const line = (index: number): number =>
      w.let(() => {
        f.get(source)
        f.get(this.#lineBytes)
        f.i32Const(index)
        f.op('i32.mul')
        f.op('i32.add')
      })
    const blocks = Array.from({ length: width / 4 }, (_, b) => [line(b * 4), line(b * 4 + 1), line(b * 4 + 2), line(b * 4 + 3)] as const)
    const lines = blocks.flat()
    const to = this.#nextPanel()
    const whole = w.let(() => {
      w.push(this.#source.depth)
      f.i32Const(-4)
      f.op('i32.and')
    })
    const vectors = (): Vectors => [f.local('v128'), f.local('v128'), f.local('v128'), f.local('v128')]
    const [rows, halves] = [vectors(), vectors()]
    w.count({ local: whole }, 4, () => {
      blocks.forEach((block, b) => {
        const load = (row: 0 | 1 | 2 | 3): void => {
          f.get(block[row])
          f.memory('v128.load')
          f.set(rows[row])
        }
        load(0)
        load(1)
        load(2)
        load(3)
        this.#transposeBlock(rows, halves, to, b * 4)
      })
      for (const address of lines) w.advance(address, 16)
      w.advance(to, width * 16)
    })
    w.count(
      this.#source.depth,
      1,
      () => {
        lines.forEach((address, index) => {
          f.get(to)
          f.get(address)
          f.memory('f32.load')
          f.memory('f32.store', index * 4)
        })
        for (const address of lines) w.advance(address, 4)
        w.advance(to, width * 4)
      },
      { local: whole },
    )
  }

  /** Transposes four loaded rows into four depths of the lines from `line` on. `halves` hold intermediate values. */
  #transposeBlock([r0, r1, r2, r3]: Vectors, [h0, h1, h2, h3]: Vectors, to: number, line: number): void {
    const f = this.#f
    const shuffle = (a: number, b: number, lanes: Vectors): void => {
      f.get(a)
      f.get(b)
      f.shuffle32(...lanes)
    }
    const half = (target: number, a: number, b: number, lanes: Vectors): void => {
      shuffle(a, b, lanes)
      f.set(target)
    }
    half(h0, r0, r1, [0, 4, 1, 5])
    half(h1, r2, r3, [0, 4, 1, 5])
    half(h2, r0, r1, [2, 6, 3, 7])
    half(h3, r2, r3, [2, 6, 3, 7])
    const depth = (index: number, a: number, b: number, lanes: Vectors): void => {
      f.get(to)
      shuffle(a, b, lanes)
      f.memory('v128.store', (index * this.#width + line) * 4)
    }
    depth(0, h0, h1, [0, 1, 4, 5])
    depth(1, h0, h1, [2, 3, 6, 7])
    depth(2, h2, h3, [0, 1, 4, 5])
    depth(3, h2, h3, [2, 3, 6, 7])
  }

  /** Packs element by element: for any strides, and for the last panel if it is not full. */
  #oneByOne(source: number, line: number): void {
    const f = this.#f
    const w = this.#w
    const to = this.#nextPanel()
    const from = w.let(() => f.get(source))
    const valid = w.let(() => {
      w.push(this.#source.lines)
      f.get(line)
      f.op('i32.sub')
    })
    w.count(this.#source.depth, 1, () => {
      for (let r = 0; r < this.#width; r++) {
        f.get(to)
        f.f32Const(0)
        f.memory('f32.store', r * 4)
        f.i32Const(r)
        f.get(valid)
        f.op('i32.lt_s')
        f.if(() => {
          f.get(to)
          f.get(from)
          f.get(this.#lineBytes)
          f.i32Const(r)
          f.op('i32.mul')
          f.op('i32.add')
          f.memory('f32.load')
          f.memory('f32.store', r * 4)
        })
      }
      w.advance(from, { local: this.#depthBytes })
      w.advance(to, this.#width * 4)
    })
  }
}

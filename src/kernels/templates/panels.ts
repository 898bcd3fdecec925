// Packing for the matrix product: an operand becomes panels of a few lines each (rows of A, columns of B), depth by depth, so that the inner loop of the
// product reads it in order. Element (line, depth) of the operand lies at base + line * lineStride + depth * depthStride; lines past the last are zero.
import type { FunctionBuilder } from '../wasm/assembler.ts'
import type { Count, LoopWriter } from './loopWriter.ts'

/** Panels that are packed side by side where lines are neighbours, so that a cache line is read once. */
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
    // The lines that go several panels at a time: all whole groups where lines are neighbours, else none.
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

  /** The start of the next panel; `out` moves behind it. */
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
    const lines = Array.from({ length: width }, (_, line) =>
      w.let(() => {
        f.get(source)
        f.get(this.#lineBytes)
        f.i32Const(line)
        f.op('i32.mul')
        f.op('i32.add')
      }),
    )
    const to = this.#nextPanel()
    const whole = w.let(() => {
      w.push(this.#source.depth)
      f.i32Const(-4)
      f.op('i32.and')
    })
    const vectors = Array.from({ length: 8 }, () => f.local('v128'))
    w.count({ local: whole }, 4, () => {
      for (let line = 0; line < width; line += 4) {
        const from = lines.slice(line, line + 4)
        from.forEach((address, r) => {
          f.get(address)
          f.memory('v128.load')
          f.set(vectors[r] as number)
        })
        this.#transposeBlock(vectors, to, line)
      }
      for (const address of lines) w.advance(address, 16)
      w.advance(to, width * 16)
    })
    w.count(
      this.#source.depth,
      1,
      () => {
        lines.forEach((address, line) => {
          f.get(to)
          f.get(address)
          f.memory('f32.load')
          f.memory('f32.store', line * 4)
        })
        for (const address of lines) w.advance(address, 4)
        w.advance(to, width * 4)
      },
      { local: whole },
    )
  }

  /** Four loaded vectors (the last four are for halves) to four depths of the lines from `line` on. */
  #transposeBlock(vectors: readonly number[], to: number, line: number): void {
    const f = this.#f
    const shuffle = (a: number, b: number, lanes: readonly [number, number, number, number]): void => {
      f.get(vectors[a] as number)
      f.get(vectors[b] as number)
      f.shuffle32(...lanes)
    }
    const halves = [
      [4, 0, 1, [0, 4, 1, 5]],
      [5, 2, 3, [0, 4, 1, 5]],
      [6, 0, 1, [2, 6, 3, 7]],
      [7, 2, 3, [2, 6, 3, 7]],
    ] as const
    for (const [target, a, b, lanes] of halves) {
      shuffle(a, b, lanes)
      f.set(vectors[target] as number)
    }
    const depths = [
      [4, 5, [0, 1, 4, 5]],
      [4, 5, [2, 3, 6, 7]],
      [6, 7, [0, 1, 4, 5]],
      [6, 7, [2, 3, 6, 7]],
    ] as const
    depths.forEach(([a, b, lanes], depth) => {
      f.get(to)
      shuffle(a, b, lanes)
      f.memory('v128.store', (depth * this.#width + line) * 4)
    })
  }

  /** Any strides, and the panel that is not full. */
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

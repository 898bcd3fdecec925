// Random kernels of what schedules write: loops that are written out, take steps or run in lanes, local arrays, scratch memory, shared expressions.
import { randomFrom } from '../../../scripts/fuzz/random.mjs'
import {
  assign,
  at,
  bufferParam,
  call,
  cast,
  constant,
  declare,
  declareArray,
  element,
  forLoop,
  iota,
  load,
  local,
  localArray,
  loopVar,
  read,
  reduceLanes,
  scratch,
  setElement,
  sizeParam,
  store,
} from '../../../src/kernels/ir/loopIr.ts'
import type { Expr, Index, Kernel, Local, LocalArray, LoopMode, LoopVar, Memory, Size, Stmt } from '../../../src/kernels/ir/loopIr.ts'
import { roundedDown, sizeDifference, sizeProduct, sizeSum } from '../../../src/kernels/ir/sizes.ts'
import { from } from '../../../src/kernels/schedules/notation.ts'

/** Half of the arrays are set in lanes, which then read no elements but their own. */
const isSetInLanes = (array: LocalArray): boolean => array.shape[0] !== 1 && (array.shape[1] ?? 0) % 2 === 0

/** Loops that are written out, take steps or run in lanes, inside each other, with arrays, locals and loads that their iterations share. */
export class RandomKernel {
  readonly #out = bufferParam('out', 'float32', 'readwrite')
  readonly #a = bufferParam('a', 'float32')
  readonly #n = sizeParam('n')
  readonly #part = scratch('part', 'float32', sizeProduct(this.#n, 400))
  readonly #random: (below: number) => number
  readonly #pick: <T>(values: readonly T[]) => T
  #names = 0
  #loops: { readonly loop: LoopVar; readonly mode: LoopMode }[] = []
  #arrays: LocalArray[] = []
  #locals: Local[] = []
  /** Expressions that may be used again. */
  #shared: Expr[] = []

  constructor(seed: number) {
    const { int, pick } = randomFrom(seed)
    this.#random = int
    this.#pick = pick
  }

  kernel(): Kernel {
    const fill = loopVar('fill', sizeProduct(this.#n, 400))
    const start = forLoop(fill, 'serial', [store(this.#part, at([fill, 1]), cast(iota(fill), 'float32'))])
    return { name: 'random', params: [this.#out, this.#a, this.#n], scratch: [this.#part], body: [start, ...this.#body(0)] }
  }

  #inLanes(): LoopVar | undefined {
    return this.#loops.findLast(({ mode }) => mode === 'lanes')?.loop
  }

  #body(depth: number): Stmt[] {
    const marks = [this.#arrays.length, this.#locals.length, this.#shared.length] as const
    const stmts = Array.from({ length: 1 + this.#random(5) }, () => this.#stmt(depth))
    // What was computed before shows once more, after everything that may have changed it.
    for (const expr of this.#shared.slice(marks[2]).filter(() => this.#random(3) === 0)) stmts.push(store(this.#out, this.#place(), expr))
    this.#arrays.length = marks[0]
    this.#locals.length = marks[1]
    this.#shared.length = marks[2]
    return stmts
  }

  #stmt(depth: number): Stmt {
    const kind = this.#random(depth > 2 ? 4 : 7)
    const lanes = this.#inLanes()
    if (kind >= 5) return this.#loop(depth)
    if (kind === 4 && lanes === undefined) {
      const array = localArray(`t${this.#names++}`, 'float32', [1 + this.#random(5), 1 + this.#random(9)])
      const stmt = declareArray(array, this.#expr(2))
      this.#arrays.push(array)
      return stmt
    }
    if (kind === 3) {
      const variable = local(`x${this.#names++}`, 'float32')
      const stmt = declare(variable, this.#expr(2))
      this.#locals.push(variable)
      return stmt
    }
    const last = this.#locals.at(-1)
    if (kind === 2 && last !== undefined && lanes === undefined) return assign(last, this.#expr(2))
    const array = this.#arrays[this.#random(this.#arrays.length)]
    if (kind === 1 && array !== undefined) {
      const [rows = 1, columns = 1] = array.shape
      if (lanes === undefined || (Number(lanes.extent) <= columns && isSetInLanes(array)))
        return setElement(array, [this.#known(rows), lanes ?? this.#known(columns)], this.#expr(2))
    }
    const memory = this.#pick<Memory>([this.#out, this.#out, this.#part])
    return store(memory, this.#place(), this.#expr(3))
  }

  #loop(depth: number): Stmt {
    const lanes = this.#inLanes()
    const mode = lanes !== undefined ? this.#pick<LoopMode>(['serial', 'unroll']) : this.#pick<LoopMode>(['serial', 'unroll', 'lanes', 'lanes'])
    const n = this.#n
    const known = 1 + this.#random(mode === 'lanes' ? 10 : 4)
    const extent = mode === 'serial' ? this.#pick<Size>([known, roundedDown(n, 2), sizeSum(n, 1), sizeDifference(n, 1), 0]) : known
    const loop = loopVar(`i${this.#names++}`, extent, mode === 'lanes' ? 1 : 1 + this.#random(2))
    this.#loops.push({ loop, mode })
    const shared = this.#shared
    // What was computed before may read elements that the loop sets.
    if (mode === 'lanes') this.#shared = []
    const stmt = forLoop(loop, mode, this.#body(depth + 1))
    this.#shared = shared
    this.#loops.pop()
    return stmt
  }

  /** An element of memory of 400 n: no two lanes have the same. */
  #place(): Index {
    const terms = this.#loops.map(({ loop, mode }) => [loop, mode === 'lanes' ? 1 : this.#pick<Size>([0, 16, 16, sizeProduct(this.#n, 16)])] as const)
    return from(this.#pick<Size>([0, 16, sizeProduct(16, this.#n)]), ...terms)
  }

  #known(size: number): number | LoopVar {
    const loop = this.#loops[this.#random(this.#loops.length)]
    return loop?.mode === 'unroll' && Number(loop.loop.extent) <= size ? loop.loop : this.#random(size)
  }

  #expr(depth: number): Expr {
    const again = this.#shared[this.#random(this.#shared.length)]
    if (again !== undefined && this.#random(2) === 0) return again
    const expr = this.#fresh(depth)
    this.#shared.push(expr)
    return expr
  }

  #fresh(depth: number): Expr {
    const lanes = this.#inLanes()
    const array = this.#arrays[this.#random(this.#arrays.length)]
    const variable = this.#locals[this.#random(this.#locals.length)]
    const loop = this.#loops[this.#random(this.#loops.length)]
    switch (this.#random(depth > 0 ? 9 : 6)) {
      case 0:
        return load(this.#pick<Memory>([this.#out, this.#part]), this.#place())
      case 1: {
        const terms = this.#loops.map(({ loop }) => [loop, this.#pick<Size>([0, 1, 3, -1, this.#n])] as const)
        return load(this.#a, from(200, ...terms))
      }
      case 2: {
        if (array === undefined) break
        const [rows = 1, columns = 1] = array.shape
        // A lanes variable, where it fits, is the last index or another.
        if (lanes !== undefined && Number(lanes.extent) <= columns && this.#random(2) === 0) return element(array, this.#known(rows), lanes)
        if (lanes !== undefined && isSetInLanes(array)) break
        if (lanes !== undefined && Number(lanes.extent) <= rows) return element(array, lanes, this.#known(columns))
        return element(array, this.#known(rows), this.#known(columns))
      }
      case 3:
        if (variable === undefined) break
        return read(variable)
      case 4:
        if (loop === undefined) break
        return cast(iota(loop.loop), 'float32')
      case 5:
        if (array === undefined || (lanes !== undefined && isSetInLanes(array))) break
        return reduceLanes('max', array, this.#known(array.shape[0] ?? 1))
      case 6:
        return call('mulAdd', this.#expr(depth - 1), constant('float32', 0.5), this.#expr(depth - 1))
      default:
        return call(this.#pick(['add', 'sub', 'max']), this.#expr(depth - 1), this.#expr(depth - 1))
    }
    return constant('float32', this.#random(9))
  }
}

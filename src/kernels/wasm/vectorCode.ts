// Straight-line vector code: operations on values that live in WebAssembly locals.
//
// A value is one v128 local for each vector in flight. With four vectors in flight each operation is emitted four times in a row, so that
// independent work is interleaved and the processor need not wait for one long chain. A value that is the same in all vectors is one local.
// Locals cost nothing in optimised code (the engine turns them into SSA); they are pooled to keep their number small for the baseline compiler.
import type { FunctionBuilder, PlainOp } from './assembler.ts'

/** The locals that hold a value: one per vector in flight, or a single one when all vectors agree. */
export type Val = readonly number[]

export class VectorCode {
  readonly f: FunctionBuilder
  /** Vectors in flight. */
  vectors = 1
  private readonly free: { v128: number[]; i32: number[] } = { v128: [], i32: [] }
  private readonly taken: { type: 'v128' | 'i32'; local: number }[] = []
  private readonly constants = new Map<string, Val>()

  constructor(f: FunctionBuilder) {
    this.f = f
  }

  /** A local for a vector, until the enclosing scope ends. */
  temp(): number {
    return this.take('v128')
  }

  /** A local for an i32, until the enclosing scope ends. */
  tempI32(): number {
    return this.take('i32')
  }

  private take(type: 'v128' | 'i32'): number {
    const local = this.free[type].pop() ?? this.f.local(type)
    this.taken.push({ type, local })
    return local
  }

  /** Runs `body`; the locals taken in it are free again afterwards, but for those of its result. */
  scope<T extends Val | void>(body: () => T): T {
    const mark = this.taken.length
    const result = body()
    const kept: { type: 'v128' | 'i32'; local: number }[] = []
    for (const entry of this.taken.splice(mark)) {
      if (entry.type === 'v128' && Array.isArray(result) && result.includes(entry.local)) kept.push(entry)
      else this.free[entry.type].push(entry.local)
    }
    this.taken.push(...kept)
    return result
  }

  /** Pops the stack's vector into a new local. */
  pop(): number {
    const local = this.temp()
    this.f.set(local)
    return local
  }

  /** The local of `value` for vector `v`. */
  at(value: Val, v: number): number {
    return value.length === 1 ? (value[0] as number) : (value[v] as number)
  }

  /** New locals, one per vector in flight, with the value of `value`. */
  copy(value: Val): Val {
    return Array.from({ length: this.vectors }, (_, v) => {
      this.f.get(this.at(value, v))
      return this.pop()
    })
  }

  /** A constant, loaded once at the start of the function. */
  private constant(key: string, push: () => void): Val {
    let value = this.constants.get(key)
    if (value === undefined) {
      const local = this.f.local('v128')
      this.f.prologue(() => {
        push()
        this.f.set(local)
      })
      value = [local]
      this.constants.set(key, value)
    }
    return value
  }

  f32(value: number): Val {
    return this.constant(`f${Object.is(value, -0) ? '-0' : Math.fround(value)}`, () => this.f.f32x4Const(value))
  }

  i32(value: number): Val {
    return this.constant(`i${value | 0}`, () => this.f.i32x4Const(value))
  }

  f64(value: number): Val {
    return this.constant(`d${Object.is(value, -0) ? '-0' : value}`, () => this.f.f64x2Const(value))
  }

  /** The lane numbers 0, 1, 2, 3. */
  laneNumbers(): Val {
    return this.constant('lanes', () => this.f.i32x4Lanes(0, 1, 2, 3))
  }

  op1(name: PlainOp, a: Val): Val {
    return a.map((local) => {
      this.f.get(local)
      this.f.op(name)
      return this.pop()
    })
  }

  op2(name: PlainOp, a: Val, b: Val): Val {
    return this.each([a, b], (v) => {
      this.f.get(this.at(a, v))
      this.f.get(this.at(b, v))
      this.f.op(name)
    })
  }

  /** Where the mask is set, `a`, else `b`. */
  select(mask: Val, a: Val, b: Val): Val {
    return this.each([mask, a, b], (v) => {
      this.f.get(this.at(a, v))
      this.f.get(this.at(b, v))
      this.f.get(this.at(mask, v))
      this.f.op('v128.bitselect')
    })
  }

  /** A shift of every lane by a constant. */
  shift(name: 'i32x4.shl' | 'i32x4.shr_s' | 'i32x4.shr_u' | 'i64x2.shl' | 'i64x2.shr_s' | 'i64x2.shr_u', a: Val, count: number): Val {
    return this.each([a], (v) => {
      this.f.get(this.at(a, v))
      this.f.i32Const(count)
      this.f.op(name)
    })
  }

  /** A shuffle of 32-bit lanes: 0-3 of `a`, 4-7 of `b`. */
  shuffle32(a: Val, b: Val, lanes: readonly [number, number, number, number]): Val {
    return this.each([a, b], (v) => {
      this.f.get(this.at(a, v))
      this.f.get(this.at(b, v))
      this.f.shuffle32(...lanes)
    })
  }

  /** Any instruction sequence that pushes one vector; `operands` say whether it differs between vectors. */
  each(operands: readonly Val[], push: (v: number) => void): Val {
    const count = operands.some((operand) => operand.length > 1) ? this.vectors : 1
    const result: number[] = []
    for (let v = 0; v < count; v++) {
      push(v)
      result.push(this.pop())
    }
    return result
  }

  /** c[0] * x^n + … + c[n], by Horner's rule; coefficients of the highest power first. */
  polynomial(x: Val, coefficients: readonly number[], type: 'f32' | 'f64' = 'f32'): Val {
    const [add, mul] = type === 'f32' ? (['f32x4.add', 'f32x4.mul'] as const) : (['f64x2.add', 'f64x2.mul'] as const)
    let sum: Val | null = null
    for (const c of coefficients) {
      const term = type === 'f32' ? this.f32(c) : this.f64(c)
      sum = sum === null ? term : this.op2(add, this.op2(mul, sum, x), term)
    }
    return sum as Val
  }
}

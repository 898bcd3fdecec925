// Straight-line vector code: operations on values that live in WebAssembly locals.
//
// A value is one v128 local per vector in flight. With four vectors in flight each operation is emitted four times in a row, so that independent
// work is interleaved and the processor does not wait for one long chain. A value that is the same in all vectors is one local. Locals cost
// nothing in optimised code (the engine converts them to SSA); they are pooled to keep their number small for the baseline compiler.
import { currentEngine } from '../engine/engine.ts'
import type { FunctionBuilder, PlainOp } from './assembler.ts'

/** The locals that hold a value: one per vector in flight, or a single one if the value is the same in all vectors. */
export type Val = readonly [number, ...number[]]

/** The number of elements in a vector of 32-bit lanes. */
export const LANES = 4

/**
 * Elements per vector. With 2, each takes 64 bits: those of 32 bits are then in both halves of theirs, so that operations on them are the same, and masks fit
 * both.
 */
export type Elements = 2 | 4

type TempType = 'v128' | 'i32'

export class VectorCode {
  readonly f: FunctionBuilder
  /** Elements per vector. */
  readonly elements: Elements
  /** Whether a multiplication and an addition may be one instruction, which rounds once. */
  readonly #fuses: boolean = currentEngine() === 'wasm-relaxed'
  /** Whether lanes hold different elements; otherwise all lanes of every value are equal. */
  wide = false
  /** Vectors in flight. */
  vectors = 1
  private readonly free: Readonly<Record<TempType, number[]>> = { v128: [], i32: [] }
  private readonly taken: { readonly type: TempType; readonly local: number }[] = []
  private readonly constants = new Map<string, Val>()

  constructor(f: FunctionBuilder, elements: Elements = LANES) {
    this.f = f
    this.elements = elements
  }

  /** A local for a vector, until the enclosing scope ends. */
  temp(): number {
    return this.take('v128')
  }

  /** A local for an i32, until the enclosing scope ends. */
  tempI32(): number {
    return this.take('i32')
  }

  /** A new local for an i32, which no other code uses before {@link giveBack}. */
  ownI32(): number {
    return this.f.local('i32')
  }

  giveBack(local: number): void {
    this.free.i32.push(local)
  }

  private take(type: TempType): number {
    const local = this.free[type].pop() ?? this.f.local(type)
    this.taken.push({ type, local })
    return local
  }

  /** Runs `body`. The locals taken in it are free again afterwards, except for those of its result. */
  scope<T extends Val | void>(body: () => T): T {
    const mark = this.taken.length
    const result = body()
    const kept: { readonly type: TempType; readonly local: number }[] = []
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
    return value[v] ?? value[0]
  }

  /** A value whose local for each vector in flight is what `make` returns. */
  perVector(make: (v: number) => number, vectors: number = this.vectors): Val {
    const value: [number, ...number[]] = [make(0)]
    for (let v = 1; v < vectors; v++) value.push(make(v))
    return value
  }

  /** New locals, one per vector in flight, with the value of `value`. */
  copy(value: Val, vectors: number = this.vectors): Val {
    return this.perVector((v) => {
      this.f.get(this.at(value, v))
      return this.pop()
    }, vectors)
  }

  /** A constant, loaded once at the start of the function. */
  private constant(key: string, push: () => void): Val {
    const known = this.constants.get(key)
    if (known !== undefined) return known
    const local = this.f.local('v128')
    this.f.prologue(() => {
      push()
      this.f.set(local)
    })
    const value: Val = [local]
    this.constants.set(key, value)
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

  i64(value: bigint): Val {
    return this.constant(`l${value}`, () => this.f.i64x2Const(value))
  }

  /** The number of each element in its vector: 0, 1, 2, 3. */
  elementNumbers(): Val {
    return this.constant('elements', () => (this.elements === 4 ? this.f.i32x4Lanes(0, 1, 2, 3) : this.f.i32x4Lanes(0, 0, 1, 1)))
  }

  /** The first 32-bit lane of an element. */
  laneOf(element: number): number {
    return element * (LANES / this.elements)
  }

  /** Scalar instructions on each 64-bit lane: `push` pushes the result for one, a number of the type. */
  eachLane64(type: 'i64x2' | 'f64x2', operands: readonly Val[], push: (v: number, lane: 0 | 1) => void): Val {
    return this.each(operands, (v) => {
      push(v, 0)
      this.f.op(`${type}.splat`)
      if (!this.wide) return
      push(v, 1)
      this.f.lane(`${type}.replace_lane`, 1)
    })
  }

  op1(name: PlainOp, a: Val): Val {
    return this.each([a], (v) => {
      this.f.get(this.at(a, v))
      this.f.op(name)
    })
  }

  op2(name: PlainOp, a: Val, b: Val): Val {
    return this.each([a, b], (v) => {
      this.f.get(this.at(a, v))
      this.f.get(this.at(b, v))
      this.f.op(name)
    })
  }

  /** a * b + c of float32: rounded once if the engine fuses, otherwise twice. */
  mulAdd(a: Val, b: Val, c: Val): Val {
    return this.#fuses ? this.#op3('f32x4.relaxed_madd', a, b, c) : this.op2('f32x4.add', this.op2('f32x4.mul', a, b), c)
  }

  /** c - a * b of float32: rounded once if the engine fuses, otherwise twice. */
  subMul(a: Val, b: Val, c: Val): Val {
    return this.#fuses ? this.#op3('f32x4.relaxed_nmadd', a, b, c) : this.op2('f32x4.sub', c, this.op2('f32x4.mul', a, b))
  }

  /** The numbers of the bytes of elements, of which each lane has a number. */
  bytesOf(numbers: Val): Val {
    const { elements } = this
    const first = this.constant('bytes', () =>
      elements === 4
        ? this.f.i32x4Lanes(0x03020100, 0x03020100, 0x03020100, 0x03020100)
        : this.f.i32x4Lanes(0x03020100, 0x07060504, 0x03020100, 0x07060504),
    )
    return this.op2('i32x4.add', this.op2('i32x4.mul', numbers, this.i32((16 / elements) * 0x01010101)), first)
  }

  /** The bytes of `a` with these numbers, each of which is below 16. */
  chosenBytes(a: Val, bytes: Val): Val {
    return this.op2(this.#fuses ? 'i8x16.relaxed_swizzle' : 'i8x16.swizzle', a, bytes)
  }

  #op3(name: PlainOp, a: Val, b: Val, c: Val): Val {
    return this.each([a, b, c], (v) => {
      this.f.get(this.at(a, v))
      this.f.get(this.at(b, v))
      this.f.get(this.at(c, v))
      this.f.op(name)
    })
  }

  /** `a` where the mask is set, otherwise `b`. */
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

  /** Any instruction sequence that pushes one vector. It is written once per vector in flight if one of `operands` differs between them, otherwise once. */
  each(operands: readonly Val[], push: (v: number) => void): Val {
    const make = (v: number): number => {
      push(v)
      return this.pop()
    }
    return this.perVector(make, operands.some((operand) => operand.length > 1) ? this.vectors : 1)
  }
}

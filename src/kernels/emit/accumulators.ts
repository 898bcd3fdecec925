// What a simd loop accumulates in vectors, one for each vector in flight, before it is combined into a local.
import { dtypeInfo } from '../numbers/dtype.ts'
import type { DType } from '../numbers/dtype.ts'
import { identityOf } from '../ir/loopIr.ts'
import type { Combine } from '../ir/loopIr.ts'
import type { PlainOp } from '../wasm/assembler.ts'
import type { ModuleFunctions } from '../wasm/moduleFunctions.ts'
import { constantIn } from '../numbers/constantCode.ts'
import { emitCombine } from './operations.ts'
import type { Val, VectorCode } from '../wasm/vectorCode.ts'

export interface Accumulator {
  /** Combines a value into each vector. */
  add(value: Val): void
  /** The vectors as one. */
  merged(): Accumulator
  /** The value of the vector that is left, lane by lane. */
  result(): Val
}

/**
 * The accumulator of a combination. Its vectors are those in flight, or only one if the loop needs the registers: values are then combined with each other first, which is another
 * order, that strict code must not have.
 */
export function accumulatorOf(code: VectorCode, functions: ModuleFunctions, combine: Combine, dtype: DType, isOne: boolean): Accumulator {
  if (dtypeInfo[dtype].compute === 'float32' && (combine === 'max' || combine === 'min')) return extremeOf(code, combine)
  return new Combined(
    code,
    (a, b) => emitCombine(code, functions, combine, dtype, a, b),
    code.copy(constantIn(code, dtype, identityOf(combine, dtype).value), isOne ? 1 : code.vectors),
  )
}

/** Combines the vectors of a value in pairs, which makes a shorter chain than one after the other. */
function inPairs(code: VectorCode, value: Val, combine: (a: Val, b: Val) => Val): Val {
  const part = (from: number, to: number): Val => {
    if (to - from === 1) return [code.at(value, from)]
    const middle = (from + to) >> 1
    return combine(part(from, middle), part(middle, to))
  }
  return part(0, value.length)
}

function write(code: VectorCode, target: Val, value: Val): void {
  target.forEach((local, v) => {
    code.f.get(code.at(value, v))
    code.f.set(local)
  })
}

class Combined implements Accumulator {
  readonly #code: VectorCode
  readonly #combine: (a: Val, b: Val) => Val
  readonly #parts: Val

  constructor(code: VectorCode, combine: (a: Val, b: Val) => Val, parts: Val) {
    this.#code = code
    this.#combine = combine
    this.#parts = parts
  }

  add(value: Val): void {
    const code = this.#code
    const values =
      this.#parts.length > 1
        ? value
        : inPairs(
            code,
            code.perVector((v) => code.at(value, v)),
            this.#combine,
          )
    write(code, this.#parts, this.#combine(this.#parts, values))
  }

  merged(): Accumulator {
    return new Combined(this.#code, this.#combine, inPairs(this.#code, this.#parts, this.#combine))
  }

  result(): Val {
    return this.#parts
  }
}

/**
 * The greatest or least of float32 values, as `f32x4.max` and `f32x4.min` have it, for half the instructions: `pmax` and `pmin` drop NaN and take either zero, so a mask says where NaN was,
 * and the signs of all values tell which zero it is. (The greatest is -0 if all of them are negative, the least is -0 if one is.)
 */
class Extreme implements Accumulator {
  readonly #code: VectorCode
  readonly #pick: PlainOp
  readonly #join: PlainOp
  readonly #values: Val
  readonly #signs: Val
  readonly #unordered: Val

  /** `pick` combines the values, `join` the signs. */
  constructor(code: VectorCode, [pick, join]: readonly [pick: PlainOp, join: PlainOp], [values, signs, unordered]: readonly [Val, Val, Val]) {
    this.#code = code
    this.#pick = pick
    this.#join = join
    this.#values = values
    this.#signs = signs
    this.#unordered = unordered
  }

  add(value: Val): void {
    const code = this.#code
    write(code, this.#values, code.op2(this.#pick, this.#values, value))
    write(code, this.#signs, code.op2(this.#join, this.#signs, value))
    write(code, this.#unordered, code.op2('v128.or', this.#unordered, code.op2('f32x4.ne', value, value)))
  }

  merged(): Accumulator {
    const code = this.#code
    const by = (op: PlainOp, value: Val): Val => inPairs(code, value, (a, b) => code.op2(op, a, b))
    return new Extreme(code, [this.#pick, this.#join], [by(this.#pick, this.#values), by(this.#join, this.#signs), by('v128.or', this.#unordered)])
  }

  result(): Val {
    const code = this.#code
    const zero = code.op2('v128.and', this.#signs, code.i32(-0x80000000))
    const value = code.select(code.op2('f32x4.eq', this.#values, code.f32(0)), zero, this.#values)
    return code.select(this.#unordered, code.f32(NaN), value)
  }
}

function extremeOf(code: VectorCode, combine: 'max' | 'min'): Accumulator {
  const start = (value: Val): Val => code.copy(value)
  const identity = start(constantIn(code, 'float32', identityOf(combine, 'float32').value))
  return combine === 'max'
    ? new Extreme(code, ['f32x4.pmax', 'v128.and'], [identity, start(code.i32(-1)), start(code.i32(0))])
    : new Extreme(code, ['f32x4.pmin', 'v128.or'], [identity, start(code.i32(0)), start(code.i32(0))])
}

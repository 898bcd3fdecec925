// The WebAssembly code of scalar operations on int64 that take more than one instruction. What SIMD lacks is computed lane by lane.
import type { FunctionBuilder } from './assembler.ts'
import type { VectorFunction } from './moduleFunctions.ts'
import { callVector, code } from './scalarCode.ts'
import type { ScalarCode } from './scalarCode.ts'
import type { VectorCode } from './vectorCode.ts'

/** The smaller or the greater one: that for which the comparison holds. */
export const extreme64 = (comparison: 'i64x2.lt_s' | 'i64x2.gt_s'): ScalarCode =>
  code(({ code }, a, b) => code.select(code.op2(comparison, a, b), a, b))

/** -1, 0 or 1. */
export const sign64: ScalarCode = code(({ code }, a) =>
  code.op2('v128.or', code.shift('i64x2.shr_s', a, 63), code.op2('v128.and', code.op2('i64x2.gt_s', a, code.i64(0n)), code.i64(1n))),
)

/** A shift. Counts are taken modulo 64. */
export const shift64 = (direction: 'shl' | 'shr_s' | 'shr_u'): ScalarCode =>
  code(({ code, right }, a, count) => {
    if (right !== null) return code.shift(`i64x2.${direction}`, a, right & 63)
    return code.eachLane64('i64x2', [a, count], (v, lane) => {
      for (const operand of [a, count]) {
        code.f.get(code.at(operand, v))
        code.f.lane('i64x2.extract_lane', lane)
      }
      code.f.op(`i64.${direction}`)
    })
  })

/** The numbers that a function of two int64 works on, in i64 locals. */
interface Pair {
  readonly f: FunctionBuilder
  readonly a: number
  readonly b: number
  readonly result: number
}

/** A function of two int64. `write` leaves its result in the local `result`. */
const scalarFunction = (name: string, write: (pair: Pair) => void): ScalarCode => {
  const callee: VectorFunction = {
    name,
    arity: 2,
    host: null,
    write: (code: VectorCode, x, y) => {
      const { f } = code
      const pair: Pair = { f, a: f.local('i64'), b: f.local('i64'), result: f.local('i64') }
      const out = code.temp()
      for (const lane of [0, 1]) {
        f.get(x[0])
        f.lane('i64x2.extract_lane', lane)
        f.set(pair.a)
        f.get(y[0])
        f.lane('i64x2.extract_lane', lane)
        f.set(pair.b)
        write(pair)
        f.get(out)
        f.get(pair.result)
        f.lane('i64x2.replace_lane', lane)
        f.set(out)
      }
      return [out]
    },
  }
  return callVector(callee)
}

/** Pushes whether a local is zero. */
function pushIsZero(f: FunctionBuilder, local: number): void {
  f.get(local)
  f.op('i64.eqz')
}

/** a / b, truncated. x / 0 and the quotient 2^63, which would trap, saturate; 0 / 0 is 0. */
function writeQuotient({ f, a, b, result }: Pair): void {
  pushIsZero(f, b)
  f.if(
    () => {
      f.i64Const(0n)
      f.get(a)
      f.i64Const(63n)
      f.op('i64.shr_s')
      f.i64Const(2n ** 63n - 1n)
      f.op('i64.xor')
      pushIsZero(f, a)
      f.op('select')
      f.set(result)
    },
    () => {
      f.get(b)
      f.i64Const(-1n)
      f.op('i64.eq')
      f.if(
        () => {
          f.i64Const(2n ** 63n - 1n)
          f.i64Const(0n)
          f.get(a)
          f.op('i64.sub')
          f.get(a)
          f.i64Const(-(2n ** 63n))
          f.ops('i64.eq', 'select')
          f.set(result)
        },
        () => {
          f.get(a)
          f.get(b)
          f.op('i64.div_s')
          f.set(result)
        },
      )
    },
  )
}

/** Runs `then` if truncating a / b rounded up: there is a rest, whose sign is not that of b. `rest` is a local. */
function ifCutUp({ f, b }: Pair, rest: number, then: () => void): void {
  pushIsZero(f, b)
  pushIsZero(f, rest)
  f.op('i32.or')
  f.op('i32.eqz')
  f.get(rest)
  f.get(b)
  f.op('i64.xor')
  f.i64Const(0n)
  f.ops('i64.lt_s', 'i32.and')
  f.if(then)
}

/** int64 division that truncates. */
export const division64: ScalarCode = scalarFunction('div64', writeQuotient)

/** Python's `//` of int64. */
export const floorDivision64: ScalarCode = scalarFunction('floorDiv64', (pair) => {
  const { f, a, b, result } = pair
  writeQuotient(pair)
  const rest = f.local('i64')
  f.get(a)
  f.get(result)
  f.get(b)
  f.ops('i64.mul', 'i64.sub')
  f.set(rest)
  ifCutUp(pair, rest, () => {
    f.get(result)
    f.i64Const(1n)
    f.op('i64.sub')
    f.set(result)
  })
})

/** Python's `%` of int64. The remainder of a division by zero is the dividend. */
export const remainder64: ScalarCode = scalarFunction('remainder64', (pair) => {
  const { f, a, b, result } = pair
  f.get(a)
  f.set(result)
  pushIsZero(f, b)
  f.op('i32.eqz')
  f.if(() => {
    f.get(a)
    f.get(b)
    f.op('i64.rem_s')
    f.set(result)
    ifCutUp(pair, result, () => {
      f.get(result)
      f.get(b)
      f.op('i64.add')
      f.set(result)
    })
  })
})

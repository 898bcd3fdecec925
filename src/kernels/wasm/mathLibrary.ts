// Functions that a kernel's module contains or imports because it calls them: sin, cos, pow and Python's remainder for float32, integer powers,
// and JavaScript's Math for float64 (the accurate reference). Each takes and returns whole vectors.
import type { Expr, ScalarOp, Stmt } from '../loopIr.ts'
import { forEachExpr } from '../analysis.ts'
import type { ModuleBuilder } from './assembler.ts'
import { VectorCode } from './vectorCode.ts'
import type { Val } from './vectorCode.ts'

/** erf for float64: a series of positive terms or, far out, the continued fraction of erfc. About 1e-15. */
function erf(x: number): number {
  const a = Math.abs(x)
  if (!(a < 6)) return Number.isNaN(x) ? x : Math.sign(x)
  if (a < 3) {
    let term = x
    let sum = x
    for (let n = 1; Math.abs(term) > 1e-17 * Math.abs(sum); n++) {
      term *= (2 * x * x) / (2 * n + 1)
      sum += term
    }
    return (2 / Math.sqrt(Math.PI)) * Math.exp(-x * x) * sum
  }
  let fraction = a
  for (let n = 60; n >= 1; n--) fraction = a + n / 2 / fraction
  return Math.sign(x) * (1 - Math.exp(-a * a) / (Math.sqrt(Math.PI) * fraction))
}

/** Python's `%` on numbers: the result has the sign of the divisor. */
function remainder(a: number, b: number): number {
  const rest = a % b
  return rest !== 0 && rest < 0 !== b < 0 ? rest + b : rest
}

/** Python's `//` on floats; dividing by zero gives what `/` gives. */
function floorDiv(a: number, b: number): number {
  if (b === 0) return a / b
  const rest = a % b
  let quotient = (a - rest) / b
  if (rest !== 0 && rest < 0 !== b < 0) quotient -= 1
  const whole = Math.floor(quotient)
  return quotient - whole > 0.5 ? whole + 1 : whole
}

/** C's pow; JavaScript's differs at a base of ±1 with an infinite or NaN exponent. */
const pow = (a: number, b: number): number => (a === 1 || (a === -1 && !Number.isFinite(b) && !Number.isNaN(b)) ? 1 : a ** b)

/** The functions of float64 that modules import as `math.*`; also what the reference interpreter uses. */
export const float64Functions: Readonly<Record<string, (a: number, b: number) => number>> = {
  exp: Math.exp,
  expm1: Math.expm1,
  log: Math.log,
  log1p: Math.log1p,
  sin: Math.sin,
  cos: Math.cos,
  tanh: Math.tanh,
  erf,
  pow,
  remainder,
  floorDiv,
  sigmoid: (x) => 1 / (1 + Math.exp(-x)),
}

const BINARY: ReadonlySet<string> = new Set(['pow', 'remainder', 'floorDiv'])
const PI_OVER_2 = Math.PI / 2

/** The helper functions of one module. Made before the module's own functions, because imports come first. */
export class MathLibrary {
  private readonly module: ModuleBuilder
  private readonly imported = new Map<string, number>()
  private readonly defined = new Map<string, number>()

  /** Imports what the statements will need. */
  constructor(module: ModuleBuilder, body: readonly Stmt[]) {
    this.module = module
    const needed = new Set<string>()
    forEachExpr(body, (expr: Expr) => {
      if (expr.kind !== 'call') return
      if (expr.dtype === 'float64' && float64Functions[expr.op] !== undefined) needed.add(expr.op)
      if (expr.dtype === 'float32' && (expr.op === 'sin' || expr.op === 'cos')) needed.add(expr.op)
    })
    for (const name of needed) this.imported.set(name, module.importFunction('math', name, BINARY.has(name) ? ['f64', 'f64'] : ['f64'], ['f64']))
  }

  /** A float64 function on the two equal lanes of `args`. */
  float64(code: VectorCode, op: ScalarOp, args: readonly Val[]): Val {
    return code.each(args, (v) => {
      for (const arg of args) {
        code.f.get(code.at(arg, v))
        code.f.lane('f64x2.extract_lane', 0)
      }
      code.f.call(this.imported.get(op) as number)
      code.f.op('f64x2.splat')
    })
  }

  /** A helper of this module on whole vectors. */
  vector(code: VectorCode, name: 'sin' | 'cos' | 'pow' | 'remainder' | 'floorDiv' | 'powInt', args: readonly Val[]): Val {
    let index = this.defined.get(name)
    if (index === undefined) {
      index = this.define(name, args.length)
      this.defined.set(name, index)
    }
    return code.each(args, (v) => {
      for (const arg of args) code.f.get(code.at(arg, v))
      code.f.call(index)
    })
  }

  private define(name: 'sin' | 'cos' | 'pow' | 'remainder' | 'floorDiv' | 'powInt', arity: number): number {
    const f = this.module.function(arity === 1 ? ['v128'] : ['v128', 'v128'], ['v128'])
    const code = new VectorCode(f)
    const [x, y] = [[0], [1]] as const
    if (name === 'sin' || name === 'cos') this.defineSine(code, name)
    else {
      const result =
        name === 'powInt'
          ? powInt(code, x, y)
          : viaFloat64(code, x, y, name === 'pow' ? powHalf : name === 'remainder' ? remainderHalf : floorDivHalf)
      f.get((name === 'pow' ? powSpecial(code, x, y, result) : result)[0] as number)
    }
    return f.index
  }

  /** sin or cos: the angle is reduced in float64, which is exact enough up to 1e5; beyond, Math.sin and Math.cos. */
  private defineSine(code: VectorCode, name: 'sin' | 'cos'): void {
    const { f } = code
    const x: Val = [0]
    const reduce = (half: Val): { n: Val; r: Val } => {
      const wide = code.op1('f64x2.promote_low_f32x4', half)
      const n = code.op1('f64x2.nearest', code.op2('f64x2.mul', wide, code.f64(1 / PI_OVER_2)))
      const r = code.op2(
        'f64x2.sub',
        code.op2('f64x2.sub', wide, code.op2('f64x2.mul', n, code.f64(PI_OVER_2))),
        code.op2('f64x2.mul', n, code.f64(6.123233995736766e-17)),
      )
      return { n: code.op1('i32x4.trunc_sat_f64x2_s_zero', n), r: code.op1('f32x4.demote_f64x2_zero', r) }
    }
    const low = reduce(x)
    const high = reduce(code.shuffle32(x, x, [2, 3, 2, 3]))
    const join = (a: Val, b: Val): Val => code.shuffle32(a, b, [0, 1, 4, 5])
    const r = join(low.r, high.r)
    const turns = join(low.n, high.n)
    const quarter = name === 'sin' ? turns : code.op2('i32x4.add', turns, code.i32(1))
    const z = code.op2('f32x4.mul', r, r)
    const sine = code.op2(
      'f32x4.add',
      code.op2('f32x4.mul', code.op2('f32x4.mul', code.polynomial(z, [-1.9515295891e-4, 8.3321608736e-3, -1.6666654611e-1]), z), r),
      r,
    )
    const tail = code.op2(
      'f32x4.mul',
      code.op2('f32x4.mul', code.polynomial(z, [2.443315711809948e-5, -1.388731625493765e-3, 4.166664568298827e-2]), z),
      z,
    )
    const cosine = code.op2('f32x4.add', code.op2('f32x4.sub', tail, code.op2('f32x4.mul', z, code.f32(0.5))), code.f32(1))
    const odd = code.op2('i32x4.ne', code.op2('v128.and', quarter, code.i32(1)), code.i32(0))
    const flip = code.shift('i32x4.shl', code.op2('v128.and', quarter, code.i32(2)), 30)
    // A sine of -0 is -0, which the reduction has lost.
    const value = code.op2('v128.xor', code.select(odd, cosine, sine), flip)
    const signed = name === 'sin' ? code.select(code.op2('f32x4.eq', x, code.f32(0)), x, value) : value
    const result = code.copy(signed)[0] as number
    const far = code.op2('f32x4.gt', code.op1('f32x4.abs', x), code.f32(1e5))[0] as number
    f.get(far)
    f.op('v128.any_true')
    f.if(() => {
      for (let lane = 0; lane < 4; lane++) {
        f.get(far)
        f.lane('i32x4.extract_lane', lane)
        f.if(() => {
          f.get(result)
          f.get(0)
          f.lane('f32x4.extract_lane', lane)
          f.op('f64.promote_f32')
          f.call(this.imported.get(name) as number)
          f.op('f32.demote_f64')
          f.lane('f32x4.replace_lane', lane)
          f.set(result)
        })
      }
    })
    f.get(result)
  }
}

/** Computes a float32 function of two operands in float64, two lanes at a time. */
function viaFloat64(code: VectorCode, x: Val, y: Val, half: (code: VectorCode, x: Val, y: Val) => Val): Val {
  const upper = (a: Val): Val => code.op1('f64x2.promote_low_f32x4', code.shuffle32(a, a, [2, 3, 2, 3]))
  const low = half(code, code.op1('f64x2.promote_low_f32x4', x), code.op1('f64x2.promote_low_f32x4', y))
  const high = half(code, upper(x), upper(y))
  return code.shuffle32(code.op1('f32x4.demote_f64x2_zero', low), code.op1('f32x4.demote_f64x2_zero', high), [0, 1, 4, 5])
}

/** floor(x / y) and what it means at an infinite y: 0 or -1. Exact for quotients below 2^29. */
function floorQuotient(code: VectorCode, x: Val, y: Val): Val {
  const quotient = code.op1('f64x2.floor', code.op2('f64x2.div', x, y))
  const zero = code.f64(0)
  const opposite = code.op2('v128.xor', code.op2('f64x2.lt', x, zero), code.op2('f64x2.lt', y, zero))
  const below = code.op2('v128.and', code.op2('v128.and', opposite, code.op2('f64x2.ne', x, zero)), code.f64(-1))
  const infinite = code.op2(
    'v128.and',
    code.op2('f64x2.eq', code.op1('f64x2.abs', y), code.f64(Infinity)),
    code.op2('f64x2.lt', code.op1('f64x2.abs', x), code.f64(Infinity)),
  )
  return code.select(infinite, below, quotient)
}

function floorDivHalf(code: VectorCode, x: Val, y: Val): Val {
  const infinite = code.op2('f64x2.eq', code.op1('f64x2.abs', x), code.f64(Infinity))
  // Python's rule goes through fmod, which has no value for an infinite dividend unless the divisor is zero.
  const divided = code.op2('f64x2.ne', y, code.f64(0))
  return code.select(code.op2('v128.and', infinite, divided), code.f64(NaN), floorQuotient(code, x, y))
}

function remainderHalf(code: VectorCode, x: Val, y: Val): Val {
  const quotient = floorQuotient(code, x, y)
  const rest = code.op2('f64x2.sub', x, code.op2('f64x2.mul', quotient, y))
  // Where the quotient is 0 the remainder is x itself (-0 too); where it is -1 and y infinite, the remainder is y.
  const infinite = code.op2(
    'v128.and',
    code.op2('f64x2.eq', code.op1('f64x2.abs', y), code.f64(Infinity)),
    code.op2('f64x2.eq', quotient, code.f64(-1)),
  )
  return code.select(code.op2('f64x2.eq', quotient, code.f64(0)), x, code.select(infinite, y, rest))
}

/** |x|^y as exp(y * log |x|), with 1e-11 to spare. */
function powHalf(code: VectorCode, x: Val, y: Val): Val {
  const magnitude = code.op1('f64x2.abs', x)
  // |x| = 2^k * m, m in [sqrt(1/2), sqrt(2)): every float32, subnormals too, is a normal float64.
  const bits = code.op2('i64x2.sub', magnitude, code.f64(Math.SQRT1_2))
  const k64 = code.shift('i64x2.shr_s', bits, 52)
  const k = code.op1('f64x2.convert_low_i32x4_s', code.shuffle32(k64, k64, [0, 2, 0, 2]))
  const m = code.op2('i64x2.sub', magnitude, code.shift('i64x2.shl', k64, 52))
  const s = code.op2('f64x2.div', code.op2('f64x2.sub', m, code.f64(1)), code.op2('f64x2.add', m, code.f64(1)))
  const z = code.op2('f64x2.mul', s, s)
  const series = code.polynomial(z, [2 / 15, 2 / 13, 2 / 11, 2 / 9, 2 / 7, 2 / 5, 2 / 3, 2], 'f64')
  const log = code.op2('f64x2.add', code.op2('f64x2.mul', s, series), code.op2('f64x2.mul', k, code.f64(Math.LN2)))
  const zeroed = code.select(code.op2('f64x2.eq', magnitude, code.f64(0)), code.f64(-Infinity), log)
  const full = code.select(code.op2('f64x2.lt', magnitude, code.f64(Infinity)), zeroed, magnitude)
  const t = code.op2('f64x2.min', code.op2('f64x2.max', code.op2('f64x2.mul', full, y), code.f64(-160)), code.f64(100))
  const n = code.op1('f64x2.nearest', code.op2('f64x2.mul', t, code.f64(Math.LOG2E)))
  const r = code.op2('f64x2.sub', t, code.op2('f64x2.mul', n, code.f64(Math.LN2)))
  const factorials = [362880, 40320, 5040, 720, 120, 24, 6, 2, 1, 1]
  const p = code.polynomial(
    r,
    factorials.map((value) => 1 / value),
    'f64',
  )
  const scale = code.shift(
    'i64x2.shl',
    code.op1('i64x2.extend_low_i32x4_s', code.op2('i32x4.add', code.op1('i32x4.trunc_sat_f64x2_s_zero', n), code.i32(1023))),
    52,
  )
  const value = code.op2('f64x2.mul', p, scale)
  return code.select(code.op2('f64x2.eq', t, t), value, t)
}

/** C's rules for signs, 0, 1 and NaN, around the magnitude. */
function powSpecial(code: VectorCode, x: Val, y: Val, magnitude: Val): Val {
  const [zero, one] = [code.f32(0), code.f32(1)]
  const whole = code.op2('f32x4.eq', code.op1('f32x4.trunc', y), y)
  const small = code.op2('f32x4.lt', code.op1('f32x4.abs', y), code.f32(16777216))
  const lowBit = code.op2('i32x4.ne', code.op2('v128.and', code.op1('i32x4.trunc_sat_f32x4_s', y), code.i32(1)), code.i32(0))
  const odd = code.op2('v128.and', code.op2('v128.and', whole, small), lowBit)
  const sign = code.op2('v128.and', code.op2('v128.and', x, odd), code.i32(-0x80000000))
  const unit = code.op2('f32x4.eq', code.op1('f32x4.abs', x), one)
  const bounded = code.select(code.op2('v128.and', unit, code.op2('f32x4.eq', y, y)), one, magnitude)
  const signed = code.op2('v128.xor', bounded, sign)
  const negative = code.op2('v128.and', code.op2('f32x4.lt', x, zero), code.op2('f32x4.gt', x, code.f32(-Infinity)))
  const undefined_ = code.op2('v128.andnot', negative, whole)
  const value = code.select(undefined_, code.f32(NaN), signed)
  return code.select(code.op2('v128.or', code.op2('f32x4.eq', y, zero), code.op2('f32x4.eq', x, one)), one, value)
}

/** Integer powers by squaring, modulo 2^32; a negative exponent gives 0 unless the base is 1 or -1. */
function powInt(code: VectorCode, x: Val, y: Val): Val {
  const { f } = code
  const [base, exponent, result] = [code.temp(), code.temp(), code.temp()]
  const negative = code.op2('i32x4.lt_s', y, code.i32(0))
  const unit = code.op2('v128.or', code.op2('i32x4.eq', x, code.i32(1)), code.op2('i32x4.eq', x, code.i32(-1)))
  const start = code.select(code.op2('v128.andnot', negative, unit), code.i32(0), code.i32(1))
  const step = (target: number, value: Val): void => {
    f.get(value[0] as number)
    f.set(target)
  }
  step(base, x)
  step(exponent, code.op1('i32x4.abs', y))
  step(result, start)
  f.block((end) => {
    f.loop((again) => {
      f.get(exponent)
      f.op('v128.any_true')
      f.op('i32.eqz')
      f.brIf(end)
      const bit = code.op2('i32x4.ne', code.op2('v128.and', [exponent], code.i32(1)), code.i32(0))
      step(result, code.op2('i32x4.mul', [result], code.select(bit, [base], code.i32(1))))
      step(base, code.op2('i32x4.mul', [base], [base]))
      step(exponent, code.shift('i32x4.shr_u', [exponent], 1))
      f.br(again)
    })
  })
  return [result]
}

// The functions that shaders call, as text: a shader has those that it needs. Functions of float32 that WebAssembly has too are written by the same code (../wasm/float32Math.ts).
import { InternalError } from '../../errors/index.ts'
import * as float32 from '../wasm/float32Math.ts'
import * as rare from '../wasm/float32Rare.ts'
import { powSpecial } from '../wasm/vectorFunctions.ts'
import { int64Functions } from './int64.ts'
import { WgslCode } from './wgslCode.ts'

/** Functions that are written in shader language: comparisons by bits, rounding, integer division, and what WebAssembly code computes in float64. */
const written: Readonly<Record<string, string>> = {
  ...int64Functions,
  tfx_isNan: 'fn tfx_isNan(x: u32) -> bool {\n  return (x & 0x7fffffffu) > 0x7f800000u;\n}',
  // The order of floats as that of integers. -0 and 0 have the same place.
  tfx_place: 'fn tfx_place(x: u32) -> i32 {\n  return bitcast<i32>(select(x, 0x80000000u - x, (x >> 31u) != 0u));\n}',
  tfx_eq: `fn tfx_eq(a: u32, b: u32) -> u32 {
  return select(0u, 0xffffffffu, !tfx_isNan(a) && !tfx_isNan(b) && tfx_place(a) == tfx_place(b));
}`,
  tfx_lt: `fn tfx_lt(a: u32, b: u32) -> u32 {
  return select(0u, 0xffffffffu, !tfx_isNan(a) && !tfx_isNan(b) && tfx_place(a) < tfx_place(b));
}`,
  tfx_le: `fn tfx_le(a: u32, b: u32) -> u32 {
  return select(0u, 0xffffffffu, !tfx_isNan(a) && !tfx_isNan(b) && tfx_place(a) <= tfx_place(b));
}`,
  // A float as it is, of which compilers do not know how it was computed: see wgslCode.ts.
  tfx_hidden: 'fn tfx_hidden(x: f32) -> f32 {\n  return bitcast<f32>(bitcast<u32>(x) ^ uniforms[0].y);\n}',
  // A sum, what it lacks, and a number more (Kahan). Infinities and NaN lack nothing.
  tfx_sum: `fn tfx_sum(sum: u32, lacking: u32, added: u32) -> vec2<u32> {
  let value = tfx_hidden(bitcast<f32>(added) - bitcast<f32>(lacking));
  let total = tfx_hidden(bitcast<f32>(sum) + value);
  let bits = bitcast<u32>(total);
  let lost = bitcast<u32>(tfx_hidden(total - bitcast<f32>(sum)) - value);
  return vec2<u32>(bits, select(lost, 0u, (bits & 0x7f800000u) == 0x7f800000u));
}`,
  // Two sums, each with what it lacks.
  tfx_joined: `fn tfx_joined(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  let x = bitcast<f32>(a.x);
  let y = bitcast<f32>(b.x);
  let total = tfx_hidden(x + y);
  let added = tfx_hidden(total - x);
  let lost = tfx_hidden(x - tfx_hidden(total - added)) + tfx_hidden(y - added);
  let lacking = bitcast<u32>(tfx_hidden(bitcast<f32>(a.y) + bitcast<f32>(b.y)) - lost);
  let bits = bitcast<u32>(total);
  return vec2<u32>(bits, select(lacking, 0u, (bits & 0x7f800000u) == 0x7f800000u));
}`,
  // -0 is less than 0 here.
  tfx_rank: 'fn tfx_rank(x: u32) -> i32 {\n  return bitcast<i32>(x ^ (bitcast<u32>(bitcast<i32>(x) >> 31u) >> 1u));\n}',
  tfx_min: `fn tfx_min(a: u32, b: u32) -> u32 {
  if (tfx_isNan(a)) { return a; }
  if (tfx_isNan(b)) { return b; }
  return select(b, a, tfx_rank(a) <= tfx_rank(b));
}`,
  tfx_max: `fn tfx_max(a: u32, b: u32) -> u32 {
  if (tfx_isNan(a)) { return a; }
  if (tfx_isNan(b)) { return b; }
  return select(b, a, tfx_rank(a) >= tfx_rank(b));
}`,
  // Rounding leaves infinities, NaN and what has no fraction as it is, and keeps the sign of 0.
  tfx_whole: `fn tfx_whole(x: u32, rounded: f32) -> u32 {
  return select((bitcast<u32>(rounded) & 0x7fffffffu) | (x & 0x80000000u), x, (x & 0x7fffffffu) >= 0x4b000000u);
}`,
  tfx_floor: 'fn tfx_floor(x: u32) -> u32 {\n  return tfx_whole(x, floor(bitcast<f32>(x)));\n}',
  tfx_ceil: 'fn tfx_ceil(x: u32) -> u32 {\n  return tfx_whole(x, ceil(bitcast<f32>(x)));\n}',
  tfx_trunc: 'fn tfx_trunc(x: u32) -> u32 {\n  return tfx_whole(x, trunc(bitcast<f32>(x)));\n}',
  tfx_nearest: 'fn tfx_nearest(x: u32) -> u32 {\n  return tfx_whole(x, round(bitcast<f32>(x)));\n}',
  tfx_toInt: `fn tfx_toInt(x: u32) -> u32 {
  let magnitude = x & 0x7fffffffu;
  if (magnitude > 0x7f800000u) { return 0u; }
  if (magnitude >= 0x4f000000u) { return select(0x7fffffffu, 0x80000000u, (x >> 31u) != 0u); }
  return bitcast<u32>(i32(bitcast<f32>(x)));
}`,
  tfx_div: `fn tfx_div(a: u32, b: u32) -> u32 {
  let x = bitcast<i32>(a);
  let y = bitcast<i32>(b);
  if (b == 0u) { return select(select(0u, 0x7fffffffu, x > 0), 0x80000000u, x < 0); }
  if (b == 0xffffffffu) { return select(0u - a, 0x7fffffffu, a == 0x80000000u); }
  return bitcast<u32>(x / y);
}`,
  tfx_floorDiv: `fn tfx_floorDiv(a: u32, b: u32) -> u32 {
  let q = tfx_div(a, b);
  if (b == 0u || b == 0xffffffffu) { return q; }
  return select(q, q - 1u, q * b != a && ((a ^ b) >> 31u) != 0u);
}`,
  tfx_remainder: `fn tfx_remainder(a: u32, b: u32) -> u32 {
  return select(a - tfx_floorDiv(a, b) * b, 0u, b == 0xffffffffu);
}`,
  tfx_pow: `fn tfx_pow(a: u32, b: u32) -> u32 {
  if ((b >> 31u) != 0u && a != 1u && a != 0xffffffffu) { return 0u; }
  var result = 1u;
  var power = a;
  for (var exponent = bitcast<u32>(abs(bitcast<i32>(b))); exponent != 0u; exponent >>= 1u) {
    if ((exponent & 1u) != 0u) { result *= power; }
    power *= power;
  }
  return result;
}`,
  // The exact remainder of magnitudes that are finite, of which the second is not 0: one bit of the quotient after the other.
  tfx_fmod: `fn tfx_fmod(a: u32, b: u32) -> u32 {
  if (a < b) { return a; }
  var ma = (a & 0x7fffffu) | select(0u, 0x800000u, (a >> 23u) != 0u);
  var mb = (b & 0x7fffffu) | select(0u, 0x800000u, (b >> 23u) != 0u);
  let sa = countLeadingZeros(ma) - 8u;
  let sb = countLeadingZeros(mb) - 8u;
  ma <<= sa;
  mb <<= sb;
  var ea = i32(max(a >> 23u, 1u)) - i32(sa);
  let eb = i32(max(b >> 23u, 1u)) - i32(sb);
  for (; ea > eb; ea--) {
    if (ma >= mb) { ma -= mb; }
    ma <<= 1u;
  }
  if (ma >= mb) { ma -= mb; }
  if (ma == 0u) { return 0u; }
  let shift = countLeadingZeros(ma) - 8u;
  ma <<= shift;
  let e = eb - i32(shift);
  if (e >= 1) { return (ma - 0x800000u) + (u32(e) << 23u); }
  return ma >> u32(1 - e);
}`,
  // Python's %: the result has the sign of the divisor.
  tfx_fRemainder: `fn tfx_fRemainder(a: u32, b: u32) -> u32 {
  let x = a & 0x7fffffffu;
  let y = b & 0x7fffffffu;
  if (x >= 0x7f800000u || y > 0x7f800000u || y == 0u) { return 0x7fc00000u; }
  let rest = select(tfx_fmod(x, y), x, y == 0x7f800000u);
  let own = rest | (a & 0x80000000u);
  if (rest == 0u || ((a ^ b) >> 31u) == 0u) { return own; }
  return bitcast<u32>(bitcast<f32>(own) + bitcast<f32>(b));
}`,
  tfx_fFloorDiv: `fn tfx_fFloorDiv(a: u32, b: u32) -> u32 {
  let x = a & 0x7fffffffu;
  let y = b & 0x7fffffffu;
  if (y == 0u && x <= 0x7f800000u) { return tfx_byZero(a, b); }
  if (x >= 0x7f800000u || y > 0x7f800000u) { return 0x7fc00000u; }
  let crosses = ((a ^ b) >> 31u) != 0u;
  if (y == 0x7f800000u) { return select((a ^ b) & 0x80000000u, 0xbf800000u, crosses && x != 0u); }
  let rest = tfx_fmod(x, y);
  let quotient = round(bitcast<f32>(tfx_quotient(bitcast<u32>(bitcast<f32>(x) - bitcast<f32>(rest)), y)));
  let down = quotient + select(0.0, 1.0, crosses && rest != 0u);
  return bitcast<u32>(down) | ((a ^ b) & 0x80000000u);
}`,
  // a / b, rounded to the nearest: 25 bits of the quotient of the numbers without their exponents. The estimate may be off by some units, and what remains of it says by how many.
  tfx_quotient: `fn tfx_quotient(a: u32, b: u32) -> u32 {
  let x = a & 0x7fffffffu;
  let y = b & 0x7fffffffu;
  let sign = (a ^ b) & 0x80000000u;
  if (x > 0x7f800000u || y > 0x7f800000u) { return 0x7fc00000u; }
  if (y == 0u) { return tfx_byZero(a, b); }
  if (x == 0x7f800000u) { return select(sign | x, 0x7fc00000u, y == 0x7f800000u); }
  if (x == 0u || y == 0x7f800000u) { return sign; }
  let n = tfx_parts(x);
  let d = tfx_parts(y);
  let isLess = n.x < d.x;
  let ma = select(n.x, n.x << 1u, isLess);
  var q = u32(f32(ma) / f32(d.x) * 16777216.0);
  var rest = bitcast<i32>((ma << 24u) - q * d.x);
  for (; rest < 0; rest += i32(d.x)) { q -= 1u; }
  for (; rest >= i32(d.x); rest -= i32(d.x)) { q += 1u; }
  return sign | tfx_assembled(q, rest != 0, bitcast<i32>(n.y) - bitcast<i32>(d.y) + select(127, 126, isLess));
}`,
  // The square root, rounded to the nearest, in the same way.
  tfx_squareRoot: `fn tfx_squareRoot(x: u32) -> u32 {
  if ((x & 0x7fffffffu) == 0u || x == 0x7f800000u) { return x; }
  if (x > 0x7f800000u) { return 0x7fc00000u; }
  let parts = tfx_parts(x);
  let e = bitcast<i32>(parts.y) - 127;
  let m = parts.x << (u32(e) & 1u);
  var root = u32(sqrt(f32(m)) * 5792.61875);
  root += bitcast<u32>(bitcast<i32>((m << 25u) - root * root) / bitcast<i32>(root << 1u));
  var rest = bitcast<i32>((m << 25u) - root * root);
  for (; rest < 0; rest += i32((root << 1u) + 1u)) { root -= 1u; }
  for (; rest > i32(root << 1u); root += 1u) { rest -= i32((root << 1u) + 1u); }
  return tfx_assembled(root, rest != 0, (e >> 1u) + 127);
}`,
  // The 24 bits of a float that is positive and finite, with the first one set, and its exponent, which is less than 1 for subnormals.
  tfx_parts: `fn tfx_parts(x: u32) -> vec2<u32> {
  if (x >= 0x800000u) { return vec2<u32>((x & 0x7fffffu) | 0x800000u, x >> 23u); }
  let zeros = countLeadingZeros(x) - 8u;
  return vec2<u32>(x << zeros, 1u - zeros);
}`,
  // A float from 25 bits, of which the first is set and the last is half a unit, whether there are more, and its exponent.
  tfx_assembled: `fn tfx_assembled(bits: u32, more: bool, e: i32) -> u32 {
  if (e >= 255) { return 0x7f800000u; }
  if (e < -24) { return 0u; }
  let dropped = u32(max(1 - e, 0)) + 1u;
  let kept = bits >> dropped;
  let rest = bits & ((1u << dropped) - 1u);
  let half = 1u << (dropped - 1u);
  let up = rest > half || (rest == half && (more || (kept & 1u) != 0u));
  return (u32(max(e - 1, 0)) << 23u) + kept + select(0u, 1u, up);
}`,
  tfx_byZero: `fn tfx_byZero(a: u32, b: u32) -> u32 {
  if ((a & 0x7fffffffu) == 0u) { return 0x7fc00000u; }
  return 0x7f800000u | ((a ^ b) & 0x80000000u);
}`,
  // Long angles, by Payne and Hanek: the product with as many bits of 2 / pi as count. Gives the quarter turns, whose last two bits count, and the rest of the angle.
  tfx_turned: `fn tfx_turned(x: u32) -> vec2<u32> {
  if ((x & 0x7fffffffu) >= 0x7f800000u) { return vec2<u32>(0u, 0x7fc00000u); }
  var table = array<u32, 8>(0u, 0x28be60dbu, 0x9391054au, 0x7f09d5f4u, 0x7d4d3770u, 0x36d8a566u, 0x4f10e410u, 0u);
  let m = (x << 8u) | 0x80000000u;
  let e = ((x >> 23u) & 0xffu) - 126u;
  let i = e >> 5u;
  let n = e & 31u;
  var hi = table[i];
  var mid = table[i + 1u];
  var lo = table[i + 2u];
  if (n != 0u) {
    hi = (hi << n) | (mid >> (32u - n));
    mid = (mid << n) | (lo >> (32u - n));
    lo = (lo << n) | (table[i + 3u] >> (32u - n));
  }
  var p = tfx_l_add(vec2<u32>(m * mid, tfx_mulHigh(m, mid)), vec2<u32>(tfx_mulHigh(m, lo), 0u));
  p.y += m * hi;
  var q = p.y >> 30u;
  p.y &= 0x3fffffffu;
  if ((p.y & 0x20000000u) != 0u) {
    p.y -= 0x40000000u;
    q += 1u;
  }
  let part = tfx_hidden(bitcast<f32>(tfx_l_toFloat(p)) * bitcast<f32>(0x20800000u));
  let rest = bitcast<u32>(tfx_hidden(part * 1.57079637) - tfx_hidden(part * 4.37113883e-8));
  if ((x >> 31u) != 0u) { return vec2<u32>(0u - q, rest ^ 0x80000000u); }
  return vec2<u32>(q, rest);
}`,
  // A product as the nearest float and what that lacks; halves of 12 bits have exact products.
  tfx_product: `fn tfx_product(a: f32, b: f32) -> vec2<f32> {
  let ah = bitcast<f32>(bitcast<u32>(a) & 0xfffff000u);
  let bh = bitcast<f32>(bitcast<u32>(b) & 0xfffff000u);
  let al = tfx_hidden(a - ah);
  let bl = tfx_hidden(b - bh);
  let p = tfx_hidden(a * b);
  let first = tfx_hidden(tfx_hidden(ah * bh) - p);
  let second = tfx_hidden(first + tfx_hidden(ah * bl));
  return vec2<f32>(p, tfx_hidden(tfx_hidden(second + tfx_hidden(al * bh)) + al * bl));
}`,
  // |x|^y as e^(y log |x|), the logarithm and its product with y as sums of two floats.
  tfx_magnitude: `fn tfx_magnitude(x: u32, y: u32) -> u32 {
  let a = x & 0x7fffffffu;
  if (tfx_isNan(x) || tfx_isNan(y)) { return 0x7fc00000u; }
  let grows = (y >> 31u) == 0u;
  if (a == 0u) { return select(0x7f800000u, 0u, grows); }
  if (a == 0x7f800000u) { return select(0u, 0x7f800000u, grows); }
  var bits = a;
  var k = 0.0;
  if (a < 0x800000u) {
    let zeros = countLeadingZeros(a) - 8u;
    bits = (a << zeros) + 0u;
    k = -f32(zeros);
    bits = (bits & 0x7fffffu) | 0x800000u;
  }
  let shifted = bits - 0x3f3504f3u;
  k += f32(bitcast<i32>(shifted) >> 23u);
  let m = bitcast<f32>((shifted & 0x7fffffu) + 0x3f3504f3u);
  let f = m - 1.0;
  let d = tfx_hidden(m + 1.0);
  let dl = select(tfx_hidden(m - d) + 1.0, tfx_hidden(1.0 - d) + m, m < 1.0);
  let s = bitcast<f32>(tfx_quotient(bitcast<u32>(f), bitcast<u32>(d)));
  let sd = tfx_product(s, d);
  let sl = (tfx_hidden(tfx_hidden(f - sd.x) - sd.y) - s * dl) / d;
  let z = s * s;
  let tail = s * z * (0.66666667 + z * (0.4 + z * (0.28571429 + z * (0.22222222 + z * 0.18181818))));
  let kh = k * 0.693145752;
  let sh = 2.0 * s;
  let lh = tfx_hidden(kh + sh);
  let ll = select(tfx_hidden(sh - lh) + kh, tfx_hidden(kh - lh) + sh, abs(kh) >= abs(sh)) + (k * 1.42860677e-6 + (2.0 * sl + tail));
  let log = tfx_hidden(lh + ll);
  let low = tfx_hidden(lh - log) + ll;
  let e = bitcast<f32>(y);
  if (abs(e) > 1.0e12) { return select(0u, 0x7f800000u, (log > 0.0) == grows); }
  let t = tfx_product(e, log);
  if (abs(t.x) > 110.0 || t.x > 89.0) { return select(0u, 0x7f800000u, t.x > 0.0); }
  let rest = t.y + e * low;
  let power = tfx_exp(bitcast<u32>(t.x));
  if (power == 0x7f800000u) {
    let lower = tfx_hidden(t.x - 0.693145752);
    let half = bitcast<f32>(tfx_exp(bitcast<u32>(lower)));
    let kept = half + half * (rest - 1.42860677e-6 + (tfx_hidden(t.x - lower) - 0.693145752));
    return select(bitcast<u32>(kept + kept), 0x7f800000u, kept >= 1.70141183e38);
  }
  // Where the second product would be subnormal, the factor is rounded instead.
  if (t.x < -60.0) { return bitcast<u32>(bitcast<f32>(power) * (1.0 + rest)); }
  return bitcast<u32>(bitcast<f32>(power) + bitcast<f32>(power) * rest);
}`,
  tfx_hypot: `fn tfx_hypot(x: u32, y: u32) -> u32 {
  let a = x & 0x7fffffffu;
  let b = y & 0x7fffffffu;
  if (a == 0x7f800000u || b == 0x7f800000u) { return 0x7f800000u; }
  if (a > 0x7f800000u || b > 0x7f800000u) { return 0x7fc00000u; }
  let greater = max(a, b);
  if (greater == 0u) { return 0u; }
  // Scaled by powers of two, so that squares neither overflow nor vanish.
  let large = greater >= 0x5f000000u;
  let small = greater <= 0x26800000u;
  let scale = select(select(1.0, 1.23794004e27, small), 8.27180613e-25, large);
  let back = select(select(1.0, 8.07793567e-28, small), 1.20892582e24, large);
  let p = bitcast<f32>(a) * scale;
  let q = bitcast<f32>(b) * scale;
  let root = bitcast<f32>(tfx_squareRoot(bitcast<u32>(p * p + q * q)));
  if (large && root >= 2.81474977e14) { return 0x7f800000u; }
  return bitcast<u32>(root * back);
}`,
}

type Write = (code: WgslCode, x: string, y: string) => string

const sineOf =
  (quarterTurns: 0 | 1, short: (code: WgslCode, x: string) => string): Write =>
  (code, x) => {
    const turned = code.call('turned', x)
    const long = float32.sineOf(code, { turns: code.let(`${turned}.x`), rest: code.let(`${turned}.y`) }, quarterTurns)
    return code.select(float32.isLong(code, x), long, short(code, x))
  }

/** The root of 1 - x^2. */
const rootOfRest = (code: WgslCode, x: string): string => {
  const one = code.f32(1)
  return code.op1('f32x4.sqrt', code.op2('f32x4.mul', code.op2('f32x4.sub', one, x), code.op2('f32x4.add', one, x)))
}

/** A function that is as its operand near 0, where what it computes with would be subnormal. */
const likeItself =
  (f: (code: WgslCode, x: string) => string): Write =>
  (code, x) =>
    code.select(code.op2('f32x4.lt', code.op1('f32x4.abs', x), code.f32(2 ** -40)), x, f(code, x))

/** sign(x) f(|x|). */
const odd =
  (f: (code: WgslCode, magnitude: string) => string): Write =>
  (code, x) =>
    float32.withSign(code, f(code, code.op1('f32x4.abs', x)), x)

/** asinh of a magnitude: log1p(a + a^2 / (1 + sqrt(1 + a^2))), and log(2 a) where squares are too large. */
const areaSine = odd((code, a) => {
  const square = code.op2('f32x4.mul', a, a)
  const root = code.op1('f32x4.sqrt', code.op2('f32x4.add', square, code.f32(1)))
  const sum = code.op2('f32x4.add', a, code.op2('f32x4.div', square, code.op2('f32x4.add', root, code.f32(1))))
  const large = code.op2('f32x4.add', code.call('log', a), code.f32(Math.LN2))
  return code.select(code.op2('f32x4.gt', a, code.f32(1e9)), large, code.call('log1p', sum))
})

const areaCosine: Write = (code, x) => {
  const t = code.op2('f32x4.sub', x, code.f32(1))
  const root = code.op1('f32x4.sqrt', code.op2('f32x4.mul', t, code.op2('f32x4.add', t, code.f32(2))))
  const large = code.op2('f32x4.add', code.call('log', x), code.f32(Math.LN2))
  const value = code.select(code.op2('f32x4.gt', x, code.f32(1e9)), large, code.call('log1p', code.op2('f32x4.add', t, root)))
  return code.select(code.op2('f32x4.lt', x, code.f32(1)), code.f32(NaN), value)
}

const areaTangent = odd((code, a) => {
  const quotient = code.op2('f32x4.div', code.op2('f32x4.add', a, a), code.op2('f32x4.sub', code.f32(1), a))
  const value = code.op2('f32x4.mul', code.f32(0.5), code.call('log1p', quotient))
  const atOne = code.select(code.op2('f32x4.eq', a, code.f32(1)), code.f32(Infinity), value)
  return code.select(code.op2('f32x4.gt', a, code.f32(1)), code.f32(NaN), atOne)
})

const scaledLog =
  (factor: number): Write =>
  (code, x) =>
    code.op2('f32x4.mul', code.call('log', x), code.f32(factor))

/** Functions of float32 that are written by code on lanes. */
const fromLanes: Readonly<Record<string, { readonly arity: 1 | 2; readonly write: Write }>> = {
  tfx_exp: { arity: 1, write: float32.exp },
  tfx_expm1: { arity: 1, write: likeItself(float32.expm1) },
  tfx_log: { arity: 1, write: float32.log },
  tfx_log1p: { arity: 1, write: float32.log1p },
  tfx_tanh: { arity: 1, write: likeItself(float32.tanh) },
  tfx_sigmoid: { arity: 1, write: float32.sigmoid },
  tfx_erf: { arity: 1, write: float32.erf },
  tfx_sin: { arity: 1, write: sineOf(0, float32.sin) },
  tfx_cos: { arity: 1, write: sineOf(1, float32.cos) },
  tfx_tan: { arity: 1, write: (code, x) => code.op2('f32x4.div', code.call('sin', x), code.call('cos', x)) },
  tfx_sinh: { arity: 1, write: likeItself(rare.sinh) },
  tfx_cosh: { arity: 1, write: rare.cosh },
  tfx_atan2: { arity: 2, write: rare.atan2 },
  tfx_atan: { arity: 1, write: (code, x) => code.call('atan2', x, code.f32(1)) },
  tfx_asin: { arity: 1, write: (code, x) => code.call('atan2', x, rootOfRest(code, x)) },
  tfx_acos: { arity: 1, write: (code, x) => code.call('atan2', rootOfRest(code, x), x) },
  tfx_asinh: { arity: 1, write: areaSine },
  tfx_acosh: { arity: 1, write: areaCosine },
  tfx_atanh: { arity: 1, write: areaTangent },
  tfx_log2: { arity: 1, write: scaledLog(Math.LOG2E) },
  tfx_log10: { arity: 1, write: scaledLog(Math.LOG10E) },
  tfx_fPow: { arity: 2, write: (code, x, y) => powSpecial(code, x, y, code.call('magnitude', x, y)) },
}

const made = new Map<string, string>()

/** The text of a function. Throws InternalError for one that does not exist. */
function functionText(name: string): string {
  const known = written[name] ?? made.get(name)
  if (known !== undefined) return known
  const lanes = fromLanes[name]
  if (lanes === undefined) throw new InternalError(`the shader library has no function ${name}`)
  const code = new WgslCode()
  const result = lanes.write(code, 'x', lanes.arity === 1 ? 'x' : 'y')
  const text = `fn ${name}(x: u32${lanes.arity === 1 ? '' : ', y: u32'}) -> u32 {\n${code.text()}\n  return ${result};\n}`
  made.set(name, text)
  return text
}

/** The functions that a text calls, and those that these call. */
export function libraryFor(text: string): string {
  const needed = new Map<string, string>()
  const collect = (from: string): void => {
    for (const [name] of from.matchAll(/\btfx_\w+(?=\()/g)) {
      if (needed.has(name)) continue
      const body = functionText(name)
      needed.set(name, body)
      collect(body)
    }
  }
  collect(text)
  return [...needed.values()].join('\n')
}

// int64 in shaders, which have no integers of 64 bits: functions on vec2<u32>, the lower half first. Nothing is ever cut to 32 bits; division by zero and by -1 are as in WebAssembly code.

/** The functions by name. */
export const int64Functions: Readonly<Record<string, string>> = {
  tfx_l_add: `fn tfx_l_add(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  let low = a.x + b.x;
  return vec2<u32>(low, a.y + b.y + select(0u, 1u, low < a.x));
}`,
  tfx_l_neg: `fn tfx_l_neg(a: vec2<u32>) -> vec2<u32> {
  return tfx_l_add(~a, vec2<u32>(1u, 0u));
}`,
  tfx_l_sub: `fn tfx_l_sub(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  return vec2<u32>(a.x - b.x, a.y - b.y - select(0u, 1u, a.x < b.x));
}`,
  tfx_mulHigh: `fn tfx_mulHigh(a: u32, b: u32) -> u32 {
  let al = a & 0xffffu;
  let ah = a >> 16u;
  let bl = b & 0xffffu;
  let bh = b >> 16u;
  let m = ah * bl + ((al * bl) >> 16u);
  let n = al * bh + (m & 0xffffu);
  return ah * bh + (m >> 16u) + (n >> 16u);
}`,
  tfx_l_mul: `fn tfx_l_mul(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  return vec2<u32>(a.x * b.x, tfx_mulHigh(a.x, b.x) + a.x * b.y + a.y * b.x);
}`,
  tfx_l_eq: `fn tfx_l_eq(a: vec2<u32>, b: vec2<u32>) -> u32 {
  return select(0u, 0xffffffffu, a.x == b.x && a.y == b.y);
}`,
  tfx_l_lt: `fn tfx_l_lt(a: vec2<u32>, b: vec2<u32>) -> u32 {
  let p = bitcast<i32>(a.y);
  let q = bitcast<i32>(b.y);
  return select(0u, 0xffffffffu, p < q || (p == q && a.x < b.x));
}`,
  tfx_l_isNegative: `fn tfx_l_isNegative(a: vec2<u32>) -> bool {
  return (a.y >> 31u) != 0u;
}`,
  tfx_l_abs: `fn tfx_l_abs(a: vec2<u32>) -> vec2<u32> {
  return select(a, tfx_l_neg(a), tfx_l_isNegative(a));
}`,
  tfx_l_sign: `fn tfx_l_sign(a: vec2<u32>) -> vec2<u32> {
  return select(vec2<u32>(select(0u, 1u, (a.x | a.y) != 0u), 0u), vec2<u32>(0xffffffffu, 0xffffffffu), tfx_l_isNegative(a));
}`,
  tfx_l_shl: `fn tfx_l_shl(a: vec2<u32>, by: u32) -> vec2<u32> {
  let n = by & 63u;
  if (n == 0u) { return a; }
  if (n >= 32u) { return vec2<u32>(0u, a.x << (n - 32u)); }
  return vec2<u32>(a.x << n, (a.y << n) | (a.x >> (32u - n)));
}`,
  tfx_l_shrU: `fn tfx_l_shrU(a: vec2<u32>, by: u32) -> vec2<u32> {
  let n = by & 63u;
  if (n == 0u) { return a; }
  if (n >= 32u) { return vec2<u32>(a.y >> (n - 32u), 0u); }
  return vec2<u32>((a.x >> n) | (a.y << (32u - n)), a.y >> n);
}`,
  tfx_l_shrS: `fn tfx_l_shrS(a: vec2<u32>, by: u32) -> vec2<u32> {
  return select(tfx_l_shrU(a, by), ~tfx_l_shrU(~a, by), tfx_l_isNegative(a));
}`,
  // Quotient and remainder of magnitudes, bit by bit; the divisor is not 0.
  tfx_l_divided: `fn tfx_l_divided(a: vec2<u32>, b: vec2<u32>) -> vec4<u32> {
  var quotient = vec2<u32>(0u, 0u);
  var rest = vec2<u32>(0u, 0u);
  for (var i = 0u; i < 64u; i++) {
    let n = 63u - i;
    let bit = select(a.x >> n, a.y >> (n - 32u), n >= 32u) & 1u;
    let carry = rest.y >> 31u;
    rest = vec2<u32>((rest.x << 1u) | bit, (rest.y << 1u) | (rest.x >> 31u));
    quotient = tfx_l_shl(quotient, 1u);
    if (carry != 0u || rest.y > b.y || (rest.y == b.y && rest.x >= b.x)) {
      rest = tfx_l_sub(rest, b);
      quotient.x |= 1u;
    }
  }
  return vec4<u32>(quotient, rest);
}`,
  // What a division by 0 gives: the nearest to infinity, or 0 for 0 / 0.
  tfx_l_byZero: `fn tfx_l_byZero(a: vec2<u32>) -> vec2<u32> {
  if ((a.x | a.y) == 0u) { return a; }
  return select(vec2<u32>(0xffffffffu, 0x7fffffffu), vec2<u32>(0u, 0x80000000u), tfx_l_isNegative(a));
}`,
  tfx_l_quotient: `fn tfx_l_quotient(a: vec2<u32>, b: vec2<u32>, down: bool) -> vec2<u32> {
  if ((b.x | b.y) == 0u) { return tfx_l_byZero(a); }
  let parts = tfx_l_divided(tfx_l_abs(a), tfx_l_abs(b));
  if (tfx_l_isNegative(a) == tfx_l_isNegative(b)) {
    return select(parts.xy, vec2<u32>(0xffffffffu, 0x7fffffffu), (parts.y >> 31u) != 0u);
  }
  let cut = select(0u, 1u, down && (parts.z | parts.w) != 0u);
  return tfx_l_sub(tfx_l_neg(parts.xy), vec2<u32>(cut, 0u));
}`,
  tfx_l_div: `fn tfx_l_div(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  return tfx_l_quotient(a, b, false);
}`,
  tfx_l_floorDiv: `fn tfx_l_floorDiv(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  return tfx_l_quotient(a, b, true);
}`,
  tfx_l_remainder: `fn tfx_l_remainder(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  if ((b.x | b.y) == 0u) { return a; }
  let rest = tfx_l_divided(tfx_l_abs(a), tfx_l_abs(b)).zw;
  let own = select(rest, tfx_l_neg(rest), tfx_l_isNegative(a));
  let crosses = (rest.x | rest.y) != 0u && tfx_l_isNegative(a) != tfx_l_isNegative(b);
  return select(own, tfx_l_add(own, b), crosses);
}`,
  tfx_l_pow: `fn tfx_l_pow(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  let one = vec2<u32>(1u, 0u);
  let unit = all(a == one) || all(a == vec2<u32>(0xffffffffu, 0xffffffffu));
  if (tfx_l_isNegative(b) && !unit) { return vec2<u32>(0u, 0u); }
  var result = one;
  var power = a;
  var exponent = tfx_l_abs(b);
  for (var i = 0u; i < 64u && (exponent.x | exponent.y) != 0u; i++) {
    if ((exponent.x & 1u) != 0u) { result = tfx_l_mul(result, power); }
    power = tfx_l_mul(power, power);
    exponent = tfx_l_shrU(exponent, 1u);
  }
  return result;
}`,
  tfx_l_fromInt: `fn tfx_l_fromInt(a: u32) -> vec2<u32> {
  return vec2<u32>(a, bitcast<u32>(bitcast<i32>(a) >> 31u));
}`,
  tfx_l_fromFloat: `fn tfx_l_fromFloat(x: u32) -> vec2<u32> {
  let magnitude = x & 0x7fffffffu;
  if (magnitude > 0x7f800000u) { return vec2<u32>(0u, 0u); }
  let negative = (x >> 31u) != 0u;
  let exponent = magnitude >> 23u;
  if (exponent < 127u) { return vec2<u32>(0u, 0u); }
  if (exponent >= 190u) { return select(vec2<u32>(0xffffffffu, 0x7fffffffu), vec2<u32>(0u, 0x80000000u), negative); }
  let mantissa = vec2<u32>((magnitude & 0x7fffffu) | 0x800000u, 0u);
  var whole = mantissa;
  if (exponent >= 150u) { whole = tfx_l_shl(mantissa, exponent - 150u); } else { whole.x = mantissa.x >> (150u - exponent); }
  return select(whole, tfx_l_neg(whole), negative);
}`,
  // The nearest float32, of two the even one: rounded once, by its bits.
  tfx_l_toFloat: `fn tfx_l_toFloat(a: vec2<u32>) -> u32 {
  if ((a.x | a.y) == 0u) { return 0u; }
  let magnitude = tfx_l_abs(a);
  let zeros = select(countLeadingZeros(magnitude.y), 32u + countLeadingZeros(magnitude.x), magnitude.y == 0u);
  let top = tfx_l_shl(magnitude, zeros);
  let kept = top.y >> 8u;
  let rest = (top.y << 24u) | (top.x >> 8u) | select(0u, 1u, (top.x & 0xffu) != 0u);
  let up = select(0u, 1u, rest > 0x80000000u || (rest == 0x80000000u && (kept & 1u) != 0u));
  return (((190u - zeros) << 23u) + (kept - 0x800000u) + up) | (a.y & 0x80000000u);
}`,
}

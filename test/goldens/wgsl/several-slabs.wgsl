@group(0) @binding(0) var<storage, read_write> slab0: array<u32>;
@group(0) @binding(1) var<storage, read_write> slab1: array<u32>;
@group(0) @binding(2) var<storage, read_write> slab2: array<u32>;
@group(0) @binding(3) var<storage, read_write> slab3: array<u32>;
@group(0) @binding(4) var<uniform> uniforms: array<vec4<u32>, 2>;
fn loadWord(slab: u32, at: u32) -> u32 {
  switch slab {
    case 0u: { return slab0[at]; }
    case 1u: { return slab1[at]; }
    case 2u: { return slab2[at]; }
    default: { return slab3[at]; }
  }
}
fn storeWord(slab: u32, at: u32, word: u32) {
  switch slab {
    case 0u: { slab0[at] = word; }
    case 1u: { slab1[at] = word; }
    case 2u: { slab2[at] = word; }
    default: { slab3[at] = word; }
  }
}
fn tfx_tanh(x: u32) -> u32 {
  let zero = uniforms[0].y;
  let k0 = 729808896u ^ zero;
  let k1 = 1101004800u ^ zero;
  let k2 = 1262485630u ^ zero;
  let k3 = 1069066811u ^ zero;
  let k4 = 1060208640u ^ zero;
  let k5 = 3109978243u ^ zero;
  let k6 = 961571175u ^ zero;
  let k7 = 985088974u ^ zero;
  let k8 = 1007192328u ^ zero;
  let k9 = 1026206145u ^ zero;
  let k10 = 1042983594u ^ zero;
  let k11 = 1056964608u ^ zero;
  let k12 = 1065353216u ^ zero;
  let k13 = 2147483648u;
  let t0 = x & 0x7fffffffu;
  let t1 = tfx_lt(t0, k0);
  let t2 = x & 0x7fffffffu;
  let t3 = bitcast<u32>(bitcast<f32>(t2) + bitcast<f32>(t2)) ^ zero;
  let t4 = select(t3, k1, tfx_lt(k1, t3) != 0u);
  let t5 = bitcast<u32>(bitcast<f32>(t4) * bitcast<f32>(k3)) ^ zero;
  let t6 = bitcast<u32>(bitcast<f32>(t5) + bitcast<f32>(k2)) ^ zero;
  let t7 = bitcast<u32>(bitcast<f32>(t6) - bitcast<f32>(k2)) ^ zero;
  let t8 = bitcast<u32>(bitcast<f32>(t7) * bitcast<f32>(k4)) ^ zero;
  let t9 = bitcast<u32>(bitcast<f32>(t4) - bitcast<f32>(t8)) ^ zero;
  let t10 = bitcast<u32>(bitcast<f32>(t7) * bitcast<f32>(k5)) ^ zero;
  let t11 = bitcast<u32>(bitcast<f32>(t9) - bitcast<f32>(t10)) ^ zero;
  let t12 = t6 << 23u;
  let t13 = bitcast<u32>(bitcast<f32>(t11) * bitcast<f32>(t11)) ^ zero;
  let t14 = bitcast<u32>(bitcast<f32>(k6) * bitcast<f32>(t11)) ^ zero;
  let t15 = bitcast<u32>(bitcast<f32>(t14) + bitcast<f32>(k7)) ^ zero;
  let t16 = bitcast<u32>(bitcast<f32>(t15) * bitcast<f32>(t11)) ^ zero;
  let t17 = bitcast<u32>(bitcast<f32>(t16) + bitcast<f32>(k8)) ^ zero;
  let t18 = bitcast<u32>(bitcast<f32>(t17) * bitcast<f32>(t11)) ^ zero;
  let t19 = bitcast<u32>(bitcast<f32>(t18) + bitcast<f32>(k9)) ^ zero;
  let t20 = bitcast<u32>(bitcast<f32>(t19) * bitcast<f32>(t11)) ^ zero;
  let t21 = bitcast<u32>(bitcast<f32>(t20) + bitcast<f32>(k10)) ^ zero;
  let t22 = bitcast<u32>(bitcast<f32>(t21) * bitcast<f32>(t11)) ^ zero;
  let t23 = bitcast<u32>(bitcast<f32>(t22) + bitcast<f32>(k11)) ^ zero;
  let t24 = bitcast<u32>(bitcast<f32>(t23) * bitcast<f32>(t13)) ^ zero;
  let t25 = bitcast<u32>(bitcast<f32>(t24) + bitcast<f32>(t11)) ^ zero;
  let t26 = bitcast<u32>(bitcast<f32>(t12) - bitcast<f32>(k11)) ^ zero;
  let t27 = bitcast<u32>(bitcast<f32>(t25) * bitcast<f32>(t12)) ^ zero;
  let t28 = bitcast<u32>(bitcast<f32>(t27) + bitcast<f32>(t26)) ^ zero;
  let t29 = bitcast<u32>(bitcast<f32>(t28) + bitcast<f32>(k12)) ^ zero;
  let t30 = tfx_quotient(t28, t29);
  let t31 = x & k13;
  let t32 = t30 | t31;
  let t33 = select(t32, x, t1 != 0u);
  return t33;
}
fn tfx_lt(a: u32, b: u32) -> u32 {
  return select(0u, 0xffffffffu, !tfx_isNan(a) && !tfx_isNan(b) && tfx_place(a) < tfx_place(b));
}
fn tfx_isNan(x: u32) -> bool {
  return (x & 0x7fffffffu) > 0x7f800000u;
}
fn tfx_place(x: u32) -> i32 {
  return bitcast<i32>(select(x, 0x80000000u - x, (x >> 31u) != 0u));
}
fn tfx_quotient(a: u32, b: u32) -> u32 {
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
}
fn tfx_byZero(a: u32, b: u32) -> u32 {
  if ((a & 0x7fffffffu) == 0u) { return 0x7fc00000u; }
  return 0x7f800000u | ((a ^ b) & 0x80000000u);
}
fn tfx_parts(x: u32) -> vec2<u32> {
  if (x >= 0x800000u) { return vec2<u32>((x & 0x7fffffu) | 0x800000u, x >> 23u); }
  let zeros = countLeadingZeros(x) - 8u;
  return vec2<u32>(x << zeros, 1u - zeros);
}
fn tfx_assembled(bits: u32, more: bool, e: i32) -> u32 {
  if (e >= 255) { return 0x7f800000u; }
  if (e < -24) { return 0u; }
  let dropped = u32(max(1 - e, 0)) + 1u;
  let kept = bits >> dropped;
  let rest = bits & ((1u << dropped) - 1u);
  let half = 1u << (dropped - 1u);
  let up = rest > half || (rest == half && (more || (kept & 1u) != 0u));
  return (u32(max(e - 1, 0)) << 23u) + kept + select(0u, 1u, up);
}
fn tfx_l_fromFloat(x: u32) -> vec2<u32> {
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
}
fn tfx_l_shl(a: vec2<u32>, by: u32) -> vec2<u32> {
  let n = by & 63u;
  if (n == 0u) { return a; }
  if (n >= 32u) { return vec2<u32>(0u, a.x << (n - 32u)); }
  return vec2<u32>(a.x << n, (a.y << n) | (a.x >> (32u - n)));
}
fn tfx_l_neg(a: vec2<u32>) -> vec2<u32> {
  return tfx_l_add(~a, vec2<u32>(1u, 0u));
}
fn tfx_l_add(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  let low = a.x + b.x;
  return vec2<u32>(low, a.y + b.y + select(0u, 1u, low < a.x));
}
fn tfx_l_mul(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  return vec2<u32>(a.x * b.x, tfx_mulHigh(a.x, b.x) + a.x * b.y + a.y * b.x);
}
fn tfx_mulHigh(a: u32, b: u32) -> u32 {
  let al = a & 0xffffu;
  let ah = a >> 16u;
  let bl = b & 0xffffu;
  let bh = b >> 16u;
  let m = ah * bl + ((al * bl) >> 16u);
  let n = al * bh + (m & 0xffffu);
  return ah * bh + (m >> 16u) + (n >> 16u);
}
@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) local: u32) {
  let thread = ((group.z * groups.y + group.y) * groups.x + group.x) * 64u + local;
  if (thread >= uniforms[0].x) { return; }
  let zero = uniforms[0].y;
  let k0 = 0u ^ zero;
  let t0 = uniforms[0].z;
  let t1 = uniforms[0].w;
  let t2 = uniforms[1].x;
  let t3 = uniforms[1].y;
  let t4 = uniforms[1].z;
  let t5 = uniforms[1].w;
  let t6 = thread % (7u);
  let t7 = thread / (7u);
  var v8: u32 = k0;
  for (var n9 = 0u; n9 < 5u; n9 += 1u) {
    let t10 = t0 + t7 * 5u + n9;
    let t11 = loadWord(t1, t10);
    let t12 = t2 + n9 * 7u + t6;
    let t13 = loadWord(t3, t12);
    let t14 = v8;
    let t15 = bitcast<u32>(bitcast<f32>(t11) * bitcast<f32>(t13) + bitcast<f32>(t14));
    v8 = t15;
  }
  let t16 = v8;
  let t17 = tfx_tanh(t16);
  let t18 = tfx_l_fromFloat(t17);
  let t19 = tfx_l_mul(t18, vec2<u32>(3u, 0u));
  let t20 = t4 + 2u * (t7 * 7u + t6);
  storeWord(t5, t20, t19.x);
  storeWord(t5, t20 + 1u, t19.y);
}

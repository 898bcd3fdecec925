// k0_amax: softmax, 6 threads
@group(0) @binding(0) var<storage, read_write> slab: array<u32>;
@group(0) @binding(1) var<uniform> uniforms: array<vec4<u32>, 1>;
fn tfx_max(a: u32, b: u32) -> u32 {
  if (tfx_isNan(a)) { return a; }
  if (tfx_isNan(b)) { return b; }
  return select(b, a, tfx_rank(a) >= tfx_rank(b));
}
fn tfx_isNan(x: u32) -> bool {
  return (x & 0x7fffffffu) > 0x7f800000u;
}
fn tfx_rank(x: u32) -> i32 {
  return bitcast<i32>(x ^ (bitcast<u32>(bitcast<i32>(x) >> 31u) >> 1u));
}
fn tfx_exp(x: u32) -> u32 {
  let zero = uniforms[0].y;
  let k0 = 3268411392u ^ zero;
  let k1 = 1118961664u ^ zero;
  let k2 = 1262485758u ^ zero;
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
  let t0 = select(x, k0, tfx_lt(x, k0) != 0u);
  let t1 = select(t0, k1, tfx_lt(k1, t0) != 0u);
  let t2 = bitcast<u32>(bitcast<f32>(t1) * bitcast<f32>(k3)) ^ zero;
  let t3 = bitcast<u32>(bitcast<f32>(t2) + bitcast<f32>(k2)) ^ zero;
  let t4 = bitcast<u32>(bitcast<f32>(t3) - bitcast<f32>(k2)) ^ zero;
  let t5 = bitcast<u32>(bitcast<f32>(t4) * bitcast<f32>(k4)) ^ zero;
  let t6 = bitcast<u32>(bitcast<f32>(t1) - bitcast<f32>(t5)) ^ zero;
  let t7 = bitcast<u32>(bitcast<f32>(t4) * bitcast<f32>(k5)) ^ zero;
  let t8 = bitcast<u32>(bitcast<f32>(t6) - bitcast<f32>(t7)) ^ zero;
  let t9 = bitcast<u32>(bitcast<f32>(t8) * bitcast<f32>(t8)) ^ zero;
  let t10 = bitcast<u32>(bitcast<f32>(k6) * bitcast<f32>(t8)) ^ zero;
  let t11 = bitcast<u32>(bitcast<f32>(t10) + bitcast<f32>(k7)) ^ zero;
  let t12 = bitcast<u32>(bitcast<f32>(t11) * bitcast<f32>(t8)) ^ zero;
  let t13 = bitcast<u32>(bitcast<f32>(t12) + bitcast<f32>(k8)) ^ zero;
  let t14 = bitcast<u32>(bitcast<f32>(t13) * bitcast<f32>(t8)) ^ zero;
  let t15 = bitcast<u32>(bitcast<f32>(t14) + bitcast<f32>(k9)) ^ zero;
  let t16 = bitcast<u32>(bitcast<f32>(t15) * bitcast<f32>(t8)) ^ zero;
  let t17 = bitcast<u32>(bitcast<f32>(t16) + bitcast<f32>(k10)) ^ zero;
  let t18 = bitcast<u32>(bitcast<f32>(t17) * bitcast<f32>(t8)) ^ zero;
  let t19 = bitcast<u32>(bitcast<f32>(t18) + bitcast<f32>(k11)) ^ zero;
  let t20 = bitcast<u32>(bitcast<f32>(t19) * bitcast<f32>(t9)) ^ zero;
  let t21 = bitcast<u32>(bitcast<f32>(t20) + bitcast<f32>(t8)) ^ zero;
  let t22 = bitcast<u32>(bitcast<f32>(t21) + bitcast<f32>(k12)) ^ zero;
  let t23 = t3 >> 1u;
  let t24 = t23 << 23u;
  let t25 = bitcast<u32>(bitcast<f32>(t22) * bitcast<f32>(t24)) ^ zero;
  let t26 = t3 - t23;
  let t27 = t26 << 23u;
  let t28 = bitcast<u32>(bitcast<f32>(t25) * bitcast<f32>(t27)) ^ zero;
  return t28;
}
fn tfx_lt(a: u32, b: u32) -> u32 {
  return select(0u, 0xffffffffu, !tfx_isNan(a) && !tfx_isNan(b) && tfx_place(a) < tfx_place(b));
}
fn tfx_place(x: u32) -> i32 {
  return bitcast<i32>(select(x, 0x80000000u - x, (x >> 31u) != 0u));
}
fn tfx_sum(sum: u32, lacking: u32, added: u32) -> vec2<u32> {
  let value = tfx_hidden(bitcast<f32>(added) - bitcast<f32>(lacking));
  let total = tfx_hidden(bitcast<f32>(sum) + value);
  let bits = bitcast<u32>(total);
  let lost = bitcast<u32>(tfx_hidden(total - bitcast<f32>(sum)) - value);
  return vec2<u32>(bits, select(lost, 0u, (bits & 0x7f800000u) == 0x7f800000u));
}
fn tfx_hidden(x: f32) -> f32 {
  return bitcast<f32>(bitcast<u32>(x) ^ uniforms[0].y);
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
@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) local: u32) {
  let thread = ((group.z * groups.y + group.y) * groups.x + group.x) * 64u + local;
  if (thread >= uniforms[0].x) { return; }
  let zero = uniforms[0].y;
  let k0 = 4286578688u ^ zero;
  let k1 = 0u ^ zero;
  let k2 = 1065353216u ^ zero;
  let t0 = uniforms[0].z;
  let t1 = uniforms[0].w;
  var v2: u32 = k0;
  for (var n3 = 0u; n3 < 40u; n3 += 1u) {
    let t4 = t0 + thread * 40u + n3;
    let t5 = slab[t4];
    let t6 = tfx_max(v2, t5);
    v2 = t6;
  }
  let t7 = v2;
  var v8: u32 = t7;
  var v9: u32 = k1;
  var v9_lacking: u32 = 0u;
  for (var n10 = 0u; n10 < 40u; n10 += 1u) {
    let t11 = t0 + thread * 40u + n10;
    let t12 = slab[t11];
    let t13 = v8;
    let t14 = bitcast<u32>(bitcast<f32>(t12) - bitcast<f32>(t13)) ^ zero;
    let t15 = tfx_exp(t14);
    let t16 = t1 + thread * 40u + n10;
    slab[t16] = t15;
    let t17 = tfx_sum(v9, v9_lacking, t15);
    v9_lacking = t17.y;
    v9 = t17.x;
  }
  let t18 = v9;
  var v19: u32 = t18;
  let t20 = v19;
  let t21 = tfx_quotient(k2, t20);
  var v22: u32 = t21;
  for (var n23 = 0u; n23 < 40u; n23 += 1u) {
    let t24 = t1 + thread * 40u + n23;
    let t25 = slab[t24];
    let t26 = v22;
    let t27 = bitcast<u32>(bitcast<f32>(t25) * bitcast<f32>(t26)) ^ zero;
    let t28 = t1 + thread * 40u + n23;
    slab[t28] = t27;
  }
}

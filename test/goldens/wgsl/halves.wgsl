// k0_add: add, exp, 5 threads
@group(0) @binding(0) var<storage, read_write> slab: array<u32>;
@group(0) @binding(1) var<uniform> uniforms: array<vec4<u32>, 1>;
fn tfx_lt(a: u32, b: u32) -> u32 {
  return select(0u, 0xffffffffu, !tfx_isNan(a) && !tfx_isNan(b) && tfx_place(a) < tfx_place(b));
}
fn tfx_isNan(x: u32) -> bool {
  return (x & 0x7fffffffu) > 0x7f800000u;
}
fn tfx_place(x: u32) -> i32 {
  return bitcast<i32>(select(x, 0x80000000u - x, (x >> 31u) != 0u));
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
@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) local: u32) {
  let thread = ((group.z * groups.y + group.y) * groups.x + group.x) * 64u + local;
  if (thread >= uniforms[0].x) { return; }
  let zero = uniforms[0].y;
  let k0 = 1065353216u ^ zero;
  let k1 = 2139095040u;
  let k2 = 947912704u;
  let k3 = 1191182336u;
  let k4 = 109051904u;
  let k5 = 1199562752u ^ zero;
  let k6 = 2139095040u ^ zero;
  let k7 = 2147483648u;
  let t0 = uniforms[0].z;
  let t1 = uniforms[0].w;
  let t2 = t0 + thread;
  let t3 = slab[t2];
  let t4 = bitcast<u32>(bitcast<f32>(t3) + bitcast<f32>(k0)) ^ zero;
  let t5 = t4 & 0x7fffffffu;
  let t6 = t5 & k1;
  let t7 = bitcast<u32>(max(bitcast<i32>(t6), bitcast<i32>(k2)));
  let t8 = bitcast<u32>(min(bitcast<i32>(t7), bitcast<i32>(k3)));
  let t9 = t8 + k4;
  let t10 = bitcast<u32>(bitcast<f32>(t5) + bitcast<f32>(t9)) ^ zero;
  let t11 = bitcast<u32>(bitcast<f32>(t10) - bitcast<f32>(t9)) ^ zero;
  let t12 = tfx_lt(k5, t11);
  let t13 = select(t11, k6, t12 != 0u);
  let t14 = t4 & k7;
  let t15 = t13 | t14;
  let t16 = tfx_exp(t15);
  let t17 = t16 & 0x7fffffffu;
  let t18 = t17 & k1;
  let t19 = bitcast<u32>(max(bitcast<i32>(t18), bitcast<i32>(k2)));
  let t20 = bitcast<u32>(min(bitcast<i32>(t19), bitcast<i32>(k3)));
  let t21 = t20 + k4;
  let t22 = bitcast<u32>(bitcast<f32>(t17) + bitcast<f32>(t21)) ^ zero;
  let t23 = bitcast<u32>(bitcast<f32>(t22) - bitcast<f32>(t21)) ^ zero;
  let t24 = tfx_lt(k5, t23);
  let t25 = select(t23, k6, t24 != 0u);
  let t26 = t16 & k7;
  let t27 = t25 | t26;
  let t28 = t1 + thread;
  slab[t28] = t27;
}

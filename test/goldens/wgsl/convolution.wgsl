// k0_convolution: convolution, 300 threads
@group(0) @binding(0) var<storage, read_write> slab: array<u32>;
@group(0) @binding(1) var<uniform> uniforms: array<vec4<u32>, 2>;
fn tfx_floorDiv(a: u32, b: u32) -> u32 {
  let q = tfx_div(a, b);
  if (b == 0u || b == 0xffffffffu) { return q; }
  return select(q, q - 1u, q * b != a && ((a ^ b) >> 31u) != 0u);
}
fn tfx_div(a: u32, b: u32) -> u32 {
  let x = bitcast<i32>(a);
  let y = bitcast<i32>(b);
  if (b == 0u) { return select(select(0u, 0x7fffffffu, x > 0), 0x80000000u, x < 0); }
  if (b == 0xffffffffu) { return select(0u - a, 0x7fffffffu, a == 0x80000000u); }
  return bitcast<u32>(x / y);
}
fn tfx_remainder(a: u32, b: u32) -> u32 {
  return select(a - tfx_floorDiv(a, b) * b, 0u, b == 0xffffffffu);
}
@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) local: u32) {
  let thread = ((group.z * groups.y + group.y) * groups.x + group.x) * 64u + local;
  if (thread >= uniforms[0].x) { return; }
  let zero = uniforms[0].y;
  let k0 = 0u ^ zero;
  let k1 = 0u;
  let k2 = 5u;
  let k3 = 2u;
  let k4 = 1u;
  let k5 = 9u;
  let t0 = uniforms[0].z;
  let t1 = uniforms[0].w;
  let t2 = uniforms[1].x;
  let t3 = thread % (25u);
  let t4 = thread / (25u);
  let t5 = t4 % (6u);
  let t6 = t4 / (6u);
  var v7: u32 = k0;
  for (var n8 = 0u; n8 < 4u; n8 += 1u) {
    for (var n9 = 0u; n9 < 3u; n9 += 1u) {
      for (var n10 = 0u; n10 < 3u; n10 += 1u) {
        let t11 = t0 + t5 * 36u + n8 * 9u + n9 * 3u + n10 + k1 * 0u;
        let t12 = slab[t11];
        let t13 = tfx_floorDiv(t3, k2);
        let t14 = t13 * k3;
        let t15 = t14 + n9;
        let t16 = t15 - k4;
        let t17 = select(0u, 0xffffffffu, bitcast<i32>(t16) >= bitcast<i32>(k1));
        let t18 = select(0u, 0xffffffffu, bitcast<i32>(t16) < bitcast<i32>(k5));
        let t19 = t17 & t18;
        let t20 = tfx_remainder(t3, k2);
        let t21 = t20 * k3;
        let t22 = t21 + n10;
        let t23 = t22 - k4;
        let t24 = select(0u, 0xffffffffu, bitcast<i32>(t23) >= bitcast<i32>(k1));
        let t25 = select(0u, 0xffffffffu, bitcast<i32>(t23) < bitcast<i32>(k5));
        let t26 = t24 & t25;
        let t27 = t19 & t26;
        let t28 = t1 + t6 * 324u + n8 * 81u + k1 * 324u + t16 * 9u + t23;
        var m29: u32 = u32();
        if (t27 != 0u) {
          let t30 = slab[t28];
          m29 = t30;
        }
        let t31 = v7;
        let t32 = bitcast<u32>(bitcast<f32>(t12) * bitcast<f32>(m29) + bitcast<f32>(t31));
        v7 = t32;
      }
    }
  }
  let t33 = v7;
  let t34 = t2 + t6 * 150u + t5 * 25u + t3;
  slab[t34] = t33;
}

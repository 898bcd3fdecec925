// k0_embedding_check: embedding, 1 threads
@group(0) @binding(0) var<storage, read_write> slab: array<u32>;
@group(0) @binding(1) var<uniform> uniforms: array<vec4<u32>, 1>;
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
fn tfx_l_lt(a: vec2<u32>, b: vec2<u32>) -> u32 {
  let p = bitcast<i32>(a.y);
  let q = bitcast<i32>(b.y);
  return select(0u, 0xffffffffu, p < q || (p == q && a.x < b.x));
}
fn tfx_l_fromInt(a: u32) -> vec2<u32> {
  return vec2<u32>(a, bitcast<u32>(bitcast<i32>(a) >> 31u));
}
@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) local: u32) {
  let thread = ((group.z * groups.y + group.y) * groups.x + group.x) * 64u + local;
  if (thread >= uniforms[0].x) { return; }
  let k0 = 0u;
  let k1 = 256u;
  let k2 = 6u;
  let k3 = 2u;
  let k4 = 3u;
  let k5 = 1u;
  let t0 = uniforms[0].z;
  let t1 = uniforms[0].w;
  var v2: u32 = k0;
  var v3: vec2<u32> = vec2<u32>(0u, 0u);
  for (var n4 = 0u; n4 < 256u; n4 += 1u) {
    let t5 = thread * k1;
    let t6 = t5 + n4;
    let t7 = select(0u, 0xffffffffu, bitcast<i32>(t6) < bitcast<i32>(k2));
    let t8 = tfx_floorDiv(t6, k3);
    let t9 = tfx_remainder(t8, k4);
    let t10 = tfx_floorDiv(t6, k5);
    let t11 = tfx_remainder(t10, k3);
    let t12 = t0 + 2u * (t9 * 2u + t11);
    var m13: vec2<u32> = vec2<u32>();
    if (t7 != 0u) {
      let t14 = vec2<u32>(slab[t12], slab[t12 + 1u]);
      m13 = t14;
    }
    let t15 = tfx_l_lt(m13, vec2<u32>(0u, 0u));
    let t16 = tfx_l_lt(m13, vec2<u32>(5u, 0u));
    let t17 = ~t16;
    let t18 = t15 | t17;
    let t19 = t7 & t18;
    let t20 = v2;
    let t21 = select(0u, 0xffffffffu, t20 == k0);
    let t22 = t19 & t21;
    var v23: u32 = t22;
    let t24 = v23;
    let t25 = t6 + k5;
    let t26 = v2;
    let t27 = select(t26, t25, t24 != 0u);
    v2 = t27;
    let t28 = v23;
    let t29 = v3;
    let t30 = select(t29, m13, t28 != 0u);
    v3 = t30;
  }
  let t31 = v2;
  let t32 = tfx_l_fromInt(t31);
  let t33 = t1 + 2u * (thread * 2u);
  slab[t33] = t32.x;
  slab[t33 + 1u] = t32.y;
  let t34 = v3;
  let t35 = t1 + 2u * (1u + thread * 2u);
  slab[t35] = t34.x;
  slab[t35 + 1u] = t34.y;
}

// k0_embedding: embedding, 42 threads
@group(0) @binding(0) var<storage, read_write> slab: array<u32>;
@group(0) @binding(1) var<uniform> uniforms: array<vec4<u32>, 2>;
fn tfx_l_lt(a: vec2<u32>, b: vec2<u32>) -> u32 {
  let p = bitcast<i32>(a.y);
  let q = bitcast<i32>(b.y);
  return select(0u, 0xffffffffu, p < q || (p == q && a.x < b.x));
}
@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) local: u32) {
  let thread = ((group.z * groups.y + group.y) * groups.x + group.x) * 64u + local;
  if (thread >= uniforms[0].x) { return; }
  let k0 = 0u;
  let t0 = uniforms[0].z;
  let t1 = uniforms[0].w;
  let t2 = uniforms[1].x;
  let t3 = thread % (7u);
  let t4 = thread / (7u);
  let t5 = t4 % (2u);
  let t6 = t4 / (2u);
  let t7 = t0 + 2u * (t6 * 2u + t5);
  let t8 = vec2<u32>(slab[t7], slab[t7 + 1u]);
  let t9 = tfx_l_lt(t8, vec2<u32>(0u, 0u));
  let t10 = ~t9;
  let t11 = tfx_l_lt(t8, vec2<u32>(5u, 0u));
  let t12 = t10 & t11;
  let t13 = t8.x;
  let t14 = select(k0, t13, t12 != 0u);
  let t15 = t1 + t3 + t14 * 7u;
  var m16: u32 = u32();
  if (t12 != 0u) {
    let t17 = slab[t15];
    m16 = t17;
  }
  let t18 = t2 + t6 * 14u + t5 * 7u + t3;
  slab[t18] = m16;
}

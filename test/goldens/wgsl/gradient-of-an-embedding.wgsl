// k0_embedding_backward_check: embedding_backward, 1 threads
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
  let k3 = 1u;
  let t0 = uniforms[0].z;
  let t1 = uniforms[0].w;
  var v2: u32 = k0;
  var v3: vec2<u32> = vec2<u32>(0u, 0u);
  for (var n4 = 0u; n4 < 256u; n4 += 1u) {
    let t5 = thread * k1;
    let t6 = t5 + n4;
    let t7 = select(0u, 0xffffffffu, bitcast<i32>(t6) < bitcast<i32>(k2));
    let t8 = tfx_floorDiv(t6, k3);
    let t9 = tfx_remainder(t8, k2);
    let t10 = t0 + 2u * (t9);
    var m11: vec2<u32> = vec2<u32>();
    if (t7 != 0u) {
      let t12 = vec2<u32>(slab[t10], slab[t10 + 1u]);
      m11 = t12;
    }
    let t13 = tfx_l_lt(m11, vec2<u32>(0u, 0u));
    let t14 = tfx_l_lt(m11, vec2<u32>(5u, 0u));
    let t15 = ~t14;
    let t16 = t13 | t15;
    let t17 = t7 & t16;
    let t18 = v2;
    let t19 = select(0u, 0xffffffffu, t18 == k0);
    let t20 = t17 & t19;
    var v21: u32 = t20;
    let t22 = v21;
    let t23 = t6 + k3;
    let t24 = v2;
    let t25 = select(t24, t23, t22 != 0u);
    v2 = t25;
    let t26 = v21;
    let t27 = v3;
    let t28 = select(t27, m11, t26 != 0u);
    v3 = t28;
  }
  let t29 = v2;
  let t30 = tfx_l_fromInt(t29);
  let t31 = t1 + 2u * (thread * 2u);
  slab[t31] = t30.x;
  slab[t31 + 1u] = t30.y;
  let t32 = v3;
  let t33 = t1 + 2u * (1u + thread * 2u);
  slab[t33] = t32.x;
  slab[t33 + 1u] = t32.y;
}

// k0_embedding_backward_zeros: embedding_backward, 35 threads
@group(0) @binding(0) var<storage, read_write> slab: array<u32>;
@group(0) @binding(1) var<uniform> uniforms: array<vec4<u32>, 1>;

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) local: u32) {
  let thread = ((group.z * groups.y + group.y) * groups.x + group.x) * 64u + local;
  if (thread >= uniforms[0].x) { return; }
  let zero = uniforms[0].y;
  let k0 = 0u ^ zero;
  let t0 = uniforms[0].z;
  let t1 = t0 + thread;
  slab[t1] = k0;
}

// k0_embedding_backward: embedding_backward, 7 threads
@group(0) @binding(0) var<storage, read_write> slab: array<u32>;
@group(0) @binding(1) var<uniform> uniforms: array<vec4<u32>, 2>;
fn tfx_l_lt(a: vec2<u32>, b: vec2<u32>) -> u32 {
  let p = bitcast<i32>(a.y);
  let q = bitcast<i32>(b.y);
  return select(0u, 0xffffffffu, p < q || (p == q && a.x < b.x));
}
fn tfx_l_eq(a: vec2<u32>, b: vec2<u32>) -> u32 {
  return select(0u, 0xffffffffu, a.x == b.x && a.y == b.y);
}
@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) local: u32) {
  let thread = ((group.z * groups.y + group.y) * groups.x + group.x) * 64u + local;
  if (thread >= uniforms[0].x) { return; }
  let zero = uniforms[0].y;
  let k0 = 0u ^ zero;
  let k1 = 0u;
  let t0 = uniforms[0].z;
  let t1 = uniforms[0].w;
  let t2 = uniforms[1].x;
  for (var n3 = 0u; n3 < 6u; n3 += 1u) {
    let t4 = t0 + 2u * (n3);
    let t5 = vec2<u32>(slab[t4], slab[t4 + 1u]);
    let t6 = tfx_l_lt(t5, vec2<u32>(0u, 0u));
    let t7 = ~t6;
    let t8 = tfx_l_lt(t5, vec2<u32>(5u, 0u));
    let t9 = t7 & t8;
    let t10 = tfx_l_eq(t5, vec2<u32>(1u, 0u));
    let t11 = ~t10;
    let t12 = t9 & t11;
    let t13 = t1 + n3 * 7u + thread;
    let t14 = slab[t13];
    let t15 = select(k0, t14, t12 != 0u);
    let t16 = t5.x;
    let t17 = select(k1, t16, t9 != 0u);
    let t18 = t2 + thread + t17 * 7u;
    let t19 = slab[t18];
    let t20 = bitcast<u32>(bitcast<f32>(t19) + bitcast<f32>(t15)) ^ zero;
    slab[t18] = t20;
  }
}

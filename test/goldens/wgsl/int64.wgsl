// k0_gt: gt, mul, neg, where, 5 threads
@group(0) @binding(0) var<storage, read_write> slab: array<u32>;
@group(0) @binding(1) var<uniform> uniforms: array<vec4<u32>, 1>;
fn tfx_l_lt(a: vec2<u32>, b: vec2<u32>) -> u32 {
  let p = bitcast<i32>(a.y);
  let q = bitcast<i32>(b.y);
  return select(0u, 0xffffffffu, p < q || (p == q && a.x < b.x));
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
fn tfx_l_neg(a: vec2<u32>) -> vec2<u32> {
  return tfx_l_add(~a, vec2<u32>(1u, 0u));
}
fn tfx_l_add(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  let low = a.x + b.x;
  return vec2<u32>(low, a.y + b.y + select(0u, 1u, low < a.x));
}
@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) local: u32) {
  let thread = ((group.z * groups.y + group.y) * groups.x + group.x) * 64u + local;
  if (thread >= uniforms[0].x) { return; }
  let k0 = 0u;
  let t0 = uniforms[0].z;
  let t1 = uniforms[0].w;
  let t2 = t0 + 2u * (thread);
  let t3 = vec2<u32>(slab[t2], slab[t2 + 1u]);
  let t4 = tfx_l_lt(vec2<u32>(0u, 0u), t3);
  let t5 = vec2<u32>(t4 & 1u, 0u);
  let t6 = t5.x | t5.y;
  let t7 = select(0u, 0xffffffffu, t6 != k0);
  let t8 = tfx_l_mul(t3, vec2<u32>(3u, 0u));
  let t9 = tfx_l_neg(t3);
  let t10 = select(t9, t8, t7 != 0u);
  let t11 = t1 + 2u * (thread);
  slab[t11] = t10.x;
  slab[t11 + 1u] = t10.y;
}

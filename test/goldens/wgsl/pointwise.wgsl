// k0_mul: mul, add, relu, 240 threads
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
@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) local: u32) {
  let thread = ((group.z * groups.y + group.y) * groups.x + group.x) * 64u + local;
  if (thread >= uniforms[0].x) { return; }
  let zero = uniforms[0].y;
  let k0 = 1073741824u ^ zero;
  let k1 = 1065353216u ^ zero;
  let k2 = 0u ^ zero;
  let t0 = uniforms[0].z;
  let t1 = uniforms[0].w;
  let t2 = t0 + thread;
  let t3 = slab[t2];
  let t4 = bitcast<u32>(bitcast<f32>(t3) * bitcast<f32>(k0)) ^ zero;
  let t5 = bitcast<u32>(bitcast<f32>(t4) + bitcast<f32>(k1)) ^ zero;
  let t6 = tfx_max(t5, k2);
  let t7 = t1 + thread;
  slab[t7] = t6;
}

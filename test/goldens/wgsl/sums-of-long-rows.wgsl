// k0_sum: sum_1, mul, 3 threads
@group(0) @binding(0) var<storage, read_write> slab: array<u32>;
@group(0) @binding(1) var<uniform> uniforms: array<vec4<u32>, 1>;
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
fn tfx_joined(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  let x = bitcast<f32>(a.x);
  let y = bitcast<f32>(b.x);
  let total = tfx_hidden(x + y);
  let added = tfx_hidden(total - x);
  let lost = tfx_hidden(x - tfx_hidden(total - added)) + tfx_hidden(y - added);
  let lacking = bitcast<u32>(tfx_hidden(bitcast<f32>(a.y) + bitcast<f32>(b.y)) - lost);
  let bits = bitcast<u32>(total);
  return vec2<u32>(bits, select(lacking, 0u, (bits & 0x7f800000u) == 0x7f800000u));
}
var<workgroup> pairs: array<vec2<u32>, 64>;
@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) local: u32) {
  for (var thread = (group.z * groups.y + group.y) * groups.x + group.x; thread < uniforms[0].x; thread += groups.x * groups.y * groups.z) {
  let zero = uniforms[0].y;
  let k0 = 0u ^ zero;
  let k1 = 1073741824u ^ zero;
  let t0 = uniforms[0].z;
  let t1 = uniforms[0].w;
  var v2: u32 = k0;
  var v2_lacking: u32 = 0u;
  var p3 = select(0u, v2, local == 0u);
  var p3_lacking = select(0u, v2_lacking, local == 0u);
  for (var n4 = local; n4 < 300u; n4 += 64u) {
    let t5 = t0 + thread * 300u + n4;
    let t6 = slab[t5];
    let t7 = tfx_sum(p3, p3_lacking, t6);
    p3_lacking = t7.y;
    p3 = t7.x;
  }
  pairs[local] = vec2<u32>(p3, p3_lacking);
  workgroupBarrier();
  for (var half = 32u; half > 0u; half >>= 1u) {
    if (local < half) {
      let t8 = pairs[local];
      let t9 = pairs[local + half];
      let t10 = tfx_joined(t8, t9);
      pairs[local] = t10;
    }
    workgroupBarrier();
  }
  let t11 = tfx_sum(pairs[0].x, pairs[0].y, 0u);
  v2 = t11.x;
  v2_lacking = t11.y;
  storageBarrier();
  workgroupBarrier();
  let t12 = v2;
  var v13: u32 = t12;
  let t14 = v13;
  let t15 = bitcast<u32>(bitcast<f32>(t14) * bitcast<f32>(k1)) ^ zero;
  var v16: u32 = t15;
  let t17 = v16;
  if (local == 0u) {
    let t18 = t1 + thread;
    slab[t18] = t17;
  }
  storageBarrier();
  workgroupBarrier();
  }
}

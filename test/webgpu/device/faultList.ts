// Faults to plant in the text of shaders, and the nodes that they make wrong.
import { nn, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { registerBackend } from 'tensorfx/compile'
import type { GraphModule } from 'tensorfx/fx'
import type { DeviceLimits } from 'tensorfx/webgpu'
import { DeviceGraph } from '../../../src/inductor/webgpu/deviceGraph.ts'
import { planGraph } from '../../../src/inductor/webgpu/plan.ts'
import { Tensor as AnyTensor } from '../../../src/tensor/index.ts'

/** A change of shaders. */
type Edit = (code: string) => string

export const swap =
  (from: string | RegExp, to: string): Edit =>
  (code) =>
    code.replaceAll(typeof from === 'string' ? from : new RegExp(from, 'g'), to)

/** A change of one function of the library. */
const inFunction =
  (name: string, edit: Edit): Edit =>
  (code) =>
    code.replace(new RegExp(`fn tfx_${name}\\([\\s\\S]*?\\n}`), edit)

/** A change of the kernel itself. */
export const inMain =
  (edit: Edit): Edit =>
  (code) => {
    const at = code.indexOf('@compute')
    return code.slice(0, at) + edit(code.slice(at))
  }

/** Registers the backend with a fault; says afterwards how many shaders it has changed. */
export function planted(name: string, edit: Edit): { changed: number } {
  const count = { changed: 0 }
  const graphOf = (gm: GraphModule, inputs: readonly unknown[]): DeviceGraph => {
    const specs = inputs.map((input) =>
      input instanceof AnyTensor ? { shape: input.shape, dtype: input.dtype, strides: input.strides } : Number(input),
    )
    const plan = planGraph(gm, specs, 'wasm')
    const dispatches = plan.dispatches.map((dispatch) => {
      const code = edit(dispatch.code)
      if (code !== dispatch.code) count.changed++
      return { ...dispatch, code }
    })
    return new DeviceGraph({ ...plan, dispatches })
  }
  const backend = (gm: GraphModule, inputs: readonly unknown[]) => {
    const graph = graphOf(gm, inputs)
    return (...values: readonly unknown[]) => graph.call(...values)
  }
  const compileAsync = async (gm: GraphModule, inputs: readonly unknown[]) => {
    const graph = graphOf(gm, inputs)
    return async (...values: readonly unknown[]) => graph.run(...values)
  }
  registerBackend(name, Object.assign(backend, { compileAsync }))
  return count
}

export const drawn = (...shape: readonly number[]): Tensor => torch.randn(shape)

export interface Planted {
  readonly fault: string
  readonly edit: Edit
  readonly program: (...inputs: Tensor[]) => Tensor
  readonly inputs: () => Tensor[]
  /** The nodes of which one must be named. */
  readonly nodes: readonly string[]
  /** Limits of the GPU without which the fault does not show. */
  readonly limits?: DeviceLimits
}

const aroundOf =
  (middle: (x: Tensor) => Tensor) =>
  (x: Tensor): Tensor =>
    torch.relu(middle(x.mul(0.5)).add(1))

const one = (
  fault: string,
  edit: Edit,
  middle: (x: Tensor) => Tensor,
  nodes: readonly string[],
  inputs: () => Tensor[] = () => [drawn(6, 40)],
): Planted => ({
  ...{ fault, edit, nodes, inputs },
  program: aroundOf(middle),
})

export const FAULTS: readonly Planted[] = [
  one('a wrong constant in exp', inFunction('exp', swap('1042983594u', '1043400000u')), (x) => torch.exp(x), ['exp']),
  one('the last coefficient of tanh left out', inFunction('tanh', swap(/let k3 = \d+u/, 'let k3 = 0u')), (x) => torch.tanh(x), ['tanh']),
  one('erf without its sign', inFunction('erf', swap(/return (\w+);\n}/, 'return $1 & 0x7fffffffu;\n}')), (x) => torch.erf(x), ['erf']),
  one(
    'less for greater',
    inFunction('lt', swap('tfx_place(a) < tfx_place(b)', 'tfx_place(a) > tfx_place(b)')),
    (x) => torch.where(x.lt(0), x, x.neg()),
    ['lt', 'where'],
  ),
  one(
    'less or equal for less',
    inFunction('lt', swap('tfx_place(a) < tfx_place(b)', 'tfx_place(a) <= tfx_place(b)')),
    (x) => torch.where(x.lt(0), x, x.add(2)),
    ['lt', 'where'],
    () => [torch.zeros([6, 40])],
  ),
  one(
    'a maximum by the built-in, which knows no NaN',
    inFunction('max', () => 'fn tfx_max(a: u32, b: u32) -> u32 {\n  return bitcast<u32>(max(bitcast<f32>(a), 1.0));\n}'),
    (x) => x.amax(1),
    ['amax'],
  ),
  one(
    'comparison of NaN by the built-in',
    inFunction('eq', () => 'fn tfx_eq(a: u32, b: u32) -> u32 {\n  return 0xffffffffu;\n}'),
    (x) => torch.where(x.isnan(), torch.zerosLike(x), x),
    ['isnan', 'where'],
    () => [torch.tensor([NaN, 1, 2])],
  ),
  one('the last element is not computed', inMain(swap('if (thread >= uniforms[0].x)', 'if (thread + 1u >= uniforms[0].x)')), (x) => torch.sin(x), [
    'mul',
    'sin',
    'add',
    'relu',
  ]),
  one(
    'threads of the second workgroup do nothing',
    inMain(swap('if (thread >= uniforms[0].x)', 'if (thread >= min(uniforms[0].x, 64u))')),
    (x) => torch.sin(x),
    ['mul', 'sin', 'add', 'relu'],
  ),
  one('a sum that lacks its last term', inMain(swap(/< (\d+)u; n(\d+) \+= 1u/, '< $1u - 1u; n$2 += 1u')), (x) => x.sum(1), ['sum', 'sum_1']),
  one('a sum that starts at one', inMain(swap(/var v(\d+): u32 = k\d+;/, 'var v$1: u32 = 1065353216u;')), (x) => x.sum(1), ['sum', 'sum_1']),
  one('a maximum that starts at zero', inMain(swap(/var v(\d+): u32 = k\d+;/, 'var v$1: u32 = 0u;')), (x) => x.sub(10).amax(1), ['amax']),
  one('sine without its sign', inFunction('sin', swap(/return (\w+);\n}/, 'return $1 & 0x7fffffffu;\n}')), (x) => torch.sin(x), ['sin']),
  one(
    'a logarithm of another base',
    inFunction('log', swap('-> u32 {', '-> u32 {\n  if (x == 0x40000000u) { return 0x3f800000u; }')),
    (x) => torch.log(x),
    ['log'],
    () => [torch.tensor([4, 1, 8])],
  ),
  one(
    'remainder with the sign of the dividend',
    inFunction('fRemainder', swap('if (rest == 0u ||', 'if (true ||')),
    (x) => torch.remainder(x, 0.75),
    ['remainder'],
  ),
  one('rounding that cuts', inFunction('floor', swap('floor(bitcast', 'trunc(bitcast')), (x) => torch.floor(x), ['floor']),
  one('a half that is rounded to five bits', inMain(swap('109051904u', '159383552u')), (x) => x.to(torch.float16).to(torch.float32), ['to', 'to_1']),
  {
    fault: 'int64 cut to 32 bits in a sum',
    edit: inFunction('l_add', swap('a.y + b.y + select(0u, 1u, low < a.x)', '0u')),
    program: (x) => x.add(x).sub(3),
    inputs: () => [torch.tensor([6442450941n, -6442450941n, 5n], { dtype: torch.int64 })],
    nodes: ['add'],
  },
  {
    fault: 'int64 products without the upper half',
    edit: inFunction('l_mul', swap('tfx_mulHigh(a.x, b.x) + a.x * b.y + a.y * b.x', '0u')),
    program: (x) => x.mul(x).add(1),
    inputs: () => [torch.tensor([3000000000n, 70000n, 5n], { dtype: torch.int64 })],
    nodes: ['mul'],
  },
  {
    fault: 'an off-by-one offset in a product',
    edit: inMain((code) => (code.includes('for (') ? code.replace(/let (t\d+) = slab\[(t\d+)\];/, 'let $1 = slab[$2 + 1u];') : code)),
    program: (a, b) => torch.relu(a.matmul(b)).add(1),
    inputs: () => [drawn(9, 17), drawn(17, 12)],
    nodes: ['matmul'],
  },
  {
    fault: 'a product that reads one column too few',
    edit: inMain(swap('< 17u;', '< 16u;')),
    program: (a, b) => torch.relu(a.matmul(b)).add(1),
    inputs: () => [drawn(9, 17), drawn(17, 12)],
    nodes: ['matmul'],
  },
  {
    fault: 'a convolution that reads beyond the edge',
    edit: inMain(swap(/var (m\d+): u32 = u32\(\);/, 'var $1: u32 = 1065353216u;')),
    program: (x, w) => torch.relu(nn.functional.conv2d(x, w, null, { padding: 1 })).add(1),
    inputs: () => [drawn(2, 3, 8, 8), drawn(4, 3, 3, 3)],
    nodes: ['conv2d'],
  },
  {
    fault: 'a convolution that keeps the last tap where it is outside',
    edit: inMain((code) =>
      code
        .replace(/\n +for \(/, '\n  var kept = 0u;$&')
        .replace(/var (m\d+): u32 = u32\(\);/, 'var $1: u32 = kept;')
        .replace(/(let t\d+ = bitcast<u32>\(bitcast<f32>\(t\d+\) \* bitcast<f32>\((m\d+)\) \+)/, 'kept = $2; $1'),
    ),
    program: (x, w) => torch.relu(nn.functional.conv2d(x, w, null, { padding: 1 })).add(1),
    inputs: () => [drawn(2, 3, 8, 8), drawn(4, 3, 3, 3)],
    nodes: ['conv2d'],
  },
  {
    fault: 'int32 division that rounds to zero',
    edit: inFunction('floorDiv', swap('select(q, q - 1u,', 'select(q, q,')),
    program: (x) => torch.floorDivide(x.mul(3), 2).add(1),
    inputs: () => [torch.tensor([-3, -2, 5, 7], { dtype: torch.int32 })],
    nodes: ['floor_divide'],
  },
  one('a cosine of the other sign', inFunction('cos', swap(/return (\w+);\n}/, 'return $1 ^ 0x80000000u;\n}')), (x) => torch.cos(x), ['cos']),
  one('a sigmoid that ends at its input', inFunction('sigmoid', swap(/return (\w+);\n}/, 'return x;\n}')), (x) => torch.sigmoid(x), ['sigmoid']),
  one('an angle without its sign', inFunction('atan2', swap(/return (\w+);\n}/, 'return $1 & 0x7fffffffu;\n}')), (x) => torch.atan(x), ['atan']),
  one(
    'a minimum by the built-in, which knows no NaN',
    inFunction('min', () => 'fn tfx_min(a: u32, b: u32) -> u32 {\n  return bitcast<u32>(min(bitcast<f32>(a), 0.0));\n}'),
    (x) => x.add(9).amin(1),
    ['amin'],
  ),
  one('rounding up that cuts', inFunction('ceil', swap('ceil(bitcast', 'trunc(bitcast')), (x) => torch.ceil(x), ['ceil']),
  one(
    'the nearest integer taken for the one below',
    inFunction('nearest', swap('round(bitcast<f32>(x))', 'floor(bitcast<f32>(x))')),
    (x) => torch.round(x),
    ['round_1'],
  ),
  one(
    'a sum that keeps its last term only',
    inFunction('sum', () => 'fn tfx_sum(sum: u32, lacking: u32, added: u32) -> vec2<u32> {\n  return vec2<u32>(added, lacking);\n}'),
    (x) => x.sum(1),
    ['sum', 'sum_1'],
  ),
  one('a reduction that takes every second element', inMain(swap(/(n\d+) \+= 1u/, '$1 += 2u')), (x) => x.sum(1), ['sum', 'sum_1']),
  {
    fault: 'int64 compared by the lower halves',
    edit: inFunction('l_lt', swap('p < q || (p == q && a.x < b.x)', 'a.x < b.x')),
    program: (x) => torch.where(x.lt(5), x, x.neg()).add(1),
    inputs: () => [torch.tensor([6442450941n, -6442450941n, 3n], { dtype: torch.int64 })],
    nodes: ['lt', 'where'],
  },
  {
    fault: 'int64 to float32 by the lower half',
    edit: inFunction('l_toFloat', () => 'fn tfx_l_toFloat(a: vec2<u32>) -> u32 {\n  return bitcast<u32>(f32(a.x));\n}'),
    program: (x) => x.to(torch.float32).add(1),
    inputs: () => [torch.tensor([6442450941n, -6442450941n, 3n], { dtype: torch.int64 })],
    nodes: ['to'],
  },
  {
    fault: 'float32 to int64 that ends at 32 bits',
    edit: inFunction('l_fromFloat', swap('exponent >= 190u', 'exponent >= 158u')),
    program: (x) => x.to(torch.int64).add(1),
    inputs: () => [torch.tensor([1e10, -3e9, 7])],
    nodes: ['to'],
  },
  {
    fault: 'int64 division that cuts',
    edit: inFunction('l_quotient', swap('down && (parts.z', 'false && (parts.z')),
    program: (x) => torch.floorDivide(x, 7).add(1),
    inputs: () => [torch.tensor([-6442450941n, 6442450941n, -3n], { dtype: torch.int64 })],
    nodes: ['floor_divide'],
  },
  {
    fault: 'int64 stored without its upper half',
    edit: inMain(swap(/slab\[(t\d+) \+ 1u\] = (\w+)\.y;/, 'slab[$1 + 1u] = 0u;')),
    program: (x) => x.mul(3),
    inputs: () => [torch.tensor([6442450941n, -6442450941n, 3n], { dtype: torch.int64 })],
    nodes: ['mul'],
  },
  {
    fault: 'two memories in one place',
    edit: inMain(swap('uniforms[1].x', 'uniforms[0].w')),
    program: (a, b) => torch.relu(a.mul(2)).sub(b).add(1),
    inputs: () => [drawn(5, 7), drawn(5, 7)],
    nodes: ['sub', 'mul', 'relu'],
  },
  {
    fault: 'rows taken for columns',
    edit: inMain(swap(/let (t\d+) = thread % \((\d+)u\);/, 'let $1 = thread / ($2u);')),
    program: (a, b) => a.t().add(b).mul(2),
    inputs: () => [drawn(6, 40), drawn(40, 6)],
    nodes: ['add', 'transpose', 't', 'mul'],
  },
  {
    fault: 'a product with the row length of another matrix',
    edit: inMain(swap(/\* 12u/, '* 11u')),
    program: (a, b) => torch.relu(a.matmul(b)).add(1),
    inputs: () => [drawn(9, 17), drawn(17, 12)],
    nodes: ['matmul'],
  },
  {
    fault: 'a convolution that reads only beyond the edge',
    edit: inMain(swap(/if \((t\d+) != 0u\) \{/, 'if ($1 == 0u) {')),
    program: (x, w) => torch.relu(nn.functional.conv2d(x, w, null, { padding: 1 })).add(1),
    inputs: () => [drawn(2, 3, 8, 8), drawn(4, 3, 3, 3)],
    nodes: ['conv2d'],
  },
  {
    ...one('workgroups beyond the first row', inMain(swap('group.z * groups.y + group.y', '0u')), (x) => torch.sin(x), ['mul', 'sin', 'add', 'relu']),
    inputs: () => [drawn(30, 40)],
    limits: { workgroups: 7 },
  },
  {
    ...one('workgroups beyond the first plane', inMain(swap('group.z * groups.y', '0u')), (x) => torch.sin(x), ['mul', 'sin', 'add', 'relu']),
    inputs: () => [drawn(60, 60)],
    limits: { workgroups: 7 },
  },
]

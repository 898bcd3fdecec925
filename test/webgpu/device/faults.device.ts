// Faults planted in the text of shaders: compareBackends names the node that is wrong, and the minifier leaves little more than it.
import { beforeAll, describe, expect, test } from 'vitest'
import { nn, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { registerBackend } from 'tensorfx/compile'
import { compareBackends } from 'tensorfx/debug'
import { symbolicTrace } from 'tensorfx/fx'
import type { GraphModule } from 'tensorfx/fx'
import { init } from 'tensorfx/webgpu'
import { bundledUrl } from '../../../scripts/bundled.mjs'
import { threadEntry } from '../../../src/gpu/thread.ts'
import { DeviceGraph } from '../../../src/inductor/webgpu/deviceGraph.ts'
import { planGraph } from '../../../src/inductor/webgpu/plan.ts'
import { Tensor as AnyTensor } from '../../../src/tensor/index.ts'

threadEntry.url = bundledUrl('entries/webgpuThread.js')
beforeAll(async () => init({ fallback: 'wasm' }))

/** A change of shaders. */
type Edit = (code: string) => string

const swap =
  (from: string | RegExp, to: string): Edit =>
  (code) =>
    code.replaceAll(typeof from === 'string' ? from : new RegExp(from, 'g'), to)

/** A change of one function of the library. */
const inFunction =
  (name: string, edit: Edit): Edit =>
  (code) =>
    code.replace(new RegExp(`fn tfx_${name}\\([\\s\\S]*?\\n}`), edit)

/** A change of the kernel itself. */
const inMain =
  (edit: Edit): Edit =>
  (code) => {
    const at = code.indexOf('@compute')
    return code.slice(0, at) + edit(code.slice(at))
  }

/** Registers the backend with a fault; says afterwards how many shaders it has changed. */
function planted(name: string, edit: Edit): { changed: number } {
  const count = { changed: 0 }
  registerBackend(name, (gm, inputs) => {
    const specs = inputs.map((input) =>
      input instanceof AnyTensor ? { shape: input.shape, dtype: input.dtype, strides: input.strides } : Number(input),
    )
    const plan = planGraph(gm, specs, 'wasm')
    const dispatches = plan.dispatches.map((dispatch) => {
      const code = edit(dispatch.code)
      if (code !== dispatch.code) count.changed++
      return { ...dispatch, code }
    })
    const graph = new DeviceGraph({ ...plan, dispatches })
    return (...values: readonly unknown[]) => graph.call(...values)
  })
  return count
}

const drawn = (...shape: readonly number[]): Tensor => torch.randn(shape)

interface Planted {
  readonly fault: string
  readonly edit: Edit
  readonly program: (...inputs: Tensor[]) => Tensor
  readonly inputs: () => Tensor[]
  /** The nodes of which one must be named. */
  readonly nodes: readonly string[]
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

const FAULTS: readonly Planted[] = [
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
  one('a sum that lacks its last term', inMain(swap(/< (\d+)u; i(\d+) \+= 1u/, '< $1u - 1u; i$2 += 1u')), (x) => x.sum(1), ['sum', 'sum_1']),
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
        .replace(/(let t\d+ = bitcast<u32>\(bitcast<f32>\(t\d+\) \* bitcast<f32>\((m\d+)\)\);)/, 'kept = $2; $1'),
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
]

describe('a fault in a shader', () => {
  test.each(FAULTS.map((planting) => [planting.fault, planting] as const))(
    '%s is named, and minified',
    async (fault, { edit, program, inputs, nodes }) => {
      const count = planted(fault, edit)
      const gm: GraphModule = symbolicTrace(program)
      torch.manualSeed(1)
      const result = await compareBackends(gm, inputs(), { backends: ['eager', 'webgpu', fault] })
      expect(count.changed, 'the fault is in no shader').toBeGreaterThan(0)
      expect([result.statuses.get('eager'), result.statuses.get('webgpu')]).toEqual(['right', 'right'])
      expect(result.statuses.get(fault)).toBe('wrong')
      const [first] = result.culprits.get(fault)?.nodes ?? []
      expect(nodes).toContain(first?.name)
      const small = await result.minify(fault)
      const calls = [...small.gm.graph.nodes].filter(({ op }) => op.startsWith('call_'))
      expect(calls.length).toBeLessThanOrEqual(2)
    },
  )
})

test('a shader that does not compile is a failure with its kernel, node and line, in compareBackends too', async () => {
  planted('no shader', inMain(swap('let thread =', 'let thread = nothing +')))
  const gm = symbolicTrace((x: Tensor) => torch.tanh(x.mul(2)))
  const result = await compareBackends(gm, [drawn(4)], { backends: ['eager', 'no shader'] })
  expect(result.statuses.get('no shader')).toBe('failed')
  const culprit = result.culprits.get('no shader')
  expect(String(Reflect.get(culprit ?? {}, 'thrown'))).toMatch(
    /DeviceError: WebGPU: the shader of kernel k0_mul \(of mul.*\) does not compile at line \d+: .*nothing/,
  )
})

// Random operators in traced functions: drawn anew whenever a graph runs, with eager's numbers.
import { describe, expect, it } from 'vitest'
import { Tensor, UnsupportedError, torch } from 'tensorfx'
import { FakeTensorProp, aotFunction, makeFx } from 'tensorfx/aot'
import { GraphModule } from 'tensorfx/fx'
import { graphFromJson, graphToJson } from 'tensorfx/fx/json'
import { snapshotOf } from './snapshot.ts'

const { dropout } = torch.nn.functional
const x = torch.ones([8])
const seen: GraphModule[] = []
const compiler = (gm: GraphModule): ((...inputs: readonly unknown[]) => readonly unknown[]) => {
  seen.push(gm)
  return (...inputs) => {
    const result = gm.forward(...inputs)
    return Array.isArray(result) ? result : [result]
  }
}

/** What three calls give after seeding, and the number that the generator gives next. */
function calls(run: (x: Tensor) => unknown): unknown {
  torch.manualSeed(7)
  return [run(x), run(x), run(x), torch.rand([1])].map(snapshotOf)
}

const programs: readonly (readonly [string, (x: Tensor) => unknown])[] = [
  ['dropout', (t) => dropout(t, 0.5)],
  ['rand', (t) => t.add(torch.rand([8]))],
  ['randn, twice', (t) => [torch.randn([3]), t.add(torch.randn([8]))]],
  ['randint', () => torch.randint(-3, 2_000_000_000, [5])],
  ['randperm', () => torch.randperm(6)],
  ['bernoulli', (t) => torch.bernoulli(t.mul(0.3))],
  ['half precision', () => torch.rand([4], { dtype: 'float16' })],
  ['uniform_ and normal_', (t) => [t.clone().uniform_(2, 3), t.clone().normal_()]],
]

describe.each(programs)('%s', (_, program) => {
  it('gives in graphs of makeFx what it gives eagerly, at each call, and tracing draws nothing', () => {
    torch.manualSeed(3)
    const before = torch.getRngState()
    const graphs = [makeFx(program)(x), makeFx(program, { decompose: true })(x)]
    expect(torch.getRngState()).toEqual(before)
    for (const gm of graphs) expect(calls((t) => gm.forward(t))).toEqual(calls(program))
  })

  it('gives under aotFunction what it gives eagerly, also the first time', () =>
    expect(calls(aotFunction(program, { fwCompiler: compiler }))).toEqual(calls(program)))

  it('is saved in JSON', () => {
    const { graph } = makeFx(program)(x)
    const loaded = new GraphModule({}, graphFromJson(JSON.parse(JSON.stringify(graphToJson(graph)))))
    expect(calls((t) => loaded.forward(t))).toEqual(calls(program))
  })
})

describe('the gradient of dropout under aotFunction', () => {
  const program = (t: Tensor): Tensor => dropout(t.mul(3), 0.5)
  it('belongs to the mask of its call', () => {
    const f = aotFunction(program, { fwCompiler: compiler })
    for (let call = 0; call < 3; call++) {
      const t = torch.ones([16]).requiresGrad_()
      const y = f(t)
      y.sum().backward()
      expect(snapshotOf(t.grad)).toEqual(snapshotOf(y))
    }
    seen.length = 0
    aotFunction(program, { fwCompiler: compiler })(torch.ones([16]).requiresGrad_())
    const inputs = seen[0]?.graph.findNodes({ op: 'placeholder' }).map((node) => node.name)
    expect(inputs).toEqual(['primals_1', 'rng_1_seed_lo', 'rng_1_seed_hi', 'rng_1_offset_lo', 'rng_1_offset_hi'])
  })
})

describe('what a graph cannot do', () => {
  it.each([
    ['a generator of its own', (): unknown => torch.rand([2], { generator: new torch.Generator(7) })],
    ['seeding', (): unknown => [torch.manualSeed(3), torch.rand([2])][1]],
  ])('%s is refused, and the state of the generator is kept', (_, program) => {
    torch.manualSeed(7)
    for (const trace of [(): unknown => makeFx(program)(), (): unknown => aotFunction(program, { fwCompiler: compiler })()])
      expect(trace).toThrow(UnsupportedError)
    expect(torch.getRngState()).toEqual({ seed: 7, offset: 0 })
  })

  it('numbers that the program gives are no draws', () => {
    const gm = makeFx(() => torch.ops.tensorfx.philoxUniform([2], 1, 2, 3, 4))()
    expect(calls(() => gm.forward())).toEqual(calls(() => torch.ops.tensorfx.philoxUniform([2], 1, 2, 3, 4)))
    expect(gm.code).toContain('philox')
  })
})

describe('shapes of graphs with random operators', () => {
  it('are found without drawing', () => {
    const gm = makeFx((t: Tensor) => dropout(t))(x)
    torch.manualSeed(1)
    new FakeTensorProp(gm).propagate(x)
    expect(torch.getRngState()).toEqual({ seed: 1, offset: 0 })
  })
})

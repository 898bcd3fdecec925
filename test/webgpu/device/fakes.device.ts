// Fake tensors of tensors that are on the GPU: they are where the results of the program would be, and calls that mix devices throw what they throw on real tensors. This file runs in Node and in a page.
import { beforeAll, describe, expect, test } from 'vitest'
import { fx, nn, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { FakeTensorProp, makeFx } from 'tensorfx/aot'
import { FakeTensorMode, withMode } from 'tensorfx/dispatch'
import { partitionByDevice } from 'tensorfx/fx/passes'
import { ShapeEnv } from 'tensorfx/fx/experimental'
import { init } from 'tensorfx/webgpu'
import { randomFrom } from '../../../scripts/fuzz/random.mjs'
import { third } from '../../helpers/rotation.ts'

beforeAll(async () => init({ thread: false }))

type Picked = () => Tensor
const N = 4
/** Steps of programs on tensors of both devices: most stay on one, some go to the other, some mix them. */
type Step = (pick: Picked) => Tensor | readonly Tensor[]
/** Its results are not read here: nothing waits for the GPU. */
const toCpu: Step = (pick) => pick().cpu()
const STEPS: readonly Step[] = [
  toCpu,
  (pick) => pick().add(pick()),
  (pick) => pick().mul(2).tanh(),
  (pick) => pick().matmul(pick()),
  (pick) => pick().add(pick().sum()),
  (pick) => pick().t(),
  (pick) => torch.cat([pick(), pick()], 0).narrow(0, 1, N),
  (pick) => torch.zerosLike(pick()),
  (pick) => torch.full([N, N], 3, { device: pick().device }),
  () => torch.ones([N, N]),
  (pick) => torch.topk(pick(), N, 1)[0],
  (pick) => pick().split(2, 0)[0]?.repeat(2, 1) ?? pick(),
  (pick) => pick().to('webgpu'),
  (pick) => pick().to('int32').to('float32'),
  (pick) => torch.where(pick().gt(0), pick(), pick()),
  (pick) => pick().clone().add_(1),
  (pick) => {
    const made = pick().to('webgpu').clone()
    made.copy_(pick())
    return made
  },
  (pick) => torch.softmax(pick(), 1),
]

/** What a program has made, and what it threw at each step that threw. */
function ran(seed: number, given: readonly Tensor[]): readonly (Tensor | string)[] {
  const { int } = randomFrom(seed)
  const values = [...given]
  const all: (Tensor | string)[] = [...given]
  const pick = (): Tensor => values[int(values.length)] ?? torch.ones([N, N])
  for (let i = 0; i < 12; i++) {
    const step = STEPS[int(STEPS.length)]
    // What is drawn does not depend on what happens.
    const picked = Array.from({ length: 3 }, pick)
    let at = 0
    try {
      const made = [step?.(() => picked[at++ % 3] ?? torch.ones([N, N])) ?? []].flat()
      if (step !== toCpu) values.push(...made)
      all.push(...made)
    } catch (error) {
      all.push(String(error))
    }
  }
  return all
}

const seen = (values: readonly (Tensor | string)[]): readonly unknown[] =>
  values.map((value) => (typeof value === 'string' ? value : [value.device, value.shape, value.dtype, value.strides]))
const given = (): readonly Tensor[] => [torch.randn([N, N]), torch.randn([N, N]).to('webgpu'), torch.randn([N, N]).to('webgpu')]

describe('fake tensors are on the device of the real ones', () => {
  test.each(third(Array.from({ length: 30 }, (_, i) => i)))('drawn program %i', (i) => {
    const real = given()
    const mode = new FakeTensorMode()
    const fake = withMode(mode, () =>
      ran(
        33_000 + i,
        real.map((tensor) => mode.fromTensor(tensor)),
      ),
    )
    expect(fake.every((value) => typeof value === 'string' || value.isFake)).toBe(true)
    expect(seen(fake)).toEqual(seen(ran(33_000 + i, real)))
  })

  test('with symbols for sizes', () => {
    const mode = new FakeTensorMode({ shapeEnv: new ShapeEnv() })
    const x = mode.fromTensor(torch.randn([3, 5]).to('webgpu'))
    const [y, z] = withMode(mode, () => [torch.cat([x, x], 0).mul(2), x.cpu().t()])
    expect([x.device, y.device, z.device]).toEqual(['webgpu', 'webgpu', 'cpu'])
  })

  test('gradients too', () => {
    const mode = new FakeTensorMode()
    const x = mode.fromTensor(torch.randn([N, N]).to('webgpu').requiresGrad_())
    withMode(mode, () => x.matmul(x).tanh().sum().backward())
    expect(x.grad?.device).toBe('webgpu')
  })
})

/** The device of each node's value, as recorded. */
const recorded = (gm: fx.GraphModule): Readonly<Record<string, unknown>> =>
  Object.fromEntries([...gm.graph.nodes].flatMap((node) => (node.op === 'output' ? [] : [[node.name, deviceOf(node.meta['val'])]])))
const deviceOf = (value: unknown): unknown => (Array.isArray(value) ? value.map(deviceOf) : (Reflect.get(Object(value), 'device') ?? 'cpu'))

const moving = (x: Tensor, y: Tensor): Tensor => torch.relu(x.mul(2)).add(y.sub(1).to('webgpu')).exp()

describe('graphs record devices', () => {
  test.each([
    ['numbers', {}],
    ['symbols', { tracingMode: 'symbolic' as const }],
    ['real values', { tracingMode: 'real' as const }],
  ])('makeFx, whose sizes are %s', (_, options) => {
    const [x, y] = [torch.randn([N, N]).to('webgpu'), torch.randn([N, N])]
    const gm = makeFx(moving, options)(x, y)
    expect(recorded(gm)).toMatchObject({ mul: 'webgpu', relu: 'webgpu', sub: 'cpu', to_device: 'webgpu', add: 'webgpu', exp: 'webgpu' })
    expect(gm.graph.findNodes({ op: 'placeholder' }).map((node) => deviceOf(node.meta['val']))).toEqual(['webgpu', 'cpu'])
    expect((gm.call(x, y) as Tensor).device).toBe('webgpu')
    const back = makeFx((z: Tensor) => [z.cpu(), z], options)(x)
    expect((back.call(x) as Tensor[]).map(({ device }) => device)).toEqual(['cpu', 'webgpu'])
  })

  test('FakeTensorProp, with parameters', () => {
    const model = new nn.Sequential(new nn.Linear(4, 8), new nn.Tanh()).to('webgpu')
    const gm = fx.symbolicTrace(model)
    new FakeTensorProp(gm).propagate(torch.randn([2, 4]).to('webgpu'))
    expect(new Set(Object.values(recorded(gm)))).toEqual(new Set(['webgpu']))
    expect(() => new FakeTensorProp(gm).propagate(torch.randn([2, 4]))).toThrow(/argument '\w+' is on 'webgpu' and argument '\w+' on 'cpu'/)
  })

  test('the graph of gradients', () => {
    const x = torch.randn([N, N]).to('webgpu').requiresGrad_()
    const gm = makeFx((y: Tensor) => torch.autograd.grad(y.matmul(y).tanh().sum(), y)[0])(x)
    expect(new Set(Object.values(recorded(gm)))).toEqual(new Set(['webgpu']))
  })

  test('partitionByDevice makes the region of the GPU one call', async () => {
    const [x, y] = [torch.randn([N, N]).to('webgpu'), torch.randn([N, N])]
    const gm = fx.symbolicTrace(moving)
    new FakeTensorProp(gm).propagate(x, y)
    partitionByDevice(gm, 'webgpu')
    expect([...gm.graph.nodes].filter(({ op }) => op.startsWith('call')).map(({ name }) => name)).toEqual(['sub', 'to', 'fused_0'])
    expect(await (gm.call(x, y) as Tensor).toArrayAsync()).toEqual(await moving(x, y).toArrayAsync())
  })

  test('a node shows its device', () => {
    const gm = makeFx((y: Tensor) => y.mul(2))(torch.ones([2]).to('webgpu'))
    expect(gm.printReadable({ includeDevice: true })).toContain('f32[2]webgpu')
  })
})

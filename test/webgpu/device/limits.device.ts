// Memory in several slabs, and fewer of them in one dispatch than a kernel has operands: what is computed is the same, bit for bit, as in one slab. This file runs in Node and in a page.
import { afterEach, describe, expect, test } from 'vitest'
import { compile, optim, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { makeFx } from 'tensorfx/aot'
import { compileGraph, init, stats, synchronize } from 'tensorfx/webgpu'
import type { DeviceLimits } from 'tensorfx/webgpu'
import { randomFrom } from '../../../scripts/fuzz/random.mjs'
import { OutOfMemoryError } from '../../../src/kernels/index.ts'
import { third } from '../../helpers/rotation.ts'
import { prepared, cases } from './modelCases.ts'

afterEach(async () => init({ thread: false }))

/** Limits: those of the GPU first, with which the others are compared. */
const LIMITS: readonly DeviceLimits[] = [
  {},
  { bytes: 2 ** 27, slab: 2 ** 27, buffers: 8, workgroups: 65_535 },
  { slab: 2 ** 20, buffers: 4, workgroups: 7 },
  { slab: 2 ** 13, buffers: 8 },
  { slab: 2 ** 10, buffers: 4 },
  { slab: 2 ** 8, buffers: 2 },
]

/** The limits of the GPU, others in turn, and the narrowest: each device compiles all shaders anew. */
const some = (seed: number): readonly DeviceLimits[] => [0, 1 + (seed % (LIMITS.length - 2)), LIMITS.length - 1].map((i) => LIMITS[i] ?? {})

/** What a program gives with each of the limits, and how many slabs it had at the end. */
async function withLimits(program: () => Promise<unknown>, limits: readonly DeviceLimits[]): Promise<readonly { result: unknown; slabs: number }[]> {
  const all: { result: unknown; slabs: number }[] = []
  for (const one of limits) {
    /* oxlint-disable no-await-in-loop -- one GPU */
    await init({ thread: false, limits: one })
    torch.manualSeed(7)
    const result = await program()
    all.push({ result, slabs: stats()?.slabs ?? 0 })
    /* oxlint-enable no-await-in-loop */
  }
  return all
}

/** Expects the same with all limits, and several slabs with the last of them. */
async function expectSame(program: () => Promise<unknown>, limits: readonly DeviceLimits[]): Promise<void> {
  const [first, ...others] = await withLimits(program, limits)
  for (const [i, other] of others.entries()) expect(other.result, JSON.stringify(limits[i + 1])).toEqual(first?.result)
  expect(first?.slabs).toBe(1)
  expect(others.at(-1)?.slabs).toBeGreaterThan(2)
}

const N = 6
type Step = (pick: () => Tensor) => Tensor
const steps: readonly Step[] = [
  (pick) => pick().mul(0.5).add(pick()),
  (pick) => torch.where(pick().gt(pick()), pick(), pick().mul(pick())),
  (pick) => pick().matmul(pick()).tanh(),
  (pick) => torch.softmax(pick(), 1).mul(pick()),
  (pick) => torch.cat([pick(), pick(), pick(), pick(), pick()], 0).reshape([5, N, N]).sum(0).tanh(),
  (pick) => pick().t().cumsum(0).sub(pick().mean()).tanh(),
  (pick) =>
    pick()
      .narrow(0, 1, 3)
      .clone()
      .mul(pick().narrow(1, 2, 1).sum())
      .sum(0)
      .add(pick())
      .tanh(),
  (pick) => torch.gather(pick(), 1, pick().argmax({ dim: 1, keepdim: true }).expand(N, N)),
  (pick) =>
    torch
      .topk(pick(), N, 0)[0]
      .add(torch.stack([pick(), pick(), pick()], 0).amax(0))
      .mul(0.5),
  (pick) => pick().to('int64').mul(3000000000).add(7).remainder(11).to('float32').div(11).add(pick()),
]

/** A program of drawn steps on what came before. All that it computes is kept, so that its memory is in many slabs. */
function drawn(seed: number): (inputs: readonly Tensor[]) => Tensor[] {
  return (inputs) => {
    const { int } = randomFrom(seed)
    const values = [...inputs]
    const pick = (): Tensor => values[int(values.length)] ?? torch.ones([N, N])
    for (let i = 0; i < 14; i++) {
      const value = steps[int(steps.length)]?.(pick)
      if (value !== undefined) values.push(value)
    }
    pick().mul_(0.75)
    values
      .at(-1)
      ?.narrow(0, 0, 2)
      .copy_(pick().narrow(0, 2, 2))
    return values
  }
}

const inputs = (): Tensor[] => Array.from({ length: 4 }, () => torch.randn([N, N]).to('webgpu'))
const read = async (tensors: readonly Tensor[]): Promise<unknown> => Promise.all(tensors.map(async (tensor) => tensor.toArrayAsync()))

describe('in several slabs', () => {
  test.each(third([1, 2, 3, 4]))('operators give the same, drawn case %i', async (seed) => {
    const program = drawn(19_100 + seed)
    await expectSame(async () => read(program(inputs())), some(seed))
  })

  test.each(third([1, 2, 3, 4]))('compiled functions give the same, drawn case %i', async (seed) => {
    const program = drawn(19_200 + seed)
    await expectSame(async () => {
      const compiled = compile((...given: Tensor[]) => program(given))
      const kept: Tensor[] = []
      for (let call = 0; call < 3; call++) kept.push(...compiled(...inputs()))
      return read(kept)
    }, some(seed))
  })

  test.each(third([1, 2, 3, 4]))('graphs on tensors of the program give the same, drawn case %i', async (seed) => {
    const program = drawn(19_300 + seed)
    const given = torch.noGrad(() => Array.from({ length: 4 }, () => torch.randn([N, N])))
    const pure = (...x: Tensor[]): Tensor[] => program(x.map((one) => one.clone()))
    await expectSame(
      async () => {
        const graph = await compileGraph(makeFx((...x: Tensor[]) => pure(...x))(...given), given)
        return read((await graph.run(...given)) as Tensor[])
      },
      some(seed).map(({ slab = Infinity, ...others }) => (slab > 2 ** 20 ? others : { ...others, bytes: Math.max(slab, 2 ** 11) })),
    )
  })

  test.each(['GPT', 'UNet'])('training steps of %s give the same', async (name) => {
    const given = cases[name]
    if (given === undefined) throw new Error(name)
    const train = async (): Promise<unknown> => {
      const { model, input, target } = prepared(given, 0)
      model.to('webgpu')
      const optimizer = new optim.Adam(model.parameters(), { lr: 0.01 })
      const step = compile((x: Tensor, y: Tensor) => {
        optimizer.zeroGrad()
        const loss = given.loss(model.call(x) as Tensor, y)
        loss.backward()
        optimizer.step()
        return loss.detach()
      })
      const [x, y] = [input.to('webgpu'), target.to('webgpu')]
      const losses = [step(x, y), step(x, y), step(x, y)]
      return [await read(losses), await read([...model.parameters()])]
    }
    await expectSame(train, [{}, { slab: 2 ** 14, buffers: 4 }])
  })
})

describe('memory', () => {
  test('of slabs that nothing lies in is given back, and what is larger than a slab has its own', async () => {
    await init({ thread: false, limits: { slab: 2 ** 12 } })
    const x = torch.ones([100], { device: 'webgpu' })
    const large = torch.ones([5000], { device: 'webgpu' }).mul(2)
    const many = Array.from({ length: 40 }, (_, i) => x.mul(i))
    await synchronize()
    expect(stats()?.slabs).toBeGreaterThan(5)
    expect(await large.sum().itemAsync()).toBe(10_000)
    for (const tensor of [large, ...many.slice(1)]) tensor.dispose()
    expect(await many[0]?.add(3).sum().itemAsync()).toBe(300)
    for (let i = 0; i < 60; i++) {
      const [small, own] = [x.add(i), torch.zeros([3000], { device: 'webgpu' })]
      if (i % 20 === 0) expect(await small.sum().itemAsync()).toBe(100 * (i + 1))
      small.dispose()
      own.dispose()
    }
    await synchronize()
    expect(stats()?.slabs).toBeLessThan(5)
  })

  test('a kernel whose operands lie in more slabs than it can have, and are too large to be copied, throws OutOfMemoryError with the name of the limit', async () => {
    await init({ thread: false, limits: { bytes: 2 ** 12, slab: 2 ** 8, buffers: 2 } })
    const parts = Array.from({ length: 3 }, (_, i) => torch.ones([1000], { device: 'webgpu' }).mul(i))
    const [a, b, c] = parts
    if (a === undefined || b === undefined || c === undefined) throw new Error('no parts')
    expect(() => torch.where(a.gt(0), b, c)).toThrow(OutOfMemoryError)
    expect(() => torch.where(a.gt(0), b, c)).toThrow(/maxStorageBuffersPerShaderStage.*more memory than can be copied/)
    expect(await b.add(1).sum().itemAsync()).toBe(2000)
  })

  test.each([
    ['an operator', async (x: Tensor) => x.expand(4, 2 ** 15).mul(2)],
    [
      'a compiled function',
      async (x: Tensor) =>
        compile((y: Tensor) =>
          y
            .expand(4, 2 ** 15)
            .mul(2)
            .add(1),
        )(x),
    ],
    ['a tensor that is made there', async () => torch.zeros([2 ** 17], { device: 'webgpu' })],
  ])('beyond that of a binding: %s throws OutOfMemoryError with the name of the limit', async (_, call) => {
    await init({ thread: false, limits: { bytes: 2 ** 18, slab: 2 ** 12 } })
    const x = torch.ones([2 ** 15], { device: 'webgpu' })
    const error: unknown = await call(x).then(
      () => null,
      (thrown: unknown) => thrown,
    )
    const cause = error instanceof OutOfMemoryError ? error : Reflect.get(error ?? {}, 'cause')
    expect(cause).toBeInstanceOf(OutOfMemoryError)
    expect(String(cause)).toMatch(/524288 bytes.*at most 262144 \(maxStorageBufferBindingSize\)/)
    expect(await x.sum().itemAsync()).toBe(2 ** 15)
  })
})

// compile with the backend 'webgpu': the GPU has a thread of its own, for which the program waits.
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { compile, torch } from 'tensorfx'
import { compareBackends } from 'tensorfx/debug'
import { makeFx } from 'tensorfx/aot'
import { DeviceLostError, DeviceReadError, compileGraph, description, init, loseDevice, stats } from 'tensorfx/webgpu'
import { bundledUrl } from '../../../scripts/bundled.mjs'
import type { Tensor } from 'tensorfx'
import { threadEntry } from '../../../src/gpu/thread.ts'

threadEntry.url = bundledUrl('entries/webgpuThread.js')

beforeEach(async () => init({}))
afterEach(async () => init({}))

const softmaxOf = (x: Tensor): Tensor => torch.softmax(x.mul(2).add(1), 1)

describe("compile(fn, { backend: 'webgpu' })", () => {
  test('returns when the results are there, and one call is one submission and one read', () => {
    const f = compile(softmaxOf, { backend: 'webgpu' })
    const x = torch.randn([4, 5])
    torch.testing.assertClose(f(x), softmaxOf(x))
    const before = stats()
    f(torch.randn([4, 5]))
    const after = stats()
    expect([(after?.submits ?? 0) - (before?.submits ?? 0), (after?.readbacks ?? 0) - (before?.readbacks ?? 0)]).toEqual([1, 1])
    expect(description()).not.toBe('')
  })

  test('tensorflow/tfjs #5468: results are read at once, in callbacks too', () => {
    const f = compile((x: Tensor) => x.mul(2), { backend: 'webgpu' })
    const rows = torch.arange(0, 6, 1, { dtype: torch.float32 }).reshape([3, 2])
    expect([0, 1, 2].map((i) => f(rows.select(0, i)).sum().item())).toEqual([2, 10, 18])
    expect(torch.noGrad(() => [...f(rows).toTypedArray()])).toEqual([0, 2, 4, 6, 8, 10])
  })

  test('computes gradients, and writes to arguments', () => {
    const f = compile(
      (x: Tensor, total: Tensor) => {
        total.add_(x.detach().sum())
        return x.tanh().sum()
      },
      { backend: 'webgpu' },
    )
    const [x, total] = [torch.randn([7], { requiresGrad: true }), torch.zeros([1])]
    f(x, total).backward()
    torch.testing.assertClose(x.grad, torch.ones([7]).sub(x.detach().tanh().square()))
    torch.testing.assertClose(total, x.detach().sum().reshape([1]))
  })

  test('takes numbers that change as inputs, and views of other tensors', () => {
    const f = compile((x: Tensor, factor: number) => x.mul(factor).sum(0), { backend: 'webgpu', dynamic: true })
    const x = torch.arange(0, 24, 1, { dtype: torch.float32 }).reshape([4, 6])
    for (const factor of [1, 2.5, -3]) torch.testing.assertClose(f(x.t(), factor), x.t().mul(factor).sum(0))
    torch.testing.assertClose(f(x.select(1, 2), 2), x.select(1, 2).mul(2).sum(0))
  })

  test('is right in compareBackends', async () => {
    const gm = makeFx((x: Tensor) => [softmaxOf(x).log()])(torch.randn([4, 5]))
    const result = await compareBackends(gm, [torch.randn([4, 5])], { backends: ['eager', 'inductor', 'webgpu'] })
    expect([...result.statuses.values()]).toEqual(['right', 'right', 'right'])
  })

  test('an operator without a shader is refused with its node, unless WebAssembly may compute it', async () => {
    const f = (x: Tensor): Tensor => torch.linalg.qr(x.mul(2))[1].abs().add(1)
    const x = torch.eye(2)
    expect(() => compile(f, { backend: 'webgpu' })(x)).toThrow(/qr at node .* has no shader code.*fallback: 'wasm'/s)
    await init({ fallback: 'wasm' })
    expect(compile(f, { backend: 'webgpu' })(x).toArray()).toEqual([
      [3, 1],
      [1, 3],
    ])
  })

  test('memory of graphs that are dropped is freed', async () => {
    const x = torch.ones([1000])
    const make = (): void => void compile((y: Tensor) => y.mul(2), { backend: 'webgpu' })(x)
    for (let i = 0; i < 200; i++) {
      make()
      // oxlint-disable-next-line no-await-in-loop -- finalizers run between tasks
      if (i % 20 === 0) await new Promise((resolve) => setTimeout(resolve, 0))
    }
    setFlagsFromString('--expose-gc')
    const gc = runInNewContext('gc') as () => void
    for (let i = 0; i < 5; i++) {
      gc()
      // oxlint-disable-next-line no-await-in-loop -- finalizers run between tasks
      await new Promise((resolve) => setTimeout(resolve, 5))
    }
    make()
    expect(stats()?.buffers).toBeLessThan(100)
  })
})

describe('a device that cannot be waited for, or is lost', () => {
  test('without a thread the read says what to do, and the asynchronous form works', async () => {
    await init({ thread: false })
    expect(() => compile(softmaxOf, { backend: 'webgpu' })(torch.ones([2, 3])).toArray()).toThrow(DeviceReadError)
    const x = torch.randn([2, 3])
    const graph = await compileGraph(makeFx((value: Tensor) => [softmaxOf(value)])(x), [x])
    const [y] = await graph.run(x)
    torch.testing.assertClose(y as Tensor, softmaxOf(x))
  })

  test('a training goes on after the loss of the device, and ends as it does without', async () => {
    const train = async (lostAt: number): Promise<{ weight: readonly unknown[]; errors: number }> => {
      let weight = torch.linspace(-1, 1, 8)
      const step = compile((w: Tensor) => w.sub(w.tanh().mul(0.1)), { backend: 'webgpu' })
      let errors = 0
      for (let i = 0; i < 6; i++) {
        // oxlint-disable-next-line no-await-in-loop -- one step after the other
        if (i === lostAt) await loseDevice('next run')
        try {
          weight = step(weight)
        } catch (error) {
          expect(error).toBeInstanceOf(DeviceLostError)
          expect((error as DeviceLostError).message).toMatch(/The last kernels were k\d+_/)
          errors++
          weight = step(weight)
        }
      }
      return { weight: weight.toArray() as readonly unknown[], errors }
    }
    const [without, with3] = [await train(-1), await train(3)]
    expect([without.errors, with3.errors]).toEqual([0, 1])
    expect(with3.weight).toEqual(without.weight)
  })

  test('with keepCopies a call whose device is lost has its results, and one that takes too long is not repeated', async () => {
    await init({ keepCopies: true })
    const f = compile((x: Tensor) => x.mul(2), { backend: 'webgpu' })
    f(torch.ones([2]))
    await loseDevice('next run')
    expect(f(torch.ones([2])).toArray()).toEqual([2, 2])
    await init({ keepCopies: true, timeout: 1 }).catch(() => undefined)
    expect(() => compile((x: Tensor) => x.exp(), { backend: 'webgpu' })(torch.ones([100_000]))).toThrow(DeviceLostError)
  })

  test('a thread that does not answer in time is ended, and init starts another', async () => {
    await init({ timeout: 1 })
      .then(() => compile((x: Tensor) => x.exp(), { backend: 'webgpu' })(torch.ones([100_000])))
      .then(
        () => expect.unreachable('a millisecond is not enough'),
        (error: unknown) => {
          expect(error).toBeInstanceOf(DeviceLostError)
          expect((error as DeviceLostError).reason).toBe('timeout')
        },
      )
    await init({})
    expect(compile((x: Tensor) => x.mul(2), { backend: 'webgpu' })(torch.ones([2])).toArray()).toEqual([2, 2])
  })
})

describe('compile on tensors that are on the GPU, where the program waits', () => {
  test('ends a graph where a value is read, or a tensor is copied to the CPU', () => {
    const f = (x: Tensor, y: Tensor): Tensor[] => {
      const sum = x.add(y)
      const scaled = sum.mul(Number(sum.sum().item()) > 0 ? 2 : 3)
      const there = scaled.to('cpu').exp()
      return [scaled.sub(there.to(x.device)), there]
    }
    const compiled = compile(f)
    for (const sign of [1, -1]) {
      const [x, y] = [torch.tensor([1, 2]).mul(sign), torch.tensor([3, 4])]
      const got = compiled(x.to('webgpu'), y.to('webgpu'))
      expect(got.map(({ device }) => device)).toEqual(['webgpu', 'cpu'])
      f(x, y).forEach((want, i) => torch.testing.assertClose(got[i]?.cpu(), want))
    }
    expect(compiled.graphs().length).toBeGreaterThan(2)
  })

  test('does not wait for calls, nor for the indices that they check', () => {
    const f = compile((weight: Tensor, at: Tensor) => torch.nn.functional.embedding(at, weight).mul(2))
    const weight = torch.arange(6, { dtype: 'float32' }).reshape([3, 2]).to('webgpu')
    const at = (row: number): Tensor => torch.tensor([row], { dtype: 'int64' }).to('webgpu')
    const [good, bad] = [f(weight, at(2)), f(weight, at(3))]
    expect(() => bad.toArray()).toThrow(/3 is out of range|index 3/)
    expect(good.toArray()).toEqual([[8, 10]])
    const before = stats()
    for (let i = 0; i < 20; i++) f(weight, at(1))
    expect(f(weight, at(0)).toArray()).toEqual([[0, 2]])
    expect((stats()?.readbacks ?? 0) - (before?.readbacks ?? 0)).toBe(1)
  })

  test("runs operators without a shader on copies, with fallback: 'wasm'", async () => {
    await init({ fallback: 'wasm' })
    const f = compile((x: Tensor) => torch.linalg.qr(x.mul(2))[1].abs())
    const x = torch.randn([3, 3])
    torch.testing.assertClose(f(x.to('webgpu')).cpu(), torch.linalg.qr(x.mul(2))[1].abs())
  })
})

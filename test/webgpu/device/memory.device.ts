// What long runs keep on the GPU: nothing for each step, and of graphs that differ no more than the GPU may keep.
import { describe, expect, test } from 'vitest'
import { compile, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { makeFx } from 'tensorfx/aot'
import { compileGraph, init, stats } from 'tensorfx/webgpu'
import type { DeviceStats } from 'tensorfx/webgpu'
import { bundledUrl } from '../../../scripts/bundled.mjs'
import { threadEntry } from '../../../src/gpu/thread.ts'

threadEntry.url = bundledUrl('entries/webgpuThread.js')

const isFull = process.env['TENSORFX_FULL'] === '1'

/** Everything on the GPU that holds memory. Pipelines and bind groups are counted as they are made. */
function held(): Pick<DeviceStats, 'buffers' | 'bytes' | 'pipelines' | 'bindGroups'> {
  const now = stats()
  if (now === null) throw new Error('init was not called')
  const { buffers, bytes, pipelines, bindGroups } = now
  return { buffers, bytes, pipelines, bindGroups }
}

/** A compiled step of training of a small network, which returns the loss. */
function training(): (x: Tensor, y: Tensor) => Tensor {
  torch.manualSeed(0)
  const model = new torch.nn.Sequential(new torch.nn.Linear(8, 16), new torch.nn.Tanh(), new torch.nn.Linear(16, 4))
  const optimizer = new torch.optim.Adam(model.parameters(), { lr: 1e-3 })
  return compile(
    (x: Tensor, y: Tensor) => {
      optimizer.zeroGrad()
      const loss = torch.nn.functional.mseLoss(model.call(x), y)
      loss.backward()
      optimizer.step()
      return loss.detach()
    },
    { backend: 'webgpu' },
  )
}

describe('steps of a training', () => {
  const steps = isFull ? 10_000 : 100

  test(`after warm-up ${steps} steps make no buffer, pipeline or bind group`, async () => {
    await init({})
    const step = training()
    const [x, y] = [torch.randn([4, 8]), torch.randn([4, 4])]
    for (let i = 0; i < 10; i++) step(x, y)
    const before = held()
    const rss = process.memoryUsage().rss
    let loss = Infinity
    for (let i = 0; i < steps; i++) {
      loss = step(x, y).item()
      // oxlint-disable-next-line no-await-in-loop -- finalizers run between tasks
      if (i % 50 === 0) await new Promise((resolve) => setImmediate(resolve))
    }
    expect(held()).toEqual(before)
    expect(loss).toBeLessThan(2)
    // 10,000 steps that kept a kilobyte each would show.
    expect(process.memoryUsage().rss - rss).toBeLessThan(150 * 2 ** 20)
  }, 300_000)
})

describe('operators on tensors of the GPU', () => {
  const shapes = isFull ? 2_000 : 100

  test(`whose shapes differ at each of ${shapes} calls keep no more programs than there may be`, async () => {
    await init({ limits: { kernels: 16 } })
    const x = torch.arange(shapes + 1, { dtype: 'float32' }).to('webgpu')
    const sums: Tensor[] = []
    for (let i = 1; i <= shapes; i++) sums.push(x.narrow(0, 0, i).sum())
    // The memory of tensors, and of each program its uniforms.
    const last = sums.at(-1)
    expect(last?.item()).toBe((shapes * (shapes - 1)) / 2)
    expect(held().buffers).toBeLessThanOrEqual(16 + 4)
    expect(sums[3]?.item()).toBe(6)
    await init({})
  }, 300_000)
})

describe('graphs that differ', () => {
  const graphs = isFull ? 500 : 24

  test('a program that never yields keeps the kernels that the GPU may keep, and graphs that gave theirs up still work', async () => {
    await init({ limits: { kernels: 8 } })
    const x = torch.randn([6])
    const made = Array.from({ length: graphs }, (_, i) => {
      const f = compile((value: Tensor) => value.mul(i).tanh(), { backend: 'webgpu' })
      torch.testing.assertClose(f(x), x.mul(i).tanh())
      return f
    })
    // Each has memory, uniforms, and a buffer that is read.
    expect(held().buffers).toBeLessThanOrEqual(3 * 8)
    made.slice(0, 10).forEach((f, i) => torch.testing.assertClose(f(x), x.mul(i).tanh()))
    expect(held().buffers).toBeLessThanOrEqual(3 * 8)
    await init({})
  }, 300_000)

  test('a graph keeps its memory while WebAssembly computes in the middle of a call, and gives it up after a call that threw', async () => {
    await init({ thread: false, fallback: 'wasm', limits: { kernels: 1 } })
    const x = torch.randn([5])
    const f = (value: Tensor, i: number): Tensor[] => {
      const y = value.mul(i + 2)
      return [torch.linalg.qr(y.reshape([1, 5]))[1].add(y.sum())]
    }
    const all = await Promise.all(Array.from({ length: 6 }, async (_, i) => compileGraph(makeFx((value: Tensor) => f(value, i))(x), [x])))
    const results = await Promise.all(all.map(async (graph) => graph.run(x)))
    results.forEach(([y], i) => torch.testing.assertClose(y as Tensor, f(x, i)[0]))

    const gather = await compileGraph(makeFx((table: Tensor, at: Tensor) => [torch.gather(table, 0, at).mul(2)])(x, torch.tensor([1n])), [
      x,
      torch.tensor([1n]),
    ])
    await expect(gather.run(x, torch.tensor([7n]))).rejects.toThrow(/the index 7/)
    const [y] = await gather.run(x, torch.tensor([1n]))
    torch.testing.assertClose(y as Tensor, x.narrow(0, 1, 1).mul(2))
    for (const graph of [...all, gather]) graph.release()
    const last = await compileGraph(makeFx((value: Tensor) => [value.neg()])(x), [x])
    // Its memory, and its uniforms.
    expect(held().buffers).toBe(2)
    last.release()
    await init({})
  })
})

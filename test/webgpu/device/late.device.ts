// Compiled functions where the program cannot wait for the GPU, as in a page: their results come later. This file runs in Node and in a page.
import { beforeAll, describe, expect, test } from 'vitest'
import { compile, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { DeviceLostError, DeviceReadError, init, loseDevice, stats } from 'tensorfx/webgpu'

beforeAll(async () => init({ thread: false }))

const softmaxOf = (x: Tensor): Tensor => torch.softmax(x.mul(2).add(1), 1)

describe('a result that is not here yet', () => {
  test('is read with await; other reads name the awaited forms, and work afterwards', async () => {
    const f = compile(softmaxOf, { backend: 'webgpu' })
    const x = torch.randn([4, 5])
    const y = f(x)
    expect([y.shape, y.dtype]).toEqual([[4, 5], 'float32'])
    expect(() => y.toArray()).toThrow(DeviceReadError)
    expect(() => y.sum().item()).toThrow(/await y\.itemAsync\(\).*await y\.toArrayAsync\(\)/)
    expect(() => y.add_(1)).toThrow(DeviceReadError)
    expect(String(y)).toMatch(/^tensor\(\.\.\., size=\(4, 5\)\)$/)
    expect(await y.toArrayAsync()).toEqual(y.toArray())
    torch.testing.assertClose(y, softmaxOf(x))
    expect(String(y)).toBe(String(y.clone()))
    // Views share the data.
    const z = f(x)
    const [row] = [z.select(0, 1)]
    expect(await row.toTypedArrayAsync()).toEqual(y.select(0, 1).toTypedArray())
    torch.testing.assertClose(z, y)
    expect(await compile((value: Tensor) => value.sum(), { backend: 'webgpu' })(torch.ones([3])).itemAsync()).toBe(3)
  })

  test('is an input of other compiled functions', async () => {
    const [f, g] = [compile(softmaxOf, { backend: 'webgpu' }), compile((a: Tensor, b: Tensor) => a.t().matmul(b), { backend: 'webgpu' })]
    const x = torch.randn([4, 5])
    const y = f(x)
    const z = g(y, f(y))
    await z.toArrayAsync()
    torch.testing.assertClose(
      z,
      softmaxOf(x)
        .t()
        .matmul(softmaxOf(softmaxOf(x))),
    )
  })

  test.each([
    ['every other column', (x: Tensor) => x.slice(1, 0, null, 2)],
    ['a window of larger rows', (x: Tensor) => x.narrow(0, 2, 3).narrow(1, 1, 2)],
    ['transposed columns', (x: Tensor) => x.slice(1, 1, null, 3).t()],
    ['one row, repeated', (x: Tensor) => x.narrow(0, 4, 1).expand(3, 6)],
  ] as const)('has all of an argument that lies in memory with gaps: %s', async (_, view) => {
    const x = torch.arange(30, { dtype: 'float32' }).reshape([5, 6])
    const f = (value: Tensor): Tensor => value.mul(2).add(1)
    expect(await compile(f, { backend: 'webgpu' })(view(x)).toArrayAsync()).toEqual(f(view(x)).toArray())
  })

  test('is computed from what the arguments were at the call', async () => {
    const f = compile((x: Tensor, factor: Tensor) => x.mul(factor), { backend: 'webgpu' })
    const x = torch.ones([3])
    const results = [1, 2, 3].map((i) => {
      const y = f(x, torch.tensor([i]))
      x.add_(1)
      return y
    })
    x.dispose()
    expect(await Promise.all(results.map(async (y) => y.toArrayAsync()))).toEqual([
      [1, 1, 1],
      [4, 4, 4],
      [9, 9, 9],
    ])
  })

  test('may be disposed, and a result that is an argument is a copy of it', async () => {
    const f = compile((x: Tensor) => [x, x.mul(2), x.mul(2).sum()] as const, { backend: 'webgpu' })
    const x = torch.ones([3])
    const [same, doubled, sum] = f(x)
    doubled.dispose()
    expect(await sum.itemAsync()).toBe(6)
    expect(await same.toArrayAsync()).toEqual([1, 1, 1])
  })
})

describe('random numbers', () => {
  const draws: readonly (readonly [string, (x: Tensor) => Tensor])[] = [
    ['rand', (x) => torch.rand([5, 7]).add(x.sum())],
    ['randn', (x) => torch.randn([33]).add(x.sum())],
    ['randint', (x) => torch.randint(-3, 1000, [19]).add(x.sum())],
    ['dropout', (x) => torch.nn.functional.dropout(x, 0.4)],
    ['bernoulli of one number', () => torch.rand([1]).lt(0.5)],
  ]

  test.each(draws)('of %s are those of eager mode with the same seed, anew at each call', async (name, fn) => {
    const f = compile(fn, { backend: 'webgpu' })
    const x = torch.zeros([6, 50]).add(1)
    torch.manualSeed(7)
    const got = [await f(x).toArrayAsync(), await f(x).toArrayAsync()]
    torch.manualSeed(7)
    torch.useDeterministicAlgorithms(true)
    try {
      expect(got).toEqual([fn(x).toArray(), fn(x).toArray()])
    } finally {
      torch.useDeterministicAlgorithms(false)
    }
    if (!name.includes('one')) expect(got[0]).not.toEqual(got[1])
  })
})

describe('training', () => {
  const losses = (backend: string): readonly Tensor[] => {
    torch.manualSeed(3)
    const model = new torch.nn.Sequential(new torch.nn.Linear(4, 8), new torch.nn.Tanh(), new torch.nn.Linear(8, 1))
    const optimizer = new torch.optim.SGD(model.parameters(), { lr: 0.1, momentum: 0.9 })
    const [x, y] = [torch.randn([6, 4]), torch.randn([6, 1])]
    const step = compile(
      (input: Tensor, target: Tensor) => {
        optimizer.zeroGrad()
        const loss = torch.nn.functional.mseLoss(model.call(input), target)
        loss.backward()
        optimizer.step()
        return loss.detach()
      },
      { backend },
    )
    return Array.from({ length: 8 }, () => step(x, y))
  }

  test('runs without a wait between its steps, and its losses are read at the end', async () => {
    const before = stats()?.readbacks ?? 0
    const got = await Promise.all(losses('webgpu').map(async (loss) => loss.itemAsync()))
    torch.testing.assertClose(torch.tensor(got), torch.tensor(losses('inductor').map((loss) => loss.item())), { rtol: 1e-4, atol: 1e-5 })
    expect((stats()?.readbacks ?? 0) - before).toBeGreaterThan(0)
  })

  test('a backward outside of the compiled function takes what the GPU computed', async () => {
    const f = compile((x: Tensor) => x.tanh().sum(), { backend: 'webgpu' })
    const x = torch.randn([7], { requiresGrad: true })
    f(x).backward()
    await x.grad?.toArrayAsync()
    torch.testing.assertClose(x.grad, torch.ones([7]).sub(x.detach().tanh().square()))
  })
})

test('a lost device rejects the read of every result that depends on it, and the next call works', async () => {
  const f = compile((x: Tensor) => x.mul(3), { backend: 'webgpu' })
  expect(await f(torch.ones([2])).toArrayAsync()).toEqual([3, 3])
  await loseDevice('next run')
  const y = f(torch.ones([2]))
  const z = f(y)
  await expect(y.toArrayAsync()).rejects.toThrow(DeviceLostError)
  await expect(z.toArrayAsync()).rejects.toThrow(DeviceLostError)
  expect(() => z.toArray()).toThrow(DeviceLostError)
  expect(await f(torch.ones([2])).toArrayAsync()).toEqual([3, 3])
})

// compile on tensors that are on the GPU: what a function may do with them. Each function runs eagerly on the CPU, and compiled on the GPU, several times. This file runs in Node and in a page.
import { beforeAll, describe, expect, test } from 'vitest'
import { compile, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import type { CompileOptions } from 'tensorfx/compile'
import { aotFunction } from 'tensorfx/aot'
import { compileFx } from '../../../src/inductor/pipeline.ts'
import { DeviceLostError, DeviceReadError, init, loseDevice, stats, synchronize } from 'tensorfx/webgpu'

beforeAll(async () => init({ thread: false }))

type Fn = (...args: Tensor[]) => unknown
const onCard = (tensor: Tensor): Tensor => {
  const { requiresGrad } = tensor
  const there = tensor.detach().to('webgpu')
  return requiresGrad ? there.requiresGrad_() : there
}
const tensorsIn = (value: unknown): readonly Tensor[] =>
  value instanceof Object && 'storage' in value ? [value as Tensor] : Array.isArray(value) ? value.flatMap(tensorsIn) : []
const values = async (value: unknown): Promise<readonly unknown[]> => Promise.all(tensorsIn(value).map(async (tensor) => tensor.toArrayAsync()))

/** What a function returns, what its arguments are afterwards, and their gradients. */
async function outcome(fn: Fn, args: readonly Tensor[]): Promise<readonly unknown[]> {
  const result = fn(...args)
  const grads = args.flatMap(({ grad }) => (grad === null ? [] : [grad]))
  const all = [...tensorsIn(result), ...args, ...grads]
  return [await values(all), all.map(({ shape, strides, requiresGrad, isLeaf }) => [shape, strides, requiresGrad, isLeaf])]
}

const A = (): Tensor => torch.arange(12, { dtype: 'float32' }).reshape([3, 4]).sub(5)
const B = (): Tensor => torch.tensor([[0.5, -1, 2, 3]])

const functions: Readonly<Record<string, { readonly fn: Fn; readonly args: () => Tensor[]; readonly options?: CompileOptions }>> = {
  'returns results, views of them, arguments, and one tensor twice': {
    fn: (x, y) => {
      const sum = x.add(y)
      return [sum, sum.t(), x, sum, sum.select(0, 1), x.narrow(0, 1, 2)]
    },
    args: () => [A(), B()],
  },
  'writes to arguments, to views of them, and reads them again': {
    fn: (x, y) => {
      x.mul_(2)
      x.select(0, 1).add_(y.select(0, 0))
      x.t().narrow(0, 1, 2).fill_(7)
      y.copy_(x.sum(0, true))
      return x.sub(y)
    },
    args: () => [A(), B()],
  },
  'exchanges what two arguments hold': {
    fn: (x, y) => {
      const old = x.clone()
      x.copy_(y)
      y.copy_(old)
      return old
    },
    args: () => [A(), A().mul(-1)],
  },
  'returns the old and the new value of an argument': {
    fn: (x) => {
      const old = x.clone()
      const view = x.t()
      x.add_(1)
      return [old, view, x.sum()]
    },
    args: () => [A()],
  },
  'takes views that share memory': {
    fn: (x) => {
      const [a, b] = [x.narrow(0, 0, 2), x.narrow(0, 1, 2)]
      a.add_(b)
      return a.mul(b)
    },
    args: () => [A()],
  },
  'makes tensors there, and random ones': {
    fn: (x) => {
      torch.manualSeed(3)
      const { device } = x
      const noise = torch.randn([3, 4], { device })
      return [
        x.add(noise),
        torch.zeros([2], { device }),
        torch.arange(3, { device }),
        torch.ones([2, 2], { device, dtype: 'int64' }),
        torch.zerosLike(x),
      ]
    },
    args: () => [A()],
  },
  'computes gradients inside': {
    fn: (x, y) => {
      x.grad = null
      x.mul(y).tanh().sum().backward()
      return x.grad
    },
    args: () => [A().requiresGrad_(), B()],
  },
  'starts a backward outside': {
    fn: (x, y) => x.mul(y).sin().sum(1),
    args: () => [A().requiresGrad_(), B().requiresGrad_()],
  },
  'computes on the CPU, too, with other tensors': {
    fn: (x) => {
      const own = torch.ones([3]).mul(2)
      const sum = x.sum()
      return [sum, own.add(1), x.mul(2)]
    },
    args: () => [A()],
  },
  'takes tensors without dimensions of the CPU as numbers': {
    fn: (x) => x.mul(torch.tensor(2)).add(torch.tensor(0.5)),
    args: () => [A()],
  },
  'has several dtypes': {
    fn: (x) => [x.to('int64').mul(3), x.gt(0), x.to('float16').mul(2), x.argmax({ dim: 1 })],
    args: () => [A()],
  },
  'has sizes that differ from call to call': { fn: (x, y) => x.mul(y).sum(0), args: () => [A(), B()], options: { dynamic: true } },
  'is pure': { fn: (x, y) => torch.softmax(x.mul(y).mul(0.1), 1), args: () => [A(), B()], options: { skipReplay: true } },
  'writes under skipReplay': {
    fn: (x, y) => {
      x.add_(y)
      return x.mul(2)
    },
    args: () => [A(), B()],
    options: { skipReplay: true },
  },
  'has no graph breaks': { fn: (x, y) => x.matmul(y.t()).relu(), args: () => [A(), B()], options: { fullgraph: true } },
  'runs on the backend eager': {
    fn: (x, y) => torch.zeros([4], { device: x.device }).add(x.mul(y)).relu(),
    args: () => [A(), B()],
    options: { backend: 'eager' },
  },
  'runs on the backend aot_eager': {
    fn: (x, y) => x.mul(y).tanh().sum(1),
    args: () => [A().requiresGrad_(), B()],
    options: { backend: 'aot_eager' },
  },
  'runs on the backend webgpu': { fn: (x, y) => x.mul(y).tanh().sum(1), args: () => [A().requiresGrad_(), B()], options: { backend: 'webgpu' } },
  'pools an argument': { fn: (x) => torch.nn.functional.maxPool2d(x.reshape([1, 1, 3, 4]), 2), args: () => [A()] },
}

const rounded = (value: unknown): unknown =>
  typeof value === 'number' && !Number.isInteger(value) ? Number(value.toPrecision(5)) : Array.isArray(value) ? value.map(rounded) : value

/** The function, and the gradients of what it returns. */
const withBackward =
  (fn: Fn): Fn =>
  (...args) => {
    const result = fn(...args) as Tensor
    if (result.requiresGrad) result.sum().backward()
    return result.detach()
  }

test.each(Object.entries(functions))('a function that %s', async (name, { fn, args, options }) => {
  const compiled = compile(fn, options)
  for (let call = 0; call < 3; call++) {
    const here = args().map((arg) =>
      arg
        .detach()
        .mul(call + 1)
        .requiresGrad_(arg.requiresGrad),
    )
    const moved = here.map(onCard)
    const backward = (run: Fn): Fn => (/^(?:starts|runs)/.test(name) ? withBackward(run) : run)
    const want = await outcome(backward(fn), here)
    const got = await outcome(backward(compiled as Fn), moved)
    expect(rounded(got)).toEqual(rounded(want))
  }
})

test('results are on the GPU, and what is moved is where it was moved to', () => {
  const f = compile((x: Tensor) => [x.add(1), x.add(1).cpu(), torch.zeros([2]), torch.zeros([2], { device: x.device })])
  const devices = (x: Tensor): readonly string[] => f(x).map(({ device }) => device)
  expect(devices(A())).toEqual(['cpu', 'cpu', 'cpu', 'cpu'])
  expect(devices(onCard(A()))).toEqual(['webgpu', 'cpu', 'cpu', 'webgpu'])
  expect(devices(A())).toEqual(['cpu', 'cpu', 'cpu', 'cpu'])
  // What the program cannot wait for is no tensor to compute with.
  expect(() => onCard(A()).cpu().mul(2)).toThrow(DeviceReadError)
})

test('a function takes tensors of either device from call to call', async () => {
  const f = compile((x: Tensor, y: Tensor) => x.mul(y).add(x.device === 'cpu' ? 1 : 2))
  for (const place of [onCard, (x: Tensor) => x, onCard, (x: Tensor) => x]) {
    const [x, y] = [place(A()), place(B())]
    const want = A()
      .mul(B())
      .add(x.device === 'cpu' ? 1 : 2)
      .toArray()
    expect(await f(x, y).toArrayAsync()).toEqual(want)
  }
})

test.each(['inductor', 'webgpu', 'eager'])('tensors of two devices in one call are refused as in eager mode, on %s', (backend) => {
  const f = compile((x: Tensor, y: Tensor) => x.add(y), { backend })
  expect(() => f(onCard(A()), B())).toThrow(
    /torch\.add: all tensors must be on one device, but argument 'self' is on 'webgpu' and argument 'other' on 'cpu'\. Move one of them/,
  )
})

describe('reads', () => {
  test('of a value in the middle are refused where the program cannot wait, and the call after it is right', async () => {
    const f = compile((x: Tensor, isRead: boolean) => (isRead && Number(x.sum().item()) > 0 ? x.mul(2) : x.mul(3)))
    const x = onCard(A())
    expect(() => f(x, true)).toThrow(DeviceReadError)
    expect(await f(x, false).toArrayAsync()).toEqual(A().mul(3).toArray())
  })

  test('throw for an index that is out of range, and nothing of it is written elsewhere', async () => {
    const f = compile((weight: Tensor, at: Tensor) => torch.nn.functional.embedding(at, weight).mul(2))
    const weight = onCard(A())
    const good = f(weight, onCard(torch.tensor([0, 2], { dtype: 'int64' })))
    const bad = f(weight, onCard(torch.tensor([0, 3], { dtype: 'int64' })))
    const later = bad.add(1)
    expect(await good.toArrayAsync()).toEqual(
      A()
        .indexSelect(0, torch.tensor([0, 2], { dtype: 'int64' }))
        .mul(2)
        .toArray(),
    )
    await expect(later.toArrayAsync()).rejects.toThrow(/3 is out of range|index 3/)
    await expect(bad.toArrayAsync()).rejects.toThrow(/3 is out of range|index 3/)
    expect(await f(weight, onCard(torch.tensor([1], { dtype: 'int64' }))).toArrayAsync()).toEqual([[-2, 0, 2, 4]])
    expect(await weight.toArrayAsync()).toEqual(A().toArray())
  })

  test('of indices wait until something is read, and many calls without a read do not pile up', async () => {
    const f = compile((weight: Tensor, at: Tensor) => torch.nn.functional.embedding(at, weight).sum())
    const [weight, at] = [onCard(A()), onCard(torch.tensor([0, 2], { dtype: 'int64' }))]
    for (let i = 0; i < 4; i++) f(weight, at)
    await synchronize()
    const before = stats()?.readbacks ?? 0
    for (let i = 0; i < 40; i++) f(weight, at)
    await synchronize()
    expect(stats()?.readbacks).toBe(before)
    for (let i = 0; i < 160; i++) f(weight, at).dispose()
    expect(await f(weight, at).itemAsync()).toBe(4)
    expect((stats()?.readbacks ?? Infinity) - before).toBeLessThan(8)
  })
})

test('operators without a shader are refused by name', () => {
  const f = compile((x: Tensor) => torch.linalg.qr(x.add(1))[0])
  expect(() => f(onCard(A()))).toThrow(/torch\.linalg\.qr has no form for tensors on webgpu/)
  expect(() => f(onCard(A()).to('float64'))).toThrow(/float64/)
})

test('kernels() lists the shaders with what they compute', () => {
  const f = compile((x: Tensor) => torch.softmax(x.mul(2), 1).matmul(x.t()))
  f(onCard(A()))
  expect(f.kernels().length).toBeGreaterThan(0)
  expect(f.kernels().flatMap(({ ops }) => ops)).toContain('mul')
  expect(f.kernels()[0]?.text).toContain('@compute')
  expect(f.kernels()[0]?.computedBy?.()).toEqual({ engine: 'webgpu', threads: 1 })
})

test('a path with sizes is right for any of them, however often they come', async () => {
  const f = compile((x: Tensor) => x.mul(2).add(x.sum(0)).relu(), { dynamic: true })
  for (let round = 0; round < 12; round++)
    for (const rows of [2, 3, 5, 7, 2, 2]) {
      const x = torch
        .arange(rows * 4, { dtype: 'float32' })
        .reshape([rows, 4])
        .sub(round)
      // oxlint-disable-next-line no-await-in-loop -- one after the other, as a program calls it
      expect(await f(onCard(x)).toArrayAsync()).toEqual(x.mul(2).add(x.sum(0)).relu().toArray())
    }
})

test('aotFunction compiles for the GPU, too', async () => {
  const f = aotFunction((x: Tensor, y: Tensor) => x.mul(y).tanh(), { fwCompiler: compileFx })
  const run = async (place: (x: Tensor) => Tensor): Promise<unknown> => {
    const [x, y] = [place(A().requiresGrad_()), place(B())]
    const z = f(x, y)
    z.sum().backward()
    return rounded([await z.detach().toArrayAsync(), await x.grad?.toArrayAsync(), [z.device, x.grad?.device].includes(x.device)])
  }
  expect(await run(onCard)).toEqual(await run((x) => x.detach().requiresGrad_(x.requiresGrad)))
})

test('after the loss of the GPU a compiled function computes with tensors that are made then, and reads of the others say so', async () => {
  const f = compile((x: Tensor) => x.mul(2).add(1))
  const x = onCard(A())
  const y = f(x)
  expect(await y.toArrayAsync()).toEqual(A().mul(2).add(1).toArray())
  await loseDevice()
  await expect(f(x).toArrayAsync()).rejects.toThrow(DeviceLostError)
  await expect(y.toArrayAsync()).rejects.toThrow(DeviceLostError)
  expect(await f(onCard(A())).toArrayAsync()).toEqual(A().mul(2).add(1).toArray())
})

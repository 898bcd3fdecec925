// Tensors that are on the GPU: how they get there and back, operators on them, gradients, training; and what is refused. This file runs in Node and in a page.
import { beforeAll, describe, expect, test } from 'vitest'
import { nn, optim, torch } from 'tensorfx'
import type { DType, Tensor } from 'tensorfx'
import { DeviceLostError, DeviceReadError, init, loseDevice, stats, synchronize } from 'tensorfx/webgpu'
import { loadSafetensors, writeSafetensors } from 'tensorfx/interop'
import { NOISE, worst } from './modelCases.ts'

const F = nn.functional

beforeAll(async () => init({ thread: false }))

const onCard = (tensor: Tensor): Tensor => tensor.to('webgpu')
const read = async (tensor: Tensor): Promise<Tensor> => torch.tensor((await tensor.toArrayAsync()) as number[], { dtype: tensor.dtype })

const DTYPES: readonly DType[] = ['float32', 'float16', 'bfloat16', 'int64', 'int32', 'int16', 'int8', 'uint8', 'bool']

describe('a tensor on the GPU', () => {
  test.each(DTYPES)('of %s comes back as it was, and so do its views', async (dtype) => {
    const x = torch.randn([5, 7]).mul(100).to(dtype)
    const y = onCard(x)
    expect([y.device, x.device, y.dtype, y.shape]).toEqual(['webgpu', 'cpu', dtype, [5, 7]])
    expect(await y.toArrayAsync()).toEqual(x.toArray())
    expect(await y.t().narrow(0, 1, 3).toArrayAsync()).toEqual(x.t().narrow(0, 1, 3).toArray())
    expect(await y.select(1, 2).toTypedArrayAsync()).toEqual(x.select(1, 2).toTypedArray())
    expect(await onCard(x.t()).toArrayAsync()).toEqual(x.t().toArray())
    const back = y.to('cpu')
    expect([back.device, await back.toArrayAsync()]).toEqual(['cpu', x.toArray()])
    expect([y.to('webgpu'), x.cpu(), x.to('cpu')]).toEqual([y, x, x])
    if (dtype === 'int64') {
      const large = torch.tensor([2n ** 62n + 1n, -(2n ** 61n) - 3n])
      expect(await onCard(large).toBigIntArrayAsync()).toEqual(large.toBigIntArray())
      expect(await onCard(large).cpu().toBigIntArrayAsync()).toEqual(large.toBigIntArray())
    }
  })

  test('is made there by the option device, with the numbers that it has elsewhere', async () => {
    torch.manualSeed(5)
    const want = torch.randn([3, 4])
    torch.manualSeed(5)
    const x = torch.randn([3, 4], { device: 'webgpu', requiresGrad: true })
    expect([x.device, x.requiresGrad, x.isLeaf, await x.toArrayAsync()]).toEqual(['webgpu', true, true, want.toArray()])
    for (const [made, values] of [
      [torch.zeros(2, { device: 'webgpu', dtype: 'int32' }), [0, 0]],
      [torch.tensor([1, 2], { device: 'webgpu' }), [1, 2]],
      [torch.arange(3, { device: 'webgpu' }), [0, 1, 2]],
      [torch.onesLike(torch.zeros([2], { device: 'webgpu' })), [1, 1]],
      [torch.zeros([2], { device: 'webgpu' }).newFull([1], 7), [7]],
      [torch.zeros([2], { device: 'webgpu' }).newTensor([7]), [7]],
    ] as const)
      expect([made.device, await made.toArrayAsync()]).toEqual(['webgpu', values])
    expect(() => torch.zeros([2], { device: 'cuda' as never })).toThrow(/torch\.zeros: option 'device': there is no device 'cuda'/)
    expect(() => torch.zeros([2], { device: 'webgpu', dtype: 'float64' })).toThrow(/webgpu has no float64/)
    expect(await torch.ones([2], { dtype: 'float64' }).to('webgpu', 'float32').toArrayAsync()).toEqual([1, 1])
  })

  test('does not mix with others, but for numbers', async () => {
    const [x, y] = [onCard(torch.ones([2])), torch.ones([2])]
    expect(() => x.add(y)).toThrow(/torch\.add: all tensors must be on one device, but argument 'self' is on 'webgpu' and argument 'other' on 'cpu'/)
    expect(() => torch.cat([x, x, y])).toThrow(/argument 'tensors\[0\]' is on 'webgpu' and argument 'tensors\[2\]' on 'cpu'/)
    expect(() => y.add_(x)).toThrow(/argument 'other' is on 'webgpu' and argument 'self' on 'cpu'/)
    expect(await x.add(torch.tensor(2)).toArrayAsync()).toEqual([3, 3])
    x.copy_(torch.tensor([5, 6]))
    expect(await x.toArrayAsync()).toEqual([5, 6])
    expect(y.toArray()).toEqual([1, 1])
  })

  test('is not read where the program cannot wait, and shows its shape', async () => {
    const x = onCard(torch.ones([2, 3]))
    expect(() => x.sum().item()).toThrow(DeviceReadError)
    expect(() => x.toArray()).toThrow(/await y\.toArrayAsync\(\)/)
    expect(String(x)).toBe('tensor(..., size=(2, 3))')
    const sum = x.sum().itemAsync()
    x.add_(1)
    expect(await sum).toBe(6)
    await synchronize()
  })

  test('gives its memory back', async () => {
    const x = onCard(torch.zeros([100]))
    x.dispose()
    expect(() => x.add(1)).toThrow(/was disposed/)
    const before = stats()?.bytes ?? 0
    for (let i = 0; i < 200; i++) torch.zeros([2 ** 16], { device: 'webgpu' }).dispose()
    await synchronize()
    expect((stats()?.bytes ?? Infinity) - before).toBeLessThan(2 ** 22)
  })
})

describe('operators', () => {
  test('write in place to whole tensors and to windows, which their views see', async () => {
    const run = async (place: (x: Tensor) => Tensor): Promise<unknown> => {
      const x = place(torch.arange(12).reshape([3, 4]))
      const [row, turned] = [x.select(0, 1), x.t()]
      x.mul_(2)
      row.add_(torch.ones([4], { device: x.device }))
      turned.narrow(0, 1, 2).fill_(-1)
      x.t_()
        .select(0, 0)
        .copy_(place(torch.tensor([7, 8, 9])))
      return [await x.toArrayAsync(), await row.toArrayAsync(), await turned.toArrayAsync(), x.storage?.version]
    }
    expect(await run(onCard)).toEqual(await run((x) => x))
  })

  test('that have no shader are refused by name, and nothing is computed', () => {
    const x = onCard(torch.ones([3, 3]))
    for (const [name, call] of Object.entries({
      'torch.linalg.qr': () => torch.linalg.qr(x),
      'torch.linalg.cholesky': () => torch.linalg.cholesky(x),
    }))
      expect(call).toThrow(new RegExp(`^${name.replaceAll('.', '\\.')} has no form for tensors on webgpu: .*init\\(\\{ fallback: 'wasm' \\}\\)`))
  })

  test('take other numbers without other kernels', async () => {
    const x = onCard(torch.ones([3]))
    await x.mul(0.5).toArrayAsync()
    const before = stats()?.pipelines
    for (const factor of [0.25, 1.5, 7.75]) expect(await x.mul(factor).toArrayAsync()).toEqual([factor, factor, factor])
    expect(stats()?.pipelines).toBe(before)
  })

  test('throw for an index that is out of range when a result of it is read', async () => {
    const x = onCard(torch.ones([3, 2]))
    const rows = F.embedding(onCard(torch.tensor([0, 3], { dtype: 'int64' })), x)
    await expect(rows.mul(2).toArrayAsync()).rejects.toThrow(/embedding.*index 3|3 is out of range/)
    await expect(x.toArrayAsync()).resolves.toHaveLength(3)
  })
})

describe('training', () => {
  const mlp = (): nn.Module & { call(x: Tensor): Tensor } =>
    new nn.Sequential(new nn.Linear(4, 8), new nn.Tanh(), new nn.LayerNorm([8]), new nn.Linear(8, 2))
  const cnn = (): nn.Module & { call(x: Tensor): Tensor } =>
    new nn.Sequential(new nn.Conv2d(1, 3, 3, { padding: 1 }), new nn.ReLU(), new nn.MaxPool2d(2), new nn.Flatten(), new nn.Linear(12, 2))

  /** The losses and weights of ten steps; the input is changed by that part of its largest value. */
  async function steps(name: string, rule: 'SGD' | 'Adam', device: 'cpu' | 'webgpu', noise: number): Promise<readonly Tensor[]> {
    torch.manualSeed(1)
    const model = name === 'MLP' ? mlp() : cnn()
    const [x, y] = [torch.randn(name === 'MLP' ? [6, 4] : [3, 1, 4, 4]), torch.randint(0, 2, [name === 'MLP' ? 6 : 3])]
    const input = x.add(torch.randn(x.shape).mul(noise).mul(x.abs().max())).to(device)
    const target = y.to(device)
    expect(model.to(device)).toBe(model)
    const optimizer =
      rule === 'SGD' ? new optim.SGD(model.parameters(), { lr: 0.1, momentum: 0.9 }) : new optim.Adam(model.parameters(), { lr: 0.01 })
    const losses: Tensor[] = []
    for (let i = 0; i < 10; i++) {
      optimizer.zeroGrad()
      const loss = F.crossEntropy(model.call(input), target)
      loss.backward()
      optimizer.step()
      losses.push(loss.detach())
    }
    const made = [...losses, ...model.parameters()]
    expect(new Set(made.map((tensor) => tensor.device))).toEqual(new Set([device]))
    expect([...model.parameters()].every(({ grad, isParameter }) => isParameter && grad?.device === device)).toBe(true)
    return Promise.all(made.map(read))
  }

  test.each([
    ['MLP', 'SGD'],
    ['MLP', 'Adam'],
    ['CNN', 'SGD'],
    ['CNN', 'Adam'],
  ] as const)('of a %s with %s gives the losses and weights that the CPU gives', async (name, rule) => {
    const want = await steps(name, rule, 'cpu', 0)
    const [error, own] = [worst(await steps(name, rule, 'webgpu', 0), want), worst(await steps(name, rule, 'cpu', NOISE), want)]
    expect(error, `with the input changed by ${NOISE} the CPU differs from itself by ${own}`).toBeLessThan(2 * own)
  })

  test('hands gradients from one device to the other', async () => {
    const w = torch.tensor([1, 2, 3], { requiresGrad: true })
    w.to('webgpu').mul(2).sum().to('cpu').backward()
    expect([w.grad?.device, await w.grad?.toArrayAsync()]).toEqual(['cpu', [2, 2, 2]])
  })

  test('is saved once it was copied: files and other threads take what is here, and refuse with the form that waits', async () => {
    const model = mlp().to('webgpu')
    const [weight] = model.parameters()
    expect(() => writeSafetensors(model.stateDict())).toThrow(DeviceReadError)
    expect(() => writeSafetensors(model.stateDict())).toThrow(/await y\.toArrayAsync\(\)/)
    expect(() => JSON.stringify(weight)).toThrow(DeviceReadError)
    const state = new Map([...model.namedParameters()].map(([name, tensor]) => [name, tensor.detach().cpu()] as const))
    await Promise.all([...state.values()].map(async (tensor) => tensor.toTypedArrayAsync()))
    const loaded = await loadSafetensors(writeSafetensors(state))
    expect(loaded.get('0.weight')?.toArray()).toEqual(await weight?.toArrayAsync())
  })

  test('loads a state dict from elsewhere', async () => {
    const [there, here] = [mlp().to('webgpu'), mlp()]
    there.loadStateDict(here.stateDict())
    const [weight] = there.parameters()
    const [own] = here.parameters()
    expect([weight?.device, await weight?.toArrayAsync()]).toEqual(['webgpu', own?.toArray()])
  })
})

test('a lost GPU loses its tensors, whose reads say so, and later ones are on the next', async () => {
  const x = onCard(torch.ones([2]))
  const y = x.add(1)
  expect(await y.toArrayAsync()).toEqual([2, 2])
  await loseDevice()
  await expect(y.mul(2).toArrayAsync()).rejects.toThrow(DeviceLostError)
  await expect(x.toArrayAsync()).rejects.toThrow(DeviceLostError)
  expect(
    await onCard(torch.ones([2]))
      .add(1)
      .toArrayAsync(),
  ).toEqual([2, 2])
})

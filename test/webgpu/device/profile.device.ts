// Times of kernels by the GPU's timestamps. This file runs in Node and in a page.
import { beforeAll, describe, expect, test } from 'vitest'
import { compile, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { init, profile, stats } from 'tensorfx/webgpu'
import { Device } from '../../../src/gpu/device.ts'
import { UnsupportedError } from '../../../src/errors/index.ts'
import { deviceHere } from './harness.ts'

beforeAll(async () => init({ thread: false }))

const product = compile((a: Tensor, b: Tensor) => torch.softmax(a.matmul(b), 1).sum(0), { backend: 'webgpu' })

describe('profile', () => {
  test('times every kernel of every call, and names its nodes', async () => {
    const [a, b] = [torch.randn([96, 64]), torch.randn([64, 96])]
    const want = await product(a, b).toArrayAsync()
    const before = stats()
    const { result, kernels } = await profile(async () => {
      for (let i = 0; i < 3; i++) {
        // oxlint-disable-next-line no-await-in-loop -- one call after the other
        await product(a, b).toArrayAsync()
      }
      return product(a, b).toArrayAsync()
    })
    expect(result).toEqual(want)
    const dispatches = (stats()?.dispatches ?? 0) - (before?.dispatches ?? 0)
    expect(kernels.reduce((n, { calls }) => n + calls, 0)).toBe(dispatches)
    expect(kernels.every(({ calls }) => calls === 4)).toBe(true)
    expect(kernels.flatMap(({ nodes }) => nodes).sort()).toEqual(['mm', 'softmax', 'sum_1'])
    expect(kernels.map(({ milliseconds }) => milliseconds)).toEqual(kernels.map(({ milliseconds }) => milliseconds).toSorted((p, q) => q - p))
    expect(kernels.reduce((sum, { milliseconds }) => sum + milliseconds, 0)).toBeGreaterThan(0)
    // Afterwards a call is one pass again, and is not timed.
    await product(a, b).toArrayAsync()
    expect((await profile(() => 5)).kernels).toEqual([])
    expect([stats()?.buffers, stats()?.bytes]).toEqual([before?.buffers, before?.bytes])
  })

  test('a kernel that has more to do takes longer', async () => {
    // One thread adds one number after the other, which takes long on any GPU.
    const f = compile((x: Tensor) => x.cumsum(0), { backend: 'webgpu' })
    const timeOf = async (n: number): Promise<number> => {
      const x = torch.randn([n])
      await f(x).toArrayAsync()
      const { kernels } = await profile(async () => {
        for (let i = 0; i < 5; i++) {
          // oxlint-disable-next-line no-await-in-loop -- one call after the other
          await f(x).toArrayAsync()
        }
      })
      return kernels.reduce((sum, { milliseconds }) => sum + milliseconds, 0)
    }
    const [short, long] = [await timeOf(64), await timeOf(200_000)]
    expect(long).toBeGreaterThan(2 * short)
  })

  test('throws what the function throws, and stops', async () => {
    await expect(
      profile(() => {
        throw new RangeError('mine')
      }),
    ).rejects.toThrow(RangeError)
    expect((await profile(() => null)).kernels).toEqual([])
  })

  test('a GPU without timestamps is an UnsupportedError that says what to do', async () => {
    const { gpu } = await deviceHere()
    const without = new Proxy(gpu, {
      get: (target, key) => {
        if (key === 'features') return new Set()
        const value: unknown = Reflect.get(target, key, target)
        return typeof value === 'function' ? value.bind(target) : value
      },
    })
    const device = new Device(without, {}, 'without')
    expect(() => device.startClock()).toThrow(UnsupportedError)
    expect(() => device.startClock()).toThrow(/timestamp-query.*performance\.now/s)
  })
})

// Calls that are submitted together: operators of eager mode, one after the other. This file runs in Node and in a page.
import { beforeAll, describe, expect, test } from 'vitest'
import { torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { DeviceLostError, init, stats, synchronize } from 'tensorfx/webgpu'
import { DeviceHost } from '../../../src/gpu/host.ts'
import type { CallRequest, DeviceRequest, Dispatch } from '../../../src/gpu/requests.ts'

beforeAll(async () => init({ thread: false }))

describe('operators that are called without a read between them', () => {
  test('are few submissions', async () => {
    let x: Tensor = torch.ones([4], { device: 'webgpu' })
    await x.add(1).mul(0.5).toArrayAsync()
    const before = stats()?.submits ?? 0
    for (let i = 0; i < 100; i++) x = x.add(1).mul(0.5)
    expect(await x.toArrayAsync()).toEqual([1, 1, 1, 1])
    // 64 calls, and the read.
    const submits = (stats()?.submits ?? Infinity) - before
    expect(submits).toBeLessThanOrEqual(Math.ceil(200 / 64) + 2)
    expect(submits).toBeGreaterThanOrEqual(Math.ceil(200 / 64))
  })

  test('bind the same memory once, and take no more of it', async () => {
    const x = torch.ones([4], { device: 'webgpu' })
    const run = async (): Promise<void> => {
      for (let i = 0; i < 10; i++) {
        const [y, z] = [x.mul(i), x.sub(i)]
        expect(await y.add(z).toArrayAsync()).toEqual([1, 1, 1, 1])
        y.dispose()
        z.dispose()
      }
    }
    await run()
    const before = stats()
    await run()
    const after = stats()
    expect(after?.bindGroups).toBe(before?.bindGroups)
    expect([after?.buffers, after?.bytes, after?.pipelines]).toEqual([before?.buffers, before?.bytes, before?.pipelines])
    expect(after?.dispatches).toBe((before?.dispatches ?? 0) + 30)
  })

  test('give their memory back with the GPU that they ran on', async () => {
    const counts: unknown[] = []
    for (let i = 0; i < 3; i++) {
      await init({ thread: false, limits: { kernels: 500 + i } })
      const x = torch.ones([4], { device: 'webgpu' })
      const sums = Array.from({ length: 5 }, (_, k) => x.add(k))
      expect(await sums[4]?.toArrayAsync()).toEqual([5, 5, 5, 5])
      counts.push([stats()?.buffers, stats()?.bytes])
    }
    expect(counts).toEqual([counts[0], counts[0], counts[0]])
    await init({ thread: false })
  })

  test('that wait when the GPU is given up throw at their reads', async () => {
    const x = torch.ones([4], { device: 'webgpu' })
    const waiting = Array.from({ length: 5 }, (_, k) => x.add(k))
    await init({ thread: false, limits: { kernels: 600 } })
    await init({ thread: false })
    await expect(waiting[4]?.toArrayAsync()).rejects.toThrow(DeviceLostError)
  })

  test('have each their own numbers and memory, though they share a program', async () => {
    const x = torch.arange(5, { dtype: 'float32' }).to('webgpu')
    const results = Array.from({ length: 30 }, (_, i) => x.mul(i + 0.5))
    const sums = results.map((result) => result.sum())
    for (const [i, result] of results.entries()) {
      expect(await result.toArrayAsync()).toEqual([0, 1, 2, 3, 4].map((value) => value * (i + 0.5)))
      expect(await sums[i]?.itemAsync()).toBe(10 * (i + 0.5))
    }
  })

  test('see memory that grows in between', async () => {
    const small = torch.ones([3], { device: 'webgpu' })
    const made: Tensor[] = []
    for (let i = 0; i < 6; i++) {
      made.push(small.mul(i), torch.zeros([2 ** (18 + (i % 3))], { device: 'webgpu' }).add(i))
    }
    for (let i = 0; i < 6; i++) {
      expect(await made[2 * i]?.toArrayAsync()).toEqual([i, i, i])
      expect(await made[2 * i + 1]?.narrow(0, 2 ** 18 - 2, 2).toArrayAsync()).toEqual([i, i])
    }
    for (const tensor of made) tensor.dispose()
    await synchronize()
  })
})

test('calls of one program keep what they write where memory grows while they wait', async () => {
  await init({ thread: false, limits: { kernels: 700 } })
  const x = torch.ones([2 ** 16], { device: 'webgpu' })
  // 10 MB: more than there is at the beginning.
  const made = Array.from({ length: 40 }, (_, i) => x.add(i))
  const ends = await Promise.all(made.map(async (sum) => sum.narrow(0, 2 ** 16 - 1, 1).itemAsync()))
  expect(ends).toEqual(made.map((_, i) => i + 1))
  for (const tensor of made) tensor.dispose()
  await init({ thread: false })
})

describe('of calls that were submitted together', () => {
  /** Fills four words with a number; its uniforms are what is bound, or more, which the GPU refuses. */
  const filling = (name: string, isValid: boolean): Dispatch => ({
    ...{ name, nodes: [`${name}_node`], lines: [], slabs: 1, threads: 4, team: 1, words: new Uint32Array(4) },
    code: [
      '@group(0) @binding(0) var<storage, read_write> slab: array<u32>;',
      `@group(0) @binding(1) var<uniform> uniforms: array<vec4<u32>, ${isValid ? 1 : 9}>;`,
      '@compute @workgroup_size(64) fn main(@builtin(local_invocation_index) i: u32) {',
      `  if (i < uniforms[${isValid ? 0 : 8}].x || i < uniforms[0].x) { slab[uniforms[0].z + i] = uniforms[0].w; }`,
      '}',
    ].join('\n'),
  })

  test('one that the GPU refuses is named, and the others run, in their order', async () => {
    const host = new DeviceHost()
    const heap = { number: 1, slabs: [{ slab: 0, words: 512, grows: true }] }
    await host.answer({ kind: 'open', options: { thread: false } })
    const create = (program: number, dispatch: Dispatch): DeviceRequest => ({
      kind: 'create',
      program,
      dispatches: [dispatch],
      ...{ slabs: [], bindings: '', copies: [], uploads: [] },
      onHeap: heap,
    })
    await host.answer(create(1, filling('good', true)))
    await host.answer(create(2, filling('bad', false)))
    const call = (program: number, start: number, value: number): CallRequest => ({
      kind: 'call',
      heap,
      program,
      uniforms: Uint32Array.of(4, 0, start, value),
      ...{ bindings: '', copies: [] },
    })
    const ended = await Promise.allSettled([
      host.answer(call(1, 0, 11)),
      host.answer(call(1, 64, 22)),
      host.answer(call(2, 128, 33)),
      host.answer(call(1, 64, 44)),
      host.answer({ kind: 'read', heap, reads: [0, 64, 128].map((start) => ({ slab: 0, start, length: 4 })) }),
    ])
    expect(ended.map(({ status }) => status)).toEqual(['fulfilled', 'fulfilled', 'rejected', 'fulfilled', 'fulfilled'])
    const [, , refused, , read] = ended
    expect(refused?.status === 'rejected' ? String(refused.reason) : '').toContain('kernel bad (of bad_node) was refused')
    const words = read?.status === 'fulfilled' ? read.value.words.map((one) => Array.from(one)) : []
    expect(words.slice(0, 2)).toEqual([
      [11, 11, 11, 11],
      [44, 44, 44, 44],
    ])
    await host.answer({ kind: 'close' })
  })
})

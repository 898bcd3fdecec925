// Attention on several threads, which share heads: the bits of one thread, for heads that lie in a row, in a grid, anyhow, or share keys.
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { randomFrom } from '../../../scripts/fuzz/random.mjs'
import type { Tensor } from '../../../src/index.ts'
import { onOne, onThreads, untilReady } from './fresh.ts'

beforeEach(() => void vi.resetModules())
afterEach(() => void vi.restoreAllMocks())

const bytesOf = (x: Tensor): string => Buffer.from(new Uint8Array(x.contiguous().toTypedArray().buffer)).toString('base64')

test.each([2, 3])('on %i threads', async (threads) => {
  const pack = await onThreads(threads)
  const { torch, poolState } = pack
  const F = torch.nn.functional
  const ones = torch.ones([4096])
  await untilReady(() => {
    ones.add(1)
    return poolState.chunksByWorkers > 0
  })
  const draws = randomFrom(threads)
  let shared = 0
  for (let i = 0; i < 40; i++) {
    const groups = draws.pick([1, 1, 2])
    const [batch, heads] = [draws.pick([1, 1, 2, 5]), draws.pick([1, 2, 3, 5])]
    // The last one has so many keys that a grid is computed in several parts.
    const keys = i === 39 ? 300 : draws.pick([8, 17, 40])
    const [rows, depth] = [draws.pick([16, 33, 48]), draws.pick([8, 16])]
    const mask = draws.pick(['none', 'causal', 'whole', 'heads', 'keys'])
    /** Of that shape: contiguous, with texts or heads beside each other, or a part of three that lie together as in a layer for all of them. */
    const tensor = (count: number, length: number): Tensor => {
      const shape = [batch, count, length, depth]
      const how = draws.int(4)
      if (how === 0) return torch.randn(shape)
      if (how === 1) return torch.randn([batch, length, count, depth]).transpose(1, 2)
      if (how === 2) return torch.randn([count, batch, length, depth]).transpose(0, 1)
      return torch.randn([batch, length, 3, count, depth]).permute([2, 0, 3, 1, 4]).select(0, draws.int(3))
    }
    const count = i === 39 ? 20 : heads
    const maskShape = { whole: [batch, count * groups, rows, keys], heads: [count * groups, rows, keys], keys: [batch, 1, 1, keys] }[mask]
    const attnMask = maskShape === undefined ? null : torch.randn(maskShape)
    const leaves = [tensor(count * groups, rows), tensor(count, keys), tensor(count, keys)] as const
    const grad = torch.randn([batch, count * groups, rows, depth])
    const compute = (): readonly string[] => {
      const [q, k, v] = leaves.map((x) => x.detach().requiresGrad_(true)) as unknown as readonly [Tensor, Tensor, Tensor]
      const out = F.scaledDotProductAttention(q, k, v, { isCausal: mask === 'causal', enableGqa: groups > 1, attnMask })
      out.backward(grad)
      return [out.detach(), q.grad, k.grad, v.grad].map((x) => (x === null ? '' : bytesOf(x)))
    }
    const wanted = onOne(pack, compute)
    const before = poolState.launches
    expect(compute(), `${mask} ${batch}x${count} of ${groups}, ${rows}x${keys}x${depth}`).toEqual(wanted)
    if (poolState.launches > before) shared++
  }
  expect(shared).toBeGreaterThan(30)
})

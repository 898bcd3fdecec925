// Strict code on several threads computes the bits that one thread computed before there were threads (test/goldens/strict): products and convolutions, eager and compiled, with their gradients.
import { readFileSync } from 'node:fs'
import { beforeEach, expect, test, vi } from 'vitest'
import { digestsOf } from '../../goldens/strict/program.mjs'
import { tenth } from '../../helpers/rotation.ts'
import { onThreads, untilReady } from './fresh.ts'

beforeEach(() => void vi.resetModules())

const recorded = JSON.parse(readFileSync(new URL('../../goldens/strict/digests.json', import.meta.url), 'utf8')) as Readonly<
  Record<string, readonly string[]>
>
const chosen = new Set(tenth(Object.keys(recorded), (name) => name))

test.each([2, 3])('on %i threads', async (threads) => {
  const { torch, kernels, poolState, compile } = await onThreads(threads)
  const x = torch.ones([4096])
  await untilReady(() => {
    x.add(1)
    return poolState.chunksByWorkers > 0
  })
  const before = poolState.launches
  const found = kernels.withStrict(true, () =>
    digestsOf({ torch: torch as never, compiled: (f) => compile(f as never, { options: { strict: true } }) as never }, (name) => chosen.has(name)),
  )
  expect(Object.keys(found)).toHaveLength(chosen.size)
  for (const [name, digests] of Object.entries(found)) expect(digests, name).toEqual(recorded[name])
  expect(poolState.launches - before).toBeGreaterThan(chosen.size)
})

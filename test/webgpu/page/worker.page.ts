// The minifier in a page, whose candidates a worker judges on the GPU.
import { expect, test } from 'vitest'
import { torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { minifyBackendFailure, workerHelper } from 'tensorfx/debug'
import { makeFx } from 'tensorfx/aot'
import { init } from 'tensorfx/webgpu'
import { FAULTS, planted } from '../device/faultList.ts'
import { WORKER_FAULT } from './workerFault.ts'

const startHelper = workerHelper(() => new Worker('/worker.js', { type: 'module' }))
const graph = (): { readonly gm: ReturnType<typeof traced>; readonly x: Tensor } => {
  torch.manualSeed(2)
  const x = torch.randn([6, 40])
  return { gm: traced(x), x }
}
const traced = (x: Tensor) => makeFx((value: Tensor) => [torch.softmax(torch.cos(value.mul(2).tanh()).add(1), 1)])(x)

test('a fault in a shader is reduced to its operator', async () => {
  await init({ fallback: 'wasm', thread: false })
  planted(WORKER_FAULT, FAULTS.find(({ fault }) => fault === WORKER_FAULT)?.edit ?? ((code) => code))
  const { gm, x } = graph()
  const small = await minifyBackendFailure(gm, [x], { backend: WORKER_FAULT, accuracy: 'accuracy', onlyFwd: true, startHelper, print: () => {} })
  const calls = [...small.gm.graph.nodes].filter(({ op }) => op === 'call_function').map(({ name }) => name)
  expect(calls).toEqual(['cos'])
  expect(small.isolated, small.whyNotIsolated ?? '').toBe(true)
  expect(small.processes).toBeGreaterThan(0)
})

test('the backend itself does not fail', async () => {
  await init({ fallback: 'wasm', thread: false })
  const { gm, x } = graph()
  const found = minifyBackendFailure(gm, [x], { backend: 'webgpu', accuracy: 'accuracy', onlyFwd: true, startHelper, print: () => {} })
  await expect(found).rejects.toThrow('Input graph did not fail the tester')
})

// Models on the GPU against inductor, both by compile: the result of a forward pass, and weights and loss after training. A bound cannot be fixed for them: what rounding does to a small ResNet in training is large. It is
// twice what the same run of inductor gives with the input changed by 3e-7.
import { beforeAll, describe, expect, test } from 'vitest'
import { compile, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { init, stats } from 'tensorfx/webgpu'
import { bundledUrl } from '../../../scripts/bundled.mjs'
import { threadEntry } from '../../../src/gpu/thread.ts'
import { NOISE, OPTIMIZERS, cases, prepared, worst } from './modelCases.ts'
import type { Case } from './modelCases.ts'

threadEntry.url = bundledUrl('entries/webgpuThread.js')

beforeAll(async () => init())

function forward(backend: string, given: Case, noise: number): readonly Tensor[] {
  const { model, input } = prepared(given, noise)
  model.eval()
  const compiled = compile((x: Tensor) => model.forward(x), { backend })
  return torch.noGrad(() => [compiled(input)])
}

function train(backend: string, given: Case, noise: number, optimizer: 'SGD' | 'Adam', steps: number): readonly Tensor[] {
  const { model, input, target } = prepared(given, noise)
  const rule = new OPTIMIZERS[optimizer](model.parameters(), { lr: 1e-3 })
  const step = compile(
    (x: Tensor, y: Tensor) => {
      rule.zeroGrad()
      const loss = given.loss(model.forward(x), y)
      loss.backward()
      rule.step()
      return loss.detach()
    },
    { backend },
  )
  let loss = torch.tensor(NaN)
  for (let i = 0; i < steps; i++) loss = step(input, target)
  return [loss, ...model.parameters()].map((tensor) => tensor.detach())
}

function expectWithinNoise(run: (backend: string, noise: number) => readonly Tensor[]): void {
  const want = run('inductor', 0)
  const [error, noise] = [worst(run('webgpu', 0), want), worst(run('inductor', NOISE), want)]
  expect(error, `with the input changed by ${NOISE} inductor differs from itself by ${noise}`).toBeLessThan(2 * noise)
}

describe.each(Object.entries(cases))('%s on the GPU', (_, given) => {
  test('forward, with no more dispatches than before', () => {
    expectWithinNoise((backend, noise) => forward(backend, given, noise))
    const before = stats()?.dispatches ?? 0
    forward('webgpu', given, 0)
    expect((stats()?.dispatches ?? 0) - before).toBeLessThanOrEqual(given.dispatches)
  })

  test.each([
    ['SGD', 1],
    ['Adam', 1],
    ['Adam', 10],
  ] as const)('a training with %s, %i steps', (optimizer, steps) => {
    expectWithinNoise((backend, noise) => train(backend, given, noise, optimizer, steps))
  })
})

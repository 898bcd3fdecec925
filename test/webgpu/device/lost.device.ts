// Devices that are lost in the middle of a training, or while a failure is minified. This file runs in Node and in a page.
import { describe, expect, test } from 'vitest'
import { compile, nn, optim, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { registerBackend } from 'tensorfx/compile'
import { compareBackends } from 'tensorfx/debug'
import { symbolicTrace } from 'tensorfx/fx'
import type { GraphModule } from 'tensorfx/fx'
import { DeviceLostError, compileGraph, init, loseDevice, stats } from 'tensorfx/webgpu'

interface Ended {
  readonly losses: readonly unknown[]
  readonly weights: readonly unknown[]
  readonly lost: number
}

/** Trains a network with Adam, and loses the GPU in the middle of some steps. A step that throws is repeated after `init`. */
async function train(lostAt: readonly number[], keepCopies: boolean): Promise<Ended> {
  const how = { thread: false, keepCopies }
  await init(how)
  torch.manualSeed(11)
  const model = new nn.Sequential(new nn.Linear(6, 16), new nn.Tanh(), new nn.BatchNorm1d(16), new nn.Linear(16, 3))
  const rule = new optim.Adam(model.parameters(), { lr: 1e-2 })
  const [x, y] = [torch.randn([8, 6]), torch.randn([8, 3])]
  const step = compile(
    (input: Tensor, target: Tensor) => {
      rule.zeroGrad()
      const loss = nn.functional.mseLoss(model.call(input), target)
      loss.backward()
      rule.step()
      return loss.detach()
    },
    { backend: 'webgpu' },
  )
  const losses: unknown[] = []
  for (let i = 0; i < 8; i++) {
    // oxlint-disable-next-line no-await-in-loop -- one step after the other
    if (lostAt.includes(i)) await loseDevice('next run')
    // oxlint-disable-next-line no-await-in-loop -- as above
    losses.push(await step(x, y).itemAsync())
  }
  const weights = await Promise.all([...model.parameters(), ...model.buffers()].map(async (tensor) => tensor.detach().toArrayAsync()))
  return { losses, weights, lost: lostAt.length }
}

describe('a device that is destroyed in the middle of a training', () => {
  test('with keepCopies the training ends with the losses, weights and statistics that it has without the accident', async () => {
    const without = await train([], true)
    const pipelines = stats()?.pipelines ?? 0
    const with3 = await train([1, 4, 5], true)
    expect(with3.losses).toEqual(without.losses)
    expect(with3.weights).toEqual(without.weights)
    // It was another GPU, whose shaders were compiled again.
    expect(stats()?.pipelines).toBeGreaterThan(pipelines)
  })

  test('without keepCopies the read of the loss throws DeviceLostError', async () => {
    await expect(train([2], false)).rejects.toThrow(DeviceLostError)
    // The next training has a GPU again.
    expect((await train([], false)).losses.length).toBe(8)
  })

  test('a run that is lost again is not repeated for ever', async () => {
    await init({ thread: false, keepCopies: true })
    const f = compile((x: Tensor) => x.mul(2), { backend: 'webgpu' })
    await f(torch.ones([2])).toArrayAsync()
    const graph = await compileGraph(
      symbolicTrace((x: Tensor) => [x.mul(3)]),
      [torch.ones([2])],
    )
    await loseDevice('next run')
    expect(await f(torch.ones([2])).toArrayAsync()).toEqual([2, 2])
    await loseDevice()
    expect(((await graph.run(torch.ones([2]))) as Tensor[])[0]?.toArray()).toEqual([3, 3])
    graph.release()
  })
})

test('a minifier survives five lost devices, and finds what it finds without', async () => {
  await init({ thread: false, fallback: 'wasm', keepCopies: true })
  let [runs, lost] = [0, 0]
  /** Takes tanh for sin on the GPU, and every second query loses the device. */
  const wrong = (gm: GraphModule): GraphModule => {
    const copy = symbolicTrace(gm)
    for (const node of copy.graph.nodes) if (node.target === torch.tanh) node.target = torch.sin
    copy.recompile()
    return copy
  }
  const losing = (isLosing: boolean) => {
    const compileAsync = async (gm: GraphModule, inputs: readonly unknown[]) => {
      const graph = await compileGraph(wrong(gm), inputs)
      return async (...values: readonly unknown[]) => {
        if (isLosing && runs++ % 2 === 0 && lost < 5) {
          lost++
          await loseDevice('next run')
        }
        return graph.run(...values)
      }
    }
    return Object.assign(
      (gm: GraphModule) =>
        (...values: readonly unknown[]) =>
          [gm.call(...values)].flat(),
      { compileAsync },
    )
  }
  registerBackend('wrong', losing(false))
  registerBackend('wrong and lost', losing(true))
  const gm = symbolicTrace((x: Tensor) => torch.relu(torch.tanh(x.mul(0.5)).add(1)).exp())
  const minified = async (backend: string): Promise<readonly string[]> => {
    const result = await compareBackends(gm, [torch.randn([5])], { backends: ['eager', backend] })
    expect(result.statuses.get(backend)).toBe('wrong')
    const small = await result.minify(backend)
    return [...small.gm.graph.nodes].filter(({ op }) => op.startsWith('call_')).map(({ name }) => name)
  }
  const want = await minified('wrong')
  expect(want.length).toBeLessThanOrEqual(2)
  expect(await minified('wrong and lost')).toEqual(want)
  expect(lost).toBe(5)
})

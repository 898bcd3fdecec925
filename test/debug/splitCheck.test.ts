// Level 4 after aot: the forward and the backward half have to compute what their joint graph computes. A partition that is wrong is told from a backend that is.
import { afterEach, describe, expect, it, vi } from 'vitest'
import { nn, optim, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { compile, config, reset } from 'tensorfx/compile'
import { AccuracyError, MemoryFileStore, fileStore, setFileStore, setLogSink } from 'tensorfx/debug'
import { aotFunction, defaultPartition, minCutPartition } from '../../src/aot/index.ts'
import type { CompileGraph, Partition } from '../../src/aot/index.ts'
import { F } from 'tensorfx/nn'
import { resetConfig } from './inProcess.ts'

/** Whether the halves are built wrongly: what is saved second is given first. */
const planted = vi.hoisted(() => ({ swaps: false }))
vi.mock('../../src/aot/joint/jointParts.ts', async (original) => {
  const real = await original<typeof import('../../src/aot/joint/jointParts.ts')>()
  const backwardModule: typeof real.backwardModule = (joint, saved, name) => {
    const [first, second, ...rest] = saved
    return real.backwardModule(joint, planted.swaps && first !== undefined && second !== undefined ? [second, first, ...rest] : saved, name)
  }
  return { ...real, backwardModule }
})

const nodeStore = fileStore()
const said: string[] = []
function watch(level: number, after: 'dynamo' | 'aot' = 'aot'): void {
  setFileStore(new MemoryFileStore())
  said.length = 0
  setLogSink((kind, message) => void said.push(`${kind}: ${message}`))
  Object.assign(config, { reproAfter: after, reproLevel: level, debugDirRoot: '/dumps' })
}
afterEach(() => {
  planted.swaps = false
  setFileStore(nodeStore)
  setLogSink(null)
  resetConfig()
  reset()
})

const asIs: CompileGraph =
  (gm) =>
  (...inputs) =>
    gm.forward(...inputs) as readonly unknown[]

/** A partition that computes a node of the backward otherwise. */
const wrongly: Partition = (joint) => {
  for (const node of joint.graph.nodes) if (!joint.forwardNodes.has(node) && node.target === torch.cos) node.target = torch.exp
  return defaultPartition(joint)
}

const leaf = (): Tensor => torch.tensor([0.5, -1, 2], { requiresGrad: true })

describe('a split that is wrong', () => {
  it('is found at the first call, with the gradient that it gets wrong (difference: split-checked)', () => {
    watch(4)
    const f = aotFunction((x: Tensor) => x.sin().mul(2), { fwCompiler: asIs, partition: wrongly })
    let thrown: unknown = null
    try {
      f(leaf())
    } catch (error) {
      thrown = error
    }
    expect(thrown).toBeInstanceOf(AccuracyError)
    expect(String(thrown)).toMatch(
      /The forward and the backward half of .* do not compute what its joint graph computes.*the partition is wrong, and not the backend/,
    )
    expect((thrown as AccuracyError).cause).toMatch(/key name gradient of primals_1/)
    expect(said[0]).toMatch(/^error: The forward and the backward half/)
  })

  it.each([
    [3, 'aot'],
    [4, 'dynamo'],
  ] as const)('is not looked for at level %d after %s', (level, after) => {
    watch(level, after)
    const x = leaf()
    aotFunction((a: Tensor) => a.sin().mul(2), { fwCompiler: asIs, partition: wrongly })(x)
      .sum()
      .backward()
    expect(x.grad?.toArray()).not.toEqual(torch.cos(x).mul(2).toArray())
    expect(said).toEqual([])
  })

  it('is found in a compiled model, where the halves are mixed up', () => {
    watch(4)
    planted.swaps = true
    const weight = leaf()
    const f = compile((x: Tensor) => x.mul(weight).sin(), { backend: 'aot_eager' })
    expect(() => f(torch.tensor([3, 1, -0.5], { requiresGrad: true }))).toThrow(/the partition is wrong, and not the backend/)
  })
})

describe('a split that is right', { timeout: 60_000 }, () => {
  it.each([
    ['default', defaultPartition],
    ['minimum cut', minCutPartition],
  ])('%s: nothing is said, and gradients are what they are', (_, partition) => {
    watch(4)
    const x = leaf()
    aotFunction((a: Tensor) => a.sin().mul(a).add(1).relu(), { fwCompiler: asIs, partition })(x)
      .sum()
      .backward()
    const y = leaf()
    y.sin().mul(y).add(1).relu().sum().backward()
    expect(x.grad?.toArray()).toEqual(y.grad?.toArray())
    expect(said).toEqual([])
  })

  it.each(['inductor', 'aot_eager'])('training on %s with dropout, statistics, an input that is written, and a NaN is as without', (backend) => {
    const train = (): readonly unknown[] => {
      torch.manualSeed(3)
      const model = new nn.Sequential(new nn.Linear(3, 4), new nn.BatchNorm1d(4), new nn.Dropout(0.5), new nn.Linear(4, 2))
      const optimizer = new optim.SGD([...model.parameters()], { lr: 0.1 })
      const seen = torch.zeros([1])
      const step = compile(
        (x: Tensor, count: Tensor) => {
          count.add_(1)
          return F.mseLoss(model.call(x) as Tensor, x.narrow(1, 0, 2)).add(x.log().sum().detach().mul(0))
        },
        { backend },
      )
      const losses = [0, 1].map(() => {
        optimizer.zeroGrad()
        const loss = step(torch.randn([5, 3]), seen)
        loss.backward()
        optimizer.step()
        return loss.item()
      })
      return [losses, seen.toArray(), [...model.stateDict()].map(([name, value]) => [name, (value as Tensor).toArray()]), torch.rand([2]).toArray()]
    }
    const without = train()
    reset()
    watch(4)
    expect(train()).toEqual(without)
    expect(said).toEqual([])
  })
})

// With the debugger at any place and level, a program computes what it computes without: values that it writes, random numbers, statistics, gradients, versions.
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { compile, nn, optim, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { config } from 'tensorfx/compile'
import { MemoryFileStore, fileStore, setFileStore, setLogSink } from 'tensorfx/debug'
import { resetConfig } from './inProcess.ts'

const nodeStore = fileStore()
beforeEach(() => {
  setLogSink(() => {})
  setFileStore(new MemoryFileStore())
})
afterEach(() => {
  setLogSink(null)
  setFileStore(nodeStore)
  resetConfig()
})

const settings = (['dynamo', 'aot'] as const).flatMap((reproAfter) => [1, 2, 3, 4].map((reproLevel) => [reproAfter, reproLevel] as const))

/** What a program computes, with the debugger and without. */
function bothWays(reproAfter: 'dynamo' | 'aot', reproLevel: number, program: () => unknown): void {
  const run = (): unknown => {
    torch.manualSeed(5)
    return [program(), torch.rand([2]).toArray()]
  }
  const without = run()
  Object.assign(config, { reproAfter, reproLevel })
  expect(run()).toEqual(without)
}

const weights = (seed: number, shape: readonly number[]): Tensor => {
  torch.manualSeed(seed)
  return torch.randn(shape)
}

describe.each(settings)('after %s, level %d', (reproAfter, reproLevel) => {
  const same = (name: string, program: () => unknown): void => it(name, () => bothWays(reproAfter, reproLevel, program))

  same('a closure that the function writes to is written once a call', () => {
    const n = torch.zeros([1])
    const f = compile((x: Tensor) => {
      n.add_(1)
      return x.mul(2)
    })
    return [1, 2].map(() => [f(torch.ones([2])).toArray(), n.toArray(), n.storage?.version])
  })

  same('a step of SGD with momentum inside of the function is one step', () => {
    const w = weights(1, [3]).requiresGrad_()
    const opt = new optim.SGD([w], { lr: 0.1, momentum: 0.9 })
    const step = compile((x: Tensor) => {
      opt.zeroGrad()
      const loss = w.mul(x).pow(2).sum()
      loss.backward()
      opt.step()
      return loss
    })
    return [1, 2, 3].map((k) => [step(torch.full([3], k)).toArray(), w.toArray(), w.grad?.toArray()])
  })

  same('BatchNorm counts each batch once, and a step of Adam follows the backward outside', () => {
    torch.manualSeed(2)
    const model = new nn.Sequential(new nn.Linear(3, 4), new nn.BatchNorm1d(4), new nn.Dropout(0.5))
    const opt = new optim.Adam(model.parameters(), { lr: 0.01 })
    const f = compile(model)
    return [1, 2].map((k) => {
      const x = weights(k, [5, 3]).requiresGrad_()
      f(x).sum().backward()
      opt.step()
      return [x.grad?.toArray(), ...Object.values(model.stateDict()).map((t) => (t as Tensor).toArray())]
    })
  })

  same('an input that the function overwrites, and a view of it that the program holds', () => {
    const x = weights(3, [4])
    const view = x.slice(0, 1, 3)
    const f = compile((t: Tensor) => t.mul_(2).add(1))
    const y = f(x)
    return [x.toArray(), view.toArray(), y.toArray(), x.storage?.version]
  })
})

describe('a backend that looks at its example inputs', () => {
  it('sees them as they were before the writes of the graph, which are performed once', () => {
    const n = torch.zeros([1])
    const seen: unknown[] = []
    const f = compile(
      (x: Tensor) => {
        n.add_(1)
        return x.mul(n)
      },
      {
        backend: (gm, inputs) => {
          seen.push(...inputs.map((input) => (input as Tensor).toArray()))
          return gm
        },
      },
    )
    expect(f(torch.full([2], 3)).toArray()).toEqual([3, 3])
    expect(seen).toEqual([[0], [3, 3]])
    expect(n.toArray()).toEqual([1])
  })
})

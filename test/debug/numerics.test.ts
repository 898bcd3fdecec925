// Numbers that go wrong: the first NaN, logs, drift, gradients.
import { describe, expect, it } from 'vitest'
import { nn, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { compareGradients, detectAnomaly, drift, findFirst, logNumerics } from 'tensorfx/debug'
import { operator, symbolicTrace } from 'tensorfx/fx'
import type { GraphModule } from 'tensorfx/fx'
import { BatchNorm1d, Linear } from 'tensorfx/nn'

const logs = symbolicTrace((a: Tensor) => a.sub(1).log().mul(2).sum())
const x = torch.tensor([
  [3, 2],
  [0.5, 4],
])

describe('findFirst', () => {
  it('tells origins from inputs, weights and buffers that were bad before', () => {
    class Net extends nn.Module {
      fc = new nn.Linear(2, 2)
      norm = new nn.BatchNorm1d(2)
      scale = new nn.Parameter(torch.ones([2]))
      override forward(batch: Tensor): Tensor {
        return this.norm(this.fc(batch)).mul(this.scale).log()
      }
    }
    const net = new Net().eval()
    const gm = symbolicTrace(net)
    const healthy = torch.ones([1, 2])
    const isBad = (v: number): boolean => !Number.isFinite(v)
    const found = (given: Tensor): unknown => {
      const { kind, name, node } = findFirst(gm, [given], isBad) ?? {}
      return [kind, name, node?.name]
    }
    const spoiled = (tensor: Tensor): unknown => {
      const was = tensor.detach().clone()
      torch.noGrad(() => tensor.fill_(NaN))
      const result = found(healthy)
      torch.noGrad(() => tensor.copy_(was))
      return result
    }
    expect(spoiled(net.fc.bias as Tensor)).toEqual(['parameter', 'fc.bias', 'fc'])
    expect(spoiled(net.norm.getBuffer('runningMean') as Tensor)).toEqual(['buffer', expect.stringMatching(/^norm\.running/), 'norm'])
    expect(spoiled(net.scale as unknown as Tensor)).toEqual(['parameter', 'scale', 'scale'])
    expect(found(torch.full([1, 2], NaN))).toEqual(['input', 'batch', 'batch'])
    torch.noGrad(() => (net.scale as unknown as Tensor).fill_(0))
    expect(found(healthy)).toEqual(['origin', null, 'log'])
  })

  it('names the first node with a NaN, not those that inherit it', () => {
    const found = findFirst(logs, [x], isNaN)
    expect(found).toMatchObject({ index: [1, 0], element: NaN })
    expect(found?.node).toBe([...logs.graph.nodes].find((node) => node.name === 'log'))
    expect(found?.inputs.map((input) => input.toArray())).toEqual([
      [
        [2, 1],
        [-0.5, 3],
      ],
    ])
  })

  it('finds what a predicate says, and null if there is nothing', () => {
    expect(findFirst(logs, [x], (v) => v === 3)?.node.name).toBe('a')
    expect(findFirst(logs, [x], (v) => v === 1)?.node.name).toBe('sub')
    expect(findFirst(logs, [torch.tensor([2, 3])], isNaN)).toBeNull()
    const overflow = symbolicTrace((a: Tensor) => a.half().mul(2).float())
    expect(findFirst(overflow, [torch.tensor([40000])], (v) => !Number.isFinite(v))?.node.name).toBe('mul')
  })

  it('looks at each of several tensors', () => {
    const gm = symbolicTrace((a: Tensor) => operator.getitem(a.log().split(1), 1))
    expect(findFirst(gm, [torch.tensor([1, 0])], (v) => v === -Infinity)).toMatchObject({ index: [1] })
  })

  it('changes neither module nor inputs, and refuses bad arguments', () => {
    const norm = symbolicTrace(new BatchNorm1d(2))
    const before = norm.stateDict().get('runningMean') as Tensor | undefined
    const mean = before?.toArray()
    findFirst(norm, [x], isNaN)
    expect((norm.stateDict().get('runningMean') as Tensor | undefined)?.toArray()).toEqual(mean)
    const write = symbolicTrace((a: Tensor) => a.add_(1))
    expect(findFirst(write, [x], (v) => v === 5)?.node.name).toBe('add_')
    expect(x.toArray()).toEqual([
      [3, 2],
      [0.5, 4],
    ])
    expect(() => findFirst(logs, [x], 3 as never)).toThrow(/predicate/)
    expect(() => findFirst(x as unknown as GraphModule, [x], isNaN)).toThrow(/GraphModule/)
  })
})

describe('logNumerics', () => {
  it('has minimum, maximum, mean, NaNs and infinities of each value', () => {
    const { rows } = logNumerics(
      symbolicTrace((a: Tensor) => a.log()),
      [torch.tensor([1, 0, -1])],
    )
    expect(rows.map(({ node, min, max, mean, nans, infinities }) => [node.name, min, max, mean, nans, infinities])).toEqual([
      ['a', -1, 1, 0, 0, 0],
      ['log', 0, 0, 0, 1, 1],
    ])
  })

  it('leaves out what is no tensor', () => {
    const gm = symbolicTrace((a: Tensor) => a.mul(a.size(0)))
    expect(logNumerics(gm, [torch.ones([3])]).rows.map((row) => [row.node.name, row.max])).toEqual([
      ['a', 1],
      ['mul', 3],
    ])
  })

  it('prints a table', () => {
    expect(
      String(logNumerics(logs, [x]))
        .split('\n')
        .slice(0, 5),
    ).toEqual([
      'node   target  value           min   max    mean    NaN  infinite',
      '-----  ------  --------------  ----  -----  ------  ---  --------',
      'a      a       float32 [2, 2]  0.5   4      2.375   0    0',
      'sub    sub     float32 [2, 2]  -0.5  3      1.375   0    0',
      'log    log     float32 [2, 2]  0     1.099  0.5973  1    0',
    ])
    const none = logNumerics(
      symbolicTrace((a: Tensor) => a.log()),
      [torch.tensor([-1])],
    ).rows[1]
    expect([none?.min, none?.max, none?.mean, none?.nans]).toEqual([NaN, NaN, NaN, 1])
  })
})

describe('drift', () => {
  it('names the first value that a change of the graph moves, and the nodes that only one graph has', () => {
    const after = logs.deepCopy()
    for (const node of after.graph.nodes) if (node.name === 'mul') node.args = [...node.args.slice(0, 1), 2.01]
    after.recompile()
    const inputs = [torch.tensor([2, 3, 4])]
    const result = drift({ gm: logs, inputs }, { gm: after, inputs })
    expect(result.rows.map((row) => [row.name, row.differs])).toEqual([
      ['a', false],
      ['sub', false],
      ['log', false],
      ['mul', true],
      ['sum_1', true],
    ])
    expect(result.first?.error).toBeGreaterThan(1e-3)
    expect(String(result)).toMatch(/^mul +\S+ \*$/m)
    const other = drift({ gm: logs, inputs }, { gm: symbolicTrace((a: Tensor) => a.sub(1).log().sum()), inputs })
    expect([other.onlyBefore, other.onlyAfter]).toEqual([['mul'], []])
    expect(String(other)).toContain('only in the first: mul')
  })

  it('compares two runs of one graph, and sees NaN and shapes', () => {
    const run = (...data: number[]) => ({ gm: logs, inputs: [torch.tensor(data)] })
    expect(drift(run(2, 3), run(2, 3)).first).toBeNull()
    expect(drift(run(2, 3), run(2, 0)).rows.map((row) => row.error)).toEqual([expect.any(Number), expect.any(Number), Infinity, Infinity, Infinity])
    expect(drift(run(2, 3), run(2, 3, 4)).first).toMatchObject({ name: 'a', reason: 'shape [2] and [3]' })
    expect(() => drift(run(2), run(2), { tol: -1 })).toThrow(/tol/)
    expect(() => drift(3 as never, run(2))).toThrow(/before/)
  })
})

describe('compareGradients', () => {
  const layer = new Linear(2, 3)
  const input = (): Tensor => torch.tensor([[1, -2]], { requiresGrad: true })

  it('finds no difference between a model and itself', () => {
    const result = compareGradients(layer, layer, [input()])
    expect(result.rows.map((row) => [row.name, row.differs])).toEqual([
      ['loss', false],
      ['weight', false],
      ['bias', false],
      ['input 0', false],
    ])
  })

  it('names the gradient that differs', () => {
    const right = (a: Tensor): Tensor => a.mul(3)
    // The same values, and another gradient.
    const wrong = (a: Tensor): Tensor => a.add(a.detach().mul(2))
    const result = compareGradients(right, wrong, [input()])
    expect(result.rows.map((row) => [row.name, row.differs])).toEqual([
      ['loss', false],
      ['input 0', true],
    ])
    expect(() => compareGradients(right, wrong, [torch.ones([1])])).toThrow(/requires no gradient/)
  })
})

it('detectAnomaly is that of autograd: it names the operator of a NaN in the backward', () => {
  expect(() => detectAnomaly(() => torch.tensor([0], { requiresGrad: true }).sqrt().mul(0).sum().backward())).toThrow(/sqrt/i)
})

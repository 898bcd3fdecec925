// Numbers that go wrong: the first NaN, logs, drift, gradients.
import { describe, expect, it } from 'vitest'
import { nn, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { compareGradients, detectAnomaly, drift, findFirst, logNumerics } from 'tensorfx/debug'
import { Graph, GraphModule, operator, symbolicTrace } from 'tensorfx/fx'
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
    expect(spoiled(net.norm.getBuffer('runningMean'))).toEqual(['buffer', expect.stringMatching(/^norm\.running/), 'norm'])
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
  it('finds no difference where gradients cancel, and rounding is all that is left of them', () => {
    torch.manualSeed(1)
    const [first, norm] = [new nn.Linear(5, 4), new nn.BatchNorm1d(4)]
    const net = new nn.Sequential(first, norm)
    const backwards = (x: Tensor): Tensor =>
      norm(
        x
          .unsqueeze(1)
          .mul(first.weight)
          .flip([-1])
          .sum(-1)
          .add(first.bias as Tensor),
      )
    const x = torch.randn([8, 5]).requiresGrad_()
    const result = compareGradients(net, backwards, [x])
    expect([result.first, result.rows.map(({ name }) => name)]).toEqual([null, expect.arrayContaining(['loss', '0.bias', '0.weight', 'input 0'])])
    // What is more than rounding is a difference.
    expect(compareGradients(net, (v: Tensor) => backwards(v).mul(1.01), [x]).first?.name).toBe('loss')
    // A function is not run again with other numbers, which would be needed to tell.
    expect(compareGradients((v: Tensor) => net(v), backwards, [x]).first).not.toBeNull()
  })

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

/** Calls of each kind: a module, a method, functions with one and with several results, an attribute. */
class Mixed extends nn.Module {
  fc = new nn.Linear(2, 2)
  fc2 = new nn.Linear(2, 2)
  scale = new nn.Parameter(torch.tensor([2, 4]))
  override forward(batch: Tensor): Tensor {
    const [low, high] = this.fc2(this.fc(batch)).mul(this.scale).split(1, 1)
    return torch.cat([low as Tensor, (high as Tensor).to('float64')], 1)
  }
}
function mixed(): GraphModule {
  const model = new Mixed()
  for (const layer of [model.fc, model.fc2])
    torch.noGrad(() => {
      const [weight, bias] = [layer.weight as unknown as Tensor, layer.bias as unknown as Tensor]
      weight.copy_(torch.eye(2))
      bias.fill_(1)
    })
  return symbolicTrace(model)
}

describe('whole texts', () => {
  const inputs = [torch.tensor([[1, -3]])]

  it('of a log', () => {
    expect(String(logNumerics(mixed(), inputs))).toMatchInlineSnapshot(`
      "node       target            value           min  max  mean  NaN  infinite
      ---------  ----------------  --------------  ---  ---  ----  ---  --------
      batch      batch             float32 [1, 2]  -3   1    -1    0    0
      fc         fc                float32 [1, 2]  -2   2    0     0    0
      fc2        fc2               float32 [1, 2]  -1   3    1     0    0
      scale      scale             float32 [2]     2    4    3     0    0
      mul        mul               float32 [1, 2]  -4   6    1     0    0
      split      split             float32 [1, 1]  6    6    6     0    0
      split      split             float32 [1, 1]  -4   -4   -4    0    0
      getitem    operator.getitem  float32 [1, 1]  6    6    6     0    0
      getitem_1  operator.getitem  float32 [1, 1]  -4   -4   -4    0    0
      to         to                float64 [1, 1]  -4   -4   -4    0    0
      cat        torch.cat         float64 [1, 2]  -4   6    1     0    0"
    `)
  })

  it('of a drift', () => {
    const [before, after] = [mixed(), mixed()]
    torch.noGrad(() => after.getParameter('fc2.bias').add_(torch.tensor([0, 0.5])))
    expect(String(drift({ gm: before, inputs }, { gm: after, inputs }))).toMatchInlineSnapshot(`
      "name       error
      ---------  --------
      batch      0
      fc         0
      fc2        2.5e-1 *
      scale      0
      mul        4.0e-1 *
      split[0]   0
      split[1]   4.0e-1 *
      getitem    0
      getitem_1  4.0e-1 *
      to         4.0e-1 *
      cat        4.0e-1 *"
    `)
    const graph = symbolicTrace((batch: Tensor) => batch.double().neg().add(1))
    expect(String(drift({ gm: graph, inputs }, { gm: symbolicTrace((batch: Tensor) => batch.neg().sum(0).exp()), inputs }))).toMatchInlineSnapshot(`
      "name   error
      -----  -----  -------------------
      batch  0
      neg    0      float64 and float32
      only in the first: double, add
      only in the second: sum_1, exp"
    `)
    expect(String(drift({ gm: before, inputs }, { gm: before, inputs: [torch.ones([2, 2])] }))).toMatchInlineSnapshot(`
      "name       error
      ---------  ----------  -----------------------
      batch      Infinity *  shape [1, 2] and [2, 2]
      fc         Infinity *  shape [1, 2] and [2, 2]
      fc2        Infinity *  shape [1, 2] and [2, 2]
      scale      0
      mul        Infinity *  shape [1, 2] and [2, 2]
      split[0]   Infinity *  shape [1, 1] and [2, 1]
      split[1]   Infinity *  shape [1, 1] and [2, 1]
      getitem    Infinity *  shape [1, 1] and [2, 1]
      getitem_1  Infinity *  shape [1, 1] and [2, 1]
      to         Infinity *  shape [1, 1] and [2, 1]
      cat        Infinity *  shape [1, 2] and [2, 2]"
    `)
  })

  it('of gradients', () => {
    class More extends Linear {
      override forward(a: Tensor): Tensor {
        return super.forward(a)
      }
    }
    const layer = new More(2, 1)
    torch.noGrad(() => {
      for (const parameter of layer.parameters()) parameter.fill_(1)
    })
    const x = torch.tensor([[1, -2]], { requiresGrad: true })
    const wrong = (a: Tensor): Tensor => layer.call(a.mul(0.5).add(a.detach().mul(0.5))) as Tensor
    expect(String(compareGradients(layer, wrong, [x, 3, torch.ones([1], { requiresGrad: true })] as never))).toMatchInlineSnapshot(`
      "name     error
      -------  --------
      loss     0
      weight   0
      bias     0
      input 0  2.5e-1 *"
    `)
    expect([x.grad, (layer.weight as unknown as Tensor).grad]).toEqual([null, null])
  })
})

describe('what is found', () => {
  it('is told as a whole, at each kind of node', () => {
    const gm = mixed()
    const told = (predicate: (v: number) => boolean, given = [torch.tensor([[1, -3]])]): unknown => {
      const found = findFirst(gm, given, predicate)
      if (found === null) return null
      const { node, kind, name, value, inputs, index, element } = found
      return [node.name, kind, name, value.toArray(), inputs.map((input) => input.toArray()), index, element]
    }
    expect(told((v) => v === -3)).toEqual(['batch', 'input', 'batch', [[1, -3]], [], [0, 1], -3])
    // The first layer computes it; its weights are 0 and 1.
    expect(told((v) => v === -2)).toEqual(['fc', 'origin', null, [[2, -2]], [[[1, -3]]], [0, 1], -2])
    expect(told((v) => v === 3)).toEqual(['fc2', 'origin', null, [[3, -1]], [[[2, -2]]], [0, 0], 3])
    expect(told((v) => v === 4)).toEqual(['scale', 'parameter', 'scale', [2, 4], [], [1], 4])
    expect(told((v) => v === -4)).toEqual(['mul', 'origin', null, [[6, -4]], [[[3, -1]], [2, 4]], [0, 1], -4])
    expect(told((v) => v === 7)).toBeNull()
    // A weight of the second layer is not one of the first, whose name its own begins with.
    torch.noGrad(() => gm.getParameter('fc2.bias').fill_(-2))
    expect(told((v) => v === -2)).toEqual(['fc', 'origin', null, [[2, -2]], [[[1, -3]]], [0, 1], -2])
    expect(told((v) => v === -4)).toEqual(['fc2', 'origin', null, [[0, -4]], [[[2, -2]]], [0, 1], -4])
  })

  it('in a tensor that the graph holds has its name; integers are exact', () => {
    const values = torch.tensor([2n ** 53n + 1n, 1n], { dtype: 'int64' })
    const graph = new Graph()
    const [sum] = [graph.callFunction(torch.add, [graph.placeholder('a'), graph.getAttr('values')])]
    graph.output(sum)
    const found = (gm: GraphModule): unknown => {
      const { kind, name, index, element } = findFirst(gm, [torch.tensor([0, 0], { dtype: 'int64' })], (v) => v === 1) ?? {}
      return [kind, name, index, element]
    }
    expect(found(new GraphModule({ values }, graph))).toEqual(['buffer', 'values', [1], 1])
    expect(found(symbolicTrace((a: Tensor) => a.add(values)))).toEqual(['buffer', '_tensor_constant0', [1], 1])
  })

  it('ends the run there, and errors of the graph are thrown', () => {
    const seen: string[] = []
    const gm = symbolicTrace((a: Tensor) => a.add(1).matmul(a))
    const note = (v: number): boolean => {
      seen.push(String(v))
      return v === 2
    }
    expect(findFirst(gm, [torch.ones([3])], note)?.node.name).toBe('add')
    expect(seen).toEqual(['1', '1', '1', '2'])
    const [count, failing] = [{ calls: 0 }, symbolicTrace((a: Tensor, b: Tensor) => a.matmul(b).add(1))]
    expect(() => findFirst(failing, [torch.ones([3]), torch.ones([2])], () => count.calls++ < 0)).toThrow(/matmul/)
    expect(count.calls).toBe(5)
  })
})

it('arguments are checked by name', () => {
  const gm = mixed()
  const inputs = [torch.ones([1, 2])]
  const run = { gm, inputs }
  expect(() => findFirst(gm, inputs, 3 as never)).toThrow("findFirst: argument 'predicate' must be a function, got 3.")
  expect(() => findFirst(3 as never, inputs, isNaN)).toThrow(/^findFirst: .*GraphModule/)
  expect(() => findFirst(gm, 3 as never, isNaN)).toThrow("findFirst: argument 'inputs' must be an array, got 3.")
  expect(() => logNumerics(3 as never, inputs)).toThrow(/^logNumerics: .*GraphModule/)
  expect(() => drift(3 as never, run)).toThrow("drift: argument 'before' must be an object { gm, inputs }, got 3.")
  expect(() => drift(run, null as never)).toThrow("drift: argument 'after' must be an object { gm, inputs }, got null.")
  expect(() => drift(run, { gm: 3, inputs } as never)).toThrow(/^drift: .*GraphModule/)
  expect(() => drift(run, run, { tol: 0 })).toThrow(/^drift: argument 'options\.tol' must be /)
  expect(() => drift(run, run, { tolerance: 1 } as never)).toThrow(/^drift: unknown option 'tolerance'/)
  expect(() => compareGradients(gm, gm, inputs, { tolerance: 1 } as never)).toThrow(/^compareGradients: unknown option 'tolerance'/)
  expect(() => compareGradients(gm, gm, inputs, { tol: -1 })).toThrow(/^compareGradients: argument 'options\.tol' must be /)
  expect(() => compareGradients(3 as never, gm, inputs)).toThrow("compareGradients: argument 'before' must be a function, got 3.")
  expect(() => compareGradients(gm, 3 as never, inputs)).toThrow("compareGradients: argument 'after' must be a function, got 3.")
  expect(() => compareGradients(gm, gm, 3 as never)).toThrow("compareGradients: argument 'inputs' must be an array, got 3.")
  expect(() =>
    compareGradients(
      (a: Tensor) => a,
      (a: Tensor) => a,
      inputs,
    ),
  ).toThrow('compareGradients: the output of the model requires no gradient; set requiresGrad of a parameter or an input.')
})

it('a drift beyond the tolerance counts, of the coarser of two dtypes', () => {
  const gm = symbolicTrace((a: Tensor) => a.mul(1))
  const differs = (a: Tensor, b: Tensor, options?: { tol: number }): unknown =>
    drift({ gm, inputs: [a] }, { gm, inputs: [b] }, options).rows.map((row) => row.differs)
  const [one, near, far] = [1, 1 + 1.9e-4, 1 + 2.1e-4].map((value) => torch.tensor([value], { dtype: 'float64' })) as [Tensor, Tensor, Tensor]
  expect([differs(one, near), differs(one, far), differs(one, far, { tol: 1e-3 }), differs(one, near, { tol: 1e-5 })]).toEqual([
    [false, false],
    [true, true],
    [false, false],
    [true, true],
  ])
  const [half, off] = [torch.tensor([1], { dtype: 'float16' }), torch.tensor([1 + 5e-4], { dtype: 'float64' })]
  expect([differs(half, off), differs(off, half)]).toEqual([
    [false, false],
    [false, false],
  ])
})

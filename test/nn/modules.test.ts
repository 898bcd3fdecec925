// Models of layers: containers, names, state dicts, train and eval, gradients, clipping.
import { describe, expect, expectTypeOf, test } from 'vitest'
import { torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import * as nn from 'tensorfx/nn'
import { samples } from '../helpers/models.ts'

const { manualSeed, ones, tensor } = torch

const values = (t: unknown): number[] => Array.from((t as Tensor).contiguous().toTypedArray(), Number)

describe('Sequential', () => {
  test('names its modules by position or by key and runs them in order', () => {
    const net = new nn.Sequential(new nn.Linear(2, 3), new nn.ReLU())
    expect(String(net)).toBe('Sequential(\n  (0): Linear(in_features=2, out_features=3, bias=True)\n  (1): ReLU()\n)')
    expect(net.call(ones([1, 2])).shape).toEqual([1, 3])
    expect(net.append(new nn.Linear(3, 1)).call(ones([4, 2])).shape).toEqual([4, 1])
    expect(net.length).toBe(3)
    expect(net.at(-1)).toBe([...net][2])
    const named = new nn.Sequential({ fc: new nn.Linear(2, 2), act: new nn.Tanh() })
    expect([...named.stateDict().keys()]).toEqual(['fc.weight', 'fc.bias'])
    expect(() => net.at(3)).toThrow(/out of range/)
  })

  test('refuses values that are not modules, and names of its own methods', () => {
    expect(() => new nn.Sequential(3 as never)).toThrow(/must be a Module/)
    expect(() => new nn.Sequential({ forward: new nn.ReLU() })).toThrow(/'forward' is taken/)
  })
})

describe('ModuleList', () => {
  test('registers, iterates, inserts and prints runs of equal modules once', () => {
    const list = new nn.ModuleList<nn.Module>([new nn.ReLU(), new nn.Linear(1, 1), new nn.Linear(1, 1)])
    expect(String(list)).toBe('ModuleList(\n  (0): ReLU()\n  (1-2): 2 x Linear(in_features=1, out_features=1, bias=True)\n)')
    expect([...list.stateDict().keys()]).toEqual(['1.weight', '1.bias', '2.weight', '2.bias'])
    list.insert(0, new nn.Tanh()).append(new nn.Sigmoid())
    expect([...list].map((m) => m.getName())).toEqual(['Tanh', 'ReLU', 'Linear', 'Linear', 'Sigmoid'])
    list.set(-1, new nn.ReLU())
    expect(list.at(4)).toBeInstanceOf(nn.ReLU)
    expect(String(new nn.ModuleList())).toBe('ModuleList()')
    expect(() => list.forward()).toThrow(/Sequential/)
  })

  test('keeps the order of more than ten modules', () => {
    const list = new nn.ModuleList(Array.from({ length: 12 }, (_, i) => new nn.Linear(1, i + 1)))
    expect([...list].map((m) => m.outFeatures)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12])
  })
})

describe('ModuleDict', () => {
  test('finds modules by name', () => {
    const dict = new nn.ModuleDict({ a: new nn.Linear(1, 2) }).set('b', new nn.ReLU() as never)
    expect([...dict.keys()]).toEqual(['a', 'b'])
    expect(dict.get('a').outFeatures).toBe(2)
    expect(dict.delete('b')).toBe(true)
    expect(dict.size).toBe(1)
    expect(() => dict.get('c')).toThrow(/no module 'c'\. The modules are a\./)
    expect(() => dict.set('training', new nn.Linear(1, 1))).toThrow(/taken/)
  })
})

describe('state dicts', () => {
  test('name parameters, then buffers, module by module', () => {
    const net = new nn.Sequential({ conv: new nn.Conv2d(1, 2, 3), bn: new nn.BatchNorm2d(2) })
    expect([...net.stateDict().keys()]).toEqual([
      'conv.weight',
      'conv.bias',
      'bn.weight',
      'bn.bias',
      'bn.runningMean',
      'bn.runningVar',
      'bn.numBatchesTracked',
    ])
    expect([...net.namedParameters()].map(([name]) => name)).toEqual(['conv.weight', 'conv.bias', 'bn.weight', 'bn.bias'])
    expect([...net.namedBuffers()].length).toBe(3)
  })

  test('carry a model over to another one, values and not tensors', () => {
    const { make, inputs } = samples.cnn
    const [a, b] = [make(), make()]
    for (const p of b.parameters()) torch.noGrad(() => p.mul_(3))
    b.loadStateDict(a.stateDict())
    const run = (m: nn.Module): number[] => values(m.forward(...(inputs() as never[])))
    expect(run(b)).toEqual(run(a))
    torch.noGrad(() => a.getParameter('fc.bias').add_(1))
    expect(run(b)).not.toEqual(run(a))
    expect(b.getParameter('fc.bias').requiresGrad).toBe(true)
  })

  test('that do not fit change nothing', () => {
    const net = new nn.Linear(2, 2)
    const before = values(net.weight)
    expect(() => net.loadStateDict({ weight: ones([2, 2]), bias: ones([3]) })).toThrow(nn.LoadStateError)
    expect(() => net.loadStateDict({ weight: ones([2, 2]) })).toThrow(/Missing key\(s\) in stateDict: "bias"/)
    expect(values(net.weight)).toEqual(before)
    net.loadStateDict({ weight: ones([2, 2]) }, { strict: false })
    expect(values(net.weight)).toEqual([1, 1, 1, 1])
  })
})

test('train and eval reach every module', () => {
  const net = samples.mlp3.make()
  expect([...net.modules()].every((m) => !m.training)).toBe(true)
  net.train()
  expect([...net.modules()].every((m) => m.training)).toBe(true)
})

test('gradients reach the parameters, and zeroGrad forgets them', () => {
  const net = new nn.Sequential(new nn.Linear(3, 4), new nn.ReLU(), new nn.Linear(4, 1))
  net
    .call(ones([2, 3]))
    .sum()
    .backward()
  const parameters = [...net.parameters()]
  expect(parameters.every((p) => p.grad !== null && p.grad.shape.join() === p.shape.join())).toBe(true)
  net.zeroGrad()
  expect(parameters.every((p) => p.grad === null)).toBe(true)
})

describe('clipping gradients', () => {
  const withGrads = (...grads: readonly number[][]): Tensor[] =>
    grads.map((g) => {
      const p = new nn.Parameter(torch.zeros([g.length]))
      p.grad = tensor(g)
      return p
    })

  test('by norm scales all of them by one factor and returns the norm before', () => {
    const parameters = withGrads([3, 0], [4])
    expect(nn.utils.clipGradNorm_(parameters, 1).item()).toBeCloseTo(5, 5)
    expect(values(parameters[0]?.grad)[0]).toBeCloseTo(0.6, 4)
    expect(values(parameters[1]?.grad)[0]).toBeCloseTo(0.8, 4)
    expect(nn.utils.clipGradNorm_(parameters, 10).item()).toBeCloseTo(1, 4)
    expect(values(parameters[1]?.grad)[0]).toBeCloseTo(0.8, 4)
  })

  test('takes other norms, and refuses values that are not norms', () => {
    expect(nn.utils.clipGradNorm_(withGrads([3, -1], [-4]), 100, { normType: Infinity }).item()).toBe(4)
    expect(nn.utils.clipGradNorm_(withGrads([3, -1], [-4]), 100, { normType: 1 }).item()).toBe(8)
    expect(nn.utils.clipGradNorm_(withGrads([1, -2]), 100, { normType: 3 }).item()).toBeCloseTo(9 ** (1 / 3), 5)
    expect(() => nn.utils.clipGradNorm_(withGrads([1]), 1, { normType: 0 })).toThrow(/positive/)
    expect(() => nn.utils.clipGradNorm_(withGrads([NaN]), 1, { errorIfNonfinite: true })).toThrow(/NaN/)
  })

  test('by value bounds each element', () => {
    const parameters = withGrads([3, -5, 0.5])
    nn.utils.clipGradValue_(parameters, 1)
    expect(values(parameters[0]?.grad)).toEqual([1, -1, 0.5])
  })
})

test('models can be built and seeded', () => {
  manualSeed(0)
  const a = values(new nn.Linear(3, 3).weight)
  manualSeed(0)
  expect(values(new nn.Linear(3, 3).weight)).toEqual(a)
})

test('the tensors of a module have their types: parameters are Parameters, buffers are Tensors', () => {
  const net = new nn.Sequential(new nn.Linear(1, 1), new nn.BatchNorm1d(1))
  expectTypeOf(net.parameters()).toEqualTypeOf<Generator<nn.Parameter>>()
  expectTypeOf(net.namedParameters()).toEqualTypeOf<Generator<[string, nn.Parameter]>>()
  expectTypeOf(net.getParameter('0.weight')).toEqualTypeOf<nn.Parameter>()
  expectTypeOf(net.buffers()).toEqualTypeOf<Generator<Tensor>>()
  expectTypeOf(net.namedBuffers()).toEqualTypeOf<Generator<[string, Tensor]>>()
  expectTypeOf(net.getBuffer('1.runningMean')).toEqualTypeOf<Tensor>()
  // So that no program needs an assertion.
  expect([...net.parameters()].map((parameter) => parameter.numel)).toEqual([1, 1, 1, 1])
  expect(net.getBuffer('1.runningVar').item()).toBe(1)
})

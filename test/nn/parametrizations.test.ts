// weightNorm, spectralNorm and parametrizations of the user.
import { describe, expect, test } from 'vitest'
import { compile, nn, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'

const { parametrizations, parametrize } = nn.utils
const values = (t: unknown): number[] => Array.from((t as Tensor).detach().contiguous().toTypedArray(), Number)

describe('parametrizations', () => {
  test('weightNorm keeps the value, trains length and direction, and is copied, saved and removed', () => {
    const plain = new nn.Linear(3, 4)
    const before = values(plain.weight)
    const layer = parametrizations.weightNorm(plain)
    values(layer.weight).forEach((v, i) => expect(v).toBeCloseTo(before[i] ?? NaN, 6))
    expect([...layer.namedParameters()].map(([name]) => name)).toEqual([
      'bias',
      'parametrizations.weight.original0',
      'parametrizations.weight.original1',
    ])
    expect([layer.getName(), parametrize.isParametrized(layer, 'weight')]).toEqual(['ParametrizedLinear', true])
    const copy = layer.deepCopy()
    torch.noGrad(() => copy.getParameter('parametrizations.weight.original0').mul_(2))
    values(copy.weight).forEach((v, i) => expect(v).toBeCloseTo(2 * (before[i] ?? NaN), 5))
    values(layer.weight).forEach((v, i) => expect(v).toBeCloseTo(before[i] ?? NaN, 6))
    layer.weight = new nn.Parameter(torch.ones([4, 3]))
    values(layer.weight).forEach((v) => expect(v).toBeCloseTo(1, 6))
    parametrize.removeParametrizations(layer, 'weight')
    expect([layer.getName(), [...layer.namedParameters()].map(([name]) => name)]).toEqual(['Linear', ['bias', 'weight']])
  })

  test('spectralNorm makes the greatest singular value 1', () => {
    const layer = parametrizations.spectralNorm(new nn.Linear(2, 2, { bias: false }))
    torch.noGrad(() =>
      layer.getParameter('parametrizations.weight.original').copy_(
        torch.tensor([
          [3, 0],
          [0, 1],
        ]),
      ),
    )
    for (let i = 0; i < 50; i++) void layer.weight
    expect(layer.weight.select(0, 0).select(0, 0).item()).toBeCloseTo(1, 4)
  })

  test('a parametrization of the user; several apply in order; it compiles', () => {
    class Symmetric extends nn.Module {
      override forward(x: Tensor): Tensor {
        return x.triu().add(x.triu(1).t())
      }
    }
    class Double extends nn.Module {
      override forward(x: Tensor): Tensor {
        return x.mul(2)
      }
    }
    const layer = new nn.Linear(3, 3)
    const upper = values(layer.weight)
    parametrize.registerParametrization(layer, 'weight', new Symmetric())
    parametrize.registerParametrization(layer, 'weight', new Double())
    expect(values(layer.weight)).toEqual(values(layer.weight.t()))
    expect(layer.weight.select(0, 0).select(0, 1).item()).toBeCloseTo(2 * (upper[1] ?? NaN), 6)
    const x = torch.randn([2, 3])
    values(compile(layer)(x)).forEach((v, i) => expect(v).toBeCloseTo(values(layer(x))[i] ?? NaN, 5))
    expect(() => {
      layer.weight = new nn.Parameter(torch.ones([3, 3]))
    }).toThrow('Double has no method rightInverse')
  })
})

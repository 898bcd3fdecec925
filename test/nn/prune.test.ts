// torch.nn.utils.prune: what each method prunes, how methods combine, and what the module has.
import { describe, expect, it } from 'vitest'
import { compile, fx, nn, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'

const { prune } = nn.utils
const linear = (): nn.Linear => {
  const layer = new nn.Linear(3, 2)
  torch.noGrad(() =>
    layer.weight.copy_(
      torch.tensor([
        [1, -2, 3],
        [-4, 5, -6],
      ]),
    ),
  )
  return layer
}
const own = (module: nn.Module, name: string): Tensor => Reflect.get(module, name) as Tensor
const zeros = (t: Tensor): number => t.eq(0).sum().item()
/** The rows, without negative zeros. */
const rows = (t: Tensor): unknown[] => [t.add(0).toArray()].flat(1)

it('methods for slices prune along the last dimension, unless they are given another one', () => {
  const same = (method: { prune(t: Tensor): Tensor }, dim: number): void =>
    expect(
      method
        .prune(torch.ones([2, 3, 4]))
        .sum([0, 1, 2].filter((d) => d !== dim))
        .eq(0)
        .sum()
        .item(),
    ).toBe(1)
  for (const make of [(dim?: number) => new prune.RandomStructured(1, dim), (dim?: number) => new prune.LnStructured(1, 2, dim)]) {
    same(make(), 2)
    for (const dim of [0, 1, 2]) same(make(dim), dim)
  }
})

describe('a pruned parameter', () => {
  it('is the product of a parameter and a buffer, and takes part in training', () => {
    const layer = prune.l1Unstructured(linear(), 'weight', 2)
    expect([...layer.namedParameters()].map(([name]) => name)).toEqual(['bias', 'weight_orig'])
    expect([...layer.namedBuffers()].map(([name]) => name)).toEqual(['weight_mask'])
    expect([...layer.stateDict().keys()]).toEqual(['bias', 'weight_orig', 'weight_mask'])
    expect(rows(layer.weight)).toEqual([
      [0, 0, 3],
      [-4, 5, -6],
    ])
    const x = torch.ones([1, 3])
    layer(x).sum().backward()
    expect(own(layer, 'weight_orig').grad?.toArray()).toEqual([
      [0, 0, 1],
      [1, 1, 1],
    ])
    expect(torch.allclose(compile(layer)(x), layer(x))).toBe(true)
    const optimizer = new torch.optim.SGD(layer.parameters(), { lr: 1 })
    optimizer.step()
    expect(rows(layer.weight)[0]).toEqual([0, 0, 2])
  })

  it('cannot be assigned, and is an ordinary one again after remove', () => {
    const layer = prune.l1Unstructured(linear(), 'weight', 2)
    const original = own(layer, 'weight_orig')
    expect(prune.isPruned(layer)).toBe(true)
    expect(() => (layer.weight = new nn.Parameter(torch.zeros([2, 3])))).toThrow('weight is pruned, and cannot be assigned')
    prune.remove(layer, 'weight')
    expect(layer.weight).toBe(original)
    expect(rows(layer.weight)[0]).toEqual([0, 0, 3])
    expect([...layer.stateDict().keys()]).toEqual(['bias', 'weight'])
    expect(prune.isPruned(layer)).toBe(false)
    expect(() => prune.remove(layer, 'weight')).toThrow("parameter 'weight' of ParametrizedLinear has to be pruned before pruning can be removed")
    expect(layer(torch.ones([1, 3])).shape).toEqual([1, 2])
  })

  it('is copied with its module, and loaded from a state dict', () => {
    const layer = prune.l1Unstructured(linear(), 'weight', 2)
    const copy = layer.deepCopy()
    prune.remove(copy, 'weight')
    expect(prune.isPruned(layer)).toBe(true)
    expect(zeros(copy.weight)).toBe(2)
    const other = prune.identity(linear(), 'weight')
    other.loadStateDict(layer.stateDict())
    expect(rows(other.weight)).toEqual(rows(layer.weight))
    expect(prune.isPruned(new nn.Sequential(new nn.ReLU(), layer))).toBe(true)
  })

  it('is traced', () => {
    const model = new nn.Sequential(prune.l1Unstructured(linear(), 'weight', 2))
    const x = torch.ones([1, 3])
    expect(torch.equal(fx.symbolicTrace(model)(x), model(x))).toBe(true)
  })
})

describe('methods', () => {
  it('prune the smallest, or what scores say', () => {
    expect(rows(prune.l1Unstructured(linear(), 'weight', 0.5).weight)).toEqual([
      [0, 0, 0],
      [-4, 5, -6],
    ])
    const scores = torch.tensor([
      [9, 8, 7],
      [1, 2, 3],
    ])
    expect(rows(prune.l1Unstructured(linear(), 'weight', 2, { importanceScores: scores }).weight)).toEqual([
      [1, -2, 3],
      [0, 0, -6],
    ])
    // Halves are rounded to even, as in Python: 0.25 of 6 is 1.5, which is 2; 0.75 of 6 is 4.5, which is 4.
    expect(zeros(prune.l1Unstructured(linear(), 'weight', 0.25).weight)).toBe(2)
    expect(zeros(prune.l1Unstructured(linear(), 'weight', 0.75).weight)).toBe(4)
  })

  it('prune slices by their norms', () => {
    expect(rows(prune.lnStructured(linear(), 'weight', 1, 2, 0).weight)).toEqual([
      [0, 0, 0],
      [-4, 5, -6],
    ])
    expect(rows(prune.lnStructured(linear(), 'weight', 0.34, 1, -1).weight)).toEqual([
      [0, -2, 3],
      [0, 5, -6],
    ])
    expect(rows(prune.lnStructured(linear(), 'weight', 1, Infinity, 1).weight)[0]).toEqual([0, -2, 3])
  })

  it('draw as many elements or slices as they are told to', () => {
    torch.manualSeed(1)
    for (let i = 0; i < 20; i++) {
      expect(zeros(prune.randomUnstructured(linear(), 'weight', 3).weight)).toBe(3)
      expect(prune.randomStructured(linear(), 'weight', 1, 0).weight.ne(0).any(1).sum().item()).toBe(1)
    }
    expect(zeros(prune.randomUnstructured(linear(), 'weight', 0).weight)).toBe(0)
  })

  it('see only what is left of a parameter that is pruned already', () => {
    const layer = prune.l1Unstructured(linear(), 'weight', 2)
    prune.l1Unstructured(layer, 'weight', 0.5)
    expect(rows(layer.weight)).toEqual([
      [0, 0, 0],
      [0, 5, -6],
    ])
    prune.lnStructured(layer, 'weight', 1, 2, 1)
    // Row 0 is pruned already; of the columns that are left the least goes.
    expect(rows(layer.weight)).toEqual([
      [0, 0, 0],
      [0, 0, -6],
    ])
  })

  it('prune several parameters as one', () => {
    const [a, b] = [linear(), linear()]
    torch.noGrad(() => b.weight.mul_(10))
    prune.globalUnstructured(
      [
        [a, 'weight'],
        [b, 'weight'],
      ],
      new prune.L1Unstructured(0.5),
    )
    expect(zeros(a.weight)).toBe(6)
    expect(zeros(b.weight)).toBe(0)
    prune.globalUnstructured([[b, 'weight']], new prune.L1Unstructured(1), {
      importanceScores: [
        [
          [b, 'weight'],
          torch.tensor([
            [5, 5, 5],
            [5, 1, 5],
          ]),
        ],
      ],
    })
    expect(rows(b.weight)[1]).toEqual([-40, 0, -60])
  })

  it('take masks, and methods that programs define', () => {
    const mask = torch.tensor([
      [0, 1, 1],
      [1, 0, 1],
    ])
    const layer = prune.customFromMask(linear(), 'weight', mask)
    expect(rows(layer.weight)).toEqual([
      [0, -2, 3],
      [-4, 0, -6],
    ])
    class EveryOther extends prune.BasePruningMethod {
      readonly pruningType = 'unstructured'
      override computeMask(t: Tensor, defaultMask: Tensor): Tensor {
        return defaultMask.mul(torch.arange(t.numel, { dtype: 'float32' }).remainder(2).view(t.shape))
      }
    }
    expect(rows(prune.apply(linear(), 'weight', new EveryOther()).weight)).toEqual([
      [0, -2, 0],
      [-4, 0, -6],
    ])
    expect(rows(new prune.L1Unstructured(1).prune(torch.tensor([3, -1, 2])))).toEqual([3, 0, 2])
  })
})

describe('mistakes', () => {
  it('are told, and change nothing', () => {
    const layer = linear()
    expect(() => prune.l1Unstructured(layer, 'wieght', 1)).toThrow("Linear has no parameter 'wieght'")
    expect(() => prune.l1Unstructured(layer, 'weight', 1.5)).toThrow('amount=1.5 should either be a fraction')
    expect(() => prune.l1Unstructured(layer, 'weight', -1)).toThrow('amount=-1 should either be a fraction')
    expect(() => prune.l1Unstructured(layer, 'weight', 7)).toThrow('should not be greater than the number of parameters to prune=6')
    expect(() => prune.lnStructured(layer, 'bias', 1, 2, 0)).toThrow('structured pruning is for tensors of several dimensions, got shape [2]')
    expect(() => prune.lnStructured(layer, 'weight', 1, 2, 2)).toThrow('dim 2 is out of range')
    expect(() => prune.customFromMask(layer, 'weight', torch.ones([2]))).toThrow('must have the shape [2, 3] of the parameter, got [2]')
    expect(() => prune.l1Unstructured(layer, 'weight', 1, { importanceScores: torch.ones([2]) })).toThrow(
      'importanceScores must have the shape [2, 3]',
    )
    expect(() => prune.globalUnstructured([[layer, 'weight']], new prune.LnStructured(1, 2, 0))).toThrow(
      "only methods of type 'unstructured' are supported, got 'structured'",
    )
    expect([...layer.stateDict().keys()]).toEqual(['weight', 'bias'])
    expect(prune.isPruned(layer)).toBe(false)
  })
})

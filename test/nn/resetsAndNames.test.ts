// Small parts of layers that no larger test reaches: resetting, iterating, power iterations, and the names in messages.
import { describe, expect, it } from 'vitest'
import { Tensor, nn, torch } from 'tensorfx'

it('RMSNorm.resetParameters sets the scale to 1, and does nothing without one', () => {
  const norm = new nn.RMSNorm(3)
  torch.noGrad(() => norm.weight?.fill_(5))
  norm.resetParameters()
  expect(norm.weight?.toArray()).toEqual([1, 1, 1])
  const plain = new nn.RMSNorm(3, { elementwiseAffine: false })
  plain.resetParameters()
  expect(plain.weight).toBeNull()
})

it('a ParameterDict iterates over its names', () => {
  const parameters = new nn.ParameterDict({ first: new nn.Parameter(torch.ones([1])), second: new nn.Parameter(torch.ones([2])) })
  expect([...parameters]).toEqual(['first', 'second'])
  expect([...parameters.keys()]).toEqual(['first', 'second'])
})

describe('nn.utils.spectralNorm', () => {
  const vectors = (layer: nn.Module): readonly (readonly number[])[] => [...layer.namedBuffers()].map(([, buffer]) => buffer.shape)

  it('keeps a vector for the rows and one for the columns', () => {
    expect(vectors(nn.utils.spectralNorm(new nn.Linear(4, 3)))).toEqual([[3], [4]])
  })

  it('approaches the largest singular value, by as many iterations as asked for in training', () => {
    torch.manualSeed(7)
    const plain = new nn.Linear(6, 5)
    const largest = Number(torch.linalg.svdvals(plain.weight.detach()).amax().item())
    const layer = nn.utils.spectralNorm(plain, { nPowerIterations: 60 })
    const original = layer.getParameter('weight_orig')
    if (!(original instanceof Tensor)) throw new Error('the weight is no tensor')
    const expected = torch.div(original.detach(), largest)
    expect(torch.allclose(layer.weight, expected, { rtol: 1e-3, atol: 1e-4 })).toBe(true)
  })
})

it('AdaptiveAvgPool1d averages', () => {
  expect(new nn.AdaptiveAvgPool1d(2)(torch.tensor([[[1, 3, 5, 7]]])).toArray()).toEqual([[[2, 6]]])
})

it('messages name the layer or the function', () => {
  const loose: any = nn // oxlint-disable-line typescript/no-explicit-any -- wrong arguments, as JavaScript passes them
  expect(() => new loose.AdaptiveAvgPool2d()).toThrow(/nn\.AdaptiveAvgPool2d/)
  expect(() => new loose.ReplicationPad1d()).toThrow(/nn\.ReplicationPad1d/)
  expect(() => new loose.ReLU({ wrong: 1 })).toThrow(/nn\.ReLU/)
  expect(() => loose.init.truncNormal_(torch.ones([2]), { wrong: 1 })).toThrow(/init\.truncNormal_/)
})

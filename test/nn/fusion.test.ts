// nn.utils.fusion: a layer with the batch norm folded into it computes what both compute.
import { expect, test } from 'vitest'
import { torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import * as nn from 'tensorfx/nn'

const { fuseConvBnEval, fuseConvBnWeights, fuseLinearBnEval, fuseLinearBnWeights } = nn.utils.fusion

/** A norm whose numbers are all different. */
function trained<N extends nn.BatchNorm1d | nn.BatchNorm2d | nn.BatchNorm3d>(norm: N): N {
  torch.noGrad(() => {
    for (const t of [norm.runningMean, norm.bias]) t?.uniform_(-1, 1)
    for (const t of [norm.runningVar, norm.weight]) t?.uniform_(0.5, 2)
  })
  norm.eval()
  return norm
}

function expectSame(got: Tensor, want: Tensor): void {
  expect(got.shape).toEqual(want.shape)
  expect(Number(got.sub(want).abs().max().item())).toBeLessThan(1e-5)
}

torch.manualSeed(7)
const image = torch.randn([2, 4, 5, 5])
const convolutions: [string, nn.Conv2d | nn.ConvTranspose2d, boolean][] = [
  ['a convolution', new nn.Conv2d(4, 6, 3), false],
  ['one without a bias', new nn.Conv2d(4, 6, 3, { bias: false }), false],
  ['one in groups', new nn.Conv2d(4, 6, 3, { groups: 2, padding: 1 }), false],
  ['a transposed one', new nn.ConvTranspose2d(4, 6, 3, { stride: 2 }), true],
]

test.each(convolutions)('%s', (_, conv, transpose) => {
  conv.eval()
  for (const norm of [trained(new nn.BatchNorm2d(6)), trained(new nn.BatchNorm2d(6, { affine: false, eps: 0.1 }))]) {
    const fused = fuseConvBnEval(conv, norm, transpose)
    expect(fused).toBeInstanceOf(conv.constructor)
    expectSame(new nn.Sequential(fused)(image), new nn.Sequential(conv, norm)(image))
  }
})

test('a linear layer', () => {
  const [linear, norm] = [new nn.Linear(4, 6), trained(new nn.BatchNorm1d(6))]
  linear.eval()
  const x = torch.randn([3, 4])
  const before = linear.weight.toArray()
  expectSame(fuseLinearBnEval(linear, norm)(x), norm(linear(x)))
  expect(linear.weight.toArray()).toEqual(before)
})

test('weights alone keep their dtype and whether they require grad', () => {
  const [mean, variance] = [torch.tensor([1, 2]), torch.tensor([3, 8])]
  const weight = torch.ones([2, 1], { dtype: 'float64' }).requiresGrad_()
  const [w, b] = fuseLinearBnWeights(weight, null, mean, variance, 1, null, null)
  expect([w.dtype, w.requiresGrad, b.requiresGrad, w.isParameter]).toEqual(['float64', true, false, true])
  expect(w.toArray()).toEqual([[0.5], [1 / 3]].map(([v = 0]) => [expect.closeTo(v, 6)]))
  expect(b.toArray()).toEqual([expect.closeTo(-0.5, 6), expect.closeTo(-2 / 3, 6)])
  const [kernel] = fuseConvBnWeights(torch.ones([1, 2, 1]), torch.zeros([2]), mean, variance, 1, null, null, true)
  expect(kernel.shape).toEqual([1, 2, 1])
})

test('training mode, missing statistics and other channels are errors', () => {
  const norm = trained(new nn.BatchNorm2d(6))
  expect(() => fuseConvBnEval(new nn.Conv2d(4, 6, 3), norm)).toThrow(/must be in evaluation mode/)
  const conv = new nn.Conv2d(4, 6, 3)
  conv.eval()
  expect(() => fuseConvBnEval(conv, new nn.BatchNorm2d(6, { trackRunningStats: false }))).toThrow(/running statistics/)
  expect(() => fuseConvBnEval(conv, trained(new nn.BatchNorm2d(3)))).toThrow(
    /the norm has 3 channels, and a weight of shape \[6, 4, 3, 3\] has 6 outputs in dimension 0/,
  )
})

// Images and weights in the layout of another library: the message says how to permute them, and permuted they fit.
import { describe, expect, it } from 'vitest'
import { nn, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'

function messageOf(run: () => unknown): string {
  try {
    run()
  } catch (error) {
    return error instanceof Error ? error.message : String(error)
  }
  return 'nothing was thrown'
}

/** The tensor in the order that the message says. */
function mended(x: Tensor, message: string): Tensor {
  const [, order] = /: write \w+\.permute\(\[([\d, ]+)\]\)\.$/.exec(message) ?? []
  if (order !== undefined) return x.permute(order.split(', ').map(Number))
  expect(message).toMatch(/ Transposed it fits: write value\.t\(\)\.$/)
  return x.t()
}

const channelsLast = (rank: number): Tensor => torch.randn([2, ...[8, 9, 10].slice(0, rank), 3])
const F = nn.functional

describe('images with the channels last', () => {
  const calls: readonly (readonly [string, Tensor, (x: Tensor) => Tensor])[] = [
    ['Conv1d', channelsLast(1), (x) => new nn.Conv1d(3, 4, 2).call(x)],
    ['Conv2d', channelsLast(2), (x) => new nn.Conv2d(3, 4, 2).call(x)],
    ['Conv3d', channelsLast(3), (x) => new nn.Conv3d(3, 4, 2).call(x)],
    ['Conv2d with groups', torch.randn([2, 8, 9, 6]), (x) => new nn.Conv2d(6, 4, 2, { groups: 2 }).call(x)],
    ['ConvTranspose1d', channelsLast(1), (x) => new nn.ConvTranspose1d(3, 4, 2).call(x)],
    ['ConvTranspose2d', channelsLast(2), (x) => new nn.ConvTranspose2d(3, 4, 2).call(x)],
    ['ConvTranspose3d', channelsLast(3), (x) => new nn.ConvTranspose3d(3, 4, 2).call(x)],
    ['BatchNorm1d', channelsLast(1), (x) => new nn.BatchNorm1d(3).call(x)],
    ['BatchNorm2d', channelsLast(2), (x) => new nn.BatchNorm2d(3).call(x)],
    ['BatchNorm2d in evaluation', channelsLast(2), (x) => new nn.BatchNorm2d(3).eval().call(x)],
    ['BatchNorm3d', channelsLast(3), (x) => new nn.BatchNorm3d(3).call(x)],
    ['InstanceNorm2d', channelsLast(2), (x) => new nn.InstanceNorm2d(3).call(x)],
    ['InstanceNorm2d without a batch', torch.randn([8, 9, 3]), (x) => new nn.InstanceNorm2d(3).call(x)],
    ['GroupNorm', channelsLast(2), (x) => new nn.GroupNorm(3, 3).call(x)],
    ['PReLU', channelsLast(2), (x) => new nn.PReLU(3).call(x)],
    ['F.batchNorm', channelsLast(2), (x) => F.batchNorm(x, torch.zeros([3]), torch.ones([3]))],
    ['MaxPool2d', channelsLast(2), (x) => new nn.MaxPool2d(4).call(x)],
    ['AvgPool2d', channelsLast(2), (x) => new nn.AvgPool2d(4).call(x)],
  ]
  it.each(calls)('%s', (_name, x, run) => {
    const message = messageOf(() => run(x))
    expect(message).toContain(' Its channels seem to be last, as in NHWC; here they are dimension ')
    const right = mended(x, message)
    expect(run(right).ndim).toBe(x.ndim)
  })

  it('are not what other mistakes are taken for', () => {
    expect(messageOf(() => new nn.Conv2d(3, 4, 2).call(torch.randn([2, 5, 8, 9])))).toMatch(/dimension 1 of weight times groups\.$/)
    expect(messageOf(() => new nn.BatchNorm2d(3).call(torch.randn([2, 4, 8, 9])))).toMatch(/got shape \[2, 4, 8, 9\]\.$/)
    expect(messageOf(() => new nn.MaxPool2d(9).call(torch.randn([2, 3, 8, 8])))).toMatch(/with padding \[0, 0\]\.$/)
  })
})

describe('weights with the channels last', () => {
  const layers: readonly (readonly [string, nn.Module, readonly number[]])[] = [
    ['Linear, [in, out]', new nn.Linear(3, 4), [3, 4]],
    ['Conv1d, [k, in, out]', new nn.Conv1d(3, 4, 5), [5, 3, 4]],
    ['Conv2d, [h, w, in, out]', new nn.Conv2d(3, 4, [5, 6]), [5, 6, 3, 4]],
    ['Conv2d, [out, h, w, in]', new nn.Conv2d(3, 4, [5, 6]), [4, 5, 6, 3]],
    ['Conv3d, [d, h, w, in, out]', new nn.Conv3d(3, 4, [5, 6, 7]), [5, 6, 7, 3, 4]],
    ['ConvTranspose2d, [h, w, out, in]', new nn.ConvTranspose2d(3, 4, [5, 6]), [5, 6, 4, 3]],
  ]
  it.each(layers)('%s: loadStateDict', (_name, layer, shape) => {
    const [weight, bias] = [torch.randn(shape), torch.ones([4])]
    const before = layer.getParameter('weight').toString()
    const message = messageOf(() => layer.loadStateDict({ weight, bias }))
    expect(layer.getParameter('weight').toString()).toBe(before)
    layer.loadStateDict({ weight: mended(weight, message), bias })
    expect(torch.equal(layer.getParameter('weight') as Tensor, mended(weight, message))).toBe(true)
  })

  it('of other shapes get no such hint', () => {
    expect(messageOf(() => new nn.Linear(3, 4).loadStateDict({ weight: torch.ones([4, 5]), bias: torch.ones([4]) }))).toMatch(/is \[4, 3\]\.$/)
  })

  it.each([
    ['[h, w, in, out]', [3, 3, 3, 16], [2, 3, 8, 8]],
    ['[h, w, in, out], another kernel', [5, 5, 3, 16], [2, 3, 8, 8]],
    ['[out, h, w, in]', [16, 5, 5, 3], [2, 3, 8, 8]],
  ])('F.conv2d, %s', (_name, shape, input) => {
    const [x, weight] = [torch.randn(input), torch.randn(shape)]
    const message = messageOf(() => F.conv2d(x, weight))
    expect(F.conv2d(x, mended(weight, message)).shape.slice(0, 2)).toEqual([2, 16])
  })
})

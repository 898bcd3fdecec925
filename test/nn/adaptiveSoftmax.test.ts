// The adaptive softmax.
import { describe, expect, test } from 'vitest'
import { Tensor, nn, noGrad, torch } from 'tensorfx'
import { detInput } from '../helpers/deterministic.ts'

const values = (t: Tensor): number[] => Array.from(t.detach().contiguous().toTypedArray(), Number)

describe('AdaptiveLogSoftmaxWithLoss', () => {
  torch.manualSeed(1)
  const softmax = new nn.AdaptiveLogSoftmaxWithLoss(8, 10, [2, 6], { divValue: 2, headBias: true })
  const input = detInput([5, 8], 8, 2)
  const target = torch.tensor([0, 9, 3, 1, 6]).long()

  test('logProb gives a distribution over all classes, of which the call picks the targets', () => {
    const all = softmax.logProb(input)
    values(all.exp().sum(1)).forEach((v) => expect(v).toBeCloseTo(1, 5))
    const [output, loss] = softmax(input, target)
    const expected = values(all.gather(1, target.unsqueeze(1)))
    values(output).forEach((v, i) => expect(v).toBeCloseTo(expected[i] ?? NaN, 5))
    expect(loss.item()).toBeCloseTo(-output.mean().item(), 6)
    const [single] = softmax(input.select(0, 1), target.select(0, 1))
    expect(single.shape).toEqual([])
    expect(single.item()).toBeCloseTo(expected[1] ?? NaN, 5)
  })

  test('predict finds the most likely class', () => {
    // So large that clusters win for some rows.
    noGrad(() => softmax.head.bias?.copy_(torch.tensor([0, 0, 0.5, 1])))
    const many = detInput([40, 8], 9, 3)
    expect(values(softmax.predict(many))).toEqual(values(softmax.logProb(many).argmax(1)))
    expect(new Set(values(softmax.predict(many))).size).toBeGreaterThan(4)
  })

  test('gives gradients to the clusters of the targets only, and starts anew when it is reset', () => {
    softmax(input.narrow(0, 2, 1), target.narrow(0, 2, 1))[1].backward()
    const used = [...softmax.namedParameters()].filter(([, { grad }]) => grad instanceof Tensor && values(grad).some(Boolean)).map(([name]) => name)
    expect(used).toEqual(['head.weight', 'head.bias', 'tail.0.0.weight', 'tail.0.1.weight'])
    const before = values(softmax.head.weight)
    softmax.resetParameters()
    expect(values(softmax.head.weight)).not.toEqual(before)
  })
})

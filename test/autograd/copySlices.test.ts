// The node that a write to a view gives its base, seen alone: places of memory, what it computes, and what it says when something is wrong. Its numbers are judged by random programs in
// writesToViews.test.ts.
import { describe, expect, test } from 'vitest'
import { torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { detectAnomaly } from 'tensorfx/autograd'
import { RecordMode, withMode } from 'tensorfx/dispatch'

const leaf = (): Tensor => torch.tensor([2, 3]).requiresGrad_()

describe('CopySlices', () => {
  test.each([0, 1, 2])('of a base that begins %d elements after the start of its memory', (first) => {
    const w = leaf()
    const z = torch.arange(8, { dtype: 'float32' })
    z.asStrided_([4], [1], first)
    z.narrow(0, 1, 2).mul_(w)
    z.mul(torch.tensor([1, 10, 100, 1000]))
      .sum()
      .backward()
    expect(w.grad?.toArray()).toEqual([10 * (first + 1), 100 * (first + 2)])
  })

  test('computes no gradient that has nowhere to go', () => {
    const u = leaf()
    /** The operators of a backward to some of the leaves, after w was written to a tensor made of u, or of nothing. */
    const calls = (base: () => Tensor, wanted: (w: Tensor) => readonly Tensor[]): readonly string[] => {
      const w = leaf()
      const z = base()
      z.narrow(0, 0, 1).copy_(w.narrow(0, 1, 1))
      const mode = new RecordMode()
      withMode(mode, () => torch.autograd.grad(z.sum(), wanted(w)))
      return mode.calls.map(({ op }) => op.name).filter((name) => name === 'where' || name === 'gather')
    }
    expect(
      calls(
        () => u.mul(1),
        (w) => [u, w],
      ),
    ).toEqual(['gather', 'where'])
    expect(
      calls(
        () => u.mul(1),
        (w) => [w],
      ),
    ).toEqual(['gather'])
    expect(
      calls(
        () => torch.zeros([2]),
        (w) => [w],
      ),
    ).toEqual(['gather'])
  })

  test('is named by a second backward, which is refused', () => {
    const z = torch.zeros([2])
    z.narrow(0, 0, 1).copy_(leaf().narrow(0, 0, 1))
    z.backward(torch.ones([2]))
    expect(() => z.backward(torch.ones([2]))).toThrow(/through CopySlices has been walked before/)
  })

  test('says in anomaly mode which line has written', () => {
    const run = (): void =>
      detectAnomaly(() => {
        const z = torch.zeros([2])
        z.narrow(0, 0, 1).copy_(leaf().narrow(0, 0, 1))
        z.backward(torch.tensor([NaN, 1]))
      })
    expect(run).toThrow(/'CopySlices' returned nan values in its 1th output\. The forward call was:.*z\.narrow/s)
  })

  test('notes no line outside of anomaly mode', () => {
    const z = torch.zeros([2])
    z.narrow(0, 0, 1).copy_(leaf().narrow(0, 0, 1))
    expect(() => detectAnomaly(() => z.backward(torch.tensor([NaN, 1])))).toThrow(
      /'CopySlices' returned nan values in its 1th output\. The forward pass was computed without anomaly mode/,
    )
  })
})

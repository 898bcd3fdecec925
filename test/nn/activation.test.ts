// Activations in place.
import { describe, expect, test } from 'vitest'
import { compile, nn } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { detInput } from '../helpers/deterministic.ts'

const values = (t: Tensor): number[] => Array.from(t.detach().contiguous().toTypedArray(), Number)

describe('activations in place', () => {
  test.each([
    [new nn.ReLU(true), new nn.ReLU(), 'ReLU(inplace=True)'],
    [new nn.SiLU({ inplace: true }), new nn.SiLU(), 'SiLU(inplace=True)'],
    [new nn.Mish(true), new nn.Mish(), 'Mish(inplace=True)'],
    [new nn.SELU(true), new nn.SELU(), 'SELU(inplace=True)'],
    [new nn.Hardswish(true), new nn.Hardswish(), 'Hardswish()'],
    [new nn.Hardsigmoid(true), new nn.Hardsigmoid(), 'Hardsigmoid()'],
    [new nn.LeakyReLU(0.2, true), new nn.LeakyReLU(0.2), 'LeakyReLU(negative_slope=0.2, inplace=True)'],
    [new nn.ELU(0.5, { inplace: true }), new nn.ELU(0.5), 'ELU(alpha=0.5, inplace=True)'],
    [new nn.CELU({ inplace: true }), new nn.CELU(), 'CELU(alpha=1.0, inplace=True)'],
    [new nn.Hardtanh(-0.5, 1, true), new nn.Hardtanh(-0.5, 1), 'Hardtanh(min_val=-0.5, max_val=1.0, inplace=True)'],
    [new nn.ReLU6({ inplace: true }), new nn.ReLU6(), 'ReLU6(inplace=True)'],
    [new nn.Threshold(0.1, 3, true), new nn.Threshold(0.1, 3), 'Threshold(threshold=0.1, value=3, inplace=True)'],
    [new nn.RReLU({ inplace: true }).eval(), new nn.RReLU().eval(), 'RReLU(lower=0.125, upper=0.3333333333333333, inplace=True)'],
  ])('%s', (layer, plain, text) => {
    expect(String(layer)).toBe(text)
    const given = detInput([12], 11, 8)
    const run = (fn: (x: Tensor) => Tensor): readonly [number[], number[], number[]] => {
      const leaf = given.clone().requiresGrad_()
      const input = leaf.mul(1)
      const out = fn(input)
      out.square().sum().backward()
      return [values(out), values(leaf.grad ?? given), values(input)]
    }
    const [out, grad] = run(plain)
    const [ownOut, ownGrad, written] = run(layer)
    expect([ownOut, ownGrad, written]).toEqual([out, grad, out])
    const [compiledOut, compiledGrad, compiledWritten] = run(compile(layer))
    for (const [got, wanted] of [
      [compiledOut, out],
      [compiledGrad, grad],
      [compiledWritten, out],
    ] as const)
      got.forEach((v, i) => expect(v).toBeCloseTo(wanted[i] ?? NaN, 5))
  })
})

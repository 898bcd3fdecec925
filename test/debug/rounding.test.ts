// What a judge allows for: inputs and results of operators, moved by a few units in the last place.
import { describe, expect, it } from 'vitest'
import { torch } from 'tensorfx'
import type { DType, Tensor } from 'tensorfx'
import { withMode } from 'tensorfx/dispatch'
import { INPUTS, Rounding, move } from '../../src/debug/closeness/rounding.ts'
import { finfo } from '../../src/tensor/index.ts'

const numbers = (tensor: Tensor): number[] => Array.from(tensor.toTypedArray(), Number)

/** By how many units in the last place, at one, each element is away from what it was. */
const unitsOff = (now: Tensor, before: readonly number[]): number[] => {
  const { eps } = finfo(now.dtype)
  return numbers(now).map((value, i) => Math.round((value - (before[i] ?? 0)) / (before[i] ?? 0) / eps))
}

describe('move', () => {
  it.each(['float64', 'float32', 'float16', 'bfloat16'] as const satisfies readonly DType[])('moves each element of %s up or down', (dtype) => {
    // Powers of two and a little more: a unit in the last place is a unit of the dtype.
    const x = torch.tensor(
      Array.from({ length: 200 }, (_, i) => (i % 2 === 0 ? 1 : -1) * 2 ** ((i % 5) - 2) * 1.0078125),
      { dtype },
    )
    const before = numbers(x)
    move(x, 1, INPUTS)
    const off = unitsOff(x, before)
    for (const units of off) expect([INPUTS - 1, INPUTS, INPUTS + 1].includes(Math.abs(units))).toBe(true)
    // Without a pattern: neither all one way, nor always in turn.
    expect(off.filter((units) => units > 0).length).toBeGreaterThan(60)
    expect(off.filter((units) => units < 0).length).toBeGreaterThan(60)
    const turns = off.filter((units, i) => i > 0 && units > 0 === (off[i - 1] ?? 0) > 0).length
    expect([turns > 40, turns < 160]).toEqual([true, true])
    const other = torch.tensor(before, { dtype })
    move(other, 2, INPUTS)
    expect(numbers(other)).not.toEqual(numbers(x))
    const again = torch.tensor(before, { dtype })
    move(again, 1, INPUTS)
    expect(numbers(again)).toEqual(numbers(x))
  })

  it('leaves whole numbers, and tensors of them', () => {
    const whole = torch.tensor([0, -0, 1, -3, 1e6, NaN, Infinity, -Infinity])
    const before = numbers(whole)
    move(whole, 1, INPUTS)
    expect(numbers(whole)).toEqual(before)
    for (const dtype of ['int64', 'int32', 'uint8', 'bool'] as const) {
      const x = torch.tensor([0, 1, 1], { dtype })
      move(x, 1, INPUTS)
      expect(numbers(x.to('float64'))).toEqual([0, 1, 1])
    }
  })

  it('writes to the elements of a view alone', () => {
    const base = torch.full([4, 3], 0.1)
    const before = numbers(base)
    move(base.select(1, 1), 1, INPUTS)
    const changed = numbers(base).flatMap((value, i) => (value === before[i] ? [] : [i]))
    expect(changed).toEqual([1, 4, 7, 10])
  })
})

describe('the mode', () => {
  const x = (): Tensor => torch.full([50], 0.3)
  const run = <T>(fn: () => T, seed = 1): T => withMode(new Rounding(seed), fn)

  it('moves what operators compute, each call otherwise', () => {
    const given = x()
    const exact = numbers(given.mul(1.1))
    const [one, two] = run(() => [given.mul(1.1), given.mul(1.1)])
    for (const moved of [one, two]) for (const units of unitsOff(moved, exact)) expect([3, 4, 5].includes(Math.abs(units))).toBe(true)
    expect(numbers(one)).not.toEqual(numbers(two))
    expect(numbers(run(() => given.mul(1.1)))).toEqual(numbers(one))
    expect(numbers(run(() => given.mul(1.1), 2))).not.toEqual(numbers(one))
    expect(numbers(given)).toEqual(numbers(x()))
  })

  it('moves each of several results', () => {
    const given = torch.tensor([0.3, 0.1, 0.2])
    const [mean, deviation] = run(() => torch.varMean(given)) as [Tensor, Tensor]
    const [exactMean, exactDeviation] = torch.varMean(given) as [Tensor, Tensor]
    expect([mean.item() === exactMean.item(), deviation.item() === exactDeviation.item()]).toEqual([false, false])
  })

  it('leaves views, writes, new tensors, and what lies in an argument', () => {
    const given = x()
    const before = numbers(given)
    run(() => [given.view(5, 10), given.select(0, 1), given.reshape([50]), given.contiguous(), torch.full([3], 0.3)])
    expect(numbers(given)).toEqual(before)
    expect(numbers(run(() => torch.full([3], 0.1)))).toEqual(numbers(torch.full([3], 0.1)))
    const written = x()
    run(() => written.mul_(1.1))
    expect(numbers(written)).toEqual(numbers(x().mul(1.1)))
  })

  it('leaves whole numbers where an operator gives them exactly: at the ends of functions, but not beyond one', () => {
    const ends = torch.tensor([0, 100, -200])
    expect(numbers(run(() => ends.sigmoid())).slice(1)).toEqual([1, 0])
    expect(numbers(run(() => torch.zeros([20]).exp()))).toEqual(new Array(20).fill(1))
    // sqrt(4) is a whole number by luck: another library may miss it.
    const roots = numbers(run(() => torch.full([20], 4).sqrt()))
    expect(roots.every((value) => value !== 2 && Math.abs(value - 2) < 1e-5)).toBe(true)
    expect(numbers(run(() => torch.full([20], 2).mul(2)))).toEqual(new Array(20).fill(4))
  })
})

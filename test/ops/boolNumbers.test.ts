// Numbers that become bools: all but 0 are true, also 0.5 and NaN.
import { describe, expect, test } from 'vitest'
import { compile, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'

const F = torch.nn.functional
const zero = torch.tensor([0]).long()

/** Each fills the first of two elements that are false. */
const writes: Readonly<Record<string, (x: Tensor, v: number) => Tensor>> = {
  fill_: (x, v) => torch.cat([x.narrow(0, 0, 1).clone().fill_(v), x.narrow(0, 1, 1)]),
  'fill_ of a strided view': (x, v) => {
    const rows = x.view([2, 1]).repeat(1, 2)
    rows.select(1, 1).select(0, 0).fill_(v)
    return rows.select(1, 1)
  },
  copy_: (x, v) => torch.cat([x.narrow(0, 0, 1).clone().copy_(torch.tensor(v)), x.narrow(0, 1, 1)]),
  full: (x, v) => torch.cat([torch.full([1], v, { dtype: 'bool' }), x.narrow(0, 1, 1)]),
  fullLike: (x, v) => torch.cat([torch.fullLike(x.narrow(0, 0, 1), v), x.narrow(0, 1, 1)]),
  pad: (x, v) => F.pad(x.narrow(0, 1, 1), [1, 0], { value: v }),
  scatter: (x, v) => x.scatter(0, zero, v),
  indexFill: (x, v) => x.indexFill(0, zero, v),
  maskedFill: (x, v) => x.maskedFill(torch.tensor([true, false]), v),
}

describe.each(Object.entries(writes))('%s', (_, write) => {
  test.each([
    [0.5, true],
    [-0.25, true],
    [NaN, true],
    [1e-30, true],
    [3, true],
    [0, false],
    [-0, false],
  ])('%f is %s', (value, expected) => {
    const compiled = compile((x: Tensor) => write(x, value))
    // The number as an input of the graph, once it has changed.
    const changing = compile(write)
    for (const other of [2, 0.75]) changing(torch.tensor([false, false]), other)
    for (const run of [
      () => write(torch.tensor([false, false]), value),
      () => compiled(torch.tensor([false, false])),
      () => changing(torch.tensor([false, false]), value),
    ]) {
      const out = run()
      expect([out.dtype, out.toArray()]).toEqual(['bool', [expected, false]])
    }
  })
})

test('maskedFill keeps the dtype of integers and bools, and cuts fractions off', () => {
  const mask = torch.tensor([true, false])
  const out = torch.tensor([1, 2]).int().maskedFill(mask, -1.5)
  expect([out.dtype, out.toArray()]).toEqual(['int32', [-1, 2]])
  const cleared = torch.tensor([true, true]).maskedFill(mask, 0)
  expect([cleared.dtype, cleared.toArray()]).toEqual(['bool', [false, true]])
  expect(torch.tensor([false, false]).maskedFill_(mask, 1).toArray()).toEqual([true, false])
})

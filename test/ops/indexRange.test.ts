// The check of indices reads memory directly: int64 as two words, and expanded dimensions once. It must see what reading element by element sees.
import { expect, it } from 'vitest'
import { torch } from 'tensorfx'
import type { DType, Tensor } from 'tensorfx'

const x = torch.tensor([10, 20, 30])
const index = (values: readonly bigint[]): Tensor => torch.tensor(BigInt64Array.from(values))

it.each([
  [[0n, 2n ** 32n + 1n], '4294967297'],
  [[0n, -1n], '-1'],
  [[0n, 3n], '3'],
  [[0n, -(2n ** 32n) + 1n], '-4294967295'],
])('the indices %o are refused at flat position 1', (values, shown) => {
  expect(() => x.gather(0, index(values))).toThrow(`index has the index ${shown} at flat position 1, but only 0 to 2 exist`)
})

it('an index that an expanded dimension repeats is refused where it stands first', () => {
  const rows = index([0n, 3n]).view(2, 1).expand([2, 4])
  expect(() => torch.zeros([3, 4]).scatterAdd(0, rows, torch.ones([2, 4]))).toThrow('has the index 3 at flat position 4')
  expect(() => torch.zeros([3, 4]).indexSelect(0, index([0n, 3n]))).toThrow('has the index 3')
})

it.each<DType>(['uint8', 'int16', 'int32', 'int64'])('%s indices in views with strides and offsets are checked where they are', (dtype) => {
  const all = torch.tensor([9, 0, 9, 1, 9, 2], { dtype })
  const odd = all.view(3, 2).select(1, 1)
  expect(x.gather(0, odd).toArray()).toEqual([10, 20, 30])
  expect(() => x.gather(0, all.view(3, 2).select(1, 0))).toThrow('has the index 9 at flat position 0')
  expect(() => x.gather(0, all.narrow(0, 3, 2))).toThrow('has the index 9 at flat position 1')
})

it('no indices are inside, and the index that a loss ignores is let through', () => {
  expect(x.gather(0, torch.zeros([0], { dtype: 'int64' })).toArray()).toEqual([])
  const loss = torch.nn.functional.crossEntropy(torch.zeros([2, 4]), index([-100n, 1n]))
  expect(loss.item()).toBeCloseTo(Math.log(4))
})

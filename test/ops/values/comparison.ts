// Comparisons and logic.
import { each, ints, sample, t } from '../plain.ts'
import type { ValueCases } from '../valueCases.ts'

const x = t([1, 2, 3, NaN])
const y = t([2, 2, 2, NaN])
const on = (fn: (a: number, b: number) => boolean) => each((a, b) => Number(fn(a, b)), 'bool')
const compare = (fn: (a: number, b: number) => boolean) => [
  { args: [x, y], gives: on(fn) },
  { args: [x, 2], gives: on(fn) },
  { args: [sample([2, 1], 1), sample([3], 2)], gives: on(fn) },
  { args: [ints([1, 2, 3]), ints([2, 2, 2])], gives: on(fn) },
  { args: [ints([1, 2, 3]), 1.5], gives: on(fn) },
  { args: [t([true, false]), t([false, false])], gives: on(fn) },
]

export default {
  'torch.eq': compare((a, b) => a === b),
  'torch.ne': compare((a, b) => a !== b),
  'torch.lt': compare((a, b) => a < b),
  'torch.le': compare((a, b) => a <= b),
  'torch.gt': compare((a, b) => a > b),
  'torch.ge': compare((a, b) => a >= b),
  'torch.logical_and': [
    { args: [t([1, 0, 0.5, 0]), t([3, 1, 0, 0])], gives: t([true, false, false, false]) },
    { args: [ints([1, 0]), t([true, true])], gives: t([true, false]) },
  ],
  'torch.logical_or': [
    { args: [t([1, 0, 0.5, 0]), t([3, 1, 0, 0])], gives: t([true, true, true, false]) },
    { args: [t([true, false]), ints([0, 0])], gives: t([true, false]) },
  ],
  'torch.logical_not': [
    { args: [t([0, -2, 0.5])], gives: t([true, false, false]) },
    { args: [t([true, false])], gives: t([false, true]) },
  ],
  'torch.isnan': [
    { args: [t([NaN, Infinity, 0])], gives: t([true, false, false]) },
    { args: [ints([1, 0])], gives: t([false, false]) },
  ],
} satisfies ValueCases

// Random operators. Their numbers are those of Philox4x32-10, whose reference has the known answers of random.test.ts.
import { torch } from 'tensorfx'
import { philox } from '../../../src/tensor/generator.ts'
import { Plain, build, ints, longs, t } from '../plain.ts'
import type { Kind } from '../plain.ts'
import type { ValueCases } from '../valueCases.ts'

const SEED = 12345
/** The first draw of a generator with this seed. */
const draw = { seedLo: SEED, seedHi: 0, offsetLo: 0, offsetHi: 0 }
const keys = [SEED, 0, 0, 0]
/** A generator that starts anew at each draw, so that every call of a case gets the same numbers. */
class Fixed extends torch.Generator {
  override draw() {
    return draw
  }
}
const generator = new Fixed()

const wordOf = (i: number, n: number): number => {
  const quarter = Math.ceil(n / 4)
  return philox(draw, i % quarter)[Math.floor(i / quarter)] ?? NaN
}
const unit = (word: number): number => (word >>> 8) * 2 ** -24
const uniform = (n: number): Plain => build([n], (i) => unit(wordOf(i, n)))

/** Box and Muller: words 0 and 1 of a counter make the numbers of the first two quarters, words 2 and 3 those of the others. */
function normal(n: number): Plain {
  const quarter = Math.ceil(n / 4)
  return build([n], (i) => {
    const words = philox(draw, i % quarter)
    const word = Math.floor(i / quarter)
    const [a, b] = [unit(words[word & 2] ?? NaN), unit(words[(word & 2) + 1] ?? NaN)]
    const radius = Math.sqrt(-2 * Math.log(1 - a))
    return radius * (word % 2 === 0 ? Math.cos(2 * Math.PI * b) : Math.sin(2 * Math.PI * b))
  })
}

function permutation(n: number, kind: Kind): Plain {
  const order = Array.from({ length: n }, (_, i) => i)
  for (let i = n - 1; i > 0; i--) {
    const j = Math.floor((philox(draw, i)[0] / 2 ** 32) * (i + 1))
    const [a = 0, b = 0] = [order[i], order[j]]
    order[i] = b
    order[j] = a
  }
  return t(order, kind)
}
const integers = (low: number, range: number, n: number, kind: Kind): Plain =>
  build([n], (i) => low + Math.floor((wordOf(i, n) * range) / 2 ** 32), kind)
const numbers = t([0, 1, 2, 3, 4, 5, 6], 'int32')

export default {
  'torch.ops.tensorfx.philox_uniform': [
    { args: [[7], ...keys], gives: uniform(7) },
    { args: [[2, 4], ...keys], gives: uniform(8).reshape(2, 4) },
  ],
  'torch.ops.tensorfx.philox_normal': [{ args: [[7], ...keys], gives: normal(7), tolerance: 2e-6 }],
  'torch.ops.tensorfx.philox_integer': [{ args: [[9], -3, 5, ...keys], gives: integers(-3, 5, 9, 'int32') }],
  'torch.ops.tensorfx.philox_permutation': [{ args: [6, ...keys], gives: permutation(6, 'int32') }],
  'torch.ops.tensorfx.philox_bits': [
    { args: [numbers, 2, -1, 8, ...keys], gives: build([7], (i) => wordOf(i, 7) >>> 8, 'int32') },
    { args: [numbers, 2, -1, 0, ...keys], gives: build([7], (i) => wordOf(i, 7) | 0, 'int32') },
    { args: [numbers, 2, 1, 8, ...keys], gives: build([7], (i) => (philox(draw, i % 2)[i < 4 ? 1 : 3] ?? NaN) >>> 8, 'int32') },
  ],
  'torch.ops.tensorfx.philox_odd_word': [{ args: [numbers, 2], gives: t([0, 0, 1, 1, 0, 0, 1], 'int32') }],
  'torch.rand': [
    { args: [[5], { generator }], gives: uniform(5) },
    { args: [[5], { generator, dtype: 'float64' }], gives: uniform(5).as('float64') },
  ],
  'torch.randn': [{ args: [[5], { generator }], gives: normal(5) }],
  'torch.randint': [
    { args: [2, 7, [6], { generator }], gives: integers(2, 5, 6, 'int64') },
    { args: [7, 8, [3], { dtype: 'float32' }], gives: t([7, 7, 7]) },
    { args: [5, [6], { generator }], gives: integers(0, 5, 6, 'int64') },
    { args: [{ low: 2, high: 7, size: [6], generator }], gives: integers(2, 5, 6, 'int64') },
    { args: [{ high: 7, size: [6], generator }], gives: integers(0, 7, 6, 'int64') },
  ],
  'torch.randperm': [
    { args: [5, { generator }], gives: permutation(5, 'int64') },
    { args: [5, { generator, dtype: 'float32' }], gives: permutation(5, 'float32') },
  ],
  'torch.rand_like': [
    { args: [t([1, 2, 3]), { generator }], gives: uniform(3), noGradient: 'random' },
    { args: [ints([1, 2, 3]), { generator }], gives: uniform(3).as('float32') },
  ],
  'torch.randint_like': [
    { args: [ints([1, 2, 3]), 7, 8], gives: ints([7, 7, 7]) },
    { args: [ints([1, 2]), 1], gives: ints([0, 0]) },
  ],
  'torch.randn_like': [{ args: [t([1, 2, 3], 'float32'), { generator }], gives: normal(3).as('float32'), noGradient: 'random' }],
  'torch.bernoulli': [
    { args: [t([0, 1, 0, 1])], gives: t([0, 1, 0, 1]), noGradient: 'random' },
    {
      args: [t([0.2, 0.4, 0.6, 0.8]), { generator }],
      gives: uniform(4).map((u, i) => Number(u < ([0.2, 0.4, 0.6, 0.8][i] ?? NaN))),
      noGradient: 'random',
    },
    {
      args: [ints([5, 5, 5, 5]), 0.4, { generator }],
      gives: uniform(4)
        .map((u) => Number(u < 0.4))
        .as('int'),
    },
    { args: [t([0, 0, 0, 0]), { p: 0.4, generator }], gives: uniform(4).map((u) => Number(u < 0.4)), noGradient: 'random' },
  ],
  'torch.Tensor.random_': [
    { args: [longs([9, 9, 9, 9]), 2, 7, { generator }], gives: integers(2, 5, 4, 'int64') },
    { args: [t([9, 9, 9, 9], 'float32'), 5, { generator }], gives: integers(0, 5, 4, 'float32'), noGradient: 'random' },
    { args: [t([9, 9, 9, 9], 'int8'), { generator }], gives: integers(0, 2 ** 7, 4, 'int8') },
    { args: [t([9, 9, 9, 9], 'float32'), { generator }], gives: integers(0, 2 ** 24 + 1, 4, 'float32'), noGradient: 'random' },
    {
      args: [longs([9, 9, 9, 9]), { generator }],
      gives: build([4], (i) => Math.floor((wordOf(i, 4) * 2 ** 26) / 2 ** 32) * 2 ** 27 + Math.floor((wordOf(i, 4) * 2 ** 27) / 2 ** 32), 'int64'),
    },
  ],
  'torch.Tensor.log_normal_': [
    {
      args: [t([9, 9, 9, 9, 9], 'float32'), 0.5, 0.25, { generator }],
      gives: normal(5)
        .map((z) => Math.exp(0.5 + 0.25 * z))
        .as('float32'),
      noGradient: 'random',
    },
    {
      args: [t([9, 9], 'float32'), { generator }],
      gives: normal(2)
        .map((z) => Math.exp(1 + 2 * z))
        .as('float32'),
      noGradient: 'random',
      tolerance: 2e-5,
    },
  ],
  'torch.Tensor.cauchy_': [
    {
      args: [t([9, 9, 9, 9]), 3, 0.5, { generator }],
      gives: uniform(4).map((u) => 3 + 0.5 * Math.tan(Math.PI * (u - 0.5))),
      noGradient: 'random',
      tolerance: 2e-5,
    },
  ],
  'torch.Tensor.geometric_': [
    {
      args: [longs([9, 9, 9, 9, 9]), 0.3, { generator }],
      gives: uniform(5)
        .map((u) => Math.max(1, Math.ceil(Math.log1p(-u) / Math.log1p(-0.3))))
        .as('int64'),
    },
    { args: [t([9, 9]), 1 - 1e-15], gives: t([1, 1]), noGradient: 'random' },
  ],
  'torch.native_dropout_backward': [
    { args: [t([1, 2, 3]), t([true, false, true]), 1.5], gives: t([1.5, 0, 4.5]) },
    { args: [ints([1, 2]), t([true, false]), 2], gives: t([2, 0]) },
  ],
  'torch.nn.functional.dropout': [
    { args: [t([1, 2, 3]), { training: false }], gives: t([1, 2, 3]) },
    { args: [t([1, 2, 3]), 0], gives: t([1, 2, 3]) },
    { args: [t([1, 2, 3]), { p: 1 }], gives: t([0, 0, 0]) },
  ],
} satisfies ValueCases

// Attention by blocks of rows, which computes calls without gradients, against the same call in float64 (which is composed of products and a softmax) and against the call with gradients.
import { nn, noGrad, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { describe, expect, test } from 'vitest'
import { attend, packKeys, packValues } from '../../src/kernels/schedules/attention.ts'
import { withStrict } from '../../src/kernels/engine.ts'
import type { Kernel } from '../../src/kernels/loopIr.ts'
import { runBoth } from '../kernels/harness.ts'
import { attentionByBlocks } from '../../src/ops/nn/attentionKernel.ts'

const F = nn.functional

let state = 3
const random = (below: number): number => {
  state = (Math.imul(state, 1664525) + 1013904223) >>> 0
  return Math.floor((state / 2 ** 32) * below)
}
const pick = <T>(values: readonly [T, ...T[]]): T => values[random(values.length)] ?? values[0]
const data = (n: number, scale = 1): number[] => Array.from({ length: n }, () => ((random(2001) - 1000) / 500) * scale)
const product = (sizes: readonly number[]): number => sizes.reduce((total, size) => total * size, 1)

/** A tensor of that shape; sometimes its last two dimensions lie in memory the other way round, or its heads beside each other. */
function tensorOf(shape: readonly number[]): Tensor {
  const how = random(3)
  const x = torch.tensor(data(product(shape))).reshape(shape)
  if (how === 1) return x.transpose(-1, -2).contiguous().transpose(-1, -2)
  return how === 2 && shape.length > 2 ? x.transpose(-3, -2).contiguous().transpose(-3, -2) : x
}

const numbers = (x: Tensor): number[] => Array.from(x.contiguous().toTypedArray() as ArrayLike<number>)

/** `score` bounds the scores: their rounding errors are those of the exponents. */
function expectClose(actual: Tensor, expected: Tensor, what: string, score = 8): void {
  const [a, e] = [numbers(actual), numbers(expected)]
  expect(actual.sizes, what).toEqual(expected.sizes)
  e.forEach((right, i) => {
    const got = a[i] ?? Infinity
    const isClose = Number.isNaN(right) ? Number.isNaN(got) : Math.abs(got - right) <= 2 ** -22 * (1 + score) * Math.max(1, Math.abs(right))
    if (!isClose) expect(got, `${what}, element ${i}`).toBe(right)
  })
}

describe('attention by blocks of rows', () => {
  test('computes what products and a softmax in float64 do', () => {
    let taken = 0
    for (let i = 0; i < 50; i++) {
      const lead = pick<readonly number[]>([[], [2], [2, 3], [1, 4]])
      const groups = lead.length > 0 ? pick([1, 1, 2]) : 1
      const heads = lead.map((size, d) => (d === lead.length - 1 ? size * groups : size))
      const [rows, keys, depth, width] = [
        pick([16, 17, 19, 20, 31, 33, 48]),
        pick([1, 3, 7, 8, 9, 16, 17, 40]),
        pick([1, 3, 8, 16, 33]),
        pick([8, 16, 24]),
      ]
      const [query, key, value] = [tensorOf([...heads, rows, depth]), tensorOf([...lead, keys, depth]), tensorOf([...lead, keys, width])]
      const kind = pick(['none', 'causal', 'bool', 'added'] as const)
      const maskShape = [...(random(2) === 0 ? heads : random(2) === 0 ? [] : heads.map(() => 1)), rows, keys]
      const hidden = Array.from({ length: product(maskShape) }, (_, at) => random(3) === 0 || Math.floor(at / keys) % 5 === 2)
      const bool = torch.tensor(hidden.map((x) => !x)).reshape(maskShape)
      const added = torch.tensor(hidden.map((x) => (x ? -Infinity : (random(100) - 50) / 25))).reshape(maskShape)
      const mask = kind === 'bool' ? bool : kind === 'added' ? added : null
      const scale = pick([null, 0.5, 2])
      const options = { isCausal: kind === 'causal', scale, enableGqa: groups > 1 }
      const what = `problem ${i}, ${kind} ${heads.join()} ${rows} ${keys} ${depth} ${width}`
      const double = (x: Tensor | null): Tensor | null => (x === null || x.dtype === 'bool' ? x : x.double())
      const expected = noGrad(() => F.scaledDotProductAttention(query.double(), key.double(), value.double(), { ...options, attnMask: double(mask) }))
      expectClose(
        noGrad(() => F.scaledDotProductAttention(query, key, value, { ...options, attnMask: mask })),
        expected,
        what,
        4 * depth * (scale ?? 1 / Math.sqrt(depth)),
      )
      const asAdded = kind === 'bool' ? torch.where(bool, 0, -Infinity) : mask
      const direct = attentionByBlocks({ query, key, value, mask: asAdded, isCausal: options.isCausal, scale: scale ?? 1 / Math.sqrt(depth) })
      if (direct !== null) taken++
    }
    expect(taken).toBeGreaterThan(40)
  })

  test('lets NaN and infinities through as the composed operators do', () => {
    const [query, key, value] = [tensorOf([2, 18, 4]), tensorOf([2, 11, 4]), tensorOf([2, 11, 8])]
    const spoiled = (x: Tensor, at: number, by: number): Tensor => torch.tensor(numbers(x).map((v, i) => (i === at ? by : v))).reshape(x.sizes)
    const both = (q: Tensor, k: Tensor, v: Tensor, isCausal = false): readonly [Tensor, Tensor] => [
      noGrad(() => F.scaledDotProductAttention(q, k, v, { isCausal })),
      F.scaledDotProductAttention(q.clone().requiresGrad_(), k, v, { isCausal }).detach(),
    ]
    for (const by of [NaN, Infinity, -Infinity]) {
      for (const isCausal of [false, true]) {
        expectClose(...both(spoiled(query, 5, by), key, value, isCausal), `query ${by}`)
        expectClose(...both(query, spoiled(key, 9, by), value, isCausal), `key ${by}`)
      }
      expectClose(...both(query, key, spoiled(value, 17, by)), `value ${by}`)
    }
  })

  test('takes halves, which are rounded once, and is not used where there is nothing to gain', () => {
    const [query, key, value] = [tensorOf([2, 16, 8]), tensorOf([2, 16, 8]), tensorOf([2, 16, 8])]
    const halves = [query, key, value].map((x) => x.to('bfloat16')) as [Tensor, Tensor, Tensor]
    const wide = halves.map((x) => x.float()) as [Tensor, Tensor, Tensor]
    noGrad(() => {
      expect(F.scaledDotProductAttention(...halves).toArray()).toEqual(
        F.scaledDotProductAttention(...wide)
          .to('bfloat16')
          .toArray(),
      )
    })
    const call = { query, key, value, mask: null, isCausal: false, scale: 1 }
    expect(attentionByBlocks(call)).not.toBe(null)
    expect(attentionByBlocks({ ...call, query: tensorOf([2, 15, 8]) })).toBe(null)
    expect(attentionByBlocks({ ...call, value: tensorOf([2, 16, 7]) })).toBe(null)
    expect(attentionByBlocks({ ...call, key: tensorOf([1, 16, 8]) })).toBe(null)
    expect(attentionByBlocks({ ...call, mask: tensorOf([1, 16]) })).toBe(null)
    expect(withStrict(true, () => attentionByBlocks(call))).toBe(null)
  })

  test('its kernels do what the reference interpreter says, in both engines', () => {
    const [rows, keys, all, depth, width] = [7, 11, 13, 5, 8]
    const numbersOf = (n: number): Float32Array => Float32Array.from(data(n))
    const same = (kernel: Kernel, args: Parameters<typeof runBoth>[1], written: readonly string[]): void => {
      for (const strict of [false, true]) {
        const { wasm, oracle } = withStrict(strict, () => runBoth(kernel, args))
        for (const name of written) {
          const expected = oracle[name] as Float32Array
          ;(wasm[name] as Float32Array).forEach((x, i) => expect(Math.abs(x - (expected[i] ?? NaN)), `${name} ${i}`).toBeLessThan(1e-5))
        }
      }
    }
    same(packKeys(), { panels: new Float32Array(16 * depth), keys: numbersOf(all * depth), count: all, depth }, ['panels'])
    same(packValues(), { panels: new Float32Array(all * width), values: numbersOf(all * width), count: all, width }, ['panels'])
    for (const mask of ['none', 'causal', 'added'] as const) {
      const args = {
        out: new Float32Array(rows * width),
        query: numbersOf(rows * depth),
        keyPanels: numbersOf(16 * depth),
        valuePanels: numbersOf(all * width),
        scores: new Float32Array(16 * 16),
        inverse: new Float32Array(16),
        mask: numbersOf(rows * all),
        rows,
        keys,
        all,
        depth,
        width,
        first: 4,
        scale: 0.5,
      }
      same(attend(mask), args, ['out', 'inverse'])
    }
  })
})

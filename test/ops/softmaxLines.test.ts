// Softmax and its logarithm against float64, along every dimension of tensors in any layout, with NaN, infinities and large values, eager and compiled.
import { torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { compile } from 'tensorfx/compile'
import { describe, expect, test } from 'vitest'
import { randomFrom } from '../../scripts/fuzz/random.mjs'

const { int: random, pick } = randomFrom(5)

/** The result for a line, as PyTorch has it: NaN, or a line that is -Infinity everywhere, or +Infinity in it, makes the whole line NaN. */
function ofLine(line: readonly number[], isLog: boolean): number[] {
  const greatest = Math.max(...line)
  const sum = line.reduce((total, x) => total + Math.exp(x - greatest), 0)
  return line.map((x) => (isLog ? x - greatest - Math.log(sum) : Math.exp(x - greatest) / sum))
}

const lineValues = (n: number): number[] => {
  const odd = random(4) === 0 ? pick([NaN, Infinity, -Infinity]) : null
  const all = random(12) === 0
  const scale = pick([1, 1, 30, 3000])
  return Array.from({ length: n }, () => (odd !== null && (all || random(n) === 0) ? odd : (random(2001) / 1000 - 1) * scale))
}

/** A tensor whose lines along `dim` are drawn; in memory its dimensions may lie in another order. */
function draw(): { readonly x: Tensor; readonly dim: number } {
  const rank = pick([1, 2, 2, 3])
  const sizes = Array.from({ length: rank }, () => pick([1, 2, 3, 4, 5, 7, 15, 16, 17, 31, 33, 67]))
  const dim = random(rank)
  const lines = sizes.toSpliced(dim, 1)
  const n = sizes[dim] ?? 1
  const count = lines.reduce((product, size) => product * size, 1)
  const rows = torch.tensor(Array.from({ length: count }, () => lineValues(n)).flat()).reshape([...lines, n])
  const x = rows.movedim(-1, dim)
  return { x: random(2) === 0 ? x : x.contiguous(), dim }
}

const linesOf = (x: Tensor, dim: number): number[][] => {
  const n = x.sizes[dim] ?? 1
  const values = Array.from(x.movedim(dim, -1).contiguous().toTypedArray() as Float32Array)
  return Array.from({ length: values.length / n }, (_, i) => values.slice(i * n, (i + 1) * n))
}

describe.each([
  ['softmax', false],
  ['logSoftmax', true],
] as const)('%s', (name, isLog) => {
  test('of lines along any dimension is that of float64, eager and compiled', () => {
    for (let i = 0; i < 60; i++) {
      const { x, dim } = draw()
      const expected = linesOf(x, dim).map((line) => ofLine(line, isLog))
      const eager = torch[name](x, i % 2 === 0 ? dim : dim - x.ndim)
      const results = i % 6 === 0 ? [eager, compile((t: Tensor) => torch[name](t, dim))(x)] : [eager]
      for (const y of results) {
        const wrong = linesOf(y, dim).flatMap((line, l) =>
          line.flatMap((value, k) => {
            const right = expected[l]?.[k] ?? NaN
            const isRight = Number.isFinite(right)
              ? Math.abs(value - right) <= 1e-6 * Math.max(isLog ? 1 : 0.01, Math.abs(right))
              : Object.is(value, right)
            return isRight ? [] : [`${value} instead of ${right} in line ${l}`]
          }),
        )
        expect(wrong, `problem ${i}`).toEqual([])
      }
    }
  })

  test('takes tensors without elements and without dimensions, float64, and rounds halves once', () => {
    expect(torch[name](torch.zeros([0, 3]), 1).sizes).toEqual([0, 3])
    expect(torch[name](torch.zeros([3, 0]), 1).sizes).toEqual([3, 0])
    expect(torch[name](torch.tensor(3), 0).item()).toBe(isLog ? 0 : 1)
    const x = torch.linspace(-4, 4, 77)
    const exact = torch[name](x.double(), 0)
    expect(Array.from(exact.toTypedArray() as Float64Array)).toEqual(
      ofLine(Array.from(x.toTypedArray() as Float32Array), isLog).map((v) => expect.closeTo(v, 12)),
    )
    const half = x.to('float16')
    expect(torch[name](half, 0).toArray()).toEqual(torch[name](half.float(), 0).to('float16').toArray())
  })
})

// int64 against BigInt: operators on values beyond the integers that numbers represent, with the wrap-around of 64 bits.
import { describe, expect, it, test } from 'vitest'
import { compile, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { FakeTensorMode, withMode } from 'tensorfx/dispatch'

const wrap = (x: bigint): bigint => BigInt.asIntN(64, x)
const [MIN, MAX] = [-(2n ** 63n), 2n ** 63n - 1n]

/** Edge values, and random ones of all magnitudes (a linear congruential generator). */
function samples(seed: bigint, count: number): bigint[] {
  let state = seed
  const random = Array.from({ length: count }, (_, i) => {
    state = wrap(state * 6364136223846793005n + 1442695040888963407n)
    return state >> BigInt((i * 7) % 60)
  })
  return [MIN, MAX, 0n, 1n, -1n, 2n ** 53n + 1n, -(2n ** 53n) - 1n, 2n ** 31n, -(2n ** 31n) - 1n, ...random]
}
const a = samples(1n, 40)
const b = samples(2n, 40).reverse()
const nonZero = b.map((x) => (x === 0n ? 7n : x))
const counts = a.map((_, i) => BigInt((i * 5) % 64))

const abs = (x: bigint): bigint => (x < 0n ? -x : x)
const floorDiv = (x: bigint, y: bigint): bigint => x / y - (x % y !== 0n && x < 0n !== y < 0n ? 1n : 0n)
const least = (x: bigint, y: bigint): bigint => (x < y ? x : y)
const greatest = (x: bigint, y: bigint): bigint => (x > y ? x : y)

type Binary = readonly [name: string, call: (x: Tensor, y: Tensor) => Tensor, reference: (x: bigint, y: bigint) => bigint, other: readonly bigint[]]
const binary: readonly Binary[] = [
  ['add', (x, y) => x.add(y), (x, y) => x + y, b],
  ['add, alpha 3', (x, y) => x.add(y, { alpha: 3 }), (x, y) => x + 3n * y, b],
  ['sub', (x, y) => x.sub(y), (x, y) => x - y, b],
  ['mul', (x, y) => x.mul(y), (x, y) => x * y, b],
  ['floorDivide', (x, y) => x.floorDivide(y), floorDiv, nonZero],
  ['div, trunc', (x, y) => x.div(y, { roundingMode: 'trunc' }), (x, y) => x / y, nonZero],
  ['remainder', (x, y) => x.remainder(y), (x, y) => x - y * floorDiv(x, y), nonZero],
  ['fmod', (x, y) => x.fmod(y), (x, y) => x % y, nonZero],
  ['maximum', (x, y) => x.maximum(y), greatest, b],
  ['minimum', (x, y) => x.minimum(y), least, b],
  ['bitwiseAnd', (x, y) => x.bitwiseAnd(y), (x, y) => x & y, b],
  ['bitwiseOr', (x, y) => x.bitwiseOr(y), (x, y) => x | y, b],
  ['bitwiseXor', (x, y) => x.bitwiseXor(y), (x, y) => x ^ y, b],
  ['bitwiseLeftShift', (x, y) => x.bitwiseLeftShift(y), (x, y) => x << y, counts],
  ['bitwiseRightShift', (x, y) => x.bitwiseRightShift(y), (x, y) => x >> y, counts],
  ['where', (x, y) => torch.where(x.gt(y), x, y), greatest, b],
]

const comparisons: readonly (readonly [string, (x: Tensor, y: Tensor) => Tensor, (x: bigint, y: bigint) => boolean])[] = [
  ['eq', (x, y) => x.eq(y), (x, y) => x === y],
  ['ne', (x, y) => x.ne(y), (x, y) => x !== y],
  ['lt', (x, y) => x.lt(y), (x, y) => x < y],
  ['le', (x, y) => x.le(y), (x, y) => x <= y],
  ['gt', (x, y) => x.gt(y), (x, y) => x > y],
  ['ge', (x, y) => x.ge(y), (x, y) => x >= y],
]

const unary: readonly (readonly [string, (x: Tensor) => Tensor, (x: bigint) => bigint])[] = [
  ['neg', (x) => x.neg(), (x) => -x],
  ['abs', (x) => x.abs(), abs],
  ['sign', (x) => x.sign(), (x) => (x > 0n ? 1n : x < 0n ? -1n : 0n)],
  ['square', (x) => x.square(), (x) => x * x],
  ['pow 3', (x) => x.pow(3), (x) => x ** 3n],
  ['pow 5', (x) => x.pow(5), (x) => x ** 5n],
  ['bitwiseNot', (x) => x.bitwiseNot(), (x) => ~x],
  ['clamp', (x) => x.clamp(-5, 5), (x) => least(greatest(x, -5n), 5n)],
  ['relu', (x) => x.relu(), (x) => greatest(x, 0n)],
  ['floor', (x) => x.floor(), (x) => x],
]

const exactly = (t: Tensor): bigint[] => [...t.toBigIntArray()]

describe('int64 is exact', () => {
  it.each(binary)('%s', (_, call, reference, other) => {
    const expected = a.map((x, i) => wrap(reference(x, other[i] ?? 0n)))
    const [x, y] = [torch.tensor(a), torch.tensor([...other])]
    expect(exactly(call(x, y))).toEqual(expected)
    expect(exactly(compile(call)(x, y))).toEqual(expected)
    expect(withMode(new FakeTensorMode(), () => call(x, y)).dtype).toBe('int64')
  })

  it.each(comparisons)('%s', (_, call, reference) => {
    const expected = a.map((x, i) => reference(x, b[i] ?? 0n))
    const [x, y] = [torch.tensor(a), torch.tensor(b)]
    expect(call(x, y).toArray()).toEqual(expected)
    expect(compile(call)(x, y).toArray()).toEqual(expected)
  })

  it.each(unary)('%s', (_, call, reference) => {
    const expected = a.map((x) => wrap(reference(x)))
    expect(exactly(call(torch.tensor(a)))).toEqual(expected)
    expect(exactly(compile(call)(torch.tensor(a)))).toEqual(expected)
  })

  test('sums, products, running sums and extremes', () => {
    const x = torch.tensor(a)
    const total = a.reduce((s, v) => wrap(s + v), 0n)
    expect(exactly(x.sum().reshape([1]))).toEqual([total])
    expect(exactly(torch.tensor(nonZero).prod().reshape([1]))).toEqual([nonZero.reduce((s, v) => wrap(s * v), 1n)])
    let running = 0n
    expect(exactly(x.cumsum(0))).toEqual(a.map((v) => (running = wrap(running + v))))
    expect([...exactly(x.amax().reshape([1])), ...exactly(x.amin().reshape([1]))]).toEqual([MAX, MIN])
    expect([x.argmax().item(), x.argmin().item()]).toEqual([1, 0])
  })

  test('order', () => {
    const sorted = a.slice().sort((x, y) => (x < y ? -1 : x > y ? 1 : 0))
    const [values, indices] = torch.tensor(a).sort()
    expect(exactly(values)).toEqual(sorted)
    expect(exactly(indices).map((i) => a[Number(i)])).toEqual(sorted)
    expect(exactly(torch.tensor(a).topk(3)[0])).toEqual(sorted.slice(-3).reverse())
  })

  test('gathered, joined and multiplied as matrices', () => {
    const x = torch.tensor([MAX, MIN, 3n])
    expect(exactly(x.gather(0, torch.tensor([2n, 0n, 0n])))).toEqual([3n, MAX, MAX])
    expect(exactly(torch.cat([x, torch.tensor([1], { dtype: 'uint8' })]))).toEqual([MAX, MIN, 3n, 1n])
    expect(exactly(x.dot(torch.tensor([2n, 2n, 1n])).reshape([1]))).toEqual([wrap(MAX * 2n + MIN * 2n + 3n)])
    expect(
      exactly(
        x
          .reshape([1, 3])
          .matmul(torch.tensor([[2n], [1n], [5n]]))
          .reshape([1]),
      ),
    ).toEqual([wrap(MAX * 2n + MIN + 15n)])
  })

  test('in place', () => {
    const x = torch.tensor([MAX, 1n])
    x.add_(1).mul_(torch.tensor([1n, 2n ** 62n]))
    expect(exactly(x)).toEqual([MIN, wrap(2n ** 63n)])
  })
})

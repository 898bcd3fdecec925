// The order of elements, against JavaScript's sort: sort, argsort, topk and unique in every dtype, with ties, NaN, both zeros, and lines of every length.
import { describe, expect, test } from 'vitest'
import { torch } from 'tensorfx'
import type { DType, Tensor } from 'tensorfx'
import { DTYPES } from '../../../src/kernels/index.ts'
import { turn } from '../../helpers/rotation.ts'

type Value = number | bigint

const isFloating = (dtype: DType): boolean => torch.zeros([1], { dtype }).isFloatingPoint()
const SPECIAL = [NaN, -NaN, Infinity, -Infinity, 0, -0, 1, -1, 1e-7, -1e-7, 65504, -65504]

/** `n` values with ties, and for floating dtypes the special ones. */
function valuesOf(dtype: DType, n: number): Tensor {
  torch.manualSeed(n)
  if (dtype === 'int64') {
    const wide = [2n ** 62n, -(2n ** 62n), 2n ** 32n, -(2n ** 32n), 1n, -1n, 2n ** 31n, 2n ** 32n + 1n]
    const chosen = torch.randint(0, wide.length + 4, [n]).toTypedArray()
    return torch.tensor(
      Array.from(chosen, (k) => wide[k] ?? BigInt(k) - 4n),
      { dtype },
    )
  }
  if (!isFloating(dtype)) return torch.randint(dtype === 'bool' || dtype === 'uint8' ? 0 : -9, 9, [n]).to(dtype)
  const noise = torch.randn([n]).mul(4).toTypedArray()
  const places = torch.randint(0, 3 * SPECIAL.length, [n]).toTypedArray()
  return torch.tensor(
    Array.from(noise, (v, i) => SPECIAL[places[i] ?? 0] ?? v),
    { dtype },
  )
}

const elementsOf = (t: Tensor): Value[] => (t.dtype === 'int64' ? Array.from(t.toBigIntArray()) : Array.from(t.contiguous().toTypedArray()))

/** NaN is the greatest. */
function compare(a: Value, b: Value): number {
  if (Number.isNaN(a) || Number.isNaN(b)) return Number(Number.isNaN(a)) - Number(Number.isNaN(b))
  return a < b ? -1 : a > b ? 1 : 0
}

function expectedOrder(line: readonly Value[], descending: boolean): number[] {
  return line.map((_, i) => i).sort((i, j) => (descending ? compare(line[j] ?? 0, line[i] ?? 0) : compare(line[i] ?? 0, line[j] ?? 0)) || i - j)
}

function expectOrder(x: Tensor, [values, indices]: readonly [Tensor, Tensor], k: number, descending: boolean): void {
  const line = elementsOf(x)
  const order = expectedOrder(line, descending).slice(0, k)
  expect(indices.dtype).toBe('int64')
  expect(values.dtype).toBe(x.dtype)
  expect(Array.from(indices.toTypedArray())).toEqual(order)
  // toEqual tells 0 from -0: elements keep their bits.
  expect(elementsOf(values)).toEqual(order.map((i) => line[i]))
}

describe.each(DTYPES)('%s', (dtype) => {
  test.each([1, 2, 31, 32, 33, 100, 257, 1000, ...turn([8191, 8192, 9001])])('lines of %i: sorted both ways, and some chosen', (n) => {
    const x = valuesOf(dtype, n)
    expectOrder(x, torch.sort(x), n, false)
    expectOrder(x, torch.sort(x, { descending: true }), n, true)
    for (const k of [0, 1, 5, 64, 65, n - 1].filter((count) => count <= n))
      for (const largest of [true, false]) expectOrder(x, torch.topk(x, k, { largest }), k, largest)
  })

  test('an argsort along each dimension of a view with strides', () => {
    const x = valuesOf(dtype, 2 * 45 * 6)
      .view(2, 45, 6)
      .transpose(0, 2)
      .slice(1, 1, 45, 2)
    for (const dim of [0, 1, 2]) {
      const lines = x.transpose(dim, -1)
      const n = sizeOf(lines)
      const flat = elementsOf(lines.contiguous())
      const order = Array.from(torch.argsort(x, dim).transpose(dim, -1).contiguous().toTypedArray())
      for (let start = 0; start < flat.length; start += n)
        expect(order.slice(start, start + n)).toEqual(expectedOrder(flat.slice(start, start + n), false))
    }
  })

  test('unique elements with their places and counts', () => {
    const x = valuesOf(dtype === 'int64' ? 'int32' : dtype, 300).to(dtype)
    const [values, inverse, counts] = torch.unique(x, { returnInverse: true, returnCounts: true })
    const line = Array.from(x.toTypedArray())
    const sorted = expectedOrder(line, false).map((i) => line[i] ?? 0)
    // NaN differs from itself.
    const wanted = sorted.filter((v, i) => i === 0 || Number.isNaN(v) || v !== sorted[i - 1])
    expect(Array.from(values?.toTypedArray() ?? [], (v) => v + 0)).toEqual(wanted.map((v) => v + 0))
    expect(inverse?.toTypedArray().every((at, i) => Object.is((wanted[at] ?? 0) + 0, (line[i] ?? 0) + 0))).toBe(true)
    expect(counts?.sum().item()).toBe(300)
  })
})

const sizeOf = (t: Tensor): number => t.shape.at(-1) ?? 1

test('an equal line is left as it stands, a sorted one too, and a line of numbers that differ in one digit is not', () => {
  const same = torch.full([5000], 3)
  expectOrder(same, torch.sort(same, { descending: true }), 5000, true)
  const sorted = torch.arange(5000)
  expectOrder(sorted, torch.sort(sorted), 5000, false)
  for (const step of [1, 256, 65536, 2 ** 24]) {
    const apart = torch.arange(100).neg().mul(step).to('int32')
    expectOrder(apart, torch.sort(apart), 100, false)
  }
})

test('no lines, lines without elements, and a tensor without dimensions', () => {
  expect(torch.sort(torch.zeros([0, 3]))[1].shape).toEqual([0, 3])
  expect(torch.sort(torch.zeros([3, 0]))[0].shape).toEqual([3, 0])
  expect(torch.topk(torch.zeros([2, 3]), 0)[0].shape).toEqual([2, 0])
  expect(torch.unique(torch.zeros([0])).shape).toEqual([0])
  expect(torch.sort(torch.tensor(4), 0).map((t) => t.item())).toEqual([4, 0])
  expect(torch.topk(torch.tensor(4), 0, 0).map((t) => t.item())).toEqual([4, 0])
})

// Drawn reductions on the GPU, by single threads and by teams (src/kernels/wgsl/team.ts), against inductor: what is exact is alike, and sums are as near to float64 as theirs. This file runs in Node and in a page.
import { beforeAll, describe, expect, test } from 'vitest'
import { nn, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { makeFx } from 'tensorfx/aot'
import { compileGraph, init } from 'tensorfx/webgpu'
import { randomFrom } from '../../../scripts/fuzz/random.mjs'
import { compileFx } from '../../../src/inductor/pipeline.ts'
import { planGraph } from '../../../src/inductor/webgpu/plan.ts'

beforeAll(async () => init({ thread: false }))

type Fn = (x: Tensor, dim: readonly number[]) => Tensor | readonly Tensor[]

/** With the same bits on both: no order of theirs matters. */
const EXACT: readonly (readonly [string, Fn])[] = [
  ['maximum', (x, dim) => x.amax(dim)],
  ['minimum, then more', (x, dim) => x.sub(x.amin(dim, true)).mul(2)],
  ['any', (x, dim) => dim.reduce((y, d) => y.any(d, true), x.gt(1))],
  ['all', (x, dim) => dim.reduce((y, d) => y.all(d, true), x.gt(-2))],
  ['sum of int64', (x, dim) => x.mul(1e6).to('int64').mul(3000000000).sum(dim).remainder(1_000_000_007)],
  ['sum of int32', (x, dim) => x.mul(1000).to('int32').sum(dim)],
  ['product of signs', (x, dim) => dim.reduce((y, d) => y.prod(d, true), x.sign().to('int64'))],
  ['product of signs as floats', (x, dim) => dim.reduce((y, d) => y.prod(d, true), x.sign())],
]
const NEAR: readonly (readonly [string, Fn])[] = [
  ['sum', (x, dim) => x.sum(dim)],
  ['two sums, and what they are taken from', (x, dim) => [x.sum(dim), x.square().sum(dim), x.sub(x.mean(dim, true))]],
  ['variance', (x, dim) => x.var(dim)],
  ['softmax', (x, dim) => torch.softmax(x, dim[0] ?? 0)],
  ['logarithm of a sum', (x, dim) => torch.logsumexp(x, dim)],
  ['norm of groups', (x) => nn.functional.layerNorm(x, x.shape.slice(-1))],
  ['sum of halves', (x, dim) => x.to('float16').sum(dim)],
]

/** Sizes around those of teams. */
const SIZES = [1, 2, 7, 31, 32, 33, 63, 64, 65, 130, 257, 5000]

/** A tensor with some of these sizes, perhaps transposed, and dimensions of it. */
function drawn(seed: number): { x: Tensor; dim: readonly number[] } {
  const { pick, int, chance } = randomFrom(seed)
  const shape: number[] = []
  for (let rank = 1 + int(3); rank > 0; rank--) shape.push(pick(SIZES.filter((size) => size * shape.reduce((n, other) => n * other, 1) <= 40_000)))
  torch.manualSeed(seed)
  const x = torch.randn(shape)
  const dims = shape.map((_, i) => i).filter(() => chance(0.5))
  return { x: shape.length > 1 && chance(0.3) ? x.transpose(0, -1) : x, dim: dims.length === 0 ? [int(shape.length)] : dims }
}

const flat = (values: readonly Tensor[]): readonly number[] => values.flatMap((value) => Array.from(value.flatten().toTypedArray(), Number))

/** What a function gives on the GPU, with inductor, and from float64. */
async function results(fn: Fn, x: Tensor, dim: readonly number[]): Promise<Readonly<Record<'gpu' | 'cpu' | 'exact', readonly number[]>>> {
  const traced = (input: Tensor) => torch.noGrad(() => makeFx((a: Tensor) => [fn(a, dim)].flat() as Tensor[])(input))
  const gm = traced(x)
  const graph = await compileGraph(gm, [x])
  expect(graph.onWasm).toEqual([])
  const gpu = flat((await graph.run(x)) as Tensor[])
  graph.release()
  const double = x.to('float64')
  return { gpu, cpu: flat(compileFx(gm, [x])(x) as Tensor[]), exact: flat(traced(double)(double) as Tensor[]) }
}

const worst = (values: readonly number[], wanted: readonly number[]): number =>
  wanted.reduce((most, value, i) => Math.max(most, Object.is(value, values[i]) ? 0 : Math.abs(value - (values[i] ?? NaN))), 0)

const SEEDS = Array.from({ length: process.env['TENSORFX_FULL'] === '1' ? 12 : 3 }, (_, i) => i)

describe('drawn reductions', () => {
  test.each(EXACT)('%s has the bits of the CPU', async (_, fn) => {
    for (const seed of SEEDS) {
      const { x, dim } = drawn(seed)
      // oxlint-disable-next-line no-await-in-loop -- one GPU
      const { gpu, cpu } = await results(fn, x, dim)
      expect(gpu, `seed ${seed}`).toEqual(cpu)
    }
  })

  test.each(NEAR)('%s is as near to float64 as on the CPU', async (name, fn) => {
    for (const seed of SEEDS) {
      const { x, dim } = drawn(100 + seed)
      // oxlint-disable-next-line no-await-in-loop -- one GPU
      const { gpu, cpu, exact } = await results(fn, x, dim)
      const largest = Math.max(1, ...exact.map(Math.abs).filter(Number.isFinite))
      const unit = largest * (name.includes('halves') ? 2 ** -10 : 2 ** -23)
      expect(gpu.length).toBe(cpu.length)
      expect(worst(gpu, exact), `seed ${seed}`).toBeLessThanOrEqual(2 * worst(cpu, exact) + 4 * unit)
    }
  })

  test('what a thread of a team has lost in rounding is in the sum of the team', async () => {
    // Large numbers in the first half of the threads, which cancel each other after small ones of the second half were added to them.
    const valueAt = (i: number): number => (i < 32 ? ([1e8, 0, -1e8, 0][i % 4] ?? 0) : i % 64 < 32 ? 1.7 : 0.3)
    const x = torch.tensor([Array.from({ length: 256 }, (_, i) => valueAt(i))])
    const { gpu, exact } = await results((y, dim) => y.sum(dim), x, [1])
    expect(worst(gpu, exact)).toBeLessThan(1e-3)
  })

  test('teams compute sums of whole tensors, rows and few columns, and single threads what has many columns', () => {
    const teamsOf = (fn: (x: Tensor) => Tensor, shape: readonly number[]): readonly number[] => {
      const x = torch.ones(shape)
      return planGraph(makeFx((a: Tensor) => [fn(a)])(x), [{ shape, dtype: 'float32', strides: x.strides }], 'error').dispatches.map(
        ({ team }) => team,
      )
    }
    expect(teamsOf((x) => x.sum(), [100_000])).toEqual([256])
    expect(teamsOf((x) => x.sum(1), [2000, 100])).toEqual([64])
    expect(teamsOf((x) => torch.softmax(x, 1), [2000, 40])).toEqual([32])
    expect(teamsOf((x) => x.sum(0), [300, 20])).toEqual([64])
    expect(teamsOf((x) => x.sum(0), [300, 2000])).toEqual([1])
    expect(teamsOf((x) => x.sum(1), [2000, 16])).toEqual([1])
    expect(teamsOf((x) => x.sum(1), [60, 60])).toEqual([1])
    expect(teamsOf((x) => x.argmax(1), [2000, 100])).toEqual([1])
  })
})

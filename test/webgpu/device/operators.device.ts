// Operators that have an eager kernel only, on the GPU: bit for bit what that kernel gives, for drawn shapes, layouts and dtypes, and its error for an index that is out of range.
import { beforeAll, describe, expect, test } from 'vitest'
import { compile, nn, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { makeFx } from 'tensorfx/aot'
import { compileGraph, init } from 'tensorfx/webgpu'
import { randomFrom } from '../../../scripts/fuzz/random.mjs'
import { differs } from './harness.ts'
import { third } from '../../helpers/rotation.ts'

const { F } = nn
beforeAll(async () => init({ thread: false }))

type Fn = (...inputs: Tensor[]) => Tensor | readonly Tensor[]

/** The graph of a function on the GPU: nothing of it on WebAssembly. */
async function onDevice(fn: Fn, inputs: readonly Tensor[]): Promise<readonly Tensor[]> {
  const gm = makeFx((...args: Tensor[]) => [fn(...args)].flat() as Tensor[])(...inputs)
  const graph = await compileGraph(gm, inputs)
  expect(graph.onWasm).toEqual([])
  try {
    return (await graph.run(...inputs)) as Tensor[]
  } finally {
    graph.release()
  }
}

async function expectSame(fn: Fn, inputs: readonly Tensor[]): Promise<void> {
  const got = await onDevice(fn, inputs)
  const want = [fn(...inputs)].flat() as Tensor[]
  expect(got.map(({ shape, dtype }) => [shape, dtype])).toEqual(want.map(({ shape, dtype }) => [shape, dtype]))
  got.forEach((tensor, i) => expect(tensor.toArray()).toEqual(want[i]?.toArray()))
}

const SIZES = [1, 2, 3, 5, 7, 13]
const DTYPES = ['float32', 'int32', 'int64', 'uint8', 'bool'] as const

/** Draws cases: sizes, dtypes and layouts. */
class Drawn {
  readonly #random: ReturnType<typeof randomFrom>
  readonly #sizes: readonly number[]

  constructor(seed: number, sizes = SIZES) {
    this.#random = randomFrom(seed)
    this.#sizes = sizes
    torch.manualSeed(seed)
  }

  below(n: number): number {
    return this.#random.int(n)
  }

  of<T>(values: readonly T[]): T {
    const value = values[this.below(values.length)]
    if (value === undefined) throw new Error('nothing to draw from')
    return value
  }

  shape(rank: number): number[] {
    return Array.from({ length: rank }, () => this.of(this.#sizes))
  }

  /** A tensor with NaN, infinities and zeros of both signs among its elements, whose memory is now and then that of a transposed or a larger one. */
  tensor(shape: readonly number[], dtype: (typeof DTYPES)[number] = 'float32'): Tensor {
    const [larger, at] = this.below(3) === 0 ? [shape.map((size) => size + 1), 1] : [shape, 0]
    let made = torch.randn([...larger].reverse()).mul(20)
    const special = [NaN, Infinity, -Infinity, 0, -0]
    if (dtype === 'float32') made = torch.where(torch.randn(made.shape).gt(1.5), torch.tensor(this.of(special)), made)
    const turned = made.to(dtype).permute([...shape.keys()].reverse())
    return shape.reduce((tensor, size, d) => tensor.narrow(d, at, size), this.below(2) === 0 ? turned : turned.contiguous())
  }

  indices(shape: readonly number[], count: number): Tensor {
    return torch.randint(0, Math.max(1, count), [...shape]).to(this.of(['int64', 'int32'] as const))
  }
}

type Case = (drawn: Drawn) => { readonly fn: Fn; readonly inputs: readonly Tensor[] }

/** How means over windows are taken, by all arguments after the input. */
function averages(
  d: Drawn,
): readonly [
  kernel: readonly [number, number],
  stride: readonly [number, number],
  padding: readonly [number, number],
  ceil: boolean,
  includePad: boolean,
  divisor: number | null,
] {
  const kernel: readonly [number, number] = [1 + d.below(3), 1 + d.below(3)]
  const padding: readonly [number, number] = [d.below(Math.floor(kernel[0] / 2) + 1), d.below(Math.floor(kernel[1] / 2) + 1)]
  return [kernel, [1 + d.below(3), 1 + d.below(2)], padding, d.below(2) === 0, d.below(2) === 0, d.below(4) === 0 ? 3 : null]
}

const CASES: Readonly<Record<string, Case>> = {
  cat: (d) => {
    const shape = d.shape(1 + d.below(4))
    const dim = d.below(shape.length)
    const inputs = Array.from({ length: 1 + d.below(4) }, () =>
      d.tensor(shape.with(dim, d.of(SIZES)), d.of(['float32', 'int64', 'int32', 'bool'] as const)),
    )
    return { fn: (...tensors) => torch.cat(tensors, d.below(2) === 0 ? dim : dim - shape.length), inputs }
  },
  stack: (d) => {
    const shape = d.shape(2)
    const dtype = d.of(DTYPES)
    return { fn: (...tensors) => torch.stack(tensors, 1), inputs: [d.tensor(shape, dtype), d.tensor(shape, dtype)] }
  },
  gather: (d) => {
    const shape = d.shape(1 + d.below(3))
    const dim = d.below(shape.length)
    const index = shape.map((size, i) => (i === dim ? d.of(SIZES) : 1 + d.below(size)))
    return { fn: (a, i) => torch.gather(a, dim, i), inputs: [d.tensor(shape, d.of(DTYPES)), d.indices(index, shape[dim] ?? 1)] }
  },
  scatterAdd: (d) => {
    const shape = d.shape(1 + d.below(3))
    const dim = d.below(shape.length)
    const index = shape.map((size, i) => (i === dim ? d.of(SIZES) : 1 + d.below(size)))
    const dtype = d.of(['float32', 'int64', 'int32'] as const)
    const src = d.tensor(
      index.map((size) => size + d.below(2)),
      dtype,
    )
    return { fn: (a, i, s) => torch.scatterAdd(a, dim, i, s), inputs: [d.tensor(shape, dtype), d.indices(index, shape[dim] ?? 1), src] }
  },
  embedding: (d) => {
    const [rows, width] = [d.of(SIZES), d.of(SIZES)]
    return { fn: (i, w) => F.embedding(i, w), inputs: [d.indices(d.shape(1 + d.below(2)), rows), d.tensor([rows, width])] }
  },
  embeddingBackward: (d) => {
    const [rows, width, shape] = [d.of(SIZES), d.of(SIZES), d.shape(1 + d.below(2))]
    const padding = d.below(2) === 0 ? -1 : d.below(rows)
    const fn: Fn = (g, i) => torch.ops.tensorfx.embeddingBackward(g, i, rows, padding)
    return { fn, inputs: [torch.randn([...shape, width]), d.indices(shape, rows)] }
  },
  selectBackward: (d) => {
    const shape = d.shape(1 + d.below(3))
    const dim = d.below(shape.length)
    const at = d.below(shape[dim] ?? 1) - (d.below(2) === 0 ? (shape[dim] ?? 1) : 0)
    return { fn: (g) => torch.ops.tensorfx.selectBackward(g, shape, dim, at), inputs: [d.tensor(shape.toSpliced(dim, 1), d.of(DTYPES))] }
  },
  sliceBackward: (d) => {
    const shape = d.shape(1 + d.below(3))
    const dim = d.below(shape.length)
    const size = shape[dim] ?? 1
    const [start, step] = [d.below(size), 1 + d.below(2)]
    const count = Math.ceil((size - start) / step)
    const from = d.below(2) === 0 ? start : start - size
    return { fn: (g) => torch.ops.tensorfx.sliceBackward(g, shape, dim, from, size, step), inputs: [d.tensor(shape.with(dim, count))] }
  },
  maxPool: (d) => {
    const kernel: readonly [number, number] = [1 + d.below(3), 1 + d.below(3)]
    const padding: readonly [number, number] = [d.below(Math.floor(kernel[0] / 2) + 1), d.below(Math.floor(kernel[1] / 2) + 1)]
    const stride: readonly [number, number] = [1 + d.below(3), 1 + d.below(2)]
    const shape = [d.of([1, 2, 3]), d.of([1, 3]), 5 + d.below(4), 5 + d.below(4)]
    const [dilation, ceil] = [1 + d.below(2), d.below(2) === 0]
    // Windows on the memory of an input are cut by WebAssembly.
    return { fn: (a) => torch.ops.tensorfx.maxPool2dWithIndices(a.neg(), kernel, stride, padding, dilation, ceil), inputs: [d.tensor(shape)] }
  },
  maxPoolBackward: (d) => {
    const [planes, out, size] = [d.shape(2), d.shape(2), 5 + d.below(4)]
    const shape = [...planes, ...out]
    return {
      fn: (g, i) => torch.ops.tensorfx.maxPool2dBackward(g, i, size, size + 1),
      inputs: [torch.randn(shape), d.indices(shape, size * (size + 1))],
    }
  },
  argmax: (d) => {
    const shape = d.shape(1 + d.below(3))
    const dim = d.below(3) === 0 ? null : d.below(shape.length)
    const keepdim = d.below(2) === 0
    return { fn: (a) => [torch.argmax(a, dim, keepdim), torch.argmin(a, dim, keepdim)], inputs: [d.tensor(shape, d.of(DTYPES))] }
  },
  scatter: (d) => {
    const shape = d.shape(1 + d.below(3))
    const dim = d.below(shape.length)
    const index = shape.map((size, i) => (i === dim ? d.of(SIZES) : 1 + d.below(size)))
    const kind = d.of(['set', 'mul', 'min', 'max'] as const)
    const dtype = kind === 'set' ? d.of(DTYPES) : d.of(['float32', 'int64', 'int32'] as const)
    const src = d.tensor(
      index.map((size) => size + d.below(2)),
      dtype,
    )
    const fn: Fn = (a, i, s) => torch.ops.tensorfx.scatterValues(a, dim, i, s, kind)
    return { fn, inputs: [d.tensor(shape, dtype), d.indices(index, shape[dim] ?? 1), src] }
  },
  windows: (d) => {
    const [rows, columns] = [1 + d.below(5), 2 + d.below(5)]
    const dtype = d.of(DTYPES)
    const whole = d.tensor([3, rows, columns], dtype)
    const offset = d.below(rows + columns - 1) - rows + 1
    const at = d.below(columns) - (d.below(2) === 0 ? columns : 0)
    const [start, step] = [d.below(columns), 1 + d.below(2)]
    const fns: readonly (readonly [(a: Tensor, s: Tensor) => Tensor, (a: Tensor) => Tensor])[] = [
      [(a, s) => torch.diagonalScatter(a, s, offset, 1, 2), (a) => torch.diagonal(a, offset, 1, 2)],
      [(a, s) => torch.selectScatter(a, s, 2, at), (a) => torch.select(a, 2, at)],
      [(a, s) => torch.sliceScatter(a, s, -1, start, null, step), (a) => a.slice(-1, start, null, step)],
      [(a, s) => torch.asStridedScatter(a, s, [rows, 2], [columns, 1], 1), (a) => a.contiguous().asStrided([rows, 2], [columns, 1], 0)],
    ]
    const [written, part] = d.of(fns)
    return { fn: (a, s) => written(a, s), inputs: [whole, d.tensor(part(whole).shape, dtype)] }
  },
  cumsum: (d) => {
    const shape = d.shape(1 + d.below(3))
    const dim = d.below(shape.length)
    return { fn: (a) => torch.cumsum(a, dim), inputs: [d.tensor(shape, d.of(DTYPES))] }
  },
  topk: (d) => {
    const shape = d.shape(1 + d.below(3))
    const dim = d.below(shape.length)
    const k = d.below(2) === 0 ? (shape[dim] ?? 1) : d.below((shape[dim] ?? 1) + 1)
    const largest = d.below(2) === 0
    // Few values, so that many are equal.
    const given = d.tensor(shape, d.of(DTYPES))
    const inputs = [given.dtype === 'float32' ? torch.where(given.gt(5), 5, given).div(8).round() : given]
    return { fn: (a) => torch.topk(a, k, dim, largest), inputs }
  },
  sort: (d) => {
    const shape = d.shape(1 + d.below(2))
    const descending = d.below(2) === 0
    return { fn: (a) => torch.sort(a, 0, descending), inputs: [d.tensor(shape, d.of(DTYPES))] }
  },
  avgPool: (d) => {
    const shape = [...d.of([[2, 3], [3]]), 5 + d.below(4), 5 + d.below(4)]
    const how = averages(d)
    return { fn: (a) => F.avgPool2d(a, ...how), inputs: [d.tensor(shape)] }
  },
  avgPoolBackward: (d) => {
    const shape = [2, 3, 5 + d.below(4), 5 + d.below(4)]
    const how = averages(d)
    const input = torch.randn(shape)
    const grad = torch.randn([...F.avgPool2d(input, ...how).shape])
    return { fn: (g, a) => torch.ops.tensorfx.avgPool2dBackward(g, a, ...how), inputs: [grad, input] }
  },
  places: (d) => {
    const batch = d.below(2) === 0 ? [] : [1 + d.below(3)]
    const dtype = d.of(['float32', 'int32', 'int64', 'uint8'] as const)
    const sequence = torch.sort(d.tensor([...batch, d.of(SIZES)], dtype))[0]
    const values = d.tensor([...batch, 1 + d.below(9)], dtype)
    const [right, int32] = [d.below(2) === 0, d.below(2) === 0]
    return { fn: (s, v) => torch.ops.tensorfx.places(s, v, int32, right), inputs: [sequence, torch.cat([values, sequence], -1)] }
  },
  nonzeroStatic: (d) => {
    const shape = d.of([d.shape(1), d.shape(2), d.shape(3), [37, 23]])
    const given = d.tensor(shape, d.of(DTYPES))
    const zeros = torch.rand(shape).gt(0.4)
    const size = 1 + d.below(2 * given.numel)
    return { fn: (a, z) => torch.nonzeroStatic(a.mul(z), { size, fillValue: -3 }), inputs: [given, zeros] }
  },
  gcd: (d) => {
    const dtype = d.of(['int32', 'int64', 'uint8'] as const)
    const shape = d.shape(2)
    const large = (of: readonly number[]): Tensor => {
      const tensor = d.tensor(of, dtype)
      return dtype === 'int64' ? tensor.mul(tensor).mul(1234567890123) : tensor
    }
    return { fn: (a, b) => [torch.gcd(a, b), torch.lcm(a, a)], inputs: [large(shape), large([1, shape[1] ?? 1])] }
  },
  permutation: (d) => {
    const n = d.of([1, 2, 3, 17, 500])
    const keys = Array.from({ length: 4 }, () => d.below(2 ** 31 - 1))
    const [a = 0, b = 0, c = 0, e = 0] = keys
    return { fn: (x) => torch.ops.tensorfx.philoxPermutation(n, a, b, c, e).add(x), inputs: [torch.zeros([1], { dtype: 'int32' })] }
  },
  resampleNearest: (d) => {
    const shape = [2, 1 + d.below(3), 2 + d.below(5), 2 + d.below(5)]
    const dtype = d.of(DTYPES)
    const size = [1 + d.below(9), 1 + d.below(9)]
    const mode = d.of(['nearest', 'nearest-exact'] as const)
    return { fn: (a) => torch.ops.tensorfx.resample(a, [2, 3], size, mode, [NaN, NaN], false, false), inputs: [d.tensor(shape, dtype)] }
  },
  empties: (d) => {
    const [n, m] = [d.below(3), 1 + d.below(3)]
    const shape = d.of([[0], [n, 0, m], [m, 0]])
    const fns: readonly Fn[] = [
      (a) => a.mul(2).add(1),
      (a) => [a.sum(), a.sum(0), a.prod(), torch.cat([a, a], 0), torch.zerosLike(a)],
      (a) =>
        a
          .reshape([0, m])
          .t()
          .matmul(a.reshape([0, m])),
      (a) => [a.reshape([-1, 0].slice(1)).clone(), a.exp().sum().add(1)],
    ]
    return { fn: d.of(fns), inputs: [d.tensor(shape)] }
  },
  pooledInput: (d) => {
    const shape = [1 + d.below(2), 1 + d.below(3), 3 + d.below(6), 3 + d.below(6)]
    const [kernel, stride, padding] = [2 + d.below(2), 1 + d.below(3), d.below(2)]
    const fns: readonly Fn[] = [
      (x) => F.maxPool2d(x, kernel, { stride, padding }).add(1),
      (x) => [F.maxPool1d(x.flatten(0, 1), kernel, { stride }), x.mul(2)],
    ]
    return { fn: d.of(fns), inputs: [d.tensor(shape)] }
  },
  checkedIndices: (d) => {
    const shape = d.shape(1 + d.below(3))
    return { fn: (i) => torch.ops.tensorfx.checkedIndices(i, 9, null, 'torch.gather', 'index'), inputs: [d.indices(shape, 9)] }
  },
}

describe.each(Object.entries(CASES))('%s on the GPU', (_, draw) => {
  test.each(third([1, 2, 3, 4, 5, 6]))('is what the eager kernel gives, drawn case %i', async (seed) => {
    const { fn, inputs } = draw(new Drawn(33_000 + seed))
    await expectSame(fn, inputs)
  })
})

/** Cases of an operator in which sizes may be 0, as far as its eager kernel takes them. */
function empties(draw: Case, seeds: readonly number[]): readonly ReturnType<Case>[] {
  return seeds.flatMap((seed) => {
    const given = draw(new Drawn(33_800 + seed, [0, 0, 1, 3]))
    try {
      given.fn(...given.inputs)
      return [given]
    } catch {
      return []
    }
  })
}

test.each(Object.entries(CASES))('%s of tensors without elements is what the eager kernel gives', async (_, draw) => {
  for (const { fn, inputs } of empties(draw, third([1, 2, 3, 4, 5, 6]))) {
    // oxlint-disable-next-line no-await-in-loop -- one GPU
    await expectSame(fn, inputs)
  }
})

/** interpolate and its gradient, whose sums the eager kernel takes four lines at a time. */
describe('interpolate on the GPU', () => {
  test.each(third([1, 2, 3, 4, 5, 6, 7, 8, 9, 10]))(
    'is what the eager kernel gives, within 4 units in the last place, drawn case %i',
    async (seed) => {
      const d = new Drawn(33_500 + seed)
      const { mode, rank } = d.of([
        { mode: 'bilinear', rank: 2 },
        { mode: 'bicubic', rank: 2 },
        { mode: 'linear', rank: 1 },
        { mode: 'trilinear', rank: 3 },
        { mode: 'area', rank: 2 },
        { mode: 'nearest', rank: 2 },
      ] as const)
      const shape = [2, 1 + d.below(3), ...Array.from({ length: rank }, () => 2 + d.below(6))]
      const size = Array.from({ length: rank }, () => 1 + d.below(11))
      const isLinear = mode !== 'area' && mode !== 'nearest'
      const antialias = (mode === 'bilinear' || mode === 'bicubic') && d.below(2) === 0
      const options = { size, mode, antialias, ...(isLinear && { alignCorners: d.below(2) === 0 }) }
      const run = (x: Tensor, weight: Tensor): Tensor[] => {
        const y = F.interpolate(x, options)
        const [grad] = torch.autograd.grad([y.mul(weight.narrow(0, 0, y.numel).reshape(y.shape)).sum()], [x])
        return [y.detach(), grad ?? y]
      }
      const [x, weight] = [torch.randn(shape), torch.randn([20_000])]
      const want = run(x.clone().requiresGrad_(), weight)
      const there = [x.to('webgpu').requiresGrad_(), weight.to('webgpu')] as const
      for (const fn of [run, compile(run)]) {
        const got = fn(...there)
        for (const [i, wanted] of want.entries())
          expect(differs((await got[i]?.toTypedArrayAsync()) as Float32Array, wanted.toTypedArray() as Float32Array)).toBe(false)
      }
      const gm = torch.noGrad(() => makeFx((a: Tensor) => [F.interpolate(a, options).mul(2)])(x))
      const graph = await compileGraph(gm, [x])
      expect(graph.onWasm).toEqual([])
      const [twice] = (await graph.run(x)) as Tensor[]
      expect(differs(twice?.toTypedArray() as Float32Array, want[0]?.mul(2).toTypedArray() as Float32Array)).toBe(false)
      graph.release()
    },
  )
})

test('a window of an input at a place in its memory is not that of a copy: it is refused by name', async () => {
  const x = torch.arange(10).to('float32').narrow(0, 3, 4)
  const window = (given: Tensor): Tensor => given.asStrided([2], [1], 0).add(1)
  const gm = makeFx((given: Tensor) => [window(given)])(x)
  await expect(compileGraph(gm, [x])).rejects.toThrow(/copied_window at node as_strided/)
  expect(await compile(window)(torch.arange(10).to('float32').to('webgpu').narrow(0, 3, 4)).toArrayAsync()).toEqual([1, 2])
})

describe('an index out of range on the GPU', () => {
  const long = torch.zeros([1000], { dtype: 'int64' })
  const bad = (at: number, value: bigint): Tensor => torch.where(torch.arange(1000).eq(at), torch.tensor(value, { dtype: 'int64' }), long)
  const cases: readonly (readonly [string, Fn, readonly Tensor[]])[] = [
    ['embedding', (i, w) => F.embedding(i, w), [bad(700, 5n), torch.randn([5, 3])]],
    ['embedding, negative', (i, w) => F.embedding(i, w), [bad(0, -1n), torch.randn([5, 3])]],
    [
      'embedding, the first of many',
      (i, w) => F.embedding(i, w),
      [torch.where(torch.arange(1000).ge(700), torch.tensor(5n, { dtype: 'int64' }), long), torch.randn([5, 3])],
    ],
    ['gather, beyond 32 bits', (i, a) => torch.gather(a, 0, i), [bad(999, 4294967296n), torch.randn([1000])]],
    ['scatterAdd', (i, a) => torch.scatterAdd(a, 0, i, torch.onesLike(a)), [bad(3, 1000n), torch.randn([1000])]],
    ['scatter', (i, a) => torch.scatter(a, 0, i, torch.onesLike(a)), [bad(3, 1000n), torch.randn([1000])]],
    ['nllLoss', (i, a) => F.nllLoss(a, i), [bad(512, 4n), torch.randn([1000, 4])]],
  ]
  test.each(cases)('%s: the error of the eager kernel', async (_, fn, inputs) => {
    let message = ''
    try {
      fn(...inputs)
    } catch (error) {
      message = (error as Error).message
    }
    expect(message).toMatch(/index/)
    const right = inputs.map((input) => (input.dtype === 'int64' ? long : input))
    const gm = makeFx((...args: Tensor[]) => [fn(...args)].flat() as Tensor[])(...right)
    const graph = await compileGraph(gm, right)
    expect(graph.onWasm).toEqual([])
    await expect(graph.run(...inputs)).rejects.toThrow(message)
    // The next call has indices that are there.
    expect((await graph.run(...right)).length).toBe(1)
    graph.release()
  })

  test('the index that is ignored is none', async () => {
    await expectSame((i, a) => F.nllLoss(a, i).mul(0), [bad(512, -100n), torch.randn([1000, 4])])
  })
})

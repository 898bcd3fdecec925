// What users of other libraries on WebGPU complained of, as tests: each has the number of the report, and does what the reporter did. This file runs in Node and in a page.
import { beforeAll, describe, expect, test } from 'vitest'
import { compile, nn, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { makeFx } from 'tensorfx/aot'
import { DeviceError, DeviceReadError, compileGraph, init, loseDevice, stats } from 'tensorfx/webgpu'
import type { DeviceGraph } from 'tensorfx/webgpu'
import { DeviceProgram } from '../../../src/gpu/program.ts'
import type { Dispatch } from '../../../src/gpu/requests.ts'
import { planted, swap } from './faultList.ts'
import { deviceHere } from './harness.ts'

beforeAll(async () => init({ thread: false }))

type Fn = (...args: Tensor[]) => Tensor

const onDevice = (fn: Fn): Fn => compile(fn, { backend: 'webgpu' })
const floats = (...values: readonly number[]): Tensor => torch.tensor(values)
const longs = (...values: readonly bigint[]): Tensor => torch.tensor(values, { dtype: torch.int64 })

/** Reads what eager mode computes and what the GPU computes of the same. */
async function bothOf(fn: Fn, ...args: readonly Tensor[]): Promise<{ got: unknown; want: unknown }> {
  return { got: await onDevice(fn)(...args).toTypedArrayAsync(), want: fn(...args).toTypedArray() }
}

describe('NaN', () => {
  test('ekzhang/jax-js #85: where(isnan(x), 0, x) has no NaN', async () => {
    const nanToZero = onDevice((x: Tensor) => torch.where(x.isnan(), torch.zerosLike(x), x))
    expect(await nanToZero(floats(NaN, 1, NaN, 2)).toArrayAsync()).toEqual([0, 1, 0, 2])
  })

  test.each([
    ['the first operand', NaN, 1],
    ['the second operand', 1, NaN],
    ['both operands', NaN, NaN],
    ['what infinities give', Infinity, -Infinity],
  ])('tensorflow/tfjs #7162: NaN as %s comes through sums, products, minima and maxima', async (_, a, b) => {
    const fns: readonly Fn[] = [
      (x, y) => x.add(y),
      (x, y) => x.sub(y).mul(y),
      (x, y) => torch.minimum(x, y),
      (x, y) => torch.maximum(x, y),
      (x, y) => torch.stack([x.eq(y), x.lt(y), x.ge(y), x.ne(y)]),
      (x, y) => x.add(y).relu(),
      (x, y) => x.add(y).clamp(-1, 1),
      (x, y) => torch.cat([x, y]).sum(),
      (x, y) => torch.cat([x, y]).amax(),
    ]
    for (const fn of fns) {
      // oxlint-disable-next-line no-await-in-loop -- one GPU
      const { got, want } = await bothOf(fn, floats(a, 3, a), floats(b, 3, b))
      expect(got, String(fn)).toEqual(want)
    }
  })
})

test('tensorflow/tfjs #5468: where the thread cannot wait, a read names its awaited form, and after one await all that is read at once works', async () => {
  const y = onDevice((x: Tensor) => torch.softmax(x, 0))(floats(1, 2, 3))
  expect(() => y.toTypedArray()).toThrow(DeviceReadError)
  expect(() => y.toTypedArray()).toThrow(/await y\.itemAsync\(\).*await y\.toTypedArrayAsync\(\)/)
  const awaited = await y.toTypedArrayAsync()
  expect(y.toTypedArray()).toEqual(awaited)
  // Functions without await: a callback of an array, and noGrad in the place of tidy.
  expect([0, 1, 2].map((i) => y.select(0, i).item())).toEqual([...awaited])
  expect(torch.noGrad(() => y.sum().item())).toBeCloseTo(1, 6)
})

describe('tracel-ai/cubecl #1641: a kernel that the GPU refuses', () => {
  /** Fills four words with a number. */
  const filling = (name: string, start: number, value: number, uniforms = 1): Dispatch => ({
    ...{ name, nodes: [`${name}_node`], lines: [], slabs: 1, threads: 4, team: 1, words: Uint32Array.of(4, 0, start, value) },
    code: [
      '@group(0) @binding(0) var<storage, read_write> slab: array<u32>;',
      `@group(0) @binding(1) var<uniform> uniforms: array<vec4<u32>, ${uniforms}>;`,
      '@compute @workgroup_size(64) fn main(@builtin(local_invocation_index) i: u32) {',
      `  if (i < uniforms[${uniforms - 1}].x || i < uniforms[0].x) { slab[uniforms[0].z + i] = uniforms[0].w; }`,
      '}',
    ].join('\n'),
  })
  // Its uniforms are larger than what is bound: the driver compiles it, and refuses the dispatch.
  const invalid = filling('b', 64, 10, 9)
  const reads = [0, 64, 128].map((start) => ({ slab: 0, start, length: 4 }))
  const sentinel = Uint32Array.of(...Array.from({ length: 192 }, () => 0xffffffff))

  test('is an error with its name, and nobody is told that it ran', async () => {
    const program = await DeviceProgram.create(await deviceHere(), [filling('a', 0, 111), invalid, filling('c', 128, 222)], [192])
    program.upload({ slab: 0, start: 0, words: sentinel })
    const failed = program.run(0, 3, reads)
    await expect(failed).rejects.toThrow(DeviceError)
    await expect(failed).rejects.toThrow(/kernel b \(of b_node\) was refused/)
    await failed.catch((error: unknown) => expect(error).toMatchObject({ nodes: ['b_node'] }))
    program.destroy()
  })

  test('without it the same submission gives what its kernels compute', async () => {
    const program = await DeviceProgram.create(await deviceHere(), [filling('a', 0, 111), filling('c', 128, 222)], [192])
    program.upload({ slab: 0, start: 0, words: sentinel })
    const words = await program.run(0, 2, reads)
    expect(words.map((read) => [...read])).toEqual([Array(4).fill(111), Array(4).fill(0xffffffff), Array(4).fill(222)])
    program.destroy()
  })

  test('leaves no old contents as its result, and takes no result from functions called before and after it', async () => {
    planted('refused', (code) => swap(/array<vec4<u32>, \d+>/, 'array<vec4<u32>, 4000>')(code))
    const fill = (value: number, backend: string): ((x: Tensor) => Tensor) => compile((x: Tensor) => x.mul(0).add(value), { backend })
    const [a, b, c] = [fill(111, 'webgpu'), fill(10, 'refused'), fill(222, 'webgpu')]
    const x = torch.ones([4])
    for (let round = 0; round < 2; round++) {
      const settled = await Promise.allSettled([a(x), b(x), c(x)].map(async (y) => y.toArrayAsync()))
      expect(settled.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
      expect(settled[0]).toMatchObject({ value: Array(4).fill(111) })
      expect(Reflect.get(settled[1] ?? {}, 'reason')).toBeInstanceOf(DeviceError)
      expect(settled[2]).toMatchObject({ value: Array(4).fill(222) })
    }
  })
})

describe('large tensors', () => {
  const normOf = (groups: number) => (x: Tensor) => nn.functional.groupNorm(x, groups)

  test.each([
    ['68,921 elements in each group', [1, 5, 41, 41, 41], 5],
    ['70,000 groups', [35_000, 4, 2], 2],
  ] as const)('tinygrad/tinygrad #11782: a group norm of %s is what the CPU computes', async (_, shape, groups) => {
    torch.manualSeed(1)
    const x = torch.randn([...shape])
    const y = onDevice(normOf(groups))(x)
    await y.toArrayAsync()
    torch.testing.assertClose(y, normOf(groups)(x), { rtol: 1e-5, atol: 1e-5 })
  })
})

describe('int64', () => {
  const beyond = 2n ** 31n
  const a = longs(beyond, -beyond - 1n, 2n ** 32n + 5n, 5n, 2n ** 52n)
  const b = longs(5n, beyond, 5n, 5n, -1n)

  test.each<readonly [string, Fn]>([
    ['where', (x, y) => torch.where(x.gt(y), x, y)],
    ['eq, of numbers whose lower halves are equal', (x, y) => x.eq(y)],
    ['sub', (x, y) => x.sub(y)],
    ['sum', (x, y) => x.add(y).sum(0)],
    ['clamp', (x) => x.clamp(-3_000_000_000, 3_000_000_000)],
  ])('microsoft/onnxruntime #29392: %s is not cut to 32 bits', async (_, fn) => {
    const { got, want } = await bothOf(fn, a, b)
    expect(got).toEqual(want)
  })
})

describe('microsoft/onnxruntime #27634: create, release, create', () => {
  const x = floats(1, 2, 3)
  const made = async (): Promise<DeviceGraph> => compileGraph(makeFx((value: Tensor) => [value.mul(2)])(x), [x])
  const run = async (graph: DeviceGraph): Promise<unknown> => ((await graph.run(x)) as Tensor[])[0]?.toArray()

  test('a graph that is made after the last one was released runs, as often as one likes, and leaves nothing', async () => {
    await init({ thread: false, timeout: 200_000 })
    const before = stats()
    for (let i = 0; i < 4; i++) {
      const graph = await made()
      expect(await run(graph)).toEqual([2, 4, 6])
      graph.release()
    }
    const last = await made()
    last.release()
    // The same again asks nothing but the counts.
    await init({ thread: false, timeout: 200_000 })
    const after = stats()
    expect([after?.buffers, after?.bytes]).toEqual([before?.buffers, before?.bytes])
    await init({ thread: false })
  })

  test('so does one that is made after the GPU was given back, and one that was made before', async () => {
    const old = await made()
    await run(old)
    await loseDevice()
    const graph = await made()
    expect(await run(graph)).toEqual([2, 4, 6])
    expect(await run(old)).toEqual([2, 4, 6])
    for (const one of [old, graph]) one.release()
  })
})

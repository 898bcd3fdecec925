// Graphs of operators on the GPU against inductor: pointwise exactly alike, sums and products at most a little further from float64.
import { beforeAll, describe, expect, test } from 'vitest'
import { nn, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { makeFx } from 'tensorfx/aot'
import { compileGraph, init, loseDevice, stats } from 'tensorfx/webgpu'
import type { DeviceLimits } from 'tensorfx/webgpu'
import { DeviceError, DeviceLostError } from '../../../src/gpu/errors.ts'
import { requestDevice } from '../../../src/gpu/device.ts'
import { DeviceProgram } from '../../../src/gpu/program.ts'
import { compileFx } from '../../../src/inductor/pipeline.ts'
import { OutOfMemoryError, withStrict } from '../../../src/kernels/index.ts'
import { deviceHere } from './harness.ts'

type Fn = (...inputs: Tensor[]) => Tensor | readonly Tensor[]

const magnitude = (values: ArrayLike<number | bigint | boolean>): number =>
  Math.max(1e-30, ...Array.from(values, (value) => Math.abs(Number(value))).filter(Number.isFinite))

/**
 * Runs a function on the GPU and with inductor; returns the largest difference, relative to the largest value that the function has where nothing cancels: for the inputs'
 * magnitudes. A sum of random numbers can be as near to zero as it likes, and its rounding does not shrink with it.
 */
async function difference(fn: Fn, inputs: readonly Tensor[]): Promise<{ error: number; onWasm: readonly string[]; kernels: number }> {
  const gm = torch.noGrad(() => makeFx((...args: Tensor[]) => [fn(...args)].flat() as Tensor[])(...inputs))
  const graph = await compileGraph(gm, inputs)
  const [got, want] = [(await graph.run(...inputs)) as Tensor[], withStrict(true, () => compileFx(gm, inputs)(...inputs)) as Tensor[]]
  const uncancelled = withStrict(true, () =>
    compileFx(gm, inputs)(...inputs.map((input) => (input.dtype === torch.bool ? input : input.abs()))),
  ) as Tensor[]
  let error = 0
  want.forEach((wanted, i) => {
    const [a, b] = [got[i]?.to(torch.float32).flatten().toTypedArray() ?? [], wanted.to(torch.float32).flatten().toTypedArray()]
    expect(got[i]?.shape).toEqual(wanted.shape)
    expect(got[i]?.dtype).toBe(wanted.dtype)
    const scale = Math.max(magnitude(b), magnitude(uncancelled[i]?.to(torch.float32).flatten().toTypedArray() ?? []))
    b.forEach((value, k) => {
      if (Object.is(Number(value), Number(a[k])) || (Number.isNaN(value) && Number.isNaN(a[k]))) return
      const one = Math.abs(Number(value) - Number(a[k])) / scale
      error = Math.max(error, Number.isNaN(one) ? Infinity : one)
    })
  })
  const result = { error, onWasm: graph.onWasm, kernels: graph.kernels.length }
  graph.release()
  return result
}

beforeAll(async () => init({ thread: false }))

torch.manualSeed(33)
const x = (): Tensor => torch.randn([6, 40])

test('a graph that calls operators that draw draws anew at each run, with the numbers of the graph itself', async () => {
  const gm = makeFx((a: Tensor) => [torch.rand([40]).add(a), nn.functional.dropout(a, 0.5), torch.randint(0, 100, [7])])(torch.ones([40]))
  torch.manualSeed(3)
  const graph = await compileGraph(gm, [torch.ones([40])])
  const runs = async (run: (a: Tensor) => unknown): Promise<unknown> => {
    torch.manualSeed(3)
    const results: unknown[] = []
    for (let i = 0; i < 2; i++) results.push(((await run(torch.ones([40]))) as Tensor[]).map((result) => result.toArray()))
    return results
  }
  expect(await runs(async (a) => graph.run(a))).toEqual(await runs((a) => gm(a)))
  graph.release()
})

describe('graphs on the GPU', () => {
  const exact: readonly (readonly [string, Fn, readonly Tensor[]])[] = [
    ['a chain of functions', (a) => a.mul(2).add(1).tanh().sigmoid().exp(), [x()]],
    ['a broadcast sum of a transposed matrix', (a, b) => a.t().add(b).relu(), [x(), torch.randn([1, 6])]],
    [
      'int64 beyond 32 bits through where',
      (a) => torch.where(a.gt(0), a.mul(3), a),
      [torch.tensor([6442450941n, -6442450941n, 5n], { dtype: torch.int64 })],
    ],
    ['comparisons with NaN', (a) => [a.isnan(), a.ne(a), a.eq(a), torch.maximum(a, torch.ones([3]))], [torch.tensor([NaN, Infinity, -0])]],
    // A compiler that sees the constant takes x * 0 for 0, and x / 3 for x * (1 / 3).
    [
      'products with zero, of NaN, infinities and negative numbers',
      (a) => [a.mul(0), a.mul(-0), a.abs().pow(-2).mul(0)],
      [torch.tensor([NaN, Infinity, -2, 0, -0, 3])],
    ],
    ['divisions by constants', (a) => [a.div(3), a.div(7), a.mul(1 / 3)], [x()]],
    ['halves', (a) => a.to(torch.float16).mul(3).to(torch.float32), [x()]],
    ['bools and small integers', (a) => [a.gt(0).logicalNot(), a.to(torch.uint8).add(200), a.to(torch.int8)], [x().mul(20)]],
    ['a maximum', (a) => a.amax(1), [x()]],
  ]
  test.each(exact)('%s is bit-equal', async (_, fn, inputs) => {
    expect(await difference(fn, inputs)).toMatchObject({ error: 0, onWasm: [] })
  })

  /** Limits of the specification, for which the GPU answers, and smaller ones. */
  const few: readonly (readonly [string, DeviceLimits])[] = [
    ['the limits of the specification', { workgroups: 65_535, bytes: 2 ** 27 }],
    ['7 workgroups in each dimension, bindings of 1 MiB and 4 kernels', { workgroups: 7, bytes: 2 ** 20, kernels: 4 }],
  ]

  const close: readonly (readonly [string, Fn, readonly Tensor[]])[] = [
    ['softmax', (a) => torch.softmax(a, 1), [x()]],
    ['a layer norm', (a) => nn.functional.layerNorm(a, [40]), [x()]],
    ['a product', (a, b) => a.matmul(b).relu(), [torch.randn([33, 17]), torch.randn([17, 35])]],
    ['a batch of products', (a, b) => torch.bmm(a, b.transpose(1, 2)), [torch.randn([3, 5, 7]), torch.randn([3, 6, 7])]],
    ['a convolution', (a, w) => nn.functional.conv2d(a, w, null, { padding: 1, stride: 2 }), [torch.randn([2, 4, 9, 9]), torch.randn([6, 4, 3, 3])]],
    [
      'a convolution in groups',
      (a, w) => nn.functional.conv2d(a, w, null, { padding: 1, groups: 2 }),
      [torch.randn([2, 4, 8, 8]), torch.randn([6, 2, 3, 3])],
    ],
    ['a sum of 5,000 numbers', (a) => a.sum(), [torch.randn([5000])]],
  ]
  test.each(close)('%s is close', async (_, fn, inputs) => {
    const { error, onWasm } = await difference(fn, inputs)
    expect(onWasm).toEqual([])
    expect(error).toBeLessThan(5e-7)
  })

  // All of them in npm run test:webgpu; .ci/run has the time for two.
  const isFull = process.env['TENSORFX_FULL'] === '1'
  test.each(few)('with %s all of these are as they are without', async (_, limits) => {
    await init({ thread: false, limits })
    for (const [name, fn, inputs] of isFull ? [...exact, ...close] : [...exact.slice(0, 1), ...close.slice(0, 1)]) {
      // oxlint-disable-next-line no-await-in-loop -- one GPU
      const { error, onWasm } = await difference(fn, inputs)
      expect(onWasm, name).toEqual([])
      if (exact.some(([other]) => other === name)) expect(error, name).toBe(0)
      else expect(error, name).toBeLessThan(5e-7)
    }
    await init({ thread: false })
  })

  test('a GPU that is asked for the limits of the specification has these, and no larger ones', async () => {
    const {
      gpu,
      limits: { bytes },
    } = await requestDevice({ limits: { bytes: 2 ** 27 } })
    expect([bytes, gpu.limits.maxStorageBufferBindingSize, gpu.limits.maxBufferSize]).toEqual([2 ** 27, 2 ** 27, 2 ** 28])
    expect(gpu.limits.maxComputeInvocationsPerWorkgroup).toBe(256)
    expect(gpu.limits.maxComputeWorkgroupStorageSize).toBe(16_384)
    expect(gpu.limits.maxStorageBuffersPerShaderStage).toBeLessThanOrEqual(10)
    gpu.destroy()
  })

  test('tinygrad/tinygrad #13624: a product of more elements than a dispatch has threads is an error that names it and the limit, one of as many is right', async () => {
    await init({ thread: false, limits: { workgroups: 7 } })
    const threads = 7 ** 3 * 64
    const product: Fn = (a, b) => a.matmul(b)
    const fitting = await difference(product, [torch.randn([threads / 64, 3]), torch.randn([3, 64])])
    expect(fitting.error).toBeLessThan(5e-7)
    await expect(difference(product, [torch.randn([threads / 64 + 1, 3]), torch.randn([3, 64])])).rejects.toThrow(
      /kernel k0_mm .* needs 344 workgroups, but a dispatch here has at most 7 in each dimension/,
    )
    await init({ thread: false })
  })

  test('with more threads than a dimension of a dispatch has workgroups', async () => {
    await init({ thread: false, limits: { workgroups: 7 } })
    expect(await difference((a) => a.mul(2).add(1), [torch.randn([19_000])])).toMatchObject({ error: 0, kernels: 1 })
    await init({ thread: false })
  })

  test('one submission and one read for each call, and nothing is made after the first', async () => {
    const gm = makeFx((a: Tensor) => torch.softmax(a.matmul(a.t()), 1))(x())
    const graph = await compileGraph(gm, [x()])
    await graph.run(x())
    const before = stats()
    for (let i = 0; i < 5; i++) await graph.run(x())
    const after = stats()
    expect([(after?.submits ?? 0) - (before?.submits ?? 0), (after?.readbacks ?? 0) - (before?.readbacks ?? 0)]).toEqual([5, 5])
    expect([after?.buffers, after?.pipelines, after?.bindGroups, after?.bytes]).toEqual([
      before?.buffers,
      before?.pipelines,
      before?.bindGroups,
      before?.bytes,
    ])
    graph.release()
  })
})

describe('what fails on the GPU', () => {
  test('float64 is refused with the node, or computed by WebAssembly', async () => {
    const inputs = [torch.randn([4], { dtype: torch.float64 })]
    await expect(difference((a) => a.exp(), inputs)).rejects.toThrow(/at node exp.*float64.*fallback: 'wasm'/s)
    await init({ thread: false, fallback: 'wasm' })
    expect((await difference((a) => torch.linalg.qr(a.to(torch.float32).mul(2).reshape([2, 2]))[1].add(1), inputs)).onWasm.length).toBeGreaterThan(0)
    expect(await difference((a) => a.exp(), inputs)).toMatchObject({ error: 0, kernels: 0 })
    await init({ thread: false })
  })

  test('a tensor that is larger than a binding is an error with the limit', async () => {
    await init({ thread: false, limits: { bytes: 1 << 20 } })
    const failed = difference((a) => a.mul(2), [torch.ones([300_000])])
    await expect(failed).rejects.toThrow(OutOfMemoryError)
    await expect(failed).rejects.toThrow(/needs 1200000 bytes.*1048576 \(maxStorageBufferBindingSize\)/s)
    await init({ thread: false })
  })

  test('a shader that does not compile, and a dispatch that is not valid, name kernel and node and give no number', async () => {
    const device = await deviceHere()
    const dispatch = {
      name: 'k0_mul',
      nodes: ['mul_1'],
      lines: ['model.ts:3'],
      code: 'fn main() { let x = ; }',
      slabs: 1,
      threads: 1,
      team: 1,
      words: new Uint32Array(4),
    }
    await expect(DeviceProgram.create(device, [dispatch], [16])).rejects.toThrow(
      /kernel k0_mul \(of mul_1, at model.ts:3\) does not compile at line 1/,
    )
    // It compiles, but has more uniforms than are bound.
    const bound =
      '@group(0) @binding(0) var<storage, read_write> slab: array<u32>;\n@group(0) @binding(1) var<uniform> uniforms: array<vec4<u32>, 9>;\n'
    const code = `${bound}@compute @workgroup_size(64) fn main() { slab[0] = uniforms[8].x; }`
    const program = await DeviceProgram.create(device, [{ ...dispatch, code }], [16])
    const failed = program.run(0, 1, [{ slab: 0, start: 0, length: 1 }])
    await expect(failed).rejects.toThrow(DeviceError)
    await expect(failed).rejects.toThrow(/k0_mul/)
    program.destroy()
  })

  test('a device that is lost in the middle of a call is a DeviceLostError, and the next call has another', async () => {
    const gm = makeFx((a: Tensor) => a.mul(3))(torch.ones([4]))
    const graph = await compileGraph(gm, [torch.ones([4])])
    await graph.run(torch.ones([4]))
    await loseDevice('next run')
    await expect(graph.run(torch.ones([4]))).rejects.toThrow(DeviceLostError)
    const run = async (): Promise<unknown> => ((await graph.run(torch.ones([4]))) as Tensor[])[0]?.toArray()
    expect(await run()).toEqual([3, 3, 3, 3])
    await loseDevice()
    expect(await run()).toEqual([3, 3, 3, 3])
  })
})

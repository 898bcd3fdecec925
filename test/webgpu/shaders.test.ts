// Shaders as text, without a GPU: the goldens that `npm run test:webgpu` runs on one, and the column of the scalar table.
import { describe, expect, it, test } from 'vitest'
import { nn, torch } from 'tensorfx'
import { makeFx } from 'tensorfx/aot'
import type { Tensor } from 'tensorfx'
import { DeviceError, DeviceLostError } from 'tensorfx/webgpu'
import { UnsupportedError } from '../../src/errors/index.ts'
import { noRoom } from '../../src/gpu/buffers.ts'
import { errorOf, failureOf } from '../../src/gpu/thread.ts'
import { planGraph } from '../../src/inductor/webgpu/plan.ts'
import {
  OutOfMemoryError,
  bufferParam,
  call,
  cast,
  constant,
  DTYPES,
  dtypeInfo,
  forLoop,
  iota,
  load,
  at,
  loopVar,
  store,
} from '../../src/kernels/index.ts'
import type { Expr } from '../../src/kernels/index.ts'
import { scalar, scalarParam, sizeOf, sizeParam } from '../../src/kernels/ir/loopIr.ts'
import { roundedDown, sizeDifference, sizeProduct, sizeSum } from '../../src/kernels/ir/sizes.ts'
import type { Size } from '../../src/kernels/ir/sizes.ts'
import { scalarOps } from '../../src/kernels/scalars/rareOps.ts'
import { isDefinedFor } from '../../src/kernels/scalars/scalarOps.ts'
import type { ScalarOp } from '../../src/kernels/scalars/scalarOps.ts'
import { emitGrid } from '../../src/kernels/wgsl/emitGrid.ts'
import { whyNotOnDevice } from '../../src/kernels/wgsl/scalars.ts'

type Program = (...inputs: Tensor[]) => Tensor

const programs: readonly (readonly [string, Program, readonly Tensor[]])[] = [
  ['pointwise', (x) => x.mul(2).add(1).relu(), [torch.ones([6, 40])]],
  ['softmax', (x) => torch.softmax(x, 1), [torch.ones([6, 40])]],
  ['sums of long rows', (x) => x.sum(1).mul(2), [torch.ones([3, 300])]],
  ['product', (a, b) => a.matmul(b).tanh(), [torch.ones([3, 5]), torch.ones([5, 7])]],
  ['convolution', (x, w) => nn.functional.conv2d(x, w, null, { padding: 1, stride: 2 }), [torch.ones([2, 4, 9, 9]), torch.ones([6, 4, 3, 3])]],
  ['int64', (x) => torch.where(x.gt(0), x.mul(3), x.neg()), [torch.ones([5], { dtype: 'int64' })]],
  ['halves', (x) => x.add(1).exp(), [torch.ones([5], { dtype: 'float16' })]],
  ['embedding', (i, w) => nn.functional.embedding(i, w), [torch.ones([3, 2], { dtype: 'int64' }), torch.ones([5, 7])]],
  ['gradient of an embedding', (g, i) => torch.ops.tensorfx.embeddingBackward(g, i, 5, 1), [torch.ones([6, 7]), torch.ones([6], { dtype: 'int64' })]],
]

/** The shaders of a program, one after the other. */
function shadersOf(program: Program, inputs: readonly Tensor[]): string {
  const gm = makeFx((...args: Tensor[]) => [program(...args)])(...inputs)
  const { dispatches } = planGraph(
    gm,
    inputs.map(({ shape, dtype, strides }) => ({ shape, dtype, strides })),
    'error',
  )
  return dispatches.map(({ name, nodes, threads, code }) => `// ${name}: ${nodes.join(', ')}, ${threads} threads\n${code}`).join('\n')
}

test.each(programs)('the shaders of a program (%s) are those of the golden', async (name, program, inputs) => {
  await expect(shadersOf(program, inputs)).toMatchFileSnapshot(`../goldens/wgsl/${name.replaceAll(' ', '-')}.wgsl`)
})

test('the shader of a program whose memory is in four slabs is that of the golden', async () => {
  const inputs = [torch.ones([3, 5]), torch.ones([5, 7])]
  const gm = makeFx((a: Tensor, b: Tensor) => [a.matmul(b).tanh().to('int64').mul(3)])(...inputs)
  const specs = inputs.map(({ shape, dtype, strides }) => ({ shape, dtype, strides }))
  const { dispatches, memories } = planGraph(gm, specs, 'error').several(4)
  expect(memories.every(({ at, slabAt }) => slabAt === at + 1)).toBe(true)
  expect(dispatches.map(({ slabs }) => slabs)).toEqual(dispatches.map(() => 4))
  await expect(dispatches.map(({ code }) => code).join('\n')).toMatchFileSnapshot('../goldens/wgsl/several-slabs.wgsl')
})

// A driver may compute (x + c) - c as x, and be off in quotients and roots: what it does is tested where there is one of Mesa (scripts/testWebgpu.mjs).
test.each((Object.keys(scalarOps) as ScalarOp[]).filter((op) => whyNotOnDevice(op, 'float32') === null && op !== 'mulAdd'))(
  'no driver knows how a float was computed that %s computes with',
  (op) => {
    const { arity, conditions } = scalarOps[op]
    const i = loopVar('i', 10)
    const [out, ...inputs] = Array.from({ length: arity + 1 }, (_, k) => bufferParam(`a${k}`, k > 0 && k <= conditions ? 'bool' : 'float32'))
    if (out === undefined) throw new Error('no result')
    const value = isDefinedFor(op, 'float32') ? call(op, ...inputs.map((input) => load(input, at([i, 1])))) : constant('float32', 0)
    const { code } = emitGrid({
      name: 'case',
      params: [out, ...inputs],
      scratch: [],
      loops: [i],
      body: [store(out, at([i, 1]), cast(value, 'float32'))],
    })
    const results = code.split('\n').filter((line) => /let t\d+ = .*bitcast<f32>\(\w+\) [-+*/] /.test(line))
    expect(results.filter((line) => !line.endsWith(' ^ zero;'))).toEqual([])
    expect(results.filter((line) => line.includes(') / '))).toEqual([])
  },
)

describe('the table of scalar operations', () => {
  const entries = (Object.keys(scalarOps) as ScalarOp[]).flatMap((op) =>
    DTYPES.filter((dtype) => isDefinedFor(op, dtype)).map((dtype) => [op, dtype] as const),
  )

  it('has shader code for each operation and dtype, or a reason that names what to do', () => {
    const refused = new Set<string>()
    for (const [op, dtype] of entries) {
      const i = loopVar('i', 8)
      const { arity, conditions } = scalarOps[op]
      const inputs = Array.from({ length: arity }, (_, k) => bufferParam(`a${k}`, k < conditions ? 'bool' : dtype))
      const value = call(op, ...inputs.map((input) => load(input, at([i, 1]))))
      const out = bufferParam('out', value.dtype, 'write')
      const emit = (): unknown => emitGrid({ name: 'case', params: [out, ...inputs], scratch: [], loops: [i], body: [store(out, at([i, 1]), value)] })
      if (whyNotOnDevice(op, dtype) === null) expect(emit, `${op} of ${dtype}`).not.toThrow()
      else {
        refused.add(dtypeInfo[dtype].compute === 'float64' ? dtype : op)
        expect(emit).toThrow(UnsupportedError)
        expect(emit).toThrow(/fallback: 'wasm'/)
      }
    }
    expect(entries.length - refused.size).toBeGreaterThan(300)
    expect(refused.has('float64')).toBe(true)
    expect([...refused].filter((name) => ['add', 'exp', 'tanh', 'pow', 'where', 'shl'].includes(name))).toEqual([])
  })

  it('never writes NaN or an infinity as a constant, which no shader compiles', () => {
    for (const [, program, inputs] of programs) expect(shadersOf(program, inputs)).not.toMatch(/bitcast<f32>\(\d+u\)\s*[-+*/]|0x1p|[^\w]nan|inf\b/i)
  })
})

test('no variable has the name of a type, which it would hide, in a shader of many loops', () => {
  const [i, out] = [loopVar('i', 8), bufferParam('out', 'float32', 'write')]
  const body = Array.from({ length: 70 }, (_, k) => {
    const inner = loopVar(`inner${k}`, 2)
    return forLoop(inner, 'serial', [store(out, at([i, 2], [inner, 1]), cast(iota(inner), 'float32'))])
  })
  const { code } = emitGrid({ name: 'case', params: [out], scratch: [], loops: [i], body })
  expect(code.match(/for \(/g)?.length).toBe(70)
  expect(code).not.toMatch(/\b(?:var|let) (?:[iuf]\d+|bool|vec\d)\b/)
})

test('a grid that reads what is none of its parameters is refused by name', () => {
  const [i, out, other] = [loopVar('i', 8), bufferParam('out', 'float32', 'write'), bufferParam('other', 'float32')]
  const grid = (value: Expr, loops = [i]): (() => unknown) => {
    const body = [store(out, at([i, 1]), value)]
    return () => emitGrid({ name: 'case', params: [out], scratch: [], loops, body })
  }
  const n = sizeParam('n')
  expect(grid(scalar(scalarParam('factor', 'float32')))).toThrow('kernel case: the number factor is not a parameter')
  expect(grid(constant('float32', 1), [loopVar('i', n)])).toThrow('kernel case: the size n is not a parameter')
  expect(grid(load(other, at([i, 1])))).toThrow(/^kernel case: .*other/)
  expect(grid(cast(iota(loopVar('j', 3)), 'float32'))).toThrow(/^kernel case: .*j/)
})

test('sizes are sums, differences, products and multiples of parameters', () => {
  const [a, b, out] = [sizeParam('a'), sizeParam('b'), bufferParam('out', 'int32', 'write')]
  const written = (size: Size): string | undefined => {
    const i = loopVar('i', 8)
    const { code, words } = emitGrid({ name: 'case', params: [out, a, b], scratch: [], loops: [i], body: [store(out, at([i, 1]), sizeOf(size))] })
    const wordOf = (param: unknown): number => words.findIndex((word) => word.kind === 'number' && word.param === param)
    const variable = (param: unknown): string => {
      const word = wordOf(param)
      return new RegExp(`let (\\w+) = uniforms\\[${Math.floor(word / 4)}\\]\\.${'xyzw'[word % 4] ?? '?'};`).exec(code)?.[1] ?? '?'
    }
    const names = new Map([a, b].map((param) => [variable(param), param.name]))
    return /let \w+ = (\(.*\));/.exec(code)?.[1]?.replaceAll(/\bt\d+\b/g, (name) => names.get(name) ?? name)
  }
  expect(written(sizeSum(a, b))).toBe('(a + b)')
  expect(written(sizeDifference(a, b))).toBe('(a - b)')
  expect(written(sizeProduct(a, b))).toBe('(a * b)')
  expect(written(roundedDown(a, 4))).toBe('(a - a % 4u)')
})

test('shaders keep to what every GPU has: one storage buffer and one of uniforms, 256 threads, and 16 KiB of memory of a workgroup', () => {
  for (const [name, program, inputs] of programs) {
    const text = shadersOf(program, inputs)
    const shaders = text.split(/^\/\/ .* threads$/m).slice(1)
    expect(shaders.length, name).toBeGreaterThan(0)
    for (const code of shaders) {
      expect(code.match(/var<storage/g)?.length, name).toBe(1)
      expect(code.match(/var<uniform>/g)?.length, name).toBe(1)
      const threads = Number(/@workgroup_size\((\d+)\)/.exec(code)?.[1])
      expect([32, 64, 256], name).toContain(threads)
      const shared = [...code.matchAll(/var<workgroup> \w+: array<(.*), (\d+)>;/g)].map(
        ([, type, length]) => (type === 'u32' ? 4 : 8) * Number(length),
      )
      expect(shared.length, name).toBe(code.match(/var<workgroup>/g)?.length ?? 0)
      expect(
        shared.reduce((sum, bytes) => sum + bytes, 0),
        name,
      ).toBeLessThanOrEqual(16_384)
    }
  }
})

describe('a graph', () => {
  it('without shaders is refused with the node, or planned with WebAssembly in its middle', () => {
    const x = torch.ones([4, 4])
    const gm = makeFx((value: Tensor) => [torch.linalg.qr(value.mul(2))[1].add(1)])(x)
    const spec = { shape: x.shape, dtype: x.dtype, strides: x.strides }
    expect(() => planGraph(gm, [spec], 'error')).toThrow(/^WebGPU: .*qr at node qr.* has no shader code/)
    expect(planGraph(gm, [spec], 'wasm').steps.map(({ kind }) => kind)).toEqual(['device', 'operator', 'device'])
  })

  it('says of each kernel which line of the program it comes from', () => {
    const x = torch.ones([4])
    const [dispatch] = planGraph(
      makeFx((value: Tensor) => [value.mul(2)])(x),
      [{ shape: x.shape, dtype: x.dtype, strides: x.strides }],
      'error',
    ).dispatches
    expect(dispatch?.nodes).toEqual(['mul'])
    expect(dispatch?.lines[0]).toMatch(/shaders\.test\.ts:\d+$/)
  })
})

test('errors keep their class, nodes and reason on the way between threads', () => {
  const refused = errorOf(failureOf(new DeviceError('no', ['mul_1'])))
  expect(refused).toBeInstanceOf(DeviceError)
  expect(refused).toMatchObject({ message: 'no', nodes: ['mul_1'] })
  const lost = errorOf(failureOf(new DeviceLostError('gone', 'destroyed')))
  expect(lost).toBeInstanceOf(DeviceLostError)
  expect(lost).toMatchObject({ message: 'gone', reason: 'destroyed' })
  const full = errorOf(failureOf(noRoom(12, 'there is nothing left', 10, 8)))
  expect(full).toBeInstanceOf(OutOfMemoryError)
  expect(full).toMatchObject({ bytes: 12, limit: 10, allocated: 8, message: expect.stringContaining('there is nothing left') })
  expect(errorOf(failureOf(new UnsupportedError('not here')))).toBeInstanceOf(UnsupportedError)
  expect(errorOf(failureOf(new RangeError('odd')))).toMatchObject({ code: 'TFX_INTERNAL', message: expect.stringContaining('odd') })
})

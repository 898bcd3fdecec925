// The assembler: what it writes must be valid and must run.
import { describe, expect, test } from 'vitest'
import { hasRelaxedSimd } from '../../../src/kernels/engine/engine.ts'
import { ModuleBuilder } from '../../../src/kernels/wasm/assembler.ts'
import { laneMemoryOps, laneOps, memoryOps, plainOps, saturatingOps, simdMemoryOps, simdOps } from '../../../src/kernels/wasm/opcodes.ts'
import type { ValueType } from '../../../src/kernels/wasm/assembler.ts'

const exportsOf = (m: ModuleBuilder, env: Record<string, WebAssembly.ImportValue> = {}): Record<string, (...args: number[]) => number> =>
  new WebAssembly.Instance(new WebAssembly.Module(m.finish() as BufferSource), { env }).exports as Record<string, (...args: number[]) => number>

test('a loop with a branch and a local sums the numbers below n', () => {
  const m = new ModuleBuilder()
  const f = m.function(['i32'], ['i32'], 'sum')
  const total = f.local('i32')
  f.block((end) => {
    f.loop((again) => {
      f.get(0)
      f.op('i32.eqz')
      f.brIf(end)
      f.get(0)
      f.i32Const(1)
      f.op('i32.sub')
      f.tee(0)
      f.get(total)
      f.op('i32.add')
      f.set(total)
      f.br(again)
    })
  })
  f.get(total)
  expect(exportsOf(m).sum?.(10)).toBe(45)
})

test('if and else, imported functions and internal calls work together', () => {
  const m = new ModuleBuilder()
  const sin = m.importFunction('env', 'sin', ['f64'], ['f64'])
  const half = m.function(['f64'], ['f64'])
  half.get(0)
  half.f64Const(0.5)
  half.op('f64.mul')
  const f = m.function(['f64'], ['f64'], 'f')
  const result = f.local('f64')
  f.get(0)
  f.f64Const(0)
  f.op('f64.lt')
  f.if(
    () => {
      f.get(0)
      f.call(half.index)
      f.set(result)
    },
    () => {
      f.get(0)
      f.call(sin)
      f.set(result)
    },
  )
  f.get(result)
  const { f: run } = exportsOf(m, { sin: Math.sin })
  expect(run?.(-4)).toBe(-2)
  expect(run?.(1)).toBe(Math.sin(1))
})

test('LEB128 numbers at the edges of every length survive', () => {
  for (const value of [0, 1, -1, 63, 64, -64, -65, 8191, 8192, -8192, -8193, 2147483647, -2147483648, 1 << 20]) {
    const m = new ModuleBuilder()
    m.function([], ['i32'], 'f').i32Const(value)
    expect(exportsOf(m).f?.()).toBe(value)
  }
})

test('every instruction of the tables is accepted by the engine', () => {
  // Node 20 accepts relaxed SIMD once it was looked for; a host without it refuses these instructions, and no kernel has them there.
  const hasRelaxed = hasRelaxedSimd()
  const operand = (f: ReturnType<ModuleBuilder['function']>, type: ValueType): void => {
    if (type === 'i32') f.i32Const(0)
    else if (type === 'i64') f.i64Const(0n)
    else if (type === 'f32') f.f32Const(0)
    else if (type === 'f64') f.f64Const(0)
    else f.i32x4Const(0)
  }
  const types: readonly ValueType[] = ['i32', 'i64', 'f32', 'f64', 'v128']
  const results: readonly (ValueType | null)[] = [...types, null]
  // No operand types are written in the tables, so look for one signature that validates.
  const signatures: ValueType[][] = [
    [],
    ...types.map((a) => [a]),
    ...types.flatMap((a) => types.map((b) => [a, b])),
    ['i32', 'i32', 'i32'],
    ['v128', 'v128', 'v128'],
  ]
  const accepted = (write: (f: ReturnType<ModuleBuilder['function']>) => void): boolean =>
    signatures.some((signature) =>
      results.some((result) => {
        const m = new ModuleBuilder()
        m.importMemory()
        const f = m.function([], result === null ? [] : [result])
        for (const type of signature) operand(f, type)
        write(f)
        return WebAssembly.validate(m.finish() as BufferSource)
      }),
    )
  const plain = [...Object.keys(plainOps), ...Object.keys(saturatingOps), ...Object.keys(simdOps)] as Parameters<
    ReturnType<ModuleBuilder['function']>['op']
  >[0][]
  for (const name of plain.filter((one) => hasRelaxed || !one.includes('relaxed')))
    expect(
      accepted((f) => f.op(name)),
      name,
    ).toBe(true)
  for (const name of Object.keys(laneOps) as (keyof typeof laneOps)[])
    expect(
      accepted((f) => f.lane(name, 1)),
      name,
    ).toBe(true)
  for (const name of [...Object.keys(memoryOps), ...Object.keys(simdMemoryOps)] as (keyof typeof memoryOps)[])
    expect(
      accepted((f) => f.memory(name, 300)),
      name,
    ).toBe(true)
  for (const name of Object.keys(laneMemoryOps) as (keyof typeof laneMemoryOps)[])
    expect(
      accepted((f) => f.laneMemory(name, 1, 300)),
      name,
    ).toBe(true)
})

describe('a module', () => {
  const bytesOf = (m: ModuleBuilder): number[] => [...m.finish()]

  test('is written section by section; equal types are written once', () => {
    const m = new ModuleBuilder()
    m.importMemory()
    const g = m.importFunction('env', 'g', ['i32'], [])
    const f = m.function(['i32'], [], 'f')
    f.get(0)
    f.call(g)
    m.function(['i32'], [])
    expect(bytesOf(m)).toEqual([
      ...[0x00, 0x61, 0x73, 0x6d, 1, 0, 0, 0],
      // One type: i32 -> nothing.
      ...[1, 5, 1, 0x60, 1, 0x7f, 0],
      // env.memory with at least 0 pages; env.g of type 0.
      ...[2, 23, 2, 3, 0x65, 0x6e, 0x76, 6, 0x6d, 0x65, 0x6d, 0x6f, 0x72, 0x79, 2, 0, 0, 3, 0x65, 0x6e, 0x76, 1, 0x67, 0, 0],
      // Two functions of type 0; the first is exported as f, with index 1.
      ...[3, 3, 2, 0, 0],
      ...[7, 5, 1, 1, 0x66, 0, 1],
      // Bodies: get 0, call 0, end; end.
      ...[10, 11, 2, 6, 0, 0x20, 0, 0x10, 0, 0x0b, 2, 0, 0x0b],
    ])
  })

  test('may import shared memory with a maximum', () => {
    const m = new ModuleBuilder()
    m.importMemory(300)
    const shared = new WebAssembly.Memory({ initial: 1, maximum: 300, shared: true })
    const plain = new WebAssembly.Memory({ initial: 1, maximum: 300 })
    const instantiate = (memory: WebAssembly.Memory): unknown => new WebAssembly.Instance(new WebAssembly.Module(m.finish()), { env: { memory } })
    expect(() => instantiate(shared)).not.toThrow()
    expect(() => instantiate(plain)).toThrow(WebAssembly.LinkError)
  })

  test('takes imports only before its functions', () => {
    const m = new ModuleBuilder()
    m.function([], [])
    expect(() => m.importFunction('math', 'sin', ['f64'], ['f64'])).toThrow("the import of math.sin must come before the module's own functions")
  })

  test('groups locals of one type that follow each other', () => {
    const m = new ModuleBuilder()
    const f = m.function(['f32'], [])
    expect([f.local('i32'), f.local('i32'), f.local('v128'), f.local('i32')]).toEqual([1, 2, 3, 4])
    expect([...f.finish()]).toEqual([3, 2, 0x7f, 1, 0x7b, 1, 0x7f, 0x0b])
  })
})

describe('instructions', () => {
  const codeOf = (write: (f: ReturnType<ModuleBuilder['function']>) => void): number[] => {
    const f = new ModuleBuilder().function([], [])
    write(f)
    // Without the count of locals and the end.
    return [...f.finish()].slice(1, -1)
  }

  test('have the opcodes of the specification', () => {
    expect(codeOf((f) => f.ops('i32.add', 'i32.trunc_sat_f64_s', 'v128.and', 'f32x4.add', 'f64x2.convert_low_i32x4_s'))).toEqual([
      0x6a, 0xfc, 2, 0xfd, 78, 0xfd, 0xe4, 1, 0xfd, 0xfe, 1,
    ])
    expect(codeOf((f) => f.memory('i32.load', 200))).toEqual([0x28, 2, 0xc8, 1])
    // The alignment is that of an element.
    expect(codeOf((f) => f.memory('v128.load'))).toEqual([0xfd, 0, 2, 0])
    expect(codeOf((f) => f.memory('i32.store8', 1))).toEqual([0x3a, 0, 1])
    expect(codeOf((f) => f.laneMemory('v128.store64_lane', 1, 3))).toEqual([0xfd, 91, 2, 3, 1])
    expect(codeOf((f) => f.lane('f32x4.replace_lane', 3))).toEqual([0xfd, 32, 3])
    expect(codeOf((f) => f.shuffle32(0, 4, 1, 5))).toEqual([0xfd, 13, 0, 1, 2, 3, 16, 17, 18, 19, 4, 5, 6, 7, 20, 21, 22, 23])
  })

  test('have their constants', () => {
    expect(codeOf((f) => f.f32Const(-2))).toEqual([0x43, 0, 0, 0, 0xc0])
    expect(codeOf((f) => f.f64Const(1))).toEqual([0x44, 0, 0, 0, 0, 0, 0, 0xf0, 0x3f])
    expect(codeOf((f) => f.f32x4Const(1))).toEqual([0xfd, 12, ...[0, 1, 2, 3].flatMap(() => [0, 0, 0x80, 0x3f])])
    expect(codeOf((f) => f.f64x2Const(1))).toEqual([0xfd, 12, ...[0, 1].flatMap(() => [0, 0, 0, 0, 0, 0, 0xf0, 0x3f])])
    expect(codeOf((f) => f.i32x4Lanes(1, -1, 256, 0x01020304))).toEqual([0xfd, 12, 1, 0, 0, 0, 255, 255, 255, 255, 0, 1, 0, 0, 4, 3, 2, 1])
    expect(codeOf((f) => f.i32x4Const(7))).toEqual([0xfd, 12, ...[0, 1, 2, 3].flatMap(() => [7, 0, 0, 0])])
  })

  test('of i64 have constants of every length', () => {
    for (const value of [0n, 63n, 64n, -64n, -65n, 2n ** 62n, -(2n ** 63n), 2n ** 63n - 1n]) {
      const m = new ModuleBuilder()
      m.function([], ['i64'], 'f').i64Const(value)
      const { f } = exportsOf(m)
      expect(f?.()).toBe(value)
    }
  })

  test('that are unknown are refused', () => {
    const name = 'f32.sinh' as 'f32.add'
    expect(() => codeOf((f) => f.op(name))).toThrow('the assembler does not know the instruction f32.sinh; add it to opcodes.ts')
    expect(() => codeOf((f) => f.memory('f32.gather' as 'f32.load'))).toThrow('the assembler does not know the instruction f32.gather')
  })

  test('jump out of nested blocks and to the start of loops', () => {
    expect(
      codeOf((f) =>
        f.block((outer) =>
          f.loop((again) =>
            f.if(
              () => (f.br(outer), f.brIf(again)),
              () => f.br(again),
            ),
          ),
        ),
      ),
    ).toEqual([...[0x02, 0x40, 0x03, 0x40, 0x04, 0x40], ...[0x0c, 2, 0x0d, 1, 0x05, 0x0c, 1], ...[0x0b, 0x0b, 0x0b]])
    expect(codeOf((f) => f.block((end) => (f.block(() => {}), f.br(end))))).toEqual([0x02, 0x40, 0x02, 0x40, 0x0b, 0x0c, 0, 0x0b])
  })

  test('of the prologue come first, also those added in between', () => {
    const code = codeOf((f) => {
      f.i32Const(1)
      f.prologue(() => f.i32Const(2))
      f.i32Const(3)
      f.prologue(() => f.i32Const(4))
    })
    expect(code).toEqual([0x41, 2, 0x41, 4, 0x41, 1, 0x41, 3])
  })
})

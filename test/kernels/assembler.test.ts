// The assembler: what it writes must be valid and must run.
import { expect, test } from 'vitest'
import { ModuleBuilder } from '../../src/kernels/wasm/assembler.ts'
import { laneMemoryOps, laneOps, memoryOps, plainOps, saturatingOps, simdMemoryOps, simdOps } from '../../src/kernels/wasm/opcodes.ts'
import type { ValueType } from '../../src/kernels/wasm/assembler.ts'

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
  for (const name of plain)
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

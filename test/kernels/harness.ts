// Runs a kernel as WebAssembly on a memory of its own, next to the reference interpreter.
import { dtypeInfo } from '../../src/kernels/numbers/dtype.ts'
import type { DType, ElementValue, StorageArray } from '../../src/kernels/numbers/dtype.ts'
import { readElement, writeElement } from '../../src/kernels/numbers/elements.ts'
import type { Kernel } from '../../src/kernels/ir/loopIr.ts'
import { rareOps } from '../../src/kernels/scalars/rareOps.ts'
import { runReference } from '../../src/kernels/ir/reference.ts'
import { addScalarOps, hostFunctions } from '../../src/kernels/scalars/scalarOps.ts'
import { scratchBytes } from '../../src/kernels/ir/scratchLayout.ts'
import { verifyKernel } from '../../src/kernels/ir/verify.ts'
import { emitKernel } from '../../src/kernels/emit/emit.ts'

addScalarOps(rareOps)

export type Args = Readonly<Record<string, StorageArray | number>>

/** An array of elements of a dtype: `values`, stored as it stores them, or that many zeros. */
export function arrayOf(dtype: DType, values: number | readonly ElementValue[]): StorageArray {
  const Type = dtypeInfo[dtype].array
  if (typeof values === 'number') return new Type(values)
  const data = new Type(values.length)
  values.forEach((value, i) => writeElement(dtype, data, i, value))
  return data
}

/** The elements of an array: bigints for int64, otherwise numbers. */
export const valuesOf = (dtype: DType, data: StorageArray = new Uint8Array()): readonly ElementValue[] =>
  Array.from({ length: data.length }, (_, i) => readElement(dtype, data, i) ?? NaN)

/** The elements of an array as numbers. */
export const numbersOf = (dtype: DType, data: StorageArray | undefined): readonly number[] => valuesOf(dtype, data).map(Number)

/** Runs the module; returns copies of the buffers afterwards. Throws when a byte outside the buffers changed. */
export function runWasm(kernel: Kernel, args: Args, wasm: Uint8Array = emitKernel(kernel)): Record<string, StorageArray> {
  const buffers = kernel.params.filter((p) => p.kind === 'buffer').map((p) => [p.name, args[p.name] as StorageArray] as const)
  const ownBytes = scratchBytes(kernel, ({ name }) => Number(args[name]))
  const memory = new WebAssembly.Memory({
    initial: 1 + Math.ceil(buffers.reduce((n, [, data]) => n + data.byteLength + 64, 8192 + ownBytes) / 65536),
  })
  new Uint8Array(memory.buffer).fill(0xa5)
  let top = 1024
  const places = new Map<string, number>()
  for (const [name, data] of buffers) {
    new Uint8Array(memory.buffer, top).set(new Uint8Array(data.buffer, data.byteOffset, data.byteLength))
    places.set(name, top)
    top = (top + data.byteLength + 32 + 15) & ~15
  }
  const instance = new WebAssembly.Instance(new WebAssembly.Module(wasm as BufferSource), {
    env: { memory },
    math: hostFunctions,
  })
  const run = instance.exports['run'] as (...args: number[]) => void
  // Scratch memory begins between two cache lines.
  const own = ownBytes === 0 ? [] : [top + 24]
  run(...kernel.params.map((p) => (p.kind === 'buffer' ? (places.get(p.name) as number) : (args[p.name] as number))), ...own)
  const bytes = new Uint8Array(memory.buffer)
  const result: Record<string, StorageArray> = {}
  for (const [name, data] of buffers) {
    const start = places.get(name) as number
    const dtype = (kernel.params.find((p) => p.name === name) as { dtype: DType }).dtype
    const copy = bytes.slice(start, start + data.byteLength)
    result[name] = new dtypeInfo[dtype].array(copy.buffer)
    bytes.fill(0xa5, start, start + data.byteLength)
  }
  for (const start of own) bytes.fill(0xa5, start, start + ownBytes)
  const stray = bytes.findIndex((byte) => byte !== 0xa5)
  if (stray >= 0) throw new Error(`the kernel wrote to byte ${stray}, outside its buffers`)
  return result
}

/** Runs the reference interpreter; returns copies of the buffers afterwards. */
export function runOracle(kernel: Kernel, args: Args): Record<string, StorageArray> {
  const copies = Object.fromEntries(Object.entries(args).map(([name, value]) => [name, typeof value === 'number' ? value : value.slice()]))
  runReference(kernel, copies)
  return Object.fromEntries(Object.entries(copies).filter((entry) => typeof entry[1] !== 'number')) as Record<string, StorageArray>
}

/** Verifies the kernel, runs it both ways and returns both results. */
export function runBoth(kernel: Kernel, args: Args): { readonly wasm: Record<string, StorageArray>; readonly oracle: Record<string, StorageArray> } {
  verifyKernel(kernel)
  return { wasm: runWasm(kernel, args), oracle: runOracle(kernel, args) }
}

/** The largest difference in units of the last place of float32 (0 for equal, both NaN, or zeros of either sign). */
export function maxUlps(actual: ArrayLike<number>, expected: ArrayLike<number>): number {
  let worst = 0
  const order = (x: number): number => {
    const bits = new Int32Array(new Float32Array([x]).buffer)[0] as number
    return bits < 0 ? -2147483648 - bits : bits
  }
  for (let i = 0; i < expected.length; i++) {
    const [a, e] = [actual[i] as number, expected[i] as number]
    if (Number.isNaN(a) && Number.isNaN(e)) continue
    worst = Math.max(worst, Number.isNaN(a) || Number.isNaN(e) ? Infinity : Math.abs(order(a) - order(Math.fround(e))))
  }
  return worst
}

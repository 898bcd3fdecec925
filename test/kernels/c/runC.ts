// Runs kernels as C on a memory of their own: a batch is one translation unit, which the compiler that is there compiles once.
import { execFileSync, spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import koffi from 'koffi'
import { cSignature, emitSource } from '../../../src/kernels/c/emitC.ts'
import { currentEngine } from '../../../src/kernels/engine/engine.ts'
import type { Kernel } from '../../../src/kernels/ir/loopIr.ts'
import { scratchBytes } from '../../../src/kernels/ir/scratchLayout.ts'
import { dtypeInfo } from '../../../src/kernels/numbers/dtype.ts'
import type { DType, StorageArray } from '../../../src/kernels/numbers/dtype.ts'
import type { Args } from '../harness.ts'

const compiler = process.env['CC'] ?? 'cc'

/** Whether there is a C compiler. */
export const hasCompiler = spawnSync(compiler, ['--version']).status === 0

export interface CaseInC {
  readonly what: string
  readonly kernel: Kernel
  readonly args: Args
  /** The kernel that WebAssembly code is made of, where that is another. */
  readonly inWasm?: Kernel
}

/** Runs kernels; of each, copies of the buffers afterwards. Throws when a byte outside the buffers changed. `flags` are more flags of the compiler. */
export function runInC(cases: readonly CaseInC[], flags: readonly string[] = ['-O1']): readonly Record<string, StorageArray>[] {
  const folder = mkdtempSync(join(tmpdir(), 'tensorfx-c-'))
  try {
    const source = emitSource(
      cases.map(({ kernel }, i) => ({ kernel, name: `k${i}` })),
      currentEngine() === 'wasm-relaxed',
    )
    writeFileSync(join(folder, 'k.c'), source)
    const options = [
      '-march=native',
      '-fwrapv',
      '-fno-strict-aliasing',
      '-fno-math-errno',
      '-fno-trapping-math',
      '-ffp-contract=off',
      '-fPIC',
      '-shared',
      '-w',
    ]
    execFileSync(compiler, [...flags, ...options, '-o', join(folder, 'k.so'), join(folder, 'k.c'), '-lm'], { stdio: ['ignore', 'ignore', 'pipe'] })
    const library = koffi.load(join(folder, 'k.so'))
    const setHeap = library.func('void tfx_setHeap(void *heap)')
    return cases.map(({ kernel, args, what }, i) => {
      try {
        return runOne(kernel, args, (memory, values) => {
          setHeap(memory)
          library.func(`void k${i}(${cSignature(kernel).join(', ')})`)(...values)
        })
      } catch (cause) {
        throw new Error(`${what}: ${String(cause)}`, { cause })
      }
    })
  } finally {
    rmSync(folder, { recursive: true })
  }
}

function runOne(kernel: Kernel, args: Args, call: (memory: Uint8Array, values: readonly number[]) => void): Record<string, StorageArray> {
  const buffers = kernel.params.filter((p) => p.kind === 'buffer').map((p) => [p.name, args[p.name] as StorageArray] as const)
  const ownBytes = scratchBytes(kernel, ({ name }) => Number(args[name]))
  const memory = new Uint8Array(buffers.reduce((n, [, data]) => n + data.byteLength + 64, 8192 + ownBytes)).fill(0xa5)
  let top = 1024
  const places = new Map<string, number>()
  for (const [name, data] of buffers) {
    memory.set(new Uint8Array(data.buffer, data.byteOffset, data.byteLength), top)
    places.set(name, top)
    top = (top + data.byteLength + 32 + 15) & ~15
  }
  const own = ownBytes === 0 ? [] : [top + 24]
  call(memory, [...kernel.params.map((p) => (p.kind === 'buffer' ? (places.get(p.name) ?? 0) : (args[p.name] as number))), ...own])
  const result: Record<string, StorageArray> = {}
  for (const [name, data] of buffers) {
    const start = places.get(name) ?? 0
    const dtype = (kernel.params.find((p) => p.name === name) as { dtype: DType }).dtype
    const copy = memory.slice(start, start + data.byteLength)
    result[name] = new dtypeInfo[dtype].array(copy.buffer)
    memory.fill(0xa5, start, start + data.byteLength)
  }
  for (const start of own) memory.fill(0xa5, start, start + ownBytes)
  const stray = memory.findIndex((byte) => byte !== 0xa5)
  if (stray >= 0) throw new Error(`the kernel wrote to byte ${stray}, outside its buffers`)
  return result
}

// Every schedule on 300 drawn problems, a tenth of them in each run, with every tile of its list and on both engines: against what plain loops compute, and against the reference interpreter
// on the same kernel, which has at most 8 KB. A schedule without problems fails by its name: draw them in problems/, and name them here. The bytes of some kernels, and of their
// scratch memory, are recorded: what takes more fails, so that longer code than before is noticed: see recordedBytes.ts.
import { readFileSync, readdirSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { hashOf, randomFrom } from '../../../scripts/fuzz/random.mjs'
import { withStrict } from '../../../src/kernels/engine/computing.ts'
import { processEngine } from '../../../src/kernels/engine/engine.ts'
import type { EngineName } from '../../../src/kernels/engine/computing.ts'
import { dtypeInfo } from '../../../src/kernels/numbers/dtype.ts'
import type { DType, ElementValue, StorageArray } from '../../../src/kernels/numbers/dtype.ts'
import { printKernel } from '../../../src/kernels/ir/print.ts'
import { verifyKernel } from '../../../src/kernels/ir/verify.ts'
import { scratchBytes } from '../../../src/kernels/ir/scratchLayout.ts'
import { emitKernel } from '../../../src/kernels/emit/emit.ts'
import { tenth } from '../../helpers/rotation.ts'
import { runOracle, runWasm, valuesOf } from '../harness.ts'
import { problemsOf } from '../problems/all.ts'
import { expectNoMore, recordedBytes } from '../recordedBytes.ts'

const PROBLEMS = 300
/** The most bytes of a kernel, on any problem. */
const MOST_BYTES = 8192

/** How many problems of each schedule have recorded bytes. */
const RECORDED = 6

const folder = new URL('../../../src/kernels/schedules/', import.meta.url)
/** What the folder of schedules exports that is one, or builds a kernel. */
const schedules = readdirSync(folder)
  .flatMap((file) => [
    ...readFileSync(new URL(file, folder), 'utf8').matchAll(/^export (?:const (\w+): \w*Schedule\b|function (\w+)\([^)]*\): Kernel\b)/gm),
  ])
  .map(([, schedule, builder]) => schedule ?? builder ?? '')

/** The elements of an array that holds a dtype's, whatever the kernel took them for. */
const elementsOf = (dtype: DType, data: StorageArray = new Uint8Array()): readonly ElementValue[] =>
  valuesOf(dtype, new dtypeInfo[dtype].array(data.buffer))

const isClose = (got: ElementValue | undefined, wanted: ElementValue | undefined, tolerance: number): boolean => {
  if (got === wanted || (Number.isNaN(got) && Number.isNaN(wanted))) return true
  if (typeof got !== 'number' || typeof wanted !== 'number') return false
  // Sums of subnormal numbers and others depend on their order.
  return Math.abs(got - wanted) <= tolerance * (1 + Math.abs(wanted)) + 2 ** -120
}

/** Fails at the first element that is not as it should be. */
function expectClose(got: readonly ElementValue[], wanted: readonly ElementValue[], tolerance: number, what: string): void {
  expect(got.length, what).toBe(wanted.length)
  const at = wanted.findIndex((value, i) => !isClose(got[i], value, tolerance))
  if (at >= 0) expect(got[at], `${what}: element ${at}`).toBe(wanted[at])
}

describe('every schedule', () => {
  test('has problems', () => {
    expect(Object.keys(problemsOf).toSorted()).toEqual(schedules.toSorted())
  })

  test.each(Object.entries(problemsOf))('has kernels that take no more bytes than is recorded, nor does their scratch memory: %s', (name, draw) => {
    const found = (['wasm-relaxed', 'wasm'] satisfies EngineName[]).map((engine) =>
      Array.from({ length: RECORDED }, (_, i) => {
        const { kernels, args } = draw(randomFrom(hashOf(`bytes of ${name} ${i}`)))
        return kernels(engine).flatMap(({ kernel }) => [
          withStrict(engine === 'wasm', () => emitKernel(kernel)).length,
          scratchBytes(kernel, (param) => Number(args[param.name])),
        ])
      }),
    )
    // Without relaxed SIMD there is plain code alone, which is longer.
    const own = (lists: typeof found): readonly number[] => (processEngine() === 'wasm-relaxed' ? lists.flat(2) : (lists[1]?.flat() ?? []))
    expectNoMore(own(found), own(recordedBytes(name, found)), `bytes of ${name}`)
  })

  test.each(schedules.filter((name) => Object.hasOwn(problemsOf, name)))('computes what plain loops and the reference interpreter do: %s', (name) => {
    const draw = problemsOf[name]
    if (draw === undefined) throw new Error(`no problems of ${name}`)
    for (const id of tenth(
      Array.from({ length: PROBLEMS }, (_, i) => `${name} ${i}`),
      (one) => one,
    )) {
      const { what, kernels, args, expected, dtypes = {}, tolerance = 0 } = draw(randomFrom(hashOf(id)))
      const interpreted = new Map<string, ReturnType<typeof runOracle>>()
      for (const engine of ['wasm-relaxed', 'wasm'] satisfies EngineName[]) {
        for (const { tile, kernel } of kernels(engine)) {
          const where = `${id}, ${engine}, ${tile}, ${what}`
          const oracle = interpreted.get(printKernel(kernel)) ?? runOracle(kernel, args)
          interpreted.set(printKernel(kernel), oracle)
          verifyKernel(kernel)
          const module = withStrict(engine === 'wasm', () => emitKernel(kernel))
          expect(module.length, `bytes of ${where}`).toBeLessThanOrEqual(MOST_BYTES)
          const wasm = runWasm(kernel, args, module)
          for (const param of kernel.params) {
            if (param.kind !== 'buffer') continue
            const dtype = dtypes[param.name] ?? param.dtype
            const [right, got] = [elementsOf(dtype, oracle[param.name]), elementsOf(dtype, wasm[param.name])]
            expectClose(got, right, tolerance, `${where}, ${param.name} as the interpreter computes it`)
            const plain = expected[param.name]
            if (plain !== undefined) expectClose(got, Array.from<ElementValue>(plain), tolerance, `${where}, ${param.name}`)
          }
        }
      }
    }
  })
})

// No two chunks of a loop touch what one of them writes, in any order, and the chunks compute what the whole kernel does: every schedule on drawn problems, a tenth of them each day.
import { describe, expect, test } from 'vitest'
import { hashOf, randomFrom } from '../../../scripts/fuzz/random.mjs'
import { bufferParam, call, constant, forLoop, load, loopVar, store } from '../../../src/kernels/ir/loopIr.ts'
import type { ForStmt, Kernel } from '../../../src/kernels/ir/loopIr.ts'
import { tenth } from '../../helpers/rotation.ts'
import { arrayOf, runOracle, valuesOf } from '../harness.ts'
import type { Args } from '../harness.ts'
import { problemsOf } from '../problems/all.ts'
import { sanitized } from './sanitizer.ts'

const copied = (args: Args): Args => {
  const copies = new Map<unknown, Args[string]>()
  return Object.fromEntries(
    Object.entries(args).map(([name, value]) => {
      if (typeof value === 'number') return [name, value]
      if (!copies.has(value)) copies.set(value, value.slice())
      return [name, copies.get(value) ?? value]
    }),
  )
}

const PROBLEMS = 40
/** Schedules of which no kernel has a loop that is divided. */
const WHOLE: readonly string[] = ['resample']

describe('the chunks of every schedule are apart, and compute what the whole kernel does', () => {
  test.each(Object.entries(problemsOf))('%s', (name, draw) => {
    let divided = 0
    const ids = tenth(
      Array.from({ length: PROBLEMS }, (_, i) => `threads ${name} ${i}`),
      (one) => one,
    )
    for (const id of ids) {
      const { what, kernels, args } = draw(randomFrom(hashOf(id)))
      // Machine code has tiles of its own.
      for (const engine of ['wasm', 'native16'] as const) {
        const [built] = kernels(engine)
        if (built === undefined) continue
        const { kernel, tile } = built
        const right = runOracle(kernel, copied(args))
        for (const how of [
          { grain: 1, outer: true },
          { grain: 1, outer: false },
          { grain: 3, outer: true },
        ]) {
          const own = copied(args)
          const found = sanitized(kernel, own, how)
          if (found === null) continue
          divided += found.divided
          expect(found.conflicts.slice(0, 3), `${id}, ${tile}, ${what}`).toEqual([])
          for (const param of kernel.params)
            if (param.kind === 'buffer')
              expect(valuesOf(param.dtype, own[param.name] as never), `${id}, ${param.name}`).toEqual(valuesOf(param.dtype, right[param.name]))
        }
      }
    }
    expect(divided > 0).toBe(!WHOLE.includes(name))
  })
})

const oneByOne = { grain: 1, outer: true }

describe('loops that are not apart', () => {
  const x = bufferParam('x', 'float32', 'read')
  const out = bufferParam('out', 'float32', 'readwrite')
  const i = loopVar('i', 16)
  const at = (stride: number, base = 0) => ({ base, terms: [{ loop: i, stride }], dynamic: [] })
  const kernelOf = (...body: ForStmt['body']): Kernel => ({ name: 'planted', params: [x, out], body: [forLoop(i, 'serial', body)] })
  const planted: Readonly<Record<string, Kernel>> = {
    'two iterations write one element': kernelOf(store(out, at(1), constant('float32', 1)), store(out, at(1, 1), load(x, at(1)))),
    'an iteration reads what the one before wrote': kernelOf(store(out, at(1, 1), call('add', load(out, at(1)), load(x, at(1))))),
    'an iteration reads what a later one writes': kernelOf(store(out, at(1), load(out, at(2, 1)))),
  }
  const args = (): Args => ({
    x: arrayOf(
      'float32',
      Array.from({ length: 40 }, (_, n) => n),
    ),
    out: arrayOf('float32', 40),
  })

  test.each(Object.entries(planted))('%s: it is not divided, and the conflict is found where it is', (_, kernel) => {
    expect(sanitized(kernel, args(), oneByOne)).toMatchObject({ divided: 0, conflicts: [] })
    const forced = sanitized(kernel, args(), oneByOne, () => ({ apart: true, repeatable: true }))
    expect(forced?.divided).toBe(1)
    expect(forced?.conflicts.length).toBeGreaterThan(0)
  })

  test('a tensor that is read and written at different places under two names', () => {
    const kernel = kernelOf(store(out, at(1), load(x, at(1, 1))))
    const one = arrayOf('float32', 40)
    expect(sanitized(kernel, { x: one, out: one }, oneByOne)).toMatchObject({ divided: 0, conflicts: [] })
    expect(sanitized(kernel, args(), oneByOne)).toMatchObject({ divided: 1, conflicts: [] })
    expect(sanitized(kernel, { x: one, out: one }, oneByOne, () => ({ apart: true, repeatable: true }))?.conflicts.length).toBeGreaterThan(0)
  })
})

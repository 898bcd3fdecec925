// The greatest and the least of float32 values in vectors: NaN wherever it stands, infinities, subnormals, and the sign of zero, as Math.max and Math.min have them.
import { expect, test } from 'vitest'
import { randomFrom } from '../../../scripts/fuzz/random.mjs'
import {
  accumulate,
  at,
  bufferParam,
  declare,
  forLoop,
  identityOf,
  load,
  local,
  loopVar,
  read,
  sizeParam,
  store,
} from '../../../src/kernels/ir/loopIr.ts'
import type { Kernel, SizeParam } from '../../../src/kernels/ir/loopIr.ts'
import { arrayOf, numbersOf, runWasm } from '../harness.ts'

const VALUES = [0, -0, 1, -1, Infinity, -Infinity, 1e-45, -1e-45, 3.5, -3.5].map(Math.fround)

const ROWS = 40

/** The extreme of each row. */
function extremeKernel(combine: 'max' | 'min', n: number | SizeParam): Kernel {
  const [out, a, r, i] = [bufferParam('out', 'float32', 'write'), bufferParam('a', 'float32'), loopVar('r', ROWS), loopVar('i', n)]
  const found = local('found', 'float32')
  return {
    name: combine,
    params: [out, a, ...(typeof n === 'number' ? [] : [n])],
    body: [
      forLoop(r, 'serial', [
        declare(found, identityOf(combine, 'float32')),
        forLoop(i, 'simd', [accumulate(found, combine, load(a, at([r, n], [i, 1])))]),
        store(out, at([r, 1]), read(found)),
      ]),
    ],
  }
}

test.each(['max', 'min'] as const)('%s of any of these values, at any place of any length', (combine) => {
  const { int, pick, chance } = randomFrom(combine === 'max' ? 11 : 12)
  const fold = combine === 'max' ? Math.max : Math.min
  for (const n of [0, 1, 3, 4, 5, 8, 15, 16, 17, 20, 31, 37, 67]) {
    const rows = Array.from({ length: ROWS }, () => {
      // Few kinds of values in a row: all zeros, all negative, all infinite.
      const kinds = Array.from({ length: 1 + int(3) }, () => pick(VALUES))
      const values = Array.from({ length: n }, () => pick(kinds))
      if (n > 0 && chance(0.3)) values[int(n)] = NaN
      return values
    })
    const kernel = extremeKernel(combine, chance(0.6) ? n : sizeParam('n'))
    const { out } = runWasm(kernel, { out: arrayOf('float32', ROWS), a: arrayOf('float32', rows.flat()), n })
    const found = numbersOf('float32', out)
    for (const [r, values] of rows.entries()) {
      const expected = values.reduce((x, y) => fold(x, y), combine === 'max' ? -Infinity : Infinity)
      expect(Object.is(found[r], expected), `${combine} of ${values.map((x) => (Object.is(x, -0) ? '-0' : x)).join(' ')}: ${found[r]}`).toBe(true)
    }
  }
})

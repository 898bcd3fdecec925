// Where symbolic traces run, sizes are not compared by hand: a symbol is an object. A planted file shows which comparisons are found.
import { expect, it } from 'vitest'
import { comparisonsOfSizes } from '../../scripts/house/sizes.mjs'

const PLANTED = 'src/ops/shared/planted.ts'

/** Each line that ends with a mark compares sizes by hand. */
const planted = `
import type { Size } from '../../protocol/index.ts'
import type { Arg } from '../../dispatch/index.ts'
import { sizeEq, Tensor } from '../../tensor/index.ts'

export function asked(x: Tensor, dim: number, known: readonly Size[], arg: Arg, other: Arg, mode: string | Size): readonly boolean[] {
  const [first = 0, second] = x.symSizes
  return [
    x.symNumel === 0, // by hand
    first === 1, // by hand
    second !== known[0], // by hand
    3 === x.symSteps[dim], // by hand
    x.symOffset !== dim, // by hand
    first < 3, // by hand
    dim >= first, // by hand
    mode === known[1], // by hand
    sizeEq(first, 1),
    second === undefined,
    known[0] === -1,
    mode === 'same',
    typeof first === 'number' && first === 1,
    x.ndim === 2,
    dim < known.length,
    arg === other,
    arg === true,
  ]
}
`

it('comparisons of sizes are found, and there are none', () => {
  const marked = planted
    .split('\n')
    .flatMap((line, i) => (line.endsWith('// by hand') ? [`${PLANTED}:${i + 1} ${line.trim().replace(', // by hand', '')}`] : []))
  expect(comparisonsOfSizes({ [PLANTED]: planted })).toEqual(marked)
  expect(marked).toHaveLength(8)
})

// A kernel for one head as a kernel for several, which threads share.
import { forLoop, loopVar, sizeParam } from '../ir/loopIr.ts'
import type { Kernel, Memory, SizeParam } from '../ir/loopIr.ts'
import { apart } from './substitute.ts'

/**
 * What a kernel computes for one head, for the heads of a grid: those of several texts, which lie in other distances than the heads of one. Params: those of the kernel, the rows of the grid,
 * which threads share, and its columns; then for each buffer, in their order, the elements from the head of one row to that of the next, and then for each the same of columns. What is
 * written must be apart.
 */
export function overHeads({ name, params, body }: Kernel): Kernel {
  const [rows, columns] = [sizeParam('headRows'), sizeParam('headColumns')]
  const stepsOf = (along: string): ReadonlyMap<Memory, SizeParam> =>
    new Map(params.flatMap((param) => (param.kind === 'buffer' ? [[param, sizeParam(`${param.name}${along}`)] as const] : [])))
  const [ofRow, ofColumn] = [stepsOf('Row'), stepsOf('Column')]
  const [row, column] = [loopVar('headRow', rows), loopVar('headColumn', columns)]
  const inColumn = apart(apart(body, column, ofColumn), row, ofRow)
  return {
    name: `${name}_heads`,
    params: [...params, rows, columns, ...ofRow.values(), ...ofColumn.values()],
    body: [forLoop(row, 'parallel', [forLoop(column, 'serial', inColumn)])],
  }
}

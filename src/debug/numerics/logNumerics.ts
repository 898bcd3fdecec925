// logNumerics: what the values of a run look like, node by node.
import { checkCount } from '../../protocol/index.ts'
import type { GraphModule, Node } from '../../fx/index.ts'
import type { DType } from '../../kernels/index.ts'
import { exactElements, formatShape } from '../../tensor/index.ts'
import type { Tensor } from '../../tensor/index.ts'
import { table } from '../common/table.ts'
import { targetText, visitValues } from './visitValues.ts'

/** The numbers of one tensor. Minimum, maximum and mean are those of its finite elements, NaN if there are none. */
export interface Statistics {
  readonly min: number
  readonly max: number
  readonly mean: number
  /** How many elements are NaN, and how many infinite. */
  readonly nans: number
  readonly infinities: number
}

/** One tensor of a run. */
export interface NumericsRow extends Statistics {
  readonly node: Node
  readonly dtype: DType
  readonly shape: readonly number[]
}

/** The rows of a run, in the order of the graph; a node with several tensors has several. `String(log)` is a table. */
export class NumericsLog {
  readonly rows: readonly NumericsRow[]

  constructor(rows: readonly NumericsRow[]) {
    this.rows = rows
  }

  toString(): string {
    const body = this.rows.map(({ node, dtype, shape, min, max, mean, nans, infinities }) => [
      node.name,
      targetText(node),
      `${dtype} ${formatShape(shape)}`,
      ...[min, max, mean].map(short),
      ...[nans, infinities].map(String),
    ])
    return table(['node', 'target', 'value', 'min', 'max', 'mean', 'NaN', 'infinite'], body)
  }
}

const short = (value: number): string => String(Number(value.toPrecision(4)))

/** The numbers of a tensor. */
export function statisticsOf(tensor: Tensor): Statistics {
  let [min, max, sum, finite, nans, infinities] = [Infinity, -Infinity, 0, 0, 0, 0]
  for (const element of Array.from(exactElements(tensor), Number)) {
    if (Number.isNaN(element)) nans++
    else if (!Number.isFinite(element)) infinities++
    else {
      finite++
      sum += element
      min = Math.min(min, element)
      max = Math.max(max, element)
    }
  }
  return finite === 0 ? { min: NaN, max: NaN, mean: NaN, nans, infinities } : { min, max, mean: sum / finite, nans, infinities }
}

/**
 * Runs a graph and records minimum, maximum, mean and the count of NaNs and infinities of every value. Neither the module nor the inputs are changed.
 *
 *     console.log(String(logNumerics(gm, inputs)))
 *
 * @throws ArgumentError if `gm` is not a GraphModule.
 */
export function logNumerics(gm: GraphModule, inputs: readonly unknown[]): NumericsLog {
  checkCount('logNumerics', arguments, 2)
  const rows: NumericsRow[] = []
  visitValues('logNumerics', gm, inputs, (node, tensors) => {
    for (const tensor of tensors) rows.push({ node, dtype: tensor.dtype, shape: tensor.shape, ...statisticsOf(tensor) })
  })
  return new NumericsLog(rows)
}

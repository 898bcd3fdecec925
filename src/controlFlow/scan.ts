// scan: a loop over the slices of tensors that carries values along, as data.
import { ArgumentError } from '../errors/index.ts'
import { checkCount, checkOptions } from '../protocol/index.ts'
import { checkSame, higherOrder, runBody } from './higherOrder.ts'
import type { Body } from './higherOrder.ts'
import { slicesOf, stacked } from './slices.ts'
import { ResultStructure, checkStructure, flatten } from './structure.ts'
import { checkFunction, checkTensors, inputFor, partOf, recordCall, tracerAmong } from './tracing.ts'

/** Options of `torch.scan`. */
export interface ScanOptions {
  /** The dimension of `xs` that is walked. Default 0. */
  readonly dim?: number
  /** Whether to walk from the last slice to the first; the results are in the order of the slices either way. Default false. */
  readonly reverse?: boolean
}

type ScanCall = readonly [
  combineGraph: Body,
  init: readonly unknown[],
  xs: readonly unknown[],
  dim: number,
  reverse: boolean,
  additional: readonly unknown[],
]

/** The operator in graphs: all lists are flat; the result is the last carry, then the stacked results. PyTorch's torch.ops.higher_order.scan. */
export const scanOp: (...call: ScanCall) => readonly unknown[] = higherOrder(
  'scan',
  (...[combineGraph, init, xs, dim, reverse, additional]: ScanCall): readonly unknown[] => {
    const slices = slicesOf('scan', xs, dim)
    const results: (readonly unknown[])[] = []
    let carry = init
    for (let step = 0; step < slices.count; step++) {
      const at = reverse ? slices.count - 1 - step : step
      const out = runBody(combineGraph, [...carry, ...slices.at(at), ...additional])
      carry = out.slice(0, init.length)
      checkSame('scan', init, 'init', carry, 'the carry that combineFn returns')
      results[at] = out.slice(init.length)
    }
    return [...carry, ...stacked('scan', results)]
  },
)

/**
 * Walks the slices of `xs`: `[carry, y] = combineFn(carry, x)`, beginning with `init`. Returns the last carry, and the ys stacked in a new first dimension.
 * `init`, `xs` and the ys are structures of tensors; the carry keeps its structure, shapes and dtypes. Differentiable. Traced, it is one node with `combineFn` as
 * child graph. Throws ArgumentError if xs have no slices, or different numbers of them. PyTorch's torch._higher_order_ops.scan.
 *
 *     const [total, sums] = scan((sum, x) => [sum.add(x), sum.add(x)], torch.zeros([3]), xs)
 */
export function scan<C, X, Y>(combineFn: (carry: C, x: X) => readonly [C, Y], init: C, xs: X, options: ScanOptions = {}): readonly [C, Y] {
  checkCount('scan', arguments, 4)
  checkFunction('scan', 'combineFn', combineFn)
  checkOptions('scan', options, { dim: 'number', reverse: 'boolean' })
  const { dim = 0, reverse = false } = options
  if (!Number.isInteger(dim)) throw new ArgumentError(`scan: options.dim must be an integer, got ${String(dim)}.`)
  const first = flatten(init)
  const slices = flatten(xs)
  const structure = new ResultStructure<readonly [C, Y]>('scan')
  const run = (values: readonly unknown[]): readonly unknown[] => {
    const n = first.leaves.length
    const result = combineFn(first.rebuild(values.slice(0, n)), slices.rebuild(values.slice(n, n + slices.leaves.length)))
    if (!Array.isArray(result) || result.length !== 2) throw new ArgumentError('scan: combineFn must return an array of two: [carry, y].')
    const [carry, y] = result
    checkStructure('scan', 'init', first.spec, 'the carry that combineFn returns', flatten(carry).spec)
    return structure.flatten([carry, y]).leaves
  }
  const tracer = tracerAmong('scan', [first.leaves, slices.leaves])
  if (tracer === null) {
    const result = scanOp((...values: readonly unknown[]) => run(values), first.leaves, slices.leaves, dim, reverse, [])
    return structure.known.rebuild(result)
  }
  checkTensors('scan', 'init', first.leaves)
  checkTensors('scan', 'xs', slices.leaves)
  const inputs = [...first.leaves.map(inputFor), ...slices.leaves.map(partOf)]
  return recordCall(
    tracer,
    scanOp,
    [{ prefix: 'scan_combine_graph_', inputs, run }],
    (modules, captured) => [...modules, first.leaves, slices.leaves, dim, reverse, captured],
    () => structure.known,
  )
}

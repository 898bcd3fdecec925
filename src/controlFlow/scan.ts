// scan: a loop over the slices of tensors that carries values along, as data.
import { ArgumentError } from '../errors/index.ts'
import { select, stack } from '../ops/index.ts'
import { isTensorLike } from '../protocol/index.ts'
import { countLeaves, treeFlatten, treeStructure, treeUnflatten } from '../pytree/index.ts'
import type { TreeSpec } from '../pytree/index.ts'
import type { Tensor } from '../tensor/index.ts'
import { checkSame, higherOrder, runBody } from './higherOrder.ts'
import type { Body } from './higherOrder.ts'
import { checkFunction, checkStructure, checkTensors, inputFor, partOf, recordCall, tracerAmong } from './tracing.ts'

/** Options of {@link scan}. */
export interface ScanOptions {
  /** The dimension of `xs` that is walked. Default 0. */
  readonly dim?: number
  /** Walk from the last slice to the first; the results stand where their slices stood. Default false. */
  readonly reverse?: boolean
}

/** How many slices all of these have. */
export function sliceCount(op: string, xs: readonly unknown[], dim: number): number {
  if (xs.length === 0 || !xs.every(isTensorLike)) throw new ArgumentError(`${op}: xs must hold at least one tensor, and nothing else.`)
  const sizes = (xs as readonly Tensor[]).map((x) => x.shape.at(dim))
  const [size] = sizes
  if (size === undefined || sizes.some((s) => s !== size))
    throw new ArgumentError(
      `${op}: all xs must have the same size in dimension ${dim}, got shapes ${(xs as readonly Tensor[]).map((x) => `[${x.shape.join(', ')}]`).join(', ')}.`,
    )
  if (size === 0) throw new ArgumentError(`${op}: xs must have at least one slice in dimension ${dim}.`)
  return size
}

/** The operator in graphs: all lists flat; the result is the last carry, then the stacked results. PyTorch's torch.ops.higher_order.scan. */
export const scanOp: (
  combineGraph: Body,
  init: readonly unknown[],
  xs: readonly unknown[],
  dim: number,
  reverse: boolean,
  additional: readonly unknown[],
) => readonly unknown[] = higherOrder(
  'scan',
  (
    combineGraph: Body,
    init: readonly unknown[],
    xs: readonly unknown[],
    dim: number,
    reverse: boolean,
    additional: readonly unknown[],
  ): readonly unknown[] => {
    const count = sliceCount('scan', xs, dim)
    const results: (readonly unknown[])[] = []
    let carry = init
    for (let step = 0; step < count; step++) {
      const at = reverse ? count - 1 - step : step
      const out = runBody(combineGraph, [...carry, ...(xs as readonly Tensor[]).map((x) => select(x, dim, at)), ...additional])
      carry = out.slice(0, init.length)
      checkSame('scan', init, 'init', carry, 'the carry that combineFn returns')
      results[at] = out.slice(init.length)
    }
    return [...carry, ...stacked(results)]
  },
)

/** One tensor per value, with a new first dimension. */
export const stacked = (rows: readonly (readonly unknown[])[]): readonly Tensor[] =>
  (rows[0] as readonly unknown[]).map((_, i) => stack(rows.map((row) => row[i] as Tensor)))

/**
 * Walks the slices of `xs`: `[carry, y] = combineFn(carry, x)`, beginning with `init`. Returns the last carry, and the ys stacked in a new first dimension.
 * `init`, `xs` and the ys are structures of tensors; the carry keeps its structure, shapes and dtypes. Differentiable. Traced, it is one node with `combineFn` as child
 * graph. Throws ArgumentError for xs without slices, or of different sizes. PyTorch's torch._higher_order_ops.scan.
 *
 *     const [total, sums] = scan((sum, x) => [sum.add(x), sum.add(x)], torch.zeros([3]), xs)
 */
export function scan<C, X, Y>(combineFn: (carry: C, x: X) => readonly [C, Y], init: C, xs: X, options: ScanOptions = {}): [C, Y] {
  checkFunction('scan', 'combineFn', combineFn)
  const { dim = 0, reverse = false } = options
  if (!Number.isInteger(dim)) throw new ArgumentError(`scan: options.dim must be an integer, got ${String(dim)}.`)
  const first = treeFlatten(init)
  const slices = treeFlatten(xs)
  let ySpec: TreeSpec | null = null
  const run = (values: readonly unknown[]): readonly unknown[] => {
    const n = first.leaves.length
    const carry = treeUnflatten(values.slice(0, n), first.spec) as C
    const result: unknown = combineFn(carry, treeUnflatten(values.slice(n, n + slices.leaves.length), slices.spec) as X)
    if (!Array.isArray(result) || result.length !== 2) throw new ArgumentError('scan: combineFn must return an array of two: [carry, y].')
    const next = treeFlatten(result[0])
    checkStructure('scan', 'init', first.spec, 'the carry that combineFn returns', next.spec)
    const y = treeFlatten(result[1])
    ySpec = y.spec
    return [...next.leaves, ...y.leaves]
  }
  const pair = (): TreeSpec => {
    const y = ySpec as unknown as TreeSpec
    return treeStructure([init, treeUnflatten(new Array<null>(countLeaves(y)).fill(null), y)])
  }
  const tracer = tracerAmong('scan', [first.leaves, slices.leaves])
  if (tracer === null)
    return treeUnflatten(
      scanOp((...values) => run(values), first.leaves, slices.leaves, dim, reverse, []),
      pair(),
    ) as [C, Y]
  checkTensors('scan', 'init', first.leaves)
  checkTensors('scan', 'xs', slices.leaves)
  const inputs = [...first.leaves.map(inputFor), ...slices.leaves.map(partOf)]
  return recordCall(
    tracer,
    scanOp,
    [{ prefix: 'scan_combine_graph_', inputs, run }],
    (modules, captured) => [...modules, first.leaves, slices.leaves, dim, reverse, captured],
    pair,
  ) as [C, Y]
}

// map: one function on every slice of tensors, as data.
import { select } from '../ops/index.ts'
import { treeFlatten, treeUnflatten } from '../pytree/index.ts'
import type { TreeSpec } from '../pytree/index.ts'
import type { Tensor } from '../tensor/index.ts'
import { higherOrder, runBody } from './higherOrder.ts'
import type { Body } from './higherOrder.ts'
import { sliceCount, stacked } from './scan.ts'
import { checkFunction, checkTensors, inputFor, partOf, recordCall, tracerAmong } from './tracing.ts'

/** The operator in graphs: all lists flat. PyTorch's torch.ops.higher_order.map_impl. */
export const mapOp: (bodyGraph: Body, xs: readonly unknown[], args: readonly unknown[]) => readonly unknown[] = higherOrder(
  'map_impl',
  (bodyGraph: Body, xs: readonly unknown[], args: readonly unknown[]): readonly unknown[] => {
    const count = sliceCount('map', xs, 0)
    const rows = Array.from({ length: count }, (_, i) => runBody(bodyGraph, [...(xs as readonly Tensor[]).map((x) => select(x, 0, i)), ...args]))
    return stacked(rows)
  },
)

/**
 * `fn(x, ...args)` for each slice x of `xs` along the first dimension; the results stacked in a new first dimension. `xs` and the results are structures of tensors.
 * Differentiable. Traced, it is one node with `fn` as child graph. Throws ArgumentError for xs without slices, or of different sizes.
 * PyTorch's torch._higher_order_ops.map.
 *
 *     const rows = map((x, w) => x.mul(w).sum(), xs, w)
 */
export function map<X, A extends readonly unknown[], R>(fn: (x: X, ...args: A) => R, xs: X, ...args: A): R {
  checkFunction('map', 'fn', fn)
  const slices = treeFlatten(xs)
  const rest = treeFlatten(args)
  let spec: TreeSpec | null = null
  const run = (values: readonly unknown[]): readonly unknown[] => {
    const n = slices.leaves.length
    const others = treeUnflatten(values.slice(n, n + rest.leaves.length), rest.spec) as A
    const result = treeFlatten(fn(treeUnflatten(values.slice(0, n), slices.spec) as X, ...others))
    spec = result.spec
    return result.leaves
  }
  const tracer = tracerAmong('map_impl', [slices.leaves, rest.leaves])
  if (tracer === null) {
    const result = mapOp((...values) => run(values), slices.leaves, rest.leaves)
    return treeUnflatten(result, spec as unknown as TreeSpec) as R
  }
  checkTensors('map', 'xs', slices.leaves)
  checkTensors('map', 'args', rest.leaves)
  const inputs = [...slices.leaves.map(partOf), ...rest.leaves.map(inputFor)]
  return recordCall(
    tracer,
    mapOp,
    [{ prefix: 'map_body_graph_', inputs, run }],
    (modules, captured) => [...modules, slices.leaves, [...rest.leaves, ...captured]],
    () => spec as unknown as TreeSpec,
  ) as R
}

// map: one function on every slice of tensors, as data.
import { higherOrder, runBody } from './higherOrder.ts'
import type { Body } from './higherOrder.ts'
import { slicesOf, stacked } from './slices.ts'
import { ResultStructure, flatten } from './structure.ts'
import { checkFunction, checkTensors, inputFor, partOf, recordCall, tracerAmong } from './tracing.ts'

/** The operator in graphs: all lists are flat. PyTorch's torch.ops.higher_order.map_impl. */
export const mapOp: (bodyGraph: Body, xs: readonly unknown[], args: readonly unknown[]) => readonly unknown[] = higherOrder(
  'map_impl',
  (bodyGraph: Body, xs: readonly unknown[], args: readonly unknown[]) => {
    const slices = slicesOf('map', xs, 0)
    return stacked(
      'map',
      Array.from({ length: slices.count }, (_, i) => runBody(bodyGraph, [...slices.at(i), ...args])),
    )
  },
)

/**
 * `fn(x, ...args)` for each slice x of `xs` along the first dimension; the results are stacked in a new first dimension. `xs` and the results are structures of
 * tensors. Differentiable. Traced, it is one node with `fn` as child graph. Throws ArgumentError if xs have no slices, or different numbers of them.
 * PyTorch's torch._higher_order_ops.map.
 *
 *     const rows = map((x, w) => x.mul(w).sum(), xs, w)
 */
export function map<X, A extends readonly unknown[], R>(fn: (x: X, ...args: A) => R, xs: X, ...args: A): R {
  checkFunction('map', 'fn', fn)
  const slices = flatten(xs)
  const rest = flatten(args)
  const structure = new ResultStructure<R>('map')
  const run = (values: readonly unknown[]): readonly unknown[] => {
    const n = slices.leaves.length
    const others = rest.rebuild(values.slice(n, n + rest.leaves.length))
    return structure.flatten(fn(slices.rebuild(values.slice(0, n)), ...others)).leaves
  }
  const tracer = tracerAmong('map_impl', [slices.leaves, rest.leaves])
  if (tracer === null) {
    const result = mapOp((...values: readonly unknown[]) => run(values), slices.leaves, rest.leaves)
    return structure.known.rebuild(result)
  }
  checkTensors('map', 'xs', slices.leaves)
  checkTensors('map', 'args', rest.leaves)
  const inputs = [...slices.leaves.map(partOf), ...rest.leaves.map(inputFor)]
  return recordCall(
    tracer,
    mapOp,
    [{ prefix: 'map_body_graph_', inputs, run }],
    (modules, captured) => [...modules, slices.leaves, [...rest.leaves, ...captured]],
    () => structure.known,
  )
}

// whileLoop: a loop of unknown length, as data.
import { checkCount } from '../protocol/index.ts'
import { ArgumentError } from '../errors/index.ts'
import { bool, tuple } from '../fx/index.ts'
import type { BodySource } from '../fx/index.ts'
import type { Tensor } from '../tensor/index.ts'
import { checkSame, higherOrder, isUnknown, runBody } from './higherOrder.ts'
import type { Body } from './higherOrder.ts'
import { checkStructure, flatten } from './structure.ts'
import { checkFunction, checkTensors, inputFor, recordCall, tracerAmong } from './tracing.ts'

/** The operator in graphs: carried values as a flat list, then what the bodies use besides them. PyTorch's torch.ops.higher_order.while_loop. */
export const whileLoopOp: (condGraph: Body, bodyGraph: Body, carried: readonly unknown[], additional: readonly unknown[]) => readonly unknown[] =
  higherOrder('while_loop', (condGraph: Body, bodyGraph: Body, carried: readonly unknown[], additional: readonly unknown[]) => {
    let values = carried
    const condition = (): unknown => runBody(condGraph, [...values, ...additional])[0]
    for (let answer = condition(); ; answer = condition()) {
      // How often a loop on fake tensors runs is not known, but its values have the same shapes after every round.
      const unknown = isUnknown('whileLoop', answer)
      if (!unknown && !bool(answer)) return values
      const next = runBody(bodyGraph, [...values, ...additional])
      checkSame('whileLoop', carried, 'the carried values', next, 'what bodyFn returns')
      values = next
      if (unknown) return values
    }
  })

/**
 * Runs `carried = bodyFn(...carried)` while `condFn(...carried)` holds, and returns the last carried values. `condFn` returns a boolean or a tensor of one
 * element; `bodyFn` returns an array of the structure, shapes and dtypes of `carried`. Traced, it is one node with both functions as child graphs, and all carried
 * leaves must be tensors. Gradients flow through the rounds that ran (PyTorch has none). Throws ArgumentError if the carried values change their structure, shape
 * or dtype. PyTorch's torch._higher_order_ops.while_loop.
 *
 *     const [n, x] = whileLoop((n) => n.lt(10), (n, x) => [n.add(1), x.mul(2)], [torch.tensor(0), x])
 */
export function whileLoop<A extends unknown[] | []>(
  condFn: (...carried: [...A]) => Tensor | boolean,
  bodyFn: (...carried: [...A]) => NoInfer<A>,
  carried: A,
): A {
  checkCount('whileLoop', arguments, 3)
  checkFunction('whileLoop', 'condFn', condFn)
  checkFunction('whileLoop', 'bodyFn', bodyFn)
  if (!Array.isArray(carried)) throw new ArgumentError(`whileLoop: carried must be an array of the loop's values, got ${typeof carried}.`)
  const start = flatten<A>(carried)
  const { leaves, spec } = start
  const runCond = (values: readonly unknown[]): readonly unknown[] => [condFn(...start.rebuild(values))]
  const runBodyFn = (values: readonly unknown[]): readonly unknown[] => {
    const result = flatten(bodyFn(...start.rebuild(values)))
    checkStructure('whileLoop', 'carried', spec, 'what bodyFn returns', result.spec)
    return result.leaves
  }
  const tracer = tracerAmong('while_loop', leaves)
  if (tracer === null) {
    const result = whileLoopOp(
      (...values: readonly unknown[]) => runCond(values),
      (...values: readonly unknown[]) => runBodyFn(values),
      leaves,
      [],
    )
    return start.rebuild(result)
  }
  checkTensors('whileLoop', 'carried', leaves)
  const source = (prefix: string, run: BodySource['run']): BodySource => ({ prefix, inputs: leaves.map(inputFor), run })
  return recordCall(
    tracer,
    whileLoopOp,
    [source('cond_fn_', runCond), source('body_fn_', runBodyFn)],
    (modules, captured) => [...modules, tuple(...leaves), tuple(...captured)],
    () => start,
  )
}

// cond: a branch as data. Eagerly, it runs one of two functions; traced, it is a node with both as child graphs.
import { checkCount } from '../protocol/index.ts'
import { ArgumentError } from '../errors/index.ts'
import { bool } from '../fx/index.ts'
import type { BodySource } from '../fx/index.ts'
import type { Tensor } from '../tensor/index.ts'
import { checkSame, higherOrder, isUnknown, runBody } from './higherOrder.ts'
import type { Body } from './higherOrder.ts'
import { ResultStructure, checkStructure, flatten } from './structure.ts'
import { checkFunction, inputFor, isInput, recordCall, tracerAmong } from './tracing.ts'

/** The operator in graphs: `operands` is a flat list, and so is the result. PyTorch's torch.ops.higher_order.cond. */
export const condOp: (pred: unknown, trueGraph: Body, falseGraph: Body, operands: readonly unknown[]) => readonly unknown[] = higherOrder(
  'cond',
  (pred: unknown, trueGraph: Body, falseGraph: Body, operands: readonly unknown[]) => {
    if (!isUnknown('cond', pred)) return runBody(bool(pred) ? trueGraph : falseGraph, operands)
    const result = runBody(trueGraph, operands)
    checkSame('cond', result, 'the true branch', runBody(falseGraph, operands), 'the false branch')
    return result
  },
)

/**
 * `trueFn(...operands)` if `pred` holds, else `falseFn(...operands)`. `pred` is a boolean or a tensor of one element. Both functions take and return the
 * same structures (a tensor, arrays, objects) of the same shapes and dtypes. If `pred` is traced, the call becomes one node with both branches as child graphs,
 * and what they use from outside becomes an operand. Differentiable. Throws ArgumentError if a branch is not a function, or the branches return different
 * structures. PyTorch's torch.cond.
 *
 *     const y = cond(x.sum().gt(0), (x) => x.cos(), (x) => x.sin(), [x])
 */
export function cond<R>(pred: Tensor | boolean | number, trueFn: () => R, falseFn: () => R): R
export function cond<A extends readonly unknown[], R>(
  pred: Tensor | boolean | number,
  trueFn: (...operands: A) => R,
  falseFn: (...operands: A) => R,
  operands: A,
): R
export function cond<R>(
  pred: Tensor | boolean | number,
  trueFn: (...operands: readonly unknown[]) => R,
  falseFn: (...operands: readonly unknown[]) => R,
  operands: readonly unknown[] = [],
): R {
  checkCount('cond', arguments, 4)
  checkFunction('cond', 'trueFn', trueFn)
  checkFunction('cond', 'falseFn', falseFn)
  if (!Array.isArray(operands)) throw new ArgumentError(`cond: operands must be an array of arguments for the branches, got ${typeof operands}.`)
  const tracer = tracerAmong('cond', [pred])
  if (tracer === null && !isUnknown('cond', pred)) return (bool(pred) ? trueFn : falseFn)(...operands)
  const { leaves, rebuild } = flatten(operands)
  const results = { trueFn: new ResultStructure<R>('cond'), falseFn: new ResultStructure<R>('cond') }
  // Values other than tensors are the same in both branches.
  const inputs = tracer === null ? leaves : leaves.filter(isInput)
  const flat =
    (name: 'trueFn' | 'falseFn', fn: (...operands: readonly unknown[]) => R) =>
    (values: readonly unknown[]): readonly unknown[] => {
      let next = 0
      const all = tracer === null ? values : leaves.map((leaf) => (isInput(leaf) ? values[next++] : leaf))
      const result = results[name].flatten(fn(...rebuild(all)))
      if (name === 'falseFn') checkStructure('cond', 'the result of trueFn', results.trueFn.known.spec, 'that of falseFn', result.spec)
      return result.leaves
    }
  const branches = { trueFn: flat('trueFn', trueFn), falseFn: flat('falseFn', falseFn) }
  if (tracer === null) {
    const result = condOp(
      pred,
      (...values: readonly unknown[]) => branches.trueFn(values),
      (...values: readonly unknown[]) => branches.falseFn(values),
      inputs,
    )
    return results.trueFn.known.rebuild(result)
  }
  const source = (prefix: string, run: BodySource['run']): BodySource => ({ prefix, inputs: inputs.map(inputFor), run })
  return recordCall(
    tracer,
    condOp,
    [source('true_graph_', branches.trueFn), source('false_graph_', branches.falseFn)],
    (modules, captured) => [pred, ...modules, [...inputs, ...captured]],
    () => results.trueFn.known,
  )
}

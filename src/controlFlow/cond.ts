// cond: a branch as data. Eagerly it runs one of two functions; traced it is a node with both as child graphs.
import { ArgumentError } from '../errors/index.ts'
import { bool } from '../fx/index.ts'
import type { BodySource } from '../fx/index.ts'
import { treeFlatten, treeUnflatten } from '../pytree/index.ts'
import type { TreeSpec } from '../pytree/index.ts'
import type { Tensor } from '../tensor/index.ts'
import { checkSame, higherOrder, isUnknown, runBody } from './higherOrder.ts'
import type { Body } from './higherOrder.ts'
import { checkFunction, checkStructure, inputFor, isInput, recordCall, tracerAmong } from './tracing.ts'

/** The operator in graphs: `operands` flat, the result a flat list. PyTorch's torch.ops.higher_order.cond. */
export const condOp: (pred: unknown, trueGraph: Body, falseGraph: Body, operands: readonly unknown[]) => readonly unknown[] = higherOrder(
  'cond',
  (pred: unknown, trueGraph: Body, falseGraph: Body, operands: readonly unknown[]): readonly unknown[] => {
    if (!isUnknown('cond', pred)) return runBody(bool(pred) ? trueGraph : falseGraph, operands)
    const result = runBody(trueGraph, operands)
    checkSame('cond', result, 'the true branch', runBody(falseGraph, operands), 'the false branch')
    return result
  },
)

/**
 * `trueFn(...operands)` if `pred` holds, else `falseFn(...operands)`. `pred` is a boolean or a tensor of one element. Both functions take and return the
 * same structures (a tensor, arrays, objects) of the same shapes and dtypes. Under tracing a traced `pred` makes it one node with both branches as child graphs; what
 * they use from outside becomes an operand. Differentiable. Throws ArgumentError for what is no function and for branches of different structures.
 * PyTorch's torch.cond.
 *
 *     const y = cond(x.sum().gt(0), (x) => x.cos(), (x) => x.sin(), [x])
 */
export function cond<A extends readonly unknown[], R>(
  pred: Tensor | boolean | number,
  trueFn: (...operands: A) => R,
  falseFn: (...operands: A) => R,
  operands: A = [] as unknown as A,
): R {
  checkFunction('cond', 'trueFn', trueFn)
  checkFunction('cond', 'falseFn', falseFn)
  if (!Array.isArray(operands as unknown))
    throw new ArgumentError(`cond: operands must be an array of arguments for the branches, got ${typeof operands}.`)
  const tracer = tracerAmong('cond', [pred])
  if (tracer === null && !isUnknown('cond', pred)) return (bool(pred) ? trueFn : falseFn)(...operands)
  const { leaves, spec } = treeFlatten(operands)
  const specs: TreeSpec[] = []
  // Other values than tensors are what they are in both branches.
  const inputs = tracer === null ? leaves : leaves.filter(isInput)
  const flat = (fn: (...operands: A) => R) => (values: readonly unknown[]) => {
    let next = 0
    const all = tracer === null ? values : leaves.map((leaf) => (isInput(leaf) ? values[next++] : leaf))
    const result = treeFlatten(fn(...(treeUnflatten(all, spec) as A)))
    specs.push(result.spec)
    if (specs.length === 2) checkStructure('cond', 'the result of trueFn', specs[0] as TreeSpec, 'that of falseFn', result.spec)
    return result.leaves
  }
  if (tracer === null) {
    const result = condOp(
      pred,
      (...values) => flat(trueFn)(values),
      (...values) => flat(falseFn)(values),
      inputs,
    )
    return treeUnflatten(result, specs[0] as TreeSpec) as R
  }
  const source = (prefix: string, fn: (...operands: A) => R): BodySource => ({ prefix, inputs: inputs.map(inputFor), run: flat(fn) })
  return recordCall(
    tracer,
    condOp,
    [source('true_graph_', trueFn), source('false_graph_', falseFn)],
    (modules, captured) => [pred, ...modules, [...inputs, ...captured]],
    () => specs[0] as TreeSpec,
  ) as R
}

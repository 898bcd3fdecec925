// mergeMatmul: matrix products with the same right operand become one. PyTorch's torch.fx.experimental.merge_matmul.
import { ArgumentError, InternalError } from '../../errors/index.ts'
import type { Module } from '../../module/index.ts'
import { checkArray, checkCount, findOverride, isTensorLike, lookupTarget, nameTarget, OVERRIDE } from '../../protocol/index.ts'
import type { TargetFunction } from '../../protocol/index.ts'
import { Node } from '../graph/node.ts'
import type { Argument, CallFunctionNode } from '../graph/node.ts'
import { operator } from '../graph/operator.ts'
import { legalizeGraph } from '../passes/each/legalize.ts'
import { tensorMetaOf } from '../passes/nodes/meta.ts'
import { GraphModule } from '../run/graphModule.ts'
import { symbolicTrace } from '../trace/symbolicTrace.ts'

/** The part of a tensor that splitting uses. */
interface Splittable {
  split(sizes: readonly number[]): readonly unknown[]
}

const isSplittable = (value: unknown): value is Splittable => isTensorLike(value) && 'split' in value

/**
 * Splits a tensor along its first dimension into parts with as many rows as `inputs` have: how {@link mergeMatmul} undoes its concatenation. PyTorch's
 * split_result_tensors.
 * @throws ArgumentError if `result` is not a tensor.
 */
export const splitResultTensors: (result: unknown, inputs: readonly unknown[]) => unknown = nameTarget(
  function splitResultTensors(result: unknown, inputs: readonly unknown[]): unknown {
    const override = findOverride([result, inputs])
    if (override !== null) return override[OVERRIDE]('function', splitResultTensors, [result, inputs], {})
    checkArray('splitResultTensors', 'inputs', inputs)
    if (!isSplittable(result)) throw new ArgumentError(`splitResultTensors: result must be a tensor, got ${typeof result}.`)
    return result.split(inputs.map((input) => (isTensorLike(input) ? (input.shape[0] ?? 1) : 1)))
  },
  { name: 'torch.fx.experimental.merge_matmul.split_result_tensors' },
)

/**
 * Merges `torch.matmul` calls with the same right operand, none of which needs the result of another: the left operands are concatenated, multiplied once, and the product is
 * split again. The left operands must be matrices; a call whose left operand is known to be something else (see ShapeProp) is left out. The model does not change.
 * PyTorch's merge_matmul.
 */
export function mergeMatmul(model: Module): GraphModule {
  checkCount('mergeMatmul', arguments, 1)
  const gm = model instanceof GraphModule ? model.deepCopy({ shareTensors: true }) : symbolicTrace(model)
  const matmul = functionNamed('torch.matmul')
  let changed = false
  for (const group of groupsOf(gm, matmul)) {
    if (group.length < 2 || !areIndependent(group)) continue
    merge(gm, group, matmul)
    changed = true
  }
  if (!changed) return gm
  legalizeGraph(gm)
  gm.recompile()
  gm.graph.lint()
  return gm
}

function functionNamed(name: string): TargetFunction {
  const fn = lookupTarget(name)
  if (fn === undefined) throw new InternalError(`the operator ${name} is not registered`)
  return fn
}

/** The products by their right operand; reads of the same attribute are the same operand. */
function groupsOf(gm: GraphModule, matmul: TargetFunction): CallFunctionNode[][] {
  const groups = new Map<Node | string, CallFunctionNode[]>()
  for (const node of gm.graph.findNodes({ op: 'call_function', target: matmul })) {
    const [left, right] = node.args
    if (!(left instanceof Node) || !(right instanceof Node) || node.args.length !== 2 || !mayBeMatrix(left)) continue
    const key = right.op === 'get_attr' ? right.target : right
    const group = groups.get(key)
    if (group === undefined) groups.set(key, [node])
    else group.push(node)
  }
  return [...groups.values()]
}

function mayBeMatrix(node: Node): boolean {
  const meta = tensorMetaOf(node)
  return meta === null || meta.shape.length === 2
}

/** Whether none of the nodes needs the result of another. */
function areIndependent(nodes: readonly Node[]): boolean {
  const members = new Set(nodes)
  const seen = new Set<Node>()
  const stack = nodes.flatMap((node) => node.allInputNodes)
  for (let node = stack.pop(); node !== undefined; node = stack.pop()) {
    if (members.has(node)) return false
    if (seen.has(node)) continue
    seen.add(node)
    stack.push(...node.allInputNodes)
  }
  return true
}

/** Replaces a group. The new nodes go to the end: only putting the graph in order shows where all left operands are there. */
function merge(gm: GraphModule, group: readonly CallFunctionNode[], matmul: TargetFunction): void {
  const { graph } = gm
  const own = (operand: Argument): Argument =>
    operand instanceof Node && operand.op === 'get_attr' ? graph.getAttr(operand.target, operand.type) : operand
  graph.insertingAfter(null, () => {
    const lefts = group.map((node) => own(node.args[0]))
    const right = own(group[0]?.args[1])
    const cat = graph.callFunction(functionNamed('torch.cat'), [lefts])
    const product = graph.callFunction(matmul, [cat, right])
    const parts = graph.callFunction(splitResultTensors, [product, lefts])
    const results = group.map((_, i) => graph.callFunction(operator.getitem, [parts, i]))
    for (const [i, node] of group.entries()) {
      const result = results[i]
      if (result !== undefined) node.replaceAllUsesWith(result)
      graph.eraseNode(node)
    }
  })
}

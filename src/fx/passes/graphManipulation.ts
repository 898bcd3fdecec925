// How many bytes the nodes of a graph take, and replacing one target by another. PyTorch's torch.fx.passes.graph_manipulation.
import { checkArgument, checkArray, checkCount } from '../../protocol/index.ts'
import { checkGraphModule, checkNode } from '../../protocol/graphChecks.ts'
import { ArgumentError } from '../../errors/index.ts'
import { Module } from '../../module/index.ts'
import { OPCODES } from '../graph/node.ts'
import type { Node, Opcode, Target } from '../graph/node.ts'
import type { GraphModule } from '../run/graphModule.ts'
import { ShapeProp, isTensorMetadata } from './shapeProp.ts'
import type { TensorMetadata } from './shapeProp.ts'

/** The size of a node in bytes. PyTorch's size_bytes. */
export interface SizeBytes {
  /** Bytes of its value. */
  readonly outputSize: number
  /** Bytes of its value and, for a call_module, of all parameters of the module. */
  readonly totalSize: number
}

/**
 * Makes every node with `oldOp` and `oldTarget` one with `newOp` and `newTarget`. Names and arguments stay. Call `gm.recompile()` afterwards. PyTorch's
 * replace_target_nodes_with.
 *
 *     replaceTargetNodesWith(gm, 'call_function', torch.relu, 'call_function', torch.sigmoid)
 *
 * @throws ArgumentError if `newTarget` is not a target for `newOp`.
 */
export function replaceTargetNodesWith(gm: GraphModule, oldOp: Opcode, oldTarget: Target, newOp: Opcode, newTarget: Target): void {
  checkCount('replaceTargetNodesWith', arguments, 5)
  checkGraphModule('replaceTargetNodesWith', gm)
  checkArgument(OPCODES.has(newOp), 'replaceTargetNodesWith', 'newOp', `one of ${[...OPCODES].join(', ')}`, newOp)
  const expected = newOp === 'call_function' ? 'function' : 'string'
  if (typeof newTarget !== expected)
    throw new ArgumentError(`replaceTargetNodesWith: newTarget must be a ${expected} for the op '${newOp}', got a ${typeof newTarget}.`)
  for (const node of gm.graph.nodes) {
    if (node.op !== oldOp || node.target !== oldTarget) continue
    node.op = newOp
    node.target = newTarget
  }
}

/**
 * The size of every node before the output, which is also noted in `meta.size_bytes`. With `args`, runs ShapeProp on them first. PyTorch's get_size_of_all_nodes, which
 * sets `node.size_bytes`.
 * @throws ArgumentError as {@link getSizeOfNode} does.
 */
export function getSizeOfAllNodes(gm: GraphModule, args?: readonly unknown[]): Map<Node, SizeBytes> {
  checkCount('getSizeOfAllNodes', arguments, 2)
  if (args !== undefined) checkArray('getSizeOfAllNodes', 'args', args)
  checkGraphModule('getSizeOfAllNodes', gm)
  if (args !== undefined) new ShapeProp(gm).propagate(...args)
  const sizes = new Map<Node, SizeBytes>()
  for (const node of gm.graph.nodes) {
    if (node.op === 'output') break
    const size = getSizeOfNode(gm, node)
    node.meta['size_bytes'] = size
    sizes.set(node, size)
  }
  return sizes
}

/**
 * What ShapeProp has recorded about a node's value. PyTorch's get_tensor_meta.
 * @throws ArgumentError if it has recorded nothing, or if the value is not one tensor.
 */
export function getTensorMeta(node: Node): TensorMetadata {
  checkNode('getTensorMeta', node)
  const meta = node.meta['tensor_meta']
  if (isTensorMetadata(meta)) return meta
  throw new ArgumentError(
    meta === undefined
      ? `Node ${node.name} has no tensor metadata associated with it! Check that shape propagation has run.`
      : `getTensorMeta: the value of node '${node.name}' holds several tensors; ask for the nodes that take them out, such as getitem.`,
  )
}

/**
 * The size of a node in bytes: elements times the element size of its value's dtype. PyTorch's get_size_of_node.
 * @throws ArgumentError if ShapeProp has not recorded one tensor as its value, or if its module does not exist.
 */
export function getSizeOfNode(gm: GraphModule, node: Node): SizeBytes {
  checkCount('getSizeOfNode', arguments, 2)
  checkNode('getSizeOfNode', node)
  const { shape, dtype } = getTensorMeta(node)
  const elements = numelOf(shape)
  const bytes = itemSizeOf(dtype)
  return { outputSize: elements * bytes, totalSize: (elements + parametersOf(gm, node)) * bytes }
}

function parametersOf(gm: GraphModule, node: Node): number {
  if (node.op !== 'call_module') return 0
  const module = gm.attribute(node.target)
  if (!(module instanceof Module))
    throw new ArgumentError(`getSizeOfNode: node '${node.name}' calls '${node.target}', but the GraphModule has no such module.`)
  let count = 0
  for (const parameter of module.parameters()) count += numelOf(parameter.shape)
  return count
}

const numelOf = (shape: readonly number[]): number => shape.reduce((a, b) => a * b, 1)

/** Bytes of one element. The number in the name of a dtype counts its bits; bool takes a byte. */
function itemSizeOf(dtype: string): number {
  const bits = /\d+/.exec(dtype)
  return bits === null ? 1 : Number(bits[0]) / 8
}

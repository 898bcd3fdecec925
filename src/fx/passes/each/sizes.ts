// How many bytes the nodes of a graph take. PyTorch's torch.fx.passes.graph_manipulation.
import { ArgumentError } from '../../../errors/index.ts'
import { Module } from '../../../module/index.ts'
import { checkGraphModule, checkNode } from '../../../protocol/graphChecks.ts'
import { checkArray, checkCount } from '../../../protocol/index.ts'
import type { Node } from '../../graph/node.ts'
import type { GraphModule } from '../../run/graphModule.ts'
import { getTensorMeta } from '../nodes/meta.ts'
import { ShapeProp } from './shapeProp.ts'

/** The size of a node in bytes. PyTorch's size_bytes. */
export interface SizeBytes {
  /** Bytes of its value. */
  readonly outputSize: number
  /** Bytes of its value and, for a call_module, of all parameters of the module. */
  readonly totalSize: number
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

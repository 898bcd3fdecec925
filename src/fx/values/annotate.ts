// annotate: the type of a traced value. PyTorch's torch.fx.annotate.
import { checkCount } from '../../protocol/index.ts'
import { GraphError } from '../graph/errors.ts'
import type { NodeType } from '../../protocol/index.ts'
import { isProxy, nodeOf } from './proxy.ts'

/**
 * Sets the type of a traced value's node, and returns the value. Any other value is returned as it is, so a program that is annotated also runs. PyTorch's
 * annotate.
 *
 *     const y = fx.annotate(x.relu(), 'Tensor')
 *
 * @throws GraphError if the node already has a type.
 */
export function annotate<T>(value: T, type: NodeType): T {
  checkCount('annotate', arguments, 2)
  if (!isProxy(value)) return value
  const node = nodeOf(value)
  if (node.type !== null)
    throw new GraphError(
      `Tried to annotate a value that already had a type on it! Existing type is ${String(node.type)} and new type is ${String(type)}.`,
    )
  node.type = type
  return value
}

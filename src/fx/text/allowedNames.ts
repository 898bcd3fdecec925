// What a graph from a file may name. A graph is data as long as it can only reach operators, registered functions, and the public members of tensors: the check of a
// node looks at that node alone, whatever its inputs are, so that it still holds after the graph was edited.
import { lookupTarget, snakeCase, targetInfo } from '../../protocol/index.ts'
import { getattr, operator } from '../graph/operator.ts'
import type { Node } from '../graph/node.ts'

const words = (text: string): ReadonlySet<string> => new Set(text.split(' '))

/** The properties that may be read: of tensors, and the length of arrays. */
export const READABLE: ReadonlySet<string> = words('shape strides dtype numel ndim T H mT mH requiresGrad grad isLeaf isParameter offset length')

/** The methods that may be called besides those of the operator table: of tensors, and those of arrays and Maps that only read. */
export const CALLABLE: ReadonlySet<string> = words(
  'size dim stride cpu item toArray toTypedArray toBigIntArray isContiguous isFloatingPoint isComplex elementSize backward requiresGrad_ detach_ retainGrad allclose equal getitem uniform_ normal_ bernoulli_ exponential_ ' +
    'at slice concat includes indexOf get has',
)

/** Whether every object or every function has a member of that name, by its prototype. Such a member leads out of the graph: `x.toArray.constructor`. */
const isInherited = (name: string): boolean => name in Object.prototype || (name in Function.prototype && name !== 'length')

/** Whether the operator table has a method of that name. */
function isOperatorMethod(name: string): boolean {
  const operatorName = snakeCase(name)
  const fn = lookupTarget(`torch.${operatorName}`) ?? lookupTarget(`torch.Tensor.${operatorName}`)
  return targetInfo(fn)?.schema !== undefined
}

const isMethod = (name: string): boolean => !isInherited(name) && (CALLABLE.has(name) || isOperatorMethod(name))

/** Whether an attribute of a module may be called that: it has no empty part, and none that every object has. */
const isOwnPath = (path: string): boolean => path.split('.').every((part) => part !== '' && !(part in Object.prototype))

const ITEMS: ReadonlySet<unknown> = new Set([operator.getitem, operator.setitem])

/** What is checked of a node. */
type Named = Pick<Node, 'op' | 'target' | 'args' | 'kwargs'>

/** What a node refers to that a graph from a file may not; null if there is nothing. */
export function forbidden({ op, target, args, kwargs }: Named): string | null {
  if (op === 'call_function') {
    const [, name] = args
    if (target === getattr) {
      const plain = args.length === 2 && typeof name === 'string' && Object.keys(kwargs).length === 0
      if (!plain) return 'reads an attribute whose name is computed'
      return READABLE.has(name) || isMethod(name) ? null : `reads the attribute '${name}'`
    }
    return ITEMS.has(target) && typeof name === 'string' && isInherited(name) ? `reads the element '${name}'` : null
  }
  const named = String(target)
  if (op === 'call_method') {
    // `sort()` of an array would sort it in place, which may be the shape of a tensor; with a dimension an array refuses it.
    if (named === 'sort' && typeof args[1] !== 'number' && (args.length > 1 || Object.keys(kwargs).length === 0))
      return "calls the method 'sort' without a number as its dimension"
    return isMethod(named) ? null : `calls the method '${named}'`
  }
  return (op === 'get_attr' || op === 'call_module') && !isOwnPath(named) ? `refers to the attribute '${named}'` : null
}

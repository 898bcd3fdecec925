// Lists and objects that cannot be changed, as the arguments of nodes are. PyTorch's torch.fx.immutable_collections.
import { checkIterable } from '../../protocol/index.ts'
import { freezeArguments } from '../graph/pythonValues.ts'

/**
 * A copy of an array that cannot be changed: its methods that change arrays throw GraphError and say what to do, assignments throw JavaScript's TypeError. PyTorch's
 * immutable_list.
 */
export function immutableList<T>(values: Iterable<T>): readonly T[] {
  checkIterable('immutableList', 'values', values)
  return freezeArguments([...values])
}

/** A copy of an object whose properties cannot be assigned, added or deleted: that throws JavaScript's TypeError. PyTorch's immutable_dict. */
export const immutableDict = <T>(values: Readonly<Record<string, T>>): Readonly<Record<string, T>> => Object.freeze({ ...values })

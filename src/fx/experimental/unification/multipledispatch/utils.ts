// Helpers of multiple dispatch. PyTorch's torch.fx.experimental.unification.multipledispatch.utils.
import { isTuple } from '../../../graph/pythonValues.ts'
import { isvariadic } from './variadic.ts'
import type { ArgumentType } from './variadic.ts'

export { reverseDict, toposort } from '../utils.ts'
export { groupby } from '../unificationTools.ts'

/** The signatures without unions: one for each choice among the elements of tuples, the first varying fastest. PyTorch's expand_tuples. */
export function expandTuples(signature: readonly unknown[]): unknown[][] {
  let all: unknown[][] = [[]]
  for (const type of signature) {
    const choices: readonly unknown[] = Array.isArray(type) && isTuple(type) ? type : [type]
    all = choices.flatMap((choice) => all.map((before) => [...before, choice]))
  }
  return all
}

/** The name of a class, or the names in a tuple: `(Number, String)`, which for a tuple of one is that name. PyTorch's typename. */
export function typename(type: ArgumentType | readonly ArgumentType[]): string {
  if (isvariadic(type) || !Array.isArray(type)) return 'name' in type ? type.name : ''
  const names = type.map((t: ArgumentType) => typename(t))
  return names.length === 1 ? (names[0] ?? '') : `(${names.join(', ')})`
}

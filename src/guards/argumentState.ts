// The state of a call's arguments on which recorded calls depend: their structure, the values that are not tensors, and which tensors share memory.
import type { TreeSpec } from '../pytree/index.ts'
import { isFunction, isObject, valueText } from '../protocol/index.ts'
import type { Tensor } from '../tensor/index.ts'
import { identityOf, wasIs } from './stateKind.ts'
import type { StateKind } from './stateKind.ts'

/** The tensors that a call used. */
export interface Together {
  readonly args: readonly Tensor[]
  /** Those that are not arguments. */
  readonly outer: readonly Tensor[]
}

const sharesMemory = (a: Tensor, b: Tensor | undefined): boolean => a === b || (a.storage !== null && a.storage === b?.storage)

const rootOf = (tensor: Tensor | undefined): Tensor | undefined => tensor?.viewBase ?? tensor

/** Two tensors of a call that are the same one, or share memory. The second one is an argument. */
interface SharedPair {
  /** Whether the first one is an argument too, or a tensor from outside, and its index there. */
  readonly from: keyof Together
  readonly first: number
  readonly second: number
  readonly relation: 'same tensor' | 'same base' | 'same memory'
  /** How many elements the second one begins after the first one. */
  readonly distance: number
}

/** Calls `visit` for each such pair, until it returns false. Returns whether it never did. */
function everyPair({ args, outer }: Together, visit: (from: keyof Together, first: number, second: number) => boolean): boolean {
  for (let second = 0; second < args.length; second++) {
    const arg = args[second]
    if (arg === undefined) continue
    for (let i = 0; i < outer.length; i++) if (sharesMemory(arg, outer[i]) && !visit('outer', i, second)) return false
    for (let i = 0; i < second; i++) if (sharesMemory(arg, args[i]) && !visit('args', i, second)) return false
  }
  return true
}

function sharedPairs(tensors: Together): readonly SharedPair[] {
  const pairs: SharedPair[] = []
  everyPair(tensors, (from, first, second) => {
    const [one, other] = [tensors[from][first], tensors.args[second]]
    const relation = one === other ? 'same tensor' : rootOf(one) === rootOf(other) ? 'same base' : 'same memory'
    pairs.push({ from, first, second, relation, distance: (other?.offset ?? 0) - (one?.offset ?? 0) })
    return true
  })
  return pairs
}

const samePair = (a: SharedPair, b: SharedPair | undefined): boolean =>
  a.from === b?.from && a.first === b.first && a.second === b.second && a.relation === b.relation && a.distance === b.distance

const samePairs = (a: readonly SharedPair[], b: readonly SharedPair[]): boolean => a.length === b.length && a.every((pair, i) => samePair(pair, b[i]))

const never = (): boolean => false

const sharing: StateKind<Together, readonly SharedPair[]> = {
  name: 'which tensors are the same one, or share memory',
  compile: 'operator',
  read: sharedPairs,
  // Most calls have none.
  agrees: (tensors, known) => (known.length === 0 ? everyPair(tensors, never) : samePairs(sharedPairs(tensors), known)),
  key: (tensors) =>
    sharedPairs(tensors)
      .map(({ from, first, second, relation, distance }) => `${from}[${first}] args[${second}] ${relation} ${distance}`)
      .join(),
  show: (known) => (known.length === 0 ? 'arguments with memory of their own' : 'arguments that share memory'),
  change: () => 'other arguments than before are the same tensor, or share memory',
}

const structure: StateKind<TreeSpec, string> = {
  name: 'the structure of the arguments',
  compile: 'call',
  read: (spec) => JSON.stringify(spec),
  key: (spec) => JSON.stringify(spec),
  show: String,
  change: (was, is) => `the arguments had the structure ${was}, now have ${is}`,
}

export const value: StateKind<unknown> = {
  name: 'the value, if it is not a tensor',
  compile: 'program',
  read: (of) => of,
  agrees: (of, known) => Object.is(of, known),
  key: (of) => {
    if (isObject(of) || isFunction(of)) return `#${identityOf(of)}`
    return typeof of === 'string' ? JSON.stringify(of) : `${typeof of} ${Object.is(of, -0) ? '-0' : String(of)}`
  },
  ...wasIs('the value', valueText),
}

/** Of an argument that is not a tensor. */
export const valueState: readonly StateKind<unknown>[] = [value]
/** Of the tensors among the arguments, together with those from outside. */
export const tensorsState: readonly StateKind<Together>[] = [sharing]
/** Of the arguments' structure. */
export const structureState: readonly StateKind<TreeSpec>[] = [structure]

// Structures of values that control flow passes through flat lists.
import { ArgumentError, InternalError } from '../errors/index.ts'
import { treeEqual, treeFlatten, treeSpecToString, treeUnflatten } from '../pytree/index.ts'
import type { TreeSpec } from '../pytree/index.ts'

/** A nested value taken apart. */
export interface Flat<T> {
  readonly leaves: readonly unknown[]
  readonly spec: TreeSpec
  /** Puts other leaves into the same structure. */
  readonly rebuild: (leaves: readonly unknown[]) => T
}

/** Takes a value apart. `rebuild` trusts that the leaves it gets are of the kind that they replace. */
export function flatten<T>(value: T): Flat<T> {
  const { leaves, spec } = treeFlatten(value)
  return { leaves, spec, rebuild: (others) => treeUnflatten(others, spec) as T }
}

/** The structure of what a function returned. It is known once the function has run. */
export class ResultStructure<T> {
  #flat: Flat<T> | null = null
  readonly #op: string

  constructor(op: string) {
    this.#op = op
  }

  /** Takes a result apart, and remembers its structure. */
  flatten(result: T): Flat<T> {
    this.#flat = flatten(result)
    return this.#flat
  }

  get known(): Flat<T> {
    if (this.#flat === null) throw new InternalError(`${this.#op}: no function has run`)
    return this.#flat
  }
}

/** Throws ArgumentError if two structures differ. */
export function checkStructure(op: string, firstName: string, first: TreeSpec, secondName: string, second: TreeSpec): void {
  if (!treeEqual(first, second))
    throw new ArgumentError(
      `${op}: ${firstName} and ${secondName} must have the same structure, got ${treeSpecToString(first)} and ${treeSpecToString(second)}.`,
    )
}

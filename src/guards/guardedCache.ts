// A cache of what was recorded of calls, by what they relied on. Its answers are used without running the program.
import type { Module } from '../module/index.ts'
import { treeFlatten } from '../pytree/index.ts'
import type { TreeSpec } from '../pytree/index.ts'
import { Tensor } from '../tensor/index.ts'
import { Guards } from './guards.ts'
import { structureState, tensorsState, valueState } from './argumentState.ts'
import { processState } from './processState.ts'
import { keyOf } from './stateKind.ts'
import type { Change } from './stateKind.ts'
import { tensorState } from './tensorState.ts'

/** How many answers are kept for one kind of arguments: a program that toggles between a few states finds its answers again. */
const MOST_ANSWERS = 8

/** A call, as a cache looks it up. */
export interface GuardedCall {
  readonly leaves: readonly unknown[]
  readonly spec: TreeSpec
  readonly tensors: readonly Tensor[]
  /** What is known of the call before it is recorded. */
  readonly key: string
}

/** The arguments of a call, with their state. Throws ArgumentError if they contain themselves. */
export function guardedCall(args: readonly unknown[]): GuardedCall {
  const { leaves, spec } = treeFlatten(args)
  const tensors = leaves.filter((leaf) => leaf instanceof Tensor)
  const texts = leaves.map((leaf) => (leaf instanceof Tensor ? keyOf(tensorState, leaf) : keyOf(valueState, leaf)))
  const key = [keyOf(processState, null), keyOf(structureState, spec), ...texts, keyOf(tensorsState, { args: tensors, outer: [] })].join('|')
  return { leaves, spec, tensors, key }
}

interface Answer<T> {
  readonly guards: Guards
  readonly value: T
}

export class GuardedCache<T> {
  readonly #answers = new Map<string, readonly Answer<T>[]>()
  #latest: Guards | null = null

  /** What was recorded of a call like this one; null if nothing was, or what it relied on has changed. */
  find({ key, tensors }: GuardedCall): T | null {
    return this.#answers.get(key)?.find(({ guards }) => guards.hold(tensors))?.value ?? null
  }

  /** Why {@link find} found nothing: what differs from the latest recorded call. Null before the first. */
  missed({ key, tensors }: GuardedCall): Change | null {
    const guards = this.#answers.get(key)?.[0]?.guards ?? this.#latest
    return guards === null ? null : (guards.change(tensors) ?? OTHER_ARGUMENTS)
  }

  /** Remembers what was recorded of a call, now, with the tensors and modules that it used beside its arguments. */
  add({ key, tensors }: GuardedCall, used: { readonly outer: readonly Tensor[]; readonly modules: readonly Module[] }, value: T): void {
    const guards = new Guards({ args: tensors, ...used })
    this.#latest = guards
    this.#answers.set(key, [{ guards, value }, ...(this.#answers.get(key) ?? [])].slice(0, MOST_ANSWERS))
  }
}

const OTHER_ARGUMENTS: Change = {
  kind: 'the value, if it is not a tensor',
  expected: 'the recorded arguments',
  actual: 'other ones',
  text: 'the arguments have other values or another structure',
}

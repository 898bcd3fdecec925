// What one recorded call relied on: the values of the state of kinds.ts. Where a call is answered without running the program, its guards are checked first.
import type { Module } from '../module/index.ts'
import type { Tensor } from '../tensor/index.ts'
import { agreesWith, changeOf, moduleState, outerState, processState, readState, tensorState, tensorsState } from './kinds.ts'
import type { Change, Together } from './kinds.ts'

/** What a call used. */
export interface Used extends Together {
  /** See {@link ModuleWatch}. */
  readonly modules: readonly Module[]
}

/** The state of a thing, with what it is called in reports. */
interface Known<S> {
  readonly of: S
  readonly values: readonly unknown[]
}

export class Guards {
  readonly #process = readState(processState, null)
  readonly #args: readonly (readonly unknown[])[]
  readonly #together: readonly unknown[]
  readonly #outer: readonly Known<Tensor>[]
  readonly #outerTensors: readonly Tensor[]
  readonly #modules: readonly Known<Module>[]

  /** The state as it is now. */
  constructor({ args, outer, modules }: Used) {
    this.#args = args.map((of) => readState(tensorState, of))
    this.#outerTensors = outer
    this.#together = readState(tensorsState, { args, outer })
    this.#outer = outer.map((of) => ({ of, values: readState(outerState, of) }))
    this.#modules = modules.map((of) => ({ of, values: readState(moduleState, of) }))
  }

  /** Whether nothing has changed. `args`: the tensors among the arguments now. */
  hold(args: readonly Tensor[]): boolean {
    if (!agreesWith(processState, null, this.#process) || args.length !== this.#args.length) return false
    for (const { of, values } of this.#modules) if (!agreesWith(moduleState, of, values)) return false
    for (const { of, values } of this.#outer) if (!agreesWith(outerState, of, values)) return false
    for (const [i, of] of args.entries()) if (!agreesWith(tensorState, of, this.#args[i] ?? [])) return false
    return agreesWith(tensorsState, { args, outer: this.#outerTensors }, this.#together)
  }

  /** What has changed; null if nothing has. */
  change(args: readonly Tensor[]): Change | null {
    const found = changeOf(processState, null, this.#process)
    if (found !== null) return found
    for (const { of, values } of this.#modules) {
      const change = named(`module '${of.constructor.name}'`, changeOf(moduleState, of, values))
      if (change !== null) return change
    }
    for (const { of, values } of this.#outer) {
      const change = named(`a tensor from outside, of shape [${of.shape.join(', ')}],`, changeOf(outerState, of, values))
      if (change !== null) return change
    }
    for (const [i, of] of args.entries()) {
      const change = named(`tensor ${i} of the arguments`, changeOf(tensorState, of, this.#args[i] ?? []))
      if (change !== null) return change
    }
    return changeOf(tensorsState, { args, outer: this.#outerTensors }, this.#together)
  }
}

const named = (subject: string, change: Change | null): Change | null => (change === null ? null : { ...change, text: `${subject} ${change.text}` })

// What one recorded call relied on: the values of the state of kinds.ts. Where a call is answered without running the program, its guards are checked first.
import type { Module } from '../module/index.ts'
import { formatShape } from '../tensor/index.ts'
import type { Tensor } from '../tensor/index.ts'
import { tensorsState } from './argumentState.ts'
import type { Together } from './argumentState.ts'
import { moduleState } from './moduleState.ts'
import { processState } from './processState.ts'
import { agreesWith, changeOf, readState } from './stateKind.ts'
import type { Change } from './stateKind.ts'
import { ModuleThen, TensorThen, agreesInProcess } from './quick.ts'

/** What a call used. */
export interface Used extends Together {
  /** See `ModuleWatch`. */
  readonly modules: readonly Module[]
}

export class Guards {
  readonly #process = readState(processState, null)
  readonly #args: readonly TensorThen[]
  readonly #outer: readonly TensorThen[]
  readonly #outerTensors: readonly Tensor[]
  readonly #together: readonly unknown[]
  readonly #modules: readonly ModuleThen[]

  /** The state as it is now. */
  constructor({ args, outer, modules }: Used) {
    this.#args = args.map((tensor) => new TensorThen(tensor, false))
    this.#outer = outer.map((tensor) => new TensorThen(tensor, true))
    this.#outerTensors = outer
    this.#together = readState(tensorsState, { args, outer })
    this.#modules = modules.map((module) => new ModuleThen(module))
  }

  /** Whether nothing has changed. `args`: the tensors among the arguments now. */
  hold(args: readonly Tensor[]): boolean {
    if (!agreesInProcess(this.#process) || args.length !== this.#args.length) return false
    for (let i = 0; i < this.#modules.length; i++) if (this.#modules[i]?.isCurrent !== true) return false
    for (let i = 0; i < this.#outer.length; i++) {
      const tensor = this.#outerTensors[i]
      if (tensor === undefined || this.#outer[i]?.agrees(tensor) !== true) return false
    }
    for (let i = 0; i < args.length; i++) {
      const tensor = args[i]
      if (tensor !== undefined && this.#args[i]?.agrees(tensor) !== true) return false
    }
    return agreesWith(tensorsState, { args, outer: this.#outerTensors }, this.#together)
  }

  /** What has changed; null if nothing has. */
  change(args: readonly Tensor[]): Change | null {
    const found = changeOf(processState, null, this.#process)
    if (found !== null) return found
    for (const { module, values } of this.#modules) {
      const change = named(`module '${module.constructor.name}'`, changeOf(moduleState, module, values))
      if (change !== null) return change
    }
    for (const [i, tensor] of this.#outerTensors.entries()) {
      const change = named(`a tensor from outside, of shape ${formatShape(tensor.sizes)},`, this.#outer[i]?.change(tensor) ?? null)
      if (change !== null) return change
    }
    for (const [i, tensor] of args.entries()) {
      const change = named(`tensor ${i} of the arguments`, this.#args[i]?.change(tensor) ?? null)
      if (change !== null) return change
    }
    return changeOf(tensorsState, { args, outer: this.#outerTensors }, this.#together)
  }
}

const named = (subject: string, change: Change | null): Change | null => (change === null ? null : { ...change, text: `${subject} ${change.text}` })

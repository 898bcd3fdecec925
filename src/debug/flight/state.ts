// The state of a training: what a step reads and changes besides its arguments. A snapshot holds it, and can put it back.
import { isFunction, isObject } from '../../protocol/index.ts'
import type { Module } from '../../module/index.ts'
import type { BaseOptions, Optimizer, ParamGroup, ParamState } from '../../optim/index.ts'
import { treeLeaves } from '../../pytree/index.ts'
import { Tensor } from '../../tensor/index.ts'
import type { Generator, GeneratorState } from '../../tensor/index.ts'
import type { Copies, Copy } from './copies.ts'

/** What a tensor of the state is. */
export type StateKind = 'parameter' | 'buffer' | 'gradient' | 'optimizer state' | 'input' | 'tensor'

/** An object that gives its state and takes it back: a schedule of learning rates, a gradient scaler. */
export interface Stateful {
  stateDict(): unknown
  loadStateDict(state: never): void
}

/** Where the state is. */
export interface Sources {
  readonly models: readonly (readonly [prefix: string, model: Module])[]
  readonly optimizers: readonly Optimizer<BaseOptions>[]
  readonly tensors: ReadonlyMap<string, Tensor>
  readonly stateful: readonly Stateful[]
  readonly generators: readonly Generator[]
}

/** A tensor of the state, by name. */
export interface StateTensor {
  readonly kind: StateKind
  readonly name: string
  readonly tensor: Tensor
}

const tensorsIn = (value: unknown): readonly Tensor[] => treeLeaves(value).filter((leaf) => leaf instanceof Tensor)

/** The parameters and buffers of the models and what else was named, and the parameters of the optimizers. */
function namedTensors({ models, optimizers, tensors }: Sources): StateTensor[] {
  const found: StateTensor[] = []
  const seen = new Set<Tensor>()
  const add = (kind: StateKind, name: string, tensor: unknown): void => {
    if (!(tensor instanceof Tensor) || seen.has(tensor)) return
    seen.add(tensor)
    found.push({ kind, name, tensor })
  }
  for (const [prefix, model] of models) {
    for (const [name, tensor] of model.namedParameters()) add('parameter', prefix + name, tensor)
    for (const [name, tensor] of model.namedBuffers()) add('buffer', prefix + name, tensor)
  }
  for (const [name, tensor] of tensors) add(tensor.requiresGrad ? 'parameter' : 'tensor', name, tensor)
  let number = 0
  for (const { paramGroups } of optimizers)
    for (const { params } of paramGroups) for (const tensor of params) add('parameter', `parameter ${number++}`, tensor)
  return found
}

/** The tensors of the state, and those of the inputs. */
export function stateTensors(sources: Sources, inputs: readonly unknown[]): readonly StateTensor[] {
  const named = namedTensors(sources)
  const names = new Map(named.map(({ tensor, name }) => [tensor, name]))
  const found = [...named]
  for (const { name, tensor } of named) if (tensor.grad !== null) found.push({ kind: 'gradient', name, tensor: tensor.grad })
  for (const { state } of sources.optimizers)
    for (const [parameter, of] of state)
      for (const [key, value] of Object.entries(of))
        for (const tensor of tensorsIn(value)) found.push({ kind: 'optimizer state', name: `${key} of ${names.get(parameter) ?? '?'}`, tensor })
  for (const [i, one] of sources.stateful.entries())
    for (const tensor of tensorsIn(one.stateDict())) found.push({ kind: 'tensor', name: `state ${i}`, tensor })
  for (const [i, input] of inputs.entries())
    for (const tensor of tensorsIn(input)) {
      found.push({ kind: 'input', name: `input ${i}`, tensor })
      if (tensor.grad !== null) found.push({ kind: 'gradient', name: `input ${i}`, tensor: tensor.grad })
    }
  return found
}

const isArray = (value: unknown): value is readonly unknown[] => Array.isArray(value)

/** A parameter's state with lists of its own. */
const copyOf = (state: ParamState): ParamState =>
  Object.fromEntries(Object.entries(state).map(([key, value]) => [key, isArray(value) ? [...value] : value]))

/** The state at one moment. */
export class Snapshot {
  readonly tensors: ReadonlyMap<Tensor, StateTensor & { readonly copy: Copy }>
  readonly #copies: Copies
  readonly #sources: Sources
  readonly #grads: readonly (readonly [Tensor, Tensor | null])[]
  readonly #optimizers: readonly {
    readonly optimizer: Optimizer<BaseOptions>
    readonly groups: readonly (readonly [ParamGroup<BaseOptions>, object])[]
    readonly state: readonly (readonly [Tensor, ParamState])[]
  }[]
  readonly #stateful: readonly unknown[]
  readonly #generators: readonly GeneratorState[]

  constructor(copies: Copies, sources: Sources, inputs: readonly unknown[]) {
    this.#copies = copies
    this.#sources = sources
    const all = stateTensors(sources, inputs)
    const tensors = new Map<Tensor, StateTensor & { copy: Copy }>()
    for (const one of all)
      if (!tensors.has(one.tensor))
        tensors.set(one.tensor, { ...one, copy: copies.hold(one.tensor, one.kind === 'gradient' || one.kind === 'input') })
    this.tensors = tensors
    this.#grads = all.map(({ tensor }) => [tensor, tensor.grad] as const)
    this.#optimizers = sources.optimizers.map((optimizer) => ({
      optimizer,
      groups: optimizer.paramGroups.map((group) => [group, { ...group, params: [...group.params] }] as const),
      state: [...optimizer.state].map(([parameter, state]) => [parameter, copyOf(state)] as const),
    }))
    this.#stateful = sources.stateful.map((one) => one.stateDict())
    this.#generators = sources.generators.map((generator) => generator.getState())
  }

  /** The names of tensors whose content was overwritten without notice. */
  get lost(): readonly string[] {
    return [...this.tensors.values()].flatMap(({ copy, kind, name }) => (copy.isLost ? [`${kind} ${name}`] : []))
  }

  /** Puts the state back. With `versions`, the versions of the memory too: what was recorded about it is true again. */
  restore({ versions = false }: { readonly versions?: boolean } = {}): void {
    for (const { copy, tensor } of this.tensors.values()) {
      tensor.storage = copy.storage
      copy.restore()
      if (versions) copy.storage.version = copy.version
    }
    for (const [tensor, grad] of this.#grads) tensor.grad = grad
    for (const { optimizer, groups, state } of this.#optimizers) {
      optimizer.paramGroups.splice(0, optimizer.paramGroups.length, ...groups.map(([group]) => group))
      for (const [group, values] of groups) Object.assign(group, values)
      optimizer.state.clear()
      for (const [parameter, of] of state) optimizer.state.set(parameter, copyOf(of))
    }
    this.#sources.stateful.forEach((one, i) => Reflect.apply(one.loadStateDict, one, [this.#stateful[i]]))
    this.#sources.generators.forEach((generator, i) => {
      const state = this.#generators[i]
      if (state !== undefined) generator.setState(state)
    })
  }

  /** Forgets the copies. */
  release(): void {
    for (const { copy } of this.tensors.values()) this.#copies.release(copy)
  }
}

/** Whether an object gives and takes a state. */
export const isStateful = (value: unknown): value is Stateful =>
  isObject(value) && isFunction(Reflect.get(value, 'stateDict')) && isFunction(Reflect.get(value, 'loadStateDict'))

// Optimizer: parameter groups with their options, and state per parameter. Steps run outside of autograd, with in-place operators.
import { noGrad } from '../autograd/index.ts'
import { withoutModes } from '../dispatch/index.ts'
import { ArgumentError } from '../errors/index.ts'
import { isParameter, isTensorLike } from '../protocol/index.ts'
import type { TensorLike } from '../protocol/index.ts'
import { zerosLike } from '../ops/index.ts'
import { Tensor } from '../tensor/index.ts'

/** Parameters with options of their own. */
export type ParamGroup<O> = Partial<O> & { readonly params: Iterable<TensorLike> }

/** A group as the optimizer holds it. */
export type ResolvedGroup<O> = O & { params: Tensor[] }

/** Base of optimizers; PyTorch's torch.optim.Optimizer. */
export abstract class Optimizer<O extends object, S extends object> {
  readonly paramGroups: ResolvedGroup<O>[] = []
  protected readonly state: Map<Tensor, S> = new Map()
  readonly #defaults: O
  readonly #name: string

  constructor(name: string, params: Iterable<TensorLike> | readonly ParamGroup<O>[], defaults: O) {
    this.#name = name
    this.#defaults = defaults
    const list = [...(params as Iterable<unknown>)]
    if (list.length === 0) throw new ArgumentError(`optim.${name}: got no parameters; pass model.parameters().`)
    if (list.every((p) => isTensorLike(p))) this.addParamGroup({ params: list } as unknown as ParamGroup<O>)
    else for (const group of list) this.addParamGroup(group as ParamGroup<O>)
  }

  /** Adds parameters with options of their own. */
  addParamGroup(group: ParamGroup<O>): void {
    const { params, ...options } = group
    for (const key of Object.keys(options)) {
      if (!(key in this.#defaults)) throw new ArgumentError(`optim.${this.#name}: unknown option '${key}'; known are ${Object.keys(this.#defaults).join(', ')}.`)
    }
    const tensors = [...params].map((p) => {
      if (!(p instanceof Tensor)) throw new ArgumentError(`optim.${this.#name}: parameters must be Tensors.`)
      if (!p.isLeaf && !isParameter(p)) throw new ArgumentError(`optim.${this.#name}: can only optimize leaf tensors.`)
      return p
    })
    this.paramGroups.push({ ...this.#defaults, ...options, params: tensors } as ResolvedGroup<O>)
  }

  /** Forgets the gradients of all parameters. */
  zeroGrad(): void {
    for (const group of this.paramGroups) for (const p of group.params) p.grad = null
  }

  /** Updates every parameter that has a gradient. */
  step(): void {
    noGrad(() => {
      for (const group of this.paramGroups) for (const p of group.params) if (p.grad !== null) this.update(p, p.grad, group, this.#stateOf(p, group))
    })
  }

  #stateOf(param: Tensor, group: ResolvedGroup<O>): S {
    let state = this.state.get(param)
    if (state === undefined) {
      state = this.initialState(param, group)
      this.state.set(param, state)
    }
    return state
  }

  protected abstract initialState(param: Tensor, group: ResolvedGroup<O>): S
  protected abstract update(param: Tensor, grad: Tensor, group: ResolvedGroup<O>, state: S): void

  /** State and options, for saving; tensors are the optimizer's own. Parameters are numbered in order. */
  stateDict(): { readonly state: ReadonlyMap<number, S>; readonly paramGroups: readonly object[] } {
    const order = this.paramGroups.flatMap((g) => g.params)
    const state = new Map(order.flatMap((p, i): [number, S][] => (this.state.has(p) ? [[i, this.state.get(p) as S]] : [])))
    return { state, paramGroups: this.paramGroups.map(({ params, ...options }) => ({ ...options, params: params.map((p) => order.indexOf(p)) })) }
  }

  /** Takes over what stateDict gave. Throws ArgumentError when the groups do not fit. */
  loadStateDict(dict: ReturnType<Optimizer<O, S>['stateDict']>): void {
    if (dict.paramGroups.length !== this.paramGroups.length) throw new ArgumentError(`optim.${this.#name}: the state has ${dict.paramGroups.length} parameter groups, the optimizer ${this.paramGroups.length}.`)
    const order = this.paramGroups.flatMap((g) => g.params)
    for (const index of dict.state.keys()) if (index >= order.length) throw new ArgumentError(`optim.${this.#name}: the state names parameter ${index}, but there are ${order.length}.`)
    dict.paramGroups.forEach((saved, i) => {
      const { params: _params, ...options } = saved as { params: unknown }
      Object.assign(this.paramGroups[i] as object, options)
    })
    for (const [index, state] of dict.state) this.state.set(order[index] as Tensor, { ...state })
  }
}

/** A real tensor of zeros, made now also while compile captures: state outlives the call. */
export const freshZeros = (like: Tensor): Tensor => withoutModes(() => zerosLike(like))

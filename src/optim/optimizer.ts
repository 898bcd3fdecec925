// Optimizer, the base class: parameters in groups with options of their own, state per parameter, and both as a state dict. Steps run without recording.
import { enableGrad, noGrad } from '../autograd/index.ts'
import { dispatchState, withChangingNumbers, withoutModes } from '../dispatch/index.ts'
import { ArgumentError, UnsupportedError } from '../errors/index.ts'
import { allocating, beyondLimit, dtypeInfo, ensureRoom, isComplexDType } from '../kernels/index.ts'
import { add, mul_, neg, zero_, zeros, zerosLike } from '../ops/index.ts'
import {
  checkArgument,
  checkMethod,
  checkOptions,
  checkSynchronous,
  isCallable,
  isFunction,
  isModule,
  isPlainObject,
  isTensorLike,
  ownCopy,
  unknownOption,
  valueText,
} from '../protocol/index.ts'
import type { TensorLike } from '../protocol/index.ts'
import { Tensor, formatShape } from '../tensor/index.ts'
import { WITHOUT_EFFECT, copyState, readIndices, readStateDict, withTorchNames } from './stateDict.ts'
import type { OptimizerState, ParamState, TorchOptimizerState } from './stateDict.ts'

/** What every optimizer's options have. */
export interface BaseOptions {
  /** Learning rate. */
  readonly lr?: number
}

/** What the options of most optimizers have. */
export interface DecayOptions extends BaseOptions {
  /** Pull the parameters towards 0 by this much; added to the gradient, unless it is decoupled. */
  readonly weightDecay?: number
  /** Maximize instead of minimize. */
  readonly maximize?: boolean
}

/** A group of parameters with the options that differ from the optimizer's. */
export type ParamGroupInput<O extends BaseOptions> = { readonly params: TensorLike | Iterable<TensorLike> } & O

/** What to optimize: parameters (`model.parameters()`), or groups of them. */
export type Params<O extends BaseOptions> = Iterable<TensorLike> | Iterable<ParamGroupInput<O>>

/** A group as the optimizer keeps it: all options are set, and may be changed between steps. */
export type ParamGroup<O extends BaseOptions> = { params: Tensor[]; initialLr?: number } & { -readonly [K in keyof O]-?: Exclude<O[K], undefined> }

/** The kind of an option's value, for messages. */
const typeName = (value: unknown): string =>
  value === null ? 'null' : Array.isArray(value) ? 'an array' : typeof value === 'object' ? 'an object' : `a ${typeof value}`

/** What schedules add to the groups. PyTorch's OneCycleLR adds all but `swaLr`. */
const OF_SCHEDULES: ReadonlySet<string> = new Set(['initialLr', 'swaLr', 'maxLr', 'minLr', 'baseMomentum', 'maxMomentum'])

/** Base class of optimizers; PyTorch's `torch.optim.Optimizer`. Subclasses implement `update`. */
export abstract class Optimizer<O extends BaseOptions = BaseOptions> {
  /** The options that groups start from. */
  readonly defaults: Required<O>
  readonly paramGroups: ParamGroup<O>[] = []
  /** Per parameter, from its first step on. */
  readonly state: Map<Tensor, ParamState> = new Map()
  protected readonly className: string
  /** How many new tensors as large as a parameter `update` has at a time, at most. A step begins only if there is memory for them, since it must not end half way. */
  protected readonly temporaries: number = 3
  /** What makes the tensors of a step, for messages. */
  readonly #maker: string
  /** Whether the class has state from the first step on, which must be there before any parameter changes. */
  readonly #startsWithState: boolean = this.newState !== Optimizer.prototype.newState
  /** The state of parameters that are about to have their first step. */
  #first: Map<Tensor, ParamState> | null = null

  constructor(className: string, params: Params<O>, defaults: Required<O>, options: O | undefined) {
    this.className = `optim.${className}`
    this.#maker = `${this.className}.step`
    this.defaults = defaults
    if (typeof params !== 'object' || params === null || isTensorLike(params) || !(Symbol.iterator in params)) {
      throw new ArgumentError(
        `${this.className}: argument 'params' must be an array (or another iterable) of parameters or of groups { params, lr, … }, got ${valueText(params)}.${paramsHint(params)}`,
      )
    }
    this.defaults = this.readOptions(options ?? {})
    const items: readonly (TensorLike | ParamGroupInput<O>)[] = [...params]
    if (items.length === 0)
      throw new ArgumentError(
        `${this.className}: the list of parameters is empty. model.parameters() is a generator, which can be read only once: call it again. It finds layers that are properties of the model.`,
      )
    if (items.every(isTensorLike)) this.#addGroup(items, {})
    else
      for (const [i, item] of items.entries()) {
        if (!isPlainObject(item))
          throw new ArgumentError(
            `${this.className}: argument 'params[${i}]' must be a parameter or, as all others then, a group { params, lr, … }, got ${valueText(item)}.`,
          )
        this.#addGroup(item.params, item)
      }
  }

  /** Throws ArgumentError if an option of the group is out of range; see {@link checkOption}. */
  protected abstract checkGroup(group: Required<O>): void

  /** One step for one parameter. Runs without recording. */
  protected abstract update(parameter: Tensor, grad: Tensor, group: ParamGroup<O>): void

  private readOptions(options: object): Required<O> {
    if (typeof options !== 'object' || options === null)
      throw new ArgumentError(`${this.className}: options must be an object such as { lr: 0.01 }, got ${valueText(options)}.`)
    const known = Object.keys(this.defaults)
    for (const [key, value] of Object.entries(options)) {
      // PyTorch's `foreach` and the like say how a step is computed, not what.
      if (WITHOUT_EFFECT.has(key)) continue
      if (!known.includes(key)) throw unknownOption(this.className, key, known)
      const usual = typeName(Reflect.get(this.defaults, key))
      // What may be given for a default of null is left to checkGroup.
      if (value !== undefined && usual !== 'null' && typeName(value) !== usual)
        throw new ArgumentError(`${this.className}: option '${key}' must be ${usual}, got ${valueText(value)}.`)
      // Arrays are pairs of numbers, of which Adafactor's may have none.
      if (Array.isArray(value) && !value.every((item) => item === null || typeof item === 'number'))
        throw new ArgumentError(`${this.className}: option '${key}' must be an array of numbers, got ${valueText(value)}.`)
    }
    const all: Required<O> = { ...this.defaults }
    for (const [key, value] of Object.entries(options)) if (value !== undefined && known.includes(key)) Reflect.set(all, key, ownCopy(value))
    this.checkGroup(all)
    return all
  }

  /** Throws ArgumentError unless the option is a number for which `holds`. */
  protected checkOption(name: string, value: number, what: string, holds: boolean): void {
    if (!holds) throw new ArgumentError(`${this.className}: option '${name}' must be ${what}, got ${valueText(value)}.`)
  }

  /** Throws ArgumentError unless all are numbers of at least 0. */
  protected checkAtLeast0(options: Readonly<Record<string, number>>): void {
    for (const [name, value] of Object.entries(options)) this.checkOption(name, value, 'at least 0', value >= 0)
  }

  /** Throws ArgumentError unless they are two numbers of at least 0 and below 1. */
  protected checkBetas(betas: readonly unknown[]): void {
    if (betas.length !== 2 || betas.some((beta) => !(typeof beta === 'number' && beta >= 0 && beta < 1)))
      throw new ArgumentError(`${this.className}: option 'betas' must be two numbers of at least 0 and below 1, got ${valueText(betas)}.`)
  }

  /** Adds parameters, for example of layers that are unfrozen later. Throws ArgumentError for a tensor that is not a leaf or is already in a group. */
  addParamGroup(input: ParamGroupInput<O>): void {
    checkMethod(this, 'addParamGroup', arguments, 1)
    checkArgument(isPlainObject(input), `${this.className}.addParamGroup`, 'input', 'a group { params, lr, … }', input)
    this.#addGroup(input.params, input)
  }

  /** `group`: the options of the group, and perhaps `params` among them. */
  #addGroup(params: unknown, group: object): void {
    if (typeof params !== 'object' || params === null || (!isTensorLike(params) && !isIterable(params)))
      throw new ArgumentError(`${this.className}: a parameter group needs 'params', a parameter or several of them; got ${valueText(params)}.`)
    const options = Object.fromEntries(Object.entries(group).filter(([key]) => key !== 'params'))
    const known = new Set(this.paramGroups.flatMap((other) => other.params))
    const tensors: Tensor[] = []
    for (const parameter of isTensorLike(params) ? [params] : params) {
      if (!(parameter instanceof Tensor)) throw new ArgumentError(`${this.className}: parameters must be Tensors, got ${valueText(parameter)}.`)
      if (!parameter.isLeaf) {
        throw new ArgumentError(
          `${this.className}: a tensor of shape ${formatShape(parameter.shape)} was computed from others and cannot be optimized; optimize the leaves, or detach() it.`,
        )
      }
      if (isComplexDType(parameter.dtype))
        throw new UnsupportedError(
          `${this.className}: a parameter has the dtype ${parameter.dtype}, and optimizers update real numbers; keep the pairs as the parameter, and use torch.viewAsComplex(pairs).`,
        )
      if (known.has(parameter)) throw new ArgumentError(`${this.className}: a parameter of shape ${formatShape(parameter.shape)} appears twice.`)
      known.add(parameter)
      tensors.push(parameter)
    }
    // The intersection says what the spread has, but TypeScript does not follow mapped types of a type parameter.
    this.paramGroups.push({ ...this.readOptions(options), params: tensors } as ParamGroup<O>)
  }

  /** Forgets gradients (`grad = null`), or sets them to zero with `setToNone: false`. */
  zeroGrad(options: { readonly setToNone?: boolean } = {}): void {
    checkMethod(this, 'zeroGrad', arguments, 1)
    checkOptions(`${this.className}.zeroGrad`, options, { setToNone: 'boolean' })
    const setToNone = options.setToNone ?? true
    for (const { params } of this.paramGroups) {
      for (const parameter of params) {
        if (setToNone) parameter.grad = null
        else if (parameter.grad !== null) {
          const { grad } = parameter
          grad.detach_()
          noGrad(() => zero_(grad))
        }
      }
    }
  }

  /**
   * Updates every parameter that has a gradient. A closure is called first, with recording on; its result is returned. Throws OutOfMemoryError, and changes nothing, if there is no memory
   * for the state and the temporaries.
   */
  step(): void
  step<T>(closure: () => T): T
  step<T>(closure?: () => T): T | void {
    checkMethod(this, 'step', arguments, 1)
    if (closure !== undefined) checkArgument(isCallable(closure), `${this.className}.step`, 'closure', 'a function', closure)
    const result = closure === undefined ? undefined : closureResult(this.className, closure)
    const outer = dispatchState.internal
    const maker = allocating.composite
    dispatchState.internal = true
    allocating.composite = maker ?? this.#maker
    try {
      noGrad(() => this.#updateAll())
    } finally {
      dispatchState.internal = outer
      allocating.composite = maker
      this.#first = null
    }
    return result
  }

  #updateAll(): void {
    let largest = 0
    for (const group of this.paramGroups) {
      for (const parameter of group.params) {
        if (parameter.grad === null) continue
        largest = Math.max(largest, parameter.numel * dtypeInfo[parameter.dtype].size)
        if (this.#startsWithState && !this.state.has(parameter)) (this.#first ??= new Map()).set(parameter, this.newState(parameter, group))
      }
    }
    // What capture records uses the memory of the compiled program.
    if (dispatchState.mode === null) ensureRoom(this.temporaries * largest, this.#maker)
    beyondLimit(() => {
      for (const group of this.paramGroups)
        for (const parameter of group.params) if (parameter.grad !== null) this.update(parameter, parameter.grad, group)
    })
  }

  /** The state of a parameter before its first step. A state dict must have all of it; what only some options need is added when it is needed. */
  protected newState(_parameter: Tensor, _group: ParamGroup<O>): ParamState {
    return {}
  }

  /** The parameter's state. S is what {@link newState} returns. */
  protected stateOf<S extends ParamState>(parameter: Tensor, group: ParamGroup<O>): S {
    let state = this.state.get(parameter)
    if (state === undefined) {
      state = this.#first?.get(parameter) ?? this.newState(parameter, group)
      this.state.set(parameter, state)
    }
    return state as S
  }

  /** The shape of a tensor of the state, for state dicts. */
  protected shapeOfState(_name: string, parameter: Tensor): readonly number[] {
    return parameter.shape
  }

  /** The state of a parameter that was read from a state dict. Throws ArgumentError unless it has what {@link newState} has. */
  protected readState(where: string, state: ParamState, parameter: Tensor, group: ParamGroup<O>): ParamState {
    const wanted = this.newState(parameter, group)
    for (const [name, value] of Object.entries(wanted)) {
      const kind = typeName(value)
      if (typeName(state[name]) !== kind)
        throw new ArgumentError(
          `${where}: the state of a parameter of shape ${formatShape(parameter.shape)} must have '${name}', ${kind === 'an object' ? 'a Tensor' : kind}, got ${valueText(state[name])}. It has ${Object.keys(state).join(', ') || 'nothing'}; is it the state of another optimizer?`,
        )
    }
    return state
  }

  /**
   * Options of the groups and state of the parameters. The tensors are the optimizer's own, not copies. With `names: 'pytorch'`, all names are PyTorch's
   * (`param_groups`, `exp_avg`). Throws ArgumentError for other `names`.
   */
  stateDict(options?: { readonly names?: 'own' }): OptimizerState
  stateDict(options: { readonly names?: 'own' | 'pytorch' }): OptimizerState | TorchOptimizerState
  stateDict(options: { readonly names?: 'own' | 'pytorch' } = {}): OptimizerState | TorchOptimizerState {
    checkMethod(this, 'stateDict', arguments, 1)
    checkOptions(`${this.className}.stateDict`, options, { names: true })
    const { names = 'own' } = options
    if (names !== 'own' && names !== 'pytorch')
      throw new ArgumentError(`${this.className}.stateDict: option 'names' must be 'own' or 'pytorch', got ${valueText(names)}.`)
    let next = 0
    const state: Record<number, ParamState> = {}
    const paramGroups = this.paramGroups.map(({ params, ...given }) => {
      const indices = params.map((parameter) => {
        const known = this.state.get(parameter)
        if (known !== undefined) state[next] = { ...known }
        return next++
      })
      return { ...ownCopy(given), params: indices }
    })
    return names === 'own' ? { state, paramGroups } : withTorchNames({ state, paramGroups })
  }

  /** Loads a state dict, also one with PyTorch's names; tensors are copied. Throws ArgumentError, and changes nothing, if groups or shapes do not fit. */
  loadStateDict(dict: OptimizerState | TorchOptimizerState): void {
    checkMethod(this, 'loadStateDict', arguments, 1)
    const where = `${this.className}.loadStateDict`
    const { groups, states } = readStateDict(where, dict, Object.keys(this.defaults))
    if (groups.length !== this.paramGroups.length)
      throw new ArgumentError(`${where}: the state has ${groups.length} parameter groups, this optimizer ${this.paramGroups.length}.`)
    const loaded = new Map<Tensor, ParamState>()
    for (const [g, group] of this.paramGroups.entries()) {
      const { params } = group
      const indices = readIndices(where, groups[g], g)
      if (indices.length !== params.length)
        throw new ArgumentError(`${where}: group ${g} of the state has ${indices.length} parameters, of this optimizer ${params.length}.`)
      for (const [i, parameter] of params.entries()) {
        const state = states.get(String(indices[i]))
        if (state === undefined) continue
        const copy = (name: string, value: unknown): ParamState[string] =>
          copyState(where, name, value, this.shapeOfState(name, parameter), parameter)
        loaded.set(
          parameter,
          this.readState(
            where,
            noGrad(() => Object.fromEntries([...state].map(([name, value]) => [name, copy(name, value)]))),
            parameter,
            group,
          ),
        )
      }
    }
    const options = this.paramGroups.map((group, g) => this.#loadedOptions(where, group, groups[g]))
    this.state.clear()
    for (const [parameter, state] of loaded) this.state.set(parameter, state)
    for (const [g, group] of this.paramGroups.entries()) Object.assign(group, options[g])
  }

  /** The options of a group in a state dict, those of `group` where it has none, and what schedules add. */
  #loadedOptions(where: string, group: ParamGroup<O>, given: ReadonlyMap<string, unknown> | undefined): object {
    const options: Record<string, unknown> = {}
    const scheduled: Record<string, unknown> = {}
    for (const [key, value] of [...Object.entries(group), ...(given ?? [])]) {
      if (key === 'params' || (value === undefined && OF_SCHEDULES.has(key))) continue
      if (!OF_SCHEDULES.has(key)) options[key] = value
      else if (typeof value === 'number') scheduled[key] = value
      else throw new ArgumentError(`${where}: option '${key}' must be a number, got ${valueText(value)}.`)
    }
    return { ...this.readOptions(options), ...scheduled }
  }

  toString(): string {
    const groups = this.paramGroups.map(({ params: _params, ...options }, g) => {
      const lines = Object.entries(options)
        .sort(([a], [b]) => (a < b ? -1 : 1))
        .map(([key, value]) => `    ${key}: ${String(value)}`)
      return [`Parameter Group ${g}`, ...lines].join('\n')
    })
    return `${this.constructor.name} (\n${groups.join('\n\n')}\n)`
  }
}

/** The gradient to go down, with the weight decay, which is applied to the parameter at once if it is decoupled. */
export function descent(
  parameter: Tensor,
  grad: Tensor,
  { lr = 0, weightDecay = 0, decoupledWeightDecay = false, maximize = false }: DecayOptions & { readonly decoupledWeightDecay?: boolean },
): Tensor {
  const down = maximize ? neg(grad) : grad
  if (weightDecay === 0) return down
  if (!decoupledWeightDecay) return add(down, parameter, { alpha: weightDecay })
  withChangingNumbers(() => mul_(parameter, 1 - lr * weightDecay))
  return down
}

/** Zeros for a parameter's state. They outlive the step, so they are real tensors even while compile captures; fake only for a fake parameter. */
export function stateZeros(parameter: Tensor): Tensor {
  return parameter.isFake ? zerosLike(parameter) : withoutModes(() => zeros(parameter.shape, { dtype: parameter.dtype, device: parameter.device }))
}

/** What was probably meant by something that is not a list of parameters. */
function paramsHint(params: unknown): string {
  if (isTensorLike(params)) return ' Put it into an array: [x].'
  return isModule(params) ? ' Write model.parameters().' : isFunction(params) ? ' Call it: model.parameters().' : ''
}

const isIterable = (value: object): value is Iterable<unknown> => Symbol.iterator in value

/** What a closure returns, called with recording on. Throws ArgumentError for an async one: its gradients would come after the step. */
export function closureResult<T>(where: string, closure: () => T): T {
  const result = enableGrad(closure)
  checkSynchronous(`${where}.step`, 'the closure', result, 'await the loss and call backward before step()')
  return result
}

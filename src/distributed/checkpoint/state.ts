// The states of models and optimizers as checkpoints hold them: by the names of the model without wrappers, in parts where ranks hold parts.
import type { HasState, Part } from '../../checkpoint/part.ts'
import type { DividedTensor } from '../../checkpoint/stateTree.ts'
import { ArgumentError } from '../../errors/index.ts'
import { LoadStateError, collectState, loadState } from '../../module/index.ts'
import type { Module } from '../../module/index.ts'
import type { OptimizerState } from '../../optim/index.ts'
import { isObject, isPlainObject, valueText } from '../../protocol/index.ts'
import { Tensor } from '../../tensor/index.ts'
import { DistributedDataParallel } from '../ddp/ddp.ts'
import { fullOptimStateDict, optimStateDict, optimStateDictToLoad } from '../fsdp/optimState.ts'
import type { AnyOptimizer, NamedOptimizerState } from '../fsdp/optimState.ts'
import { cleanView, stateDictType } from '../fsdp/stateDict.ts'
import { enterFullParams } from '../fsdp/summon.ts'
import { unitOrNone, unitsIn } from '../fsdp/unit.ts'
import { ShardedTensor } from '../shardedTensor.ts'

/** The model whose names count: that inside of DistributedDataParallel. */
const innerOf = (model: Module): Module => (model instanceof DistributedDataParallel ? model.module : model)

const viewOf = (model: Module): ReturnType<typeof cleanView> => cleanView(unitOrNone(model)?.inner ?? model, model.constructor.name)

/** The tensors of a model by name. All ranks call it; parameters that ranks hold in parts come in parts. */
function modelState(model: Module): Map<string, Tensor | DividedTensor> {
  const units = unitsIn(model)
  const group = units[0]?.settings.shardGroup
  const exit = enterFullParams(units, { writeback: false })
  try {
    const state = new Map<string, Tensor | DividedTensor>()
    // A parameter with two names is divided once, so that it is written once.
    const divided = new Map<Tensor, ShardedTensor>()
    for (const [name, tensor] of collectState(viewOf(model))) {
      if (!(tensor instanceof Tensor)) continue
      const isDivided = group !== undefined && tensor.isParameter && tensor.ndim > 0
      if (isDivided && !divided.has(tensor)) divided.set(tensor, ShardedTensor.chunk(tensor, group))
      state.set(name, divided.get(tensor) ?? tensor)
    }
    return state
  } finally {
    exit()
  }
}

/** Loads tensors by name. All ranks call it. Throws LoadStateError, and loads nothing, unless they are those of the model. */
function loadModelState(model: Module, state: unknown): void {
  if (!(state instanceof Map)) throw new ArgumentError(`loadCheckpoint: the state of a model must be a Map, got ${valueText(state)}.`)
  const whole = new Map<string, Tensor>()
  for (const [name, value] of state) {
    const tensor: unknown = value instanceof ShardedTensor ? value.fullTensor() : value
    if (typeof name !== 'string' || !(tensor instanceof Tensor))
      throw new ArgumentError(`loadCheckpoint: the state of a model must have tensors by name, got ${valueText(name)}: ${valueText(value)}.`)
    whole.set(name, tensor)
  }
  const exit = enterFullParams(unitsIn(model), { writeback: true })
  try {
    loadState(viewOf(model), whole, true)
  } finally {
    exit()
  }
}

/** A model. */
export const modelPart = (name: string, given: Module): Part => {
  const model = innerOf(given)
  return { name, read: () => modelState(model), load: (state) => loadModelState(model, state) }
}

const isOptimizer = (value: object): value is AnyOptimizer & HasState =>
  'paramGroups' in value && Array.isArray(value.paramGroups) && 'state' in value && value.state instanceof Map

/** The model whose parameters an optimizer trains. Throws ArgumentError unless there is one. */
function trainedModel(where: string, name: string, optimizer: AnyOptimizer, models: readonly Module[]): Module {
  const trained = new Set<unknown>(optimizer.paramGroups.flatMap(({ params }) => params))
  const found = models.map(innerOf).filter((model) => [...model.parameters()].some((parameter) => trained.has(parameter)))
  const [model] = found
  if (model === undefined || found.length > 1)
    throw new ArgumentError(
      model === undefined
        ? `${where}: '${name}' trains no parameter of a model that is given; its state is saved by their names, so give its model too.`
        : `${where}: '${name}' trains parameters of ${found.length} models; give it one module that holds all of them.`,
    )
  return model
}

/** The state of an optimizer by the names of parameters. All ranks call it. */
function optimizerState(model: Module, optimizer: AnyOptimizer): NamedOptimizerState {
  return unitsIn(model).length === 0
    ? fullOptimStateDict(model, optimizer, false)
    : stateDictType(model, 'SHARDED_STATE_DICT', () => optimStateDict(model, optimizer))
}

/** The names of the parameters that a group of a state has, in order; null if it has numbers. */
function namesOf(group: unknown): readonly string[] | null {
  const params: unknown = isPlainObject(group) ? group['params'] : null
  return Array.isArray(params) && params.every((name) => typeof name === 'string') ? params : null
}

/**
 * A state by names, of one by numbers, which a process without other ranks has saved: its optimizer must have had the same groups, each in the order of the model. All ranks call it. Throws
 * LoadStateError for groups of other sizes.
 */
function byNames(model: Module, optimizer: AnyOptimizer, state: Readonly<Record<string, unknown>>): unknown {
  const saved = Array.isArray(state['paramGroups']) ? state['paramGroups'] : []
  const order = [...modelState(model).keys()]
  const groups = optimizerState(model, optimizer).paramGroups.map((group) => {
    const names = new Set(namesOf(group))
    return order.filter((name) => names.has(name))
  })
  const sizes = saved.map((group: unknown) => (isPlainObject(group) && Array.isArray(group['params']) ? group['params'].length : 0))
  if (String(sizes) !== String(groups.map((names) => names.length)))
    throw new LoadStateError('optimizer', [
      `The state has groups of ${sizes.join(', ')} parameters, the optimizer groups of ${groups.map((names) => names.length).join(', ')}.`,
    ])
  const names = groups.flat()
  const values: Record<string, unknown> = isPlainObject(state['state']) ? state['state'] : {}
  return {
    state: Object.fromEntries(names.flatMap((name, i) => (Object.hasOwn(values, i) ? [[name, values[i]]] : []))),
    paramGroups: saved.map((group: unknown, g) => ({ ...(isPlainObject(group) ? group : {}), params: groups[g] })),
  }
}

/** What the optimizer loads on this rank. Throws LoadStateError for parameters that the model does not have. */
function optimizerStateToLoad(model: Module, optimizer: AnyOptimizer, state: unknown): OptimizerState {
  const given: Record<string, unknown> = isPlainObject(state) ? state : {}
  const isNamed = Array.isArray(given['paramGroups']) && given['paramGroups'].every((group: unknown) => namesOf(group) !== null)
  const named = isNamed ? given : byNames(model, optimizer, given)
  // optimStateDictToLoad checks what it gets.
  const checked = named as NamedOptimizerState
  const names = new Set([...collectState(viewOf(model)).keys()])
  const unknown = unitsIn(model).length === 0 && isPlainObject(checked.state) ? Object.keys(checked.state).filter((name) => !names.has(name)) : []
  if (unknown.length > 0) throw new LoadStateError('optimizer', [`Unexpected parameter(s) in the state: ${unknown.join(', ')}.`])
  return optimStateDictToLoad(model, optimizer, checked)
}

/** The part of a checkpoint that an optimizer is; null if the object is not an optimizer. */
export function optimizerPart(where: string, name: string, optimizer: HasState, models: readonly Module[]): Part | null {
  if (!isObject(optimizer) || !isOptimizer(optimizer)) return null
  const model = trainedModel(where, name, optimizer, models)
  return {
    name,
    read: () => optimizerState(model, optimizer),
    load: (state) => {
      Reflect.apply(optimizer.loadStateDict, optimizer, [optimizerStateToLoad(model, optimizer, state)])
    },
  }
}

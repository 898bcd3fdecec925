// States of optimizers of divided models: between this rank's form, by number and shard, and forms by name that fit any number of ranks.
import { noGrad } from '../../autograd/index.ts'
import { ArgumentError, UnsupportedError } from '../../errors/index.ts'
import type { Module } from '../../module/index.ts'
import { checkArgument, checkCount, checkModule, entryOf, isObject, isPlainObject, setOwn, valueText } from '../../protocol/index.ts'
import { Tensor, formatShape } from '../../tensor/index.ts'
import type { Optimizer, OptimizerState, ParamState } from '../../optim/index.ts'
import { allGatherObject, broadcastObject } from '../objects.ts'
import { getRank } from '../processGroup.ts'
import { broadcast } from '../inPlace.ts'
import { ShardedTensor } from '../shardedTensor.ts'
import { joinPath } from './flatParameter.ts'
import type { FlatHandle } from './handle.ts'
import { cleanName } from './names.ts'
import { SimpleProfiler } from './profiler.ts'
import { unitOrNone } from './unit.ts'
import type { StateDictSettings } from './unit.ts'

/** One value of a parameter's state: whole, a shard of it, or a number. */
export type NamedStateValue = Tensor | ShardedTensor | number

/** The state of an optimizer by parameters' names. Groups list names. */
export interface NamedOptimizerState {
  readonly state: Readonly<Record<string, Readonly<Record<string, NamedStateValue>>>>
  readonly paramGroups: readonly Readonly<Record<string, unknown>>[]
}

/** An optimizer whatever its options are. */
export type AnyOptimizer = Pick<Optimizer, 'stateDict'> & {
  readonly paramGroups: readonly { readonly params: readonly Tensor[] }[]
  readonly state: ReadonlyMap<Tensor, Readonly<ParamState>>
}

/** A parameter of the model, and where the optimizer finds its state. */
interface Home {
  readonly name: string
  /** What is optimized: the parameter itself, its part, or the unit's shard. */
  readonly trained: Tensor
  /** Null for a parameter that no unit stores. */
  readonly handle: FlatHandle | null
  /** Which of the unit's parameters it is. */
  readonly index: number
}

/** The parameters of a model without wrappers, in order. */
function homesOf(where: string, model: Module): Home[] {
  checkModule(where, 'model', model)
  const homes: Home[] = []
  const seen = new Set<unknown>()
  for (const [path, module] of model.namedModules()) {
    const prefix = cleanName(path)
    const handle = unitOrNone(module)?.handle ?? null
    if (handle !== null) {
      handle.layout.names.forEach((name, index) => {
        homes.push({ name: joinPath(prefix, name), trained: handle.pieces[index] ?? handle.local, handle, index })
      })
      for (const trained of [handle.local, ...handle.trained]) seen.add(trained)
    }
  }
  for (const [name, parameter] of model.namedParameters())
    if (parameter instanceof Tensor && !seen.has(parameter)) homes.push({ name: cleanName(name), trained: parameter, handle: null, index: 0 })
  return homes
}

/** The elements of a parameter's state that this rank has, in a shard of the flat parameter's size. */
function shardOf(home: Home, handle: FlatHandle, value: Tensor): Tensor {
  const shard = Tensor.empty([handle.layout.shardNumel], value.dtype)
  const { offsetInShard, numelInShard } = handle.infos[home.index] ?? {}
  noGrad(() => {
    shard.zero_()
    if (typeof offsetInShard !== 'number' || typeof numelInShard !== 'number') return
    const own = value.detach().reshape([value.numel])
    shard.narrow(0, offsetInShard, numelInShard).copy_(handle.settings.useOrigParams ? own : own.narrow(0, offsetInShard, numelInShard))
  })
  return shard
}

/** All ranks' parts of one value of a parameter's state. */
function gatherValue(home: Home, handle: FlatHandle, shard: Tensor): Tensor {
  const { layout } = handle
  const full = layout.shards === 1 ? shard : Tensor.empty([layout.paddedNumel], shard.dtype)
  if (layout.shards > 1) handle.gatherInto(full, shard)?.wait()
  const { shape = [] } = layout.entries[home.index] ?? {}
  return noGrad(() =>
    full
      .narrow(0, layout.offsets[home.index] ?? 0, layout.numels[home.index] ?? 0)
      .clone()
      .view(shape),
  )
}

/** A state of tensors and numbers. Throws UnsupportedError for one with lists, which belong to several steps at once. */
function plainState(state: Readonly<ParamState> | undefined): Readonly<Record<string, Tensor | number>> | undefined {
  if (state === undefined) return undefined
  const plain: Record<string, Tensor | number> = {}
  for (const [key, value] of Object.entries(state)) {
    if (!(value instanceof Tensor) && typeof value !== 'number')
      throw new UnsupportedError(
        `FSDP: the optimizer's state '${key}' is a list, which has no form by parameters' names. Use an optimizer of tensors and numbers.`,
      )
    setOwn(plain, key, value)
  }
  return plain
}

/** What a state has, on the ranks that have one: names, and the dtype of tensors or the number itself. A rank without a part of a parameter has none. */
function agreeOnKeys(own: Readonly<Record<string, Tensor | number>> | undefined, handle: FlatHandle): readonly (readonly [string, unknown])[] {
  const described =
    own === undefined
      ? null
      : Object.entries(own).map(([key, value]) => [key, value instanceof Tensor ? [value.dtype, value.ndim === 0 ? value.item() : null] : value])
  for (const other of allGatherObject(described, handle.settings.shardGroup)) if (Array.isArray(other)) return other
  return []
}

function gatherState(home: Home, optimizer: AnyOptimizer, settings: StateDictSettings | null): Record<string, NamedStateValue> | null {
  const own = plainState(optimizer.state.get(home.trained))
  const { handle } = home
  if (handle === null) return own === undefined ? null : { ...own }
  const keys = SimpleProfiler.profile('all_gather_object', () => agreeOnKeys(own, handle))
  if (keys.length === 0) return null
  const state: Record<string, NamedStateValue> = {}
  for (const [key, kind] of keys) {
    const known = own?.[key]
    if (!Array.isArray(kind)) {
      state[key] = typeof kind === 'number' ? kind : 0
      continue
    }
    const [dtype, scalar]: readonly [Tensor['dtype'], number | null] = [kind[0], kind[1]]
    if (scalar !== null) {
      state[key] = noGrad(() => Tensor.empty([], dtype).fill_(scalar))
      continue
    }
    const shard = known instanceof Tensor ? shardOf(home, handle, known) : noGrad(() => Tensor.empty([handle.layout.shardNumel], dtype).zero_())
    const whole = SimpleProfiler.profile('all_gather', () => gatherValue(home, handle, shard))
    state[key] =
      settings?.type === 'SHARDED_STATE_DICT'
        ? SimpleProfiler.profile('resharding', () => ShardedTensor.chunk(whole, handle.settings.shardGroup))
        : whole
  }
  return state
}

/** Groups with names in place of numbers. */
function namedGroups(homes: readonly Home[], optimizer: AnyOptimizer): readonly Readonly<Record<string, unknown>>[] {
  return optimizer.stateDict().paramGroups.map((group, g) => {
    const trained = new Set(optimizer.paramGroups[g]?.params)
    return { ...group, params: homes.filter((home) => trained.has(home.trained)).map(({ name }) => name) }
  })
}

function namedState(where: string, model: Module, optimizer: AnyOptimizer, settings: StateDictSettings | null): NamedOptimizerState {
  const homes = homesOf(where, model)
  checkOptimizer(where, optimizer)
  const trained = new Set(optimizer.paramGroups.flatMap(({ params }) => params))
  const state: Record<string, Record<string, NamedStateValue>> = {}
  for (const home of homes) {
    if (!trained.has(home.trained)) continue
    const own = gatherState(home, optimizer, settings)
    if (own !== null) setOwn(state, home.name, own)
  }
  return { state, paramGroups: namedGroups(homes, optimizer) }
}

const EMPTY: NamedOptimizerState = { state: {}, paramGroups: [] }

/**
 * The whole state of an optimizer by parameters' names, on rank 0; empty on others unless `rank0Only` is false. All ranks must call it. PyTorch's
 * `FSDP.full_optim_state_dict`.
 */
export function fullOptimStateDict(model: Module, optimizer: AnyOptimizer, rank0Only = true): NamedOptimizerState {
  checkCount('fullOptimStateDict', arguments, 3)
  const full = namedState('fullOptimStateDict', model, optimizer, null)
  return rank0Only && getRank() !== 0 ? EMPTY : full
}

/**
 * The state of an optimizer by parameters' names, of the type that is in force (see `stateDictType`). PyTorch's `FSDP.optim_state_dict`. Throws ArgumentError for
 * 'LOCAL_STATE_DICT', which optimizers do not have.
 */
export function optimStateDict(model: Module, optimizer: AnyOptimizer): NamedOptimizerState {
  checkCount('optimStateDict', arguments, 2)
  const settings = settingsOf(model)
  if (settings.type === 'LOCAL_STATE_DICT')
    throw new ArgumentError(
      "optimStateDict: there is no 'LOCAL_STATE_DICT' of optimizers here; optimizer.stateDict() is this rank's own, or use 'SHARDED_STATE_DICT'.",
    )
  try {
    const named = SimpleProfiler.profile('all', () => namedState('optimStateDict', model, optimizer, settings))
    return settings.type === 'FULL_STATE_DICT' && settings.optimRank0Only && getRank() !== 0 ? EMPTY : named
  } finally {
    SimpleProfiler.dumpAndReset('FSDP _optim_state_dict() profiling: ')
  }
}

function settingsOf(model: Module): StateDictSettings {
  checkModule('optimStateDict', 'model', model)
  for (const module of model.modules()) {
    const unit = unitOrNone(module)
    if (unit !== undefined) return unit.stateDictType
  }
  throw new ArgumentError('optimStateDict: model contains no FullyShardedDataParallel.')
}

function wholeValue(value: NamedStateValue): Tensor | number {
  return value instanceof ShardedTensor ? value.fullTensor() : value
}

/** This rank's form of a state by names: numbers in place of names, shards in place of whole tensors. */
function localState(where: string, model: Module, optimizer: AnyOptimizer, named: NamedOptimizerState): OptimizerState {
  const homes = homesOf(where, model)
  checkOptimizer(where, optimizer)
  const numbers = new Map(optimizer.paramGroups.flatMap(({ params }) => params).map((tensor, i) => [tensor, i]))
  const state: Record<number, Record<string, Tensor | number>> = {}
  for (const home of homes) {
    const number = numbers.get(home.trained)
    const given = entryOf(named.state, home.name)
    if (number === undefined || given === undefined) continue
    const { handle } = home
    const shape = handle?.layout.entries[home.index]?.shape
    const own: Record<string, Tensor | number> = state[number] ?? {}
    let isHeld = handle === null
    for (const [key, value] of Object.entries(given)) {
      const whole = wholeValue(value)
      if (handle === null || !(whole instanceof Tensor) || whole.ndim === 0) {
        setOwn(own, key, whole)
        continue
      }
      if (whole.shape.join() !== shape?.join())
        throw new ArgumentError(
          `${where}: state '${key}' of '${home.name}' has shape ${formatShape(whole.shape)} but the parameter has shape ${formatShape(shape ?? [])}.`,
        )
      const part = noGrad(() => handle.partOf(whole, home.index).clone())
      const { offsetInShard, inShard = false } = handle.infos[home.index] ?? {}
      isHeld ||= inShard
      if (handle.settings.useOrigParams) {
        setOwn(
          own,
          key,
          noGrad(() => part.view(home.trained.shape)),
        )
      } else {
        const known = entryOf(own, key)
        const shard = known instanceof Tensor ? known : noGrad(() => Tensor.empty([handle.layout.shardNumel], whole.dtype).zero_())
        if (inShard && typeof offsetInShard === 'number') noGrad(() => shard.narrow(0, offsetInShard, part.numel).copy_(part))
        setOwn(own, key, shard)
      }
    }
    if (isHeld || (handle !== null && !handle.settings.useOrigParams)) state[number] = own
  }
  const paramGroups = optimizer.stateDict().paramGroups.map((group, g) => {
    const { params: _names, ...options } = named.paramGroups[g] ?? {}
    return { ...group, ...options, params: group['params'] }
  })
  return { state, paramGroups }
}

function checkOptimizer(where: string, optimizer: unknown): void {
  const fits =
    isObject(optimizer) &&
    'paramGroups' in optimizer &&
    Array.isArray(optimizer.paramGroups) &&
    'state' in optimizer &&
    optimizer.state instanceof Map
  checkArgument(fits, where, 'optimizer', 'an Optimizer', optimizer)
}

const isStateValue = (value: unknown): boolean => value instanceof Tensor || value instanceof ShardedTensor || typeof value === 'number'

/** Throws ArgumentError unless `named` is an optimizer's state by parameters' names: it may come from a file. */
function checkNamed(where: string, named: unknown): asserts named is NamedOptimizerState {
  if (!isPlainObject(named) || !isPlainObject(named['state']) || !Array.isArray(named['paramGroups']))
    throw new ArgumentError(
      `${where}: state must be { state, paramGroups } by parameters' names, as optimStateDict returns it, got ${valueText(named)}.`,
    )
  for (const [name, values] of Object.entries(named['state']))
    checkArgument(
      isPlainObject(values) && Object.values(values).every(isStateValue),
      where,
      `state.state['${name}']`,
      'an object of tensors and numbers',
      values,
    )
  for (const [g, group] of named['paramGroups'].entries())
    checkArgument(isPlainObject(group), where, `state.paramGroups[${g}]`, 'an object of options', group)
}

/**
 * What `optimizer.loadStateDict` takes on this rank, of a state by names that all ranks have, whole or sharded. All ranks must call it. PyTorch's
 * `FSDP.optim_state_dict_to_load`.
 */
export function optimStateDictToLoad(model: Module, optimizer: AnyOptimizer, state: NamedOptimizerState): OptimizerState {
  checkCount('optimStateDictToLoad', arguments, 3)
  checkNamed('optimStateDictToLoad', state)
  try {
    return SimpleProfiler.profile('resharding', () => localState('optimStateDictToLoad', model, optimizer, state))
  } finally {
    SimpleProfiler.dumpAndReset('FSDP _flatten_optim_state_dict() profiling: ')
  }
}

/** This rank's form of a full state that every rank has. PyTorch's `FSDP.shard_full_optim_state_dict`. */
export function shardFullOptimStateDict(state: NamedOptimizerState, model: Module, optimizer: AnyOptimizer): OptimizerState {
  checkCount('shardFullOptimStateDict', arguments, 3)
  checkNamed('shardFullOptimStateDict', state)
  return localState('shardFullOptimStateDict', model, optimizer, state)
}

/** A value as JSON, without the data of tensors. */
const described = (value: NamedStateValue): unknown => (value instanceof Tensor ? { shape: value.shape, dtype: value.dtype } : value)

/**
 * This rank's form of a full state that only rank 0 has; other ranks pass null. All ranks must call it. PyTorch's `FSDP.scatter_full_optim_state_dict`.
 */
export function scatterFullOptimStateDict(state: NamedOptimizerState | null, model: Module, optimizer: AnyOptimizer): OptimizerState {
  checkCount('scatterFullOptimStateDict', arguments, 3)
  const isRoot = getRank() === 0
  if (isRoot) checkNamed('scatterFullOptimStateDict', state)
  const own = state ?? EMPTY
  interface Outline {
    readonly state: readonly (readonly [string, readonly (readonly [string, unknown])[]])[]
    readonly paramGroups: NamedOptimizerState['paramGroups']
  }
  const outline: Outline = broadcastObject(
    {
      state: Object.entries(own.state).map(
        ([name, values]) => [name, Object.entries(values).map(([key, value]) => [key, described(value)] as const)] as const,
      ),
      paramGroups: own.paramGroups,
    },
    0,
  )
  const named: Record<string, Record<string, NamedStateValue>> = {}
  for (const [name, values] of outline.state) {
    const target: Record<string, NamedStateValue> = {}
    setOwn(named, name, target)
    for (const [key, description] of values) {
      const known = entryOf(entryOf(own.state, name) ?? {}, key)
      if (typeof description === 'number') setOwn(target, key, description)
      else if (isPlainObject(description)) {
        const { shape, dtype }: Partial<Pick<Tensor, 'shape' | 'dtype'>> = description
        const tensor = known instanceof Tensor ? known.detach().clone() : Tensor.empty(shape ?? [], dtype ?? 'float32')
        broadcast(tensor, 0)
        setOwn<NamedStateValue>(target, key, tensor)
      }
    }
  }
  return localState('scatterFullOptimStateDict', model, optimizer, { state: named, paramGroups: outline.paramGroups })
}

/** Names or numbers of parameters, as {@link rekeyOptimStateDict} makes them. PyTorch's `OptimStateKeyType`. */
export type OptimStateKeyType = 'PARAM_NAME' | 'PARAM_ID'

/**
 * A full state whose parameters are named or numbered, as `keyType` says. `model` is the model before or after wrapping. PyTorch's `FSDP.rekey_optim_state_dict`. Throws
 * ArgumentError for another `keyType`, and for a parameter that the model does not have.
 */
export function rekeyOptimStateDict(
  state: {
    readonly state: Readonly<Record<string, Readonly<Record<string, NamedStateValue>>>>
    readonly paramGroups: readonly Readonly<Record<string, unknown>>[]
  },
  keyType: OptimStateKeyType,
  model: Module,
): NamedOptimizerState {
  checkCount('rekeyOptimStateDict', arguments, 3)
  const where = 'rekeyOptimStateDict'
  checkNamed(where, state)
  if (keyType !== 'PARAM_NAME' && keyType !== 'PARAM_ID')
    throw new ArgumentError(`${where}: keyType must be 'PARAM_NAME' or 'PARAM_ID', got ${valueText(keyType)}.`)
  const names = homesOf(where, model).map(({ name }) => name)
  const rename = (key: unknown): string => {
    // A file may hold anything here; only names and numbers are looked for.
    const found =
      typeof key !== 'string' && typeof key !== 'number' ? undefined : keyType === 'PARAM_ID' ? names.indexOf(String(key)) : names[Number(key)]
    if (found === undefined || found === -1)
      throw new ArgumentError(`${where}: ${valueText(key)} is no parameter of the model, which has ${names.join(', ')}.`)
    return String(found)
  }
  return {
    state: Object.fromEntries(Object.entries(state.state).map(([key, value]) => [rename(key), value])),
    paramGroups: state.paramGroups.map((group) => {
      const { params } = group
      return { ...group, params: Array.isArray(params) ? params.map((key) => (keyType === 'PARAM_ID' ? Number(rename(key)) : rename(key))) : [] }
    }),
  }
}

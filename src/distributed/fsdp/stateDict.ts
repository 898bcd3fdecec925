// State dicts of divided models: whole, as flat shards, or as sharded tensors. Names are those of the model without wrappers.
import { noGrad } from '../../autograd/index.ts'
import { ArgumentError } from '../../errors/index.ts'
import { collectState, LoadStateError, loadState } from '../../module/index.ts'
import type { LoadStateResult, Module } from '../../module/index.ts'
import { checkCallable, checkCount, checkOptions, isTensorLike, valueText } from '../../protocol/index.ts'
import type { TensorLike } from '../../protocol/index.ts'
import { Tensor } from '../../tensor/index.ts'
import { getRank } from '../processGroup.ts'
import { ShardedTensor } from '../shardedTensor.ts'
import type { ShardMetadata } from '../shardedTensor.ts'
import { FLAT_PARAM } from './handle.ts'
import type { FlatHandle } from './handle.ts'
import { cleanName } from './names.ts'
import { SimpleProfiler } from './profiler.ts'
import { enterFullParams } from './summon.ts'
import { StateDictType, unitOrNone, unitsIn } from './unit.ts'
import type { Unit } from './unit.ts'

type State = ReadonlyMap<string, TensorLike> | Readonly<Record<string, TensorLike>>

/** What loading and saving see of a module: its tensors under names without wrappers. */
type View = Parameters<typeof collectState>[0]

export const cleanView = (inner: Module, name: string): View => ({
  constructor: { name },
  ownParameters: () => inner.ownParameters(),
  ownBuffers: () => inner.ownBuffers(),
  *namedModules() {
    for (const [path, module] of inner.namedModules()) yield [cleanName(path), module]
  },
})

const viewOf = ({ inner }: Unit): View => cleanView(inner, 'FullyShardedDataParallel')

/** Runs `fn` with whole parameters; both ends are profiled. */
function withFullParams<T>(unit: Unit, writeback: boolean, fn: () => T): T {
  const exit = SimpleProfiler.profile('_enter_unshard_params_ctx', () => enterFullParams(unitsIn(unit.wrapper), { writeback }))
  try {
    return fn()
  } finally {
    SimpleProfiler.profile('_exit_unshard_params_ctx', exit)
  }
}

const copyOf = (tensor: TensorLike): TensorLike => (tensor instanceof Tensor && tensor.isParameter ? noGrad(() => tensor.detach().clone()) : tensor)

/** The names of the units' flat parameters, and their handles. */
function flatParameters(unit: Unit): [string, FlatHandle][] {
  return [...unit.wrapper.namedModules()].flatMap(([path, module]) => {
    const handle = unitOrNone(module)?.handle ?? null
    const prefix = cleanName(path)
    return handle === null ? [] : [[prefix === '' ? FLAT_PARAM : `${prefix}.${FLAT_PARAM}`, handle]]
  })
}

/** The ranks' parts of the flat parameter without what only fills it up. */
const localParts = ({ layout: { shards, shardNumel, numel } }: FlatHandle): ShardMetadata[] =>
  Array.from({ length: shards }, (_, rank) => {
    const start = rank * shardNumel
    return { offsets: [start], sizes: [Math.max(0, Math.min(shardNumel, numel - start))], rank }
  })

function localState(handle: FlatHandle): ShardedTensor {
  const { layout, local, settings } = handle
  const metadata = localParts(handle)
  const own = noGrad(() =>
    local
      .detach()
      .narrow(0, 0, metadata[handle.rank]?.sizes[0] ?? 0)
      .clone(),
  )
  return new ShardedTensor([layout.numel], local.dtype, [{ tensor: own, offsets: [handle.rank * layout.shardNumel] }], metadata, settings.shardGroup)
}

/** Whether a flat parameter has the parts that this model has. */
function isDividedAs(handle: FlatHandle, saved: ShardedTensor): boolean {
  const text = (parts: readonly ShardMetadata[]): string =>
    parts.flatMap(({ offsets, sizes, rank }) => (sizes[0] === 0 ? [] : [`${String(offsets)}+${String(sizes)} on ${rank}`])).join()
  return text(saved.metadata) === text(localParts(handle))
}

/** Tensors that no unit stores: buffers, and ignored parameters. */
function otherState(unit: Unit): [string, TensorLike][] {
  const flat = new Set<unknown>(unitsIn(unit.wrapper).flatMap(({ handle }) => (handle === null ? [] : [handle.local, ...handle.pieces])))
  return [...collectState(viewOf(unit))].filter(([, tensor]) => !flat.has(tensor))
}

/** The state dict of a wrapped model, of the type in force. */
export function unitState(unit: Unit): Map<string, TensorLike> {
  const { type, rank0Only } = unit.stateDictType
  if (type === 'LOCAL_STATE_DICT')
    return new Map<string, TensorLike>([...flatParameters(unit).map(([name, handle]) => [name, localState(handle)] as const), ...otherState(unit)])
  const exit = enterFullParams(unitsIn(unit.wrapper), { writeback: false })
  try {
    const state = collectState(viewOf(unit))
    if (type === 'FULL_STATE_DICT')
      return rank0Only && getRank() !== 0 ? new Map() : new Map([...state].map(([name, tensor]) => [name, copyOf(tensor)]))
    return new Map(
      [...state].map(([name, tensor]) => [
        name,
        tensor instanceof Tensor && tensor.isParameter ? ShardedTensor.chunk(tensor, unit.settings.shardGroup) : tensor,
      ]),
    )
  } finally {
    exit()
  }
}

const entriesOf = (state: State): [string, TensorLike][] => (state instanceof Map ? [...state] : Object.entries(state))

/** Whole tensors in place of sharded ones. */
function wholeState(state: State): Map<string, TensorLike> {
  const entries = entriesOf(state)
  if (!entries.some(([, value]) => value instanceof ShardedTensor)) return new Map(entries)
  // There is one device: nothing is copied to another.
  const sharded = SimpleProfiler.profile('H2D', () => entries)
  return SimpleProfiler.profile(
    'all_gather',
    () => new Map(sharded.map(([name, value]) => [name, value instanceof ShardedTensor ? value.fullTensor() : value])),
  )
}

function loadLocal(unit: Unit, state: State, strict: boolean): LoadStateResult {
  const given = new Map(entriesOf(state))
  const flat = new Map(flatParameters(unit))
  const known = (name: string): boolean => flat.has(name) && !unit.settings.useOrigParams
  const others = new Map(otherState(unit))
  const unexpectedKeys = [...given.keys()].filter((name) => !known(name) && !others.has(name))
  const missingKeys = [...(unit.settings.useOrigParams ? [] : flat.keys()), ...others.keys()].filter((name) => !given.has(name))
  const problems = [
    ...(missingKeys.length > 0 ? [`Missing key(s) in stateDict: ${missingKeys.map((name) => `"${name}"`).join(', ')}.`] : []),
    ...(unexpectedKeys.length > 0 ? [`Unexpected key(s) in stateDict: ${unexpectedKeys.map((name) => `"${name}"`).join(', ')}.`] : []),
  ]
  const misfits: string[] = []
  for (const [name, handle] of flat) {
    const value = given.get(name)
    const { numel } = handle.layout
    if (value === undefined) continue
    if (!(value instanceof ShardedTensor) || value.shape[0] !== numel)
      problems.push(`"${name}" must be a ShardedTensor of ${numel} elements, as a local state dict of the same model and ranks has it.`)
    else if (known(name) && !isDividedAs(handle, value))
      misfits.push(
        `"${name}" is divided otherwise than this model's, which is on ${handle.layout.shards} ranks. A local state dict fits the number of ranks that saved it; save a 'SHARDED_STATE_DICT' or 'FULL_STATE_DICT' for others.`,
      )
  }
  const errors = strict ? [...problems, ...misfits] : misfits
  if (errors.length > 0) throw new LoadStateError('FullyShardedDataParallel', errors)
  noGrad(() => {
    for (const [name, { local }] of flat) {
      const value = given.get(name)
      const own = value instanceof ShardedTensor ? value.localShards[0]?.tensor : undefined
      if (own !== undefined && known(name)) local.detach().narrow(0, 0, own.numel).copy_(own)
    }
    for (const [name, target] of others) {
      const value = given.get(name)
      if (target instanceof Tensor && value instanceof Tensor) target.copy_(value)
    }
  })
  return { missingKeys, unexpectedKeys }
}

/** Loads a state dict of the type in force. */
export function loadUnitState(unit: Unit, state: State, options: { readonly strict?: boolean }): LoadStateResult {
  checkOptions('loadStateDict', options, { strict: 'boolean' })
  if (typeof state !== 'object' || state === null || isTensorLike(state))
    throw new ArgumentError(`loadStateDict: expected a Map or an object from name to Tensor, as stateDict() returns it, got ${valueText(state)}.`)
  const { strict = true } = options
  try {
    if (unit.stateDictType.type === 'LOCAL_STATE_DICT') return loadLocal(unit, state, strict)
    const whole = wholeState(state)
    return withFullParams(unit, true, () => loadState(viewOf(unit), whole, strict))
  } finally {
    SimpleProfiler.dumpAndReset('FSDP model load_state_dict profiling: ')
  }
}

/** How state dicts are made, besides their type. */
export interface StateDictOptions {
  /** Of a full state dict of the model: whether only rank 0 gets it. Default false. */
  readonly rank0Only?: boolean
  /** The same of the optimizer's. Default: `rank0Only`. */
  readonly optimRank0Only?: boolean
}

/**
 * Runs `fn` while the state dicts of a model and of its optimizer are of the given type: 'FULL_STATE_DICT', 'SHARDED_STATE_DICT' or 'LOCAL_STATE_DICT'. PyTorch's
 * `FSDP.state_dict_type`. Throws ArgumentError for another type.
 *
 * @example const state = stateDictType(model, 'SHARDED_STATE_DICT', () => model.stateDict())
 */
export function stateDictType<T>(module: Module, type: StateDictType, fn: () => T, options: StateDictOptions = {}): T {
  checkCount('stateDictType', arguments, 4)
  const where = 'stateDictType'
  checkOptions(where, options, { rank0Only: 'boolean', optimRank0Only: 'boolean' })
  checkCallable(where, 'fn', fn)
  if (!Object.hasOwn(StateDictType, type))
    throw new ArgumentError(`${where}: type must be one of ${Object.keys(StateDictType).join(', ')}, got ${valueText(type)}.`)
  const { rank0Only = false, optimRank0Only = rank0Only } = options
  const units = unitsIn(module)
  const before = units.map((unit) => unit.stateDictType)
  for (const unit of units) unit.stateDictType = { type, rank0Only, optimRank0Only }
  try {
    return fn()
  } finally {
    units.forEach((unit, i) => {
      const old = before[i]
      if (old !== undefined) unit.stateDictType = old
    })
  }
}

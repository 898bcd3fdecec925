// What FSDP knows of a wrapped module, and of all units below the outermost one.
import { ArgumentError } from '../../errors/index.ts'
import type { Module } from '../../module/index.ts'
import type { FlatHandle } from './handle.ts'
import type { Settings } from './options.ts'
import type { PendingReduction } from './reduce.ts'

/** One wrapped module. */
export interface Unit {
  /** The wrapper. */
  readonly wrapper: Module
  readonly inner: Module
  /** Its parameters; null if it has none of its own. */
  readonly handle: FlatHandle | null
  readonly settings: Settings
  /** Whether it is the outermost one; null before the first forward. */
  isRoot: boolean | null
  root: RootState | null
  /** Whether backward reduces gradients. */
  sync: boolean
  /** Which state dict `stateDict()` makes. */
  stateDictType: StateDictSettings
}

/** The form of state dicts. PyTorch's `StateDictType`. */
export const StateDictType = {
  /** Whole parameters under plain names. */
  FULL_STATE_DICT: 'FULL_STATE_DICT',
  /** The flat shards as they are. */
  LOCAL_STATE_DICT: 'LOCAL_STATE_DICT',
  /** Whole parameters as sharded tensors. */
  SHARDED_STATE_DICT: 'SHARDED_STATE_DICT',
} as const
export type StateDictType = keyof typeof StateDictType

/** What state dicts of a model, and of its optimizer, are like. */
export interface StateDictSettings {
  readonly type: StateDictType
  /** Whether only rank 0 gets a full state dict. */
  readonly rank0Only: boolean
  readonly optimRank0Only: boolean
}

export const DEFAULT_STATE_DICT: StateDictSettings = { type: 'FULL_STATE_DICT', rank0Only: false, optimRank0Only: false }

/** What all units below a root share. */
export interface RootState {
  readonly unit: Unit
  readonly units: readonly Unit[]
  /** Units in the order of the first forward. */
  forwardOrder: FlatHandle[]
  isFirstForward: boolean
  /** Units in the order in which the last forward ended them: backward goes the other way. */
  postForwardOrder: FlatHandle[]
  /** Units that are being gathered. */
  readonly gathering: Set<FlatHandle>
  readonly reductions: PendingReduction[]
  isCallbackQueued: boolean
}

const units = new WeakMap<object, Unit>()

const unitsByInner = new WeakMap<object, Unit>()

export function registerUnit(wrapper: Module, unit: Unit): void {
  units.set(wrapper, unit)
  unitsByInner.set(unit.inner, unit)
}

/** The unit whose wrapped module this is. */
export const unitAround = (inner: object): Unit | undefined => unitsByInner.get(inner)

/** The unit of a wrapper; undefined for other modules. */
export const unitOrNone = (module: object): Unit | undefined => units.get(module)

/** The unit of a wrapper. Throws ArgumentError for a copy of one. */
export function unitOf(wrapper: object): Unit {
  const unit = units.get(wrapper)
  if (unit === undefined)
    throw new ArgumentError(
      'this FullyShardedDataParallel is a copy, and copies are not connected. Copy the module before wrapping it, and wrap the copy.',
    )
  return unit
}

/** All units of a model, the outer ones first. */
export function unitsIn(model: Module): Unit[] {
  return [...model.modules()].flatMap((module) => units.get(module) ?? [])
}

/** The units whose parameters `summonFullParams` shows now. */
export const summoned: Set<Unit> = new Set()

/** How many forwards of units are under way, one in the other. */
export const forwards: { under: number } = { under: 0 }

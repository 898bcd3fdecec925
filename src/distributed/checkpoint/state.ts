// The state of a model and its optimizer as a checkpoint stores it: by the names of the model without wrappers, in parts where ranks hold parts.
import { LoadStateError, collectState, loadState } from '../../module/index.ts'
import type { Module } from '../../module/index.ts'
import type { OptimizerState } from '../../optim/index.ts'
import { checkModule, checkOptions, checkString } from '../../protocol/index.ts'
import { Tensor } from '../../tensor/index.ts'
import { DistributedDataParallel } from '../ddp/ddp.ts'
import { fullOptimStateDict, optimStateDict, optimStateDictToLoad } from '../fsdp/optimState.ts'
import type { AnyOptimizer, NamedOptimizerState } from '../fsdp/optimState.ts'
import { cleanView, stateDictType } from '../fsdp/stateDict.ts'
import { enterFullParams } from '../fsdp/summon.ts'
import { unitOrNone, unitsIn } from '../fsdp/unit.ts'
import { ShardedTensor } from '../shardedTensor.ts'

/** What a checkpoint is made of. */
export interface CheckpointState {
  /** A plain module, or one with DistributedDataParallel, FullyShardedDataParallel or fullyShard. */
  readonly model: Module
  readonly optimizer?: AnyOptimizer & { loadStateDict(state: OptimizerState): unknown }
}

/** A tensor of which each rank has all, or a part. */
export type StateTensor = Tensor | ShardedTensor

/** The state of an optimizer, its tensors apart from its numbers. */
export interface OptimizerParts {
  readonly tensors: ReadonlyMap<string, ReadonlyMap<string, StateTensor>>
  readonly numbers: Readonly<Record<string, Readonly<Record<string, number>>>>
  readonly paramGroups: NamedOptimizerState['paramGroups']
}

/** The same of whole tensors. */
export interface WholeOptimizerParts extends OptimizerParts {
  readonly tensors: ReadonlyMap<string, ReadonlyMap<string, Tensor>>
}

/** Checks what is to be saved or loaded. The model whose names count is that inside of DistributedDataParallel. */
export function checkState(where: string, folder: unknown, state: CheckpointState): CheckpointState {
  checkString(where, 'folder', folder)
  checkOptions(where, state, { model: true, optimizer: true })
  const { model } = state
  checkModule(where, 'model', model)
  return model instanceof DistributedDataParallel ? { ...state, model: model.module } : state
}

const viewOf = (model: Module): ReturnType<typeof cleanView> => cleanView(unitOrNone(model)?.inner ?? model, model.constructor.name)

/** The tensors of a model by name. All ranks call it; parameters that ranks hold in parts come in parts. */
export function modelState(model: Module): Map<string, StateTensor> {
  const units = unitsIn(model)
  const group = units[0]?.settings.shardGroup
  const exit = enterFullParams(units, { writeback: false })
  try {
    const state = new Map<string, StateTensor>()
    for (const [name, tensor] of collectState(viewOf(model))) {
      if (!(tensor instanceof Tensor)) continue
      const isDivided = group !== undefined && tensor.isParameter && tensor.ndim > 0
      state.set(name, isDivided ? ShardedTensor.chunk(tensor, group) : tensor)
    }
    return state
  } finally {
    exit()
  }
}

/** Loads whole tensors by name. All ranks call it. Throws LoadStateError, and loads nothing, unless they are those of the model. */
export function loadModelState(model: Module, state: ReadonlyMap<string, Tensor>): void {
  const exit = enterFullParams(unitsIn(model), { writeback: true })
  try {
    loadState(viewOf(model), state, true)
  } finally {
    exit()
  }
}

/** The state of an optimizer by the names of parameters. All ranks call it. */
export function optimizerState(model: Module, optimizer: AnyOptimizer): OptimizerParts {
  const { state, paramGroups } =
    unitsIn(model).length === 0
      ? fullOptimStateDict(model, optimizer, false)
      : stateDictType(model, 'SHARDED_STATE_DICT', () => optimStateDict(model, optimizer))
  const tensors = new Map<string, Map<string, StateTensor>>()
  const numbers: Record<string, Record<string, number>> = {}
  for (const [name, values] of Object.entries(state)) {
    const own = new Map<string, StateTensor>()
    const scalars: Record<string, number> = {}
    for (const [key, value] of Object.entries(values)) {
      if (typeof value === 'number') scalars[key] = value
      else own.set(key, value)
    }
    tensors.set(name, own)
    numbers[name] = scalars
  }
  return { tensors, numbers, paramGroups }
}

/** What the optimizer of a model loads on this rank, of whole tensors. Throws LoadStateError for parameters that the model does not have. */
export function optimizerStateToLoad(model: Module, optimizer: AnyOptimizer, { tensors, numbers, paramGroups }: WholeOptimizerParts): OptimizerState {
  const names = new Set([...collectState(viewOf(model)).keys()])
  const unknown = unitsIn(model).length === 0 ? [...tensors.keys()].filter((name) => !names.has(name)) : []
  if (unknown.length > 0) throw new LoadStateError('optimizer', [`Unexpected parameter(s) in the state: ${unknown.join(', ')}.`])
  const state: Record<string, Record<string, Tensor | number>> = {}
  for (const [name, values] of tensors) state[name] = { ...Object.fromEntries(values), ...numbers[name] }
  return optimStateDictToLoad(model, optimizer, { state, paramGroups })
}

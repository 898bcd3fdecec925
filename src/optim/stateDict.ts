// State dicts of optimizers, in our names and in PyTorch's.
import { ArgumentError } from '../errors/index.ts'
import { withoutModes } from '../dispatch/index.ts'
import { clone, to } from '../ops/index.ts'
import { decode, integer, list, mapOf, object } from '../protocol/decode.ts'
import { attributeName, camelCase, isPlainObject, valueText } from '../protocol/index.ts'
import { Tensor, formatShape } from '../tensor/index.ts'

/** What an optimizer remembers of one parameter: tensors, numbers and lists of them, by name. What it does not need is undefined or left out. */
export type ParamState = Record<string, Tensor | number | readonly (Tensor | number)[] | undefined>

/** Everything that an optimizer needs to continue; parameters are numbered across the groups. PyTorch's format in camelCase. */
export interface OptimizerState {
  readonly state: Readonly<Record<number, Readonly<ParamState>>>
  readonly paramGroups: readonly Readonly<Record<string, unknown>>[]
}

/** The same in PyTorch's names: `exp_avg`, `weight_decay`. */
export interface TorchOptimizerState {
  readonly state: Readonly<Record<number, Readonly<ParamState>>>
  readonly param_groups: readonly Readonly<Record<string, unknown>>[]
}

/** Options of PyTorch that say how a step is computed, and not what. */
export const WITHOUT_EFFECT: ReadonlySet<string> = new Set(['foreach', 'capturable', 'differentiable', 'fused', 'paramNames'])

/** Numbers of the state, which PyTorch keeps as tensors. */
const NUMBERS: ReadonlySet<string> = new Set(['step', 'eta', 'mu', 'muProduct', 'ro', 't', 'hDiag', 'prevLoss', 'nIter', 'funcEvals'])

const renamed = <T>(entries: Iterable<readonly [string, T]>, rename: (name: string) => string): Record<string, T> =>
  Object.fromEntries([...entries].map(([name, value]) => [rename(name), value]))

/** A state dict in PyTorch's names. */
export function withTorchNames({ state, paramGroups }: OptimizerState): TorchOptimizerState {
  const rename = (name: string): string => (name === 'hDiag' ? 'H_diag' : attributeName(name))
  const states = Object.entries(state).map(([index, of]) => [index, renamed(Object.entries(of), rename)])
  return { state: Object.fromEntries(states), param_groups: paramGroups.map((group) => renamed(Object.entries(group), attributeName)) }
}

const anything = (value: unknown): unknown => value
/** The outer form of a state dict, which may come from a file. */
const OWN = object({ state: mapOf(mapOf(anything)), paramGroups: list(mapOf(anything)) })
const TORCH = object({ state: mapOf(mapOf(anything)), param_groups: list(mapOf(anything)) })

/** Options of the groups and states of the parameters by index, in our names. */
interface Read {
  readonly groups: readonly ReadonlyMap<string, unknown>[]
  readonly states: ReadonlyMap<string, ReadonlyMap<string, unknown>>
}

/** The state of a parameter without what PyTorch did not use: null, and LBFGS's room for intermediate values. */
const withoutUnused = (state: ReadonlyMap<string, unknown>): ReadonlyMap<string, unknown> =>
  new Map([...state].flatMap(([name, value]) => (value === null || name === 'al' ? [] : [[name === 'H_diag' ? 'h_diag' : name, value]])))

/** Reads a state dict in either spelling. `known` are the options that this optimizer has. Throws ArgumentError for anything else. */
export function readStateDict(where: string, dict: unknown, known: readonly string[]): Read {
  if (!isPlainObject(dict) || !('param_groups' in dict)) {
    const { paramGroups, state } = decode(where, OWN, dict, 'the state')
    return { groups: paramGroups, states: state }
  }
  const { param_groups: groups, state } = decode(where, TORCH, dict, 'the state')
  const own = <T>(given: ReadonlyMap<string, T>): ReadonlyMap<string, T> => new Map([...given].map(([name, value]) => [camelCase(name), value]))
  return {
    groups: groups.map((group) => new Map([...own(group)].filter(([name]) => known.includes(name) || !WITHOUT_EFFECT.has(name)))),
    states: new Map([...state].map(([index, of]) => [index, own(withoutUnused(of))])),
  }
}

/** The numbers of a group's parameters. */
export const readIndices = (where: string, group: ReadonlyMap<string, unknown> | undefined, g: number): readonly number[] =>
  decode(where, list(integer()), group?.get('params'), `paramGroups[${g}].params`)

/** A copy of one value of a parameter's state. Throws ArgumentError if a tensor has another shape than the optimizer's, and for other values. */
export function copyState(
  where: string,
  name: string,
  value: unknown,
  shape: readonly number[],
  parameter: Tensor,
): Tensor | number | readonly (Tensor | number)[] {
  const one = (item: unknown): Tensor | number => {
    if (typeof item === 'number') return item
    if (!(item instanceof Tensor)) throw new ArgumentError(`${where}: '${name}' must be a Tensor or a number, got ${valueText(item)}.`)
    if (NUMBERS.has(name) && item.numel === 1) return Number(item.item())
    if (NUMBERS.has(name)) throw new ArgumentError(`${where}: '${name}' must be a number, got ${valueText(item)}.`)
    if (item.shape.join() !== shape.join())
      throw new ArgumentError(
        `${where}: '${name}' has shape ${formatShape(item.shape)} but the optimizer's has shape ${formatShape(shape)}, for a parameter of shape ${formatShape(parameter.shape)}.`,
      )
    return withoutModes(() => clone(to(item, parameter.dtype)))
  }
  return Array.isArray(value) ? value.map(one) : one(value)
}

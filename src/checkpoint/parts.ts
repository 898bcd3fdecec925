// What a checkpoint holds: the states of the parts of a training, and how they are read and set.
import { ArgumentError } from '../errors/index.ts'
import { Module } from '../module/index.ts'
import { checkOptions, isFunction, isObject, isPlainObject, valueText } from '../protocol/index.ts'
import { Generator, Tensor, defaultGenerator } from '../tensor/index.ts'
import type { HasState, Part } from './part.ts'
import type { Ranks, Team } from './team.ts'

/** One part, or several: an array, or an object by name. */
export type OneOrMore<T> = T | readonly T[] | Readonly<Record<string, T>>

/** The parts of a training. What is left out is not saved, or not loaded. */
export interface CheckpointParts {
  readonly model?: OneOrMore<HasState>
  readonly optimizer?: OneOrMore<HasState>
  readonly schedulers?: OneOrMore<HasState>
  readonly scaler?: HasState
  /** Generators beside the default one, whose state is always there. */
  readonly generators?: OneOrMore<Generator>
  /** A DataLoader: a training goes on in the middle of a pass. */
  readonly data?: OneOrMore<HasState>
}

/** The parts in the order in which they are loaded. Schedules set learning rates when they load; the optimizer's state has those of the time, also where several schedules set them. */
const KEYS = ['schedulers', 'optimizer', 'scaler', 'generators', 'data', 'model'] as const
type Key = (typeof KEYS)[number]

/** The name of the part that is always there: the default generator. */
export const RANDOM = 'random'

const hasState = (value: unknown): value is { stateDict(): unknown; loadStateDict(state: unknown): unknown } =>
  isObject(value) && isFunction(Reflect.get(value, 'stateDict')) && isFunction(Reflect.get(value, 'loadStateDict'))

/** How models and their optimizers are divided among ranks; null for a process alone. */
interface Division {
  readonly by: Ranks | null
  readonly models: readonly Module[]
}

/** Whether each rank has a state of its own for this part: random numbers, and where its data are. */
export const isOfEachRank = (name: string): boolean => name === RANDOM || /^(?:generators|data)(?:\.|$)/.test(name)

function partOf(where: string, key: Key, name: string, value: unknown, { by, models }: Division): Part {
  if (key === 'generators') {
    if (!(value instanceof Generator)) throw new ArgumentError(`${where}: '${name}' must be a torch.Generator, got ${valueText(value)}.`)
    return generatorPart(name, value)
  }
  if (key === 'model') {
    if (!(value instanceof Module)) throw new ArgumentError(`${where}: '${name}' must be a Module, got ${valueText(value)}.`)
    if (by !== null) return by.modelPart(name, value)
  }
  if (!hasState(value)) throw new ArgumentError(`${where}: '${name}' must have stateDict and loadStateDict, got ${valueText(value)}.`)
  const divided = by === null || key !== 'optimizer' ? null : by.optimizerPart(where, name, value, models)
  return divided ?? { name, read: () => value.stateDict(), load: (state) => void value.loadStateDict(state) }
}

const generatorPart = (name: string, generator: Generator): Part => ({
  name,
  read: () => generator.getState(),
  // setState checks what it gets.
  load: (state) => void generator.setState(state as ReturnType<Generator['getState']>),
})

/** What a name stands for, one or several. */
function listed(key: Key, value: unknown): readonly (readonly [name: string, value: unknown])[] {
  if (value === undefined) return []
  if (Array.isArray(value)) return value.map((one: unknown, i) => [`${key}.${i}`, one] as const)
  if (isPlainObject(value) && !hasState(value) && Object.keys(value).length > 0)
    return Object.entries(value).map(([name, one]) => [`${key}.${name}`, one] as const)
  return [[key, value]]
}

/** The models of a training. */
export const modelsOf = (given: CheckpointParts): readonly Module[] =>
  isPlainObject(given) ? listed('model', given['model']).flatMap(([, value]) => (value instanceof Module ? [value] : [])) : []

/** All parts, and the default generator. Throws ArgumentError for what has no state. With `by`, models and optimizers are read and set for any number of ranks. */
export function partsOf(where: string, given: CheckpointParts, by: Ranks | null = null): readonly Part[] {
  if (!isPlainObject(given)) throw new ArgumentError(`${where}: argument 'state' must be an object { model, optimizer, … }, got ${valueText(given)}.`)
  const division = { by, models: modelsOf(given) }
  return KEYS.flatMap((key) => {
    const parts = listed(key, given[key]).map(([name, value]) => partOf(where, key, name, value, division))
    // After the data, since a DataLoader puts the default generator back where it was; before the models, which come last: they check everything before they change, and take the most memory to put back.
    return key === 'model' ? [generatorPart(RANDOM, defaultGenerator), ...parts] : parts
  })
}

/** Throws ArgumentError for names that are not parts. */
export const checkParts = (where: string, given: object, others: Readonly<Record<string, true>>): void =>
  checkOptions<object>(where, given, { ...Object.fromEntries(KEYS.map((key) => [key, true])), ...others })

/** Loads states into parts, all or none: what has changed before one refuses its state, on this rank or another, is put back. */
export function loadParts(where: string, parts: readonly Part[], states: Readonly<Record<string, unknown>>, team: Team): void {
  for (const { name } of parts)
    if (!Object.hasOwn(states, name))
      throw new ArgumentError(
        `${where}: the checkpoint has no '${name}'; it has ${Object.keys(states).join(', ')}. Leave it out, or load a checkpoint that has it.`,
      )
  const undo: (() => void)[] = []
  const last = team.size === 1 ? parts.at(-1) : undefined
  try {
    for (const part of parts)
      team.each(where, `load '${part.name}'`, () => {
        // Of one that refuses its state nothing changes.
        const before = part === last ? null : copied(part.read())
        part.load(states[part.name])
        undo.unshift(() => part.load(before))
      })
  } catch (error) {
    for (const back of undo) back()
    throw error
  }
}

/** A state that loading another one does not change: that of a module holds its tensors themselves, which are overwritten. */
const copied = (state: unknown): unknown =>
  state instanceof Map
    ? new Map([...state].map(([name, value]: [unknown, unknown]) => [name, value instanceof Tensor ? value.detach().clone() : value]))
    : state

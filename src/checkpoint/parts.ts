// What a checkpoint holds: the states of the parts of a training, and how they are read and set.
import { ArgumentError } from '../errors/index.ts'
import { Module } from '../module/index.ts'
import { checkOptions, isFunction, isObject, isPlainObject, valueText } from '../protocol/index.ts'
import { Generator, Tensor, defaultGenerator } from '../tensor/index.ts'

/** What has a state: a module, an optimizer, a schedule, a GradScaler, a DataLoader, or an object of your own. */
export interface HasState {
  stateDict(): unknown
  loadStateDict(state: never): unknown
}

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

/** A part: how to read and set its state. */
export interface Part {
  /** `optimizer`, `model.encoder` */
  readonly name: string
  read(): unknown
  load(state: unknown): void
}

const hasState = (value: unknown): value is { stateDict(): unknown; loadStateDict(state: unknown): unknown } =>
  isObject(value) && isFunction(Reflect.get(value, 'stateDict')) && isFunction(Reflect.get(value, 'loadStateDict'))

function partOf(where: string, key: Key, name: string, value: unknown): Part {
  if (key === 'generators') {
    if (!(value instanceof Generator)) throw new ArgumentError(`${where}: '${name}' must be a torch.Generator, got ${valueText(value)}.`)
    return generatorPart(name, value)
  }
  if (key === 'model' && !(value instanceof Module)) throw new ArgumentError(`${where}: '${name}' must be a Module, got ${valueText(value)}.`)
  if (!hasState(value)) throw new ArgumentError(`${where}: '${name}' must have stateDict and loadStateDict, got ${valueText(value)}.`)
  return { name, read: () => value.stateDict(), load: (state) => void value.loadStateDict(state) }
}

const generatorPart = (name: string, generator: Generator): Part => ({
  name,
  read: () => generator.getState(),
  // setState checks what it gets.
  load: (state) => void generator.setState(state as ReturnType<Generator['getState']>),
})

/** All parts, and the default generator. Throws ArgumentError for what has no state. `others`: the names that do not stand for a part. */
export function partsOf(where: string, given: CheckpointParts): readonly Part[] {
  if (!isPlainObject(given)) throw new ArgumentError(`${where}: argument 'state' must be an object { model, optimizer, … }, got ${valueText(given)}.`)
  const parts: Part[] = []
  for (const key of KEYS) {
    // After the data, since a DataLoader puts the default generator back where it was; before the models, which come last: they check everything before they change, and take the most memory to put back.
    if (key === 'model') parts.push(generatorPart('random', defaultGenerator))
    const value: unknown = given[key]
    if (value === undefined) continue
    if (Array.isArray(value)) value.forEach((one: unknown, i) => parts.push(partOf(where, key, `${key}.${i}`, one)))
    else if (isPlainObject(value) && !hasState(value) && Object.keys(value).length > 0)
      for (const [name, one] of Object.entries(value)) parts.push(partOf(where, key, `${key}.${name}`, one))
    else parts.push(partOf(where, key, key, value))
  }
  return parts
}

/** Throws ArgumentError for names that are not parts. */
export const checkParts = (where: string, given: object, others: Readonly<Record<string, true>>): void =>
  checkOptions<object>(where, given, { ...Object.fromEntries(KEYS.map((key) => [key, true])), ...others })

/** Loads states into parts, all or none: what has changed before one refuses its state is put back. */
export function loadParts(where: string, parts: readonly Part[], states: Readonly<Record<string, unknown>>): void {
  for (const { name } of parts)
    if (!Object.hasOwn(states, name))
      throw new ArgumentError(
        `${where}: the checkpoint has no '${name}'; it has ${Object.keys(states).join(', ')}. Leave it out, or load a checkpoint that has it.`,
      )
  const undo: (() => void)[] = []
  const last = parts.at(-1)
  try {
    for (const part of parts) {
      const before = part === last ? null : copied(part.read())
      part.load(states[part.name])
      undo.unshift(() => part.load(before))
    }
  } catch (error) {
    // The one that has refused its state is as it was.
    for (const back of undo) back()
    throw error
  }
}

/** A state that loading another one does not change: that of a module holds its tensors themselves, which are overwritten. */
const copied = (state: unknown): unknown =>
  state instanceof Map
    ? new Map([...state].map(([name, value]: [unknown, unknown]) => [name, value instanceof Tensor ? value.detach().clone() : value]))
    : state

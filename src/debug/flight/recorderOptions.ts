// The options of a flight recorder: their checks, defaults, and the state that they name.
import { ArgumentError } from '../../errors/index.ts'
import { Module } from '../../module/index.ts'
import { Optimizer } from '../../optim/index.ts'
import type { BaseOptions } from '../../optim/index.ts'
import type { OptionNames } from '../../protocol/index.ts'
import { checkArgument, checkOptions, checkString, isCallable, isFunction, isModule, isPlainObject, valueText } from '../../protocol/index.ts'
import { Generator, Tensor, defaultGenerator } from '../../tensor/index.ts'
import { debugDirectory, joinPath } from '../files/fileStore.ts'
import type { FlightReport } from './report.ts'
import { isStateful } from './state.ts'
import type { Sources, Stateful } from './state.ts'
import type { Check } from './trouble.ts'

/** What holds the weights: a module, or what `compile` made of one. */
export type RecordedModel = Module | { readonly module: Module }

/** Options of {@link flightRecorder}. At least one of `model`, `optimizer` and `tensors` is needed. */
export interface FlightRecorderOptions {
  /** The model or the models, whose parameters and buffers are recorded. */
  readonly model?: RecordedModel | readonly RecordedModel[] | undefined
  /** The optimizer or the optimizers: their parameters, state and options (learning rates) are recorded. */
  readonly optimizer?: Optimizer<BaseOptions> | readonly Optimizer<BaseOptions>[] | undefined
  /** Other tensors that steps change, by name. */
  readonly tensors?: Readonly<Record<string, Tensor>> | undefined
  /** Other objects that steps change and that have `stateDict` and `loadStateDict`: schedules of learning rates. */
  readonly stateful?: readonly Stateful[] | undefined
  /** Generators that steps draw from, beside the default one. */
  readonly generators?: readonly Generator[] | undefined
  /** How many steps are kept. Default 20. */
  readonly steps?: number | undefined
  /** The bytes that copies may take: beyond that, fewer steps are kept, but always the running one. Default 2^30. */
  readonly maxBytes?: number | undefined
  /** What is looked at after each step. Default all: `['loss', 'gradients', 'weights']`. */
  readonly check?: readonly Check[] | undefined
  /** A loss of more than this many times the median of the recorded ones is trouble. Null: only NaN and infinities are. Default 10. */
  readonly jump?: number | null | undefined
  /** What happens then: 'throw' throws TrainingError, 'log' writes the report to the debugger's log, a function is called with it. Default 'throw'. */
  readonly onTrouble?: 'throw' | 'log' | ((report: FlightReport) => void) | undefined
  /** The folder of the scripts that replay a step; null writes none. Default: the folder of the debugger. */
  readonly dir?: string | null | undefined
}

const OPTIONS: OptionNames<FlightRecorderOptions> = {
  model: true,
  optimizer: true,
  tensors: true,
  stateful: true,
  generators: true,
  steps: 'number',
  maxBytes: 'number',
  check: true,
  jump: true,
  onTrouble: true,
  dir: true,
}

const CHECKS: readonly Check[] = ['loss', 'gradients', 'weights']
const WHERE = 'flightRecorder'

const listOf = <T>(value: T | readonly T[] | undefined): readonly T[] => (value === undefined ? [] : Array.isArray(value) ? value : [value as T])

function moduleOf(value: unknown): Module {
  if (value instanceof Module) return value
  const inner: unknown = isCallable(value) && !isModule(value) ? Reflect.get(value, 'module') : undefined
  if (inner instanceof Module) return inner
  throw new ArgumentError(`${WHERE}: argument 'options.model' must be a Module, a compiled Module, or an array of them, got ${valueText(value)}.`)
}

function sourcesOf(options: FlightRecorderOptions): Sources {
  const models = listOf<unknown>(options.model).map(moduleOf)
  const optimizers = listOf(options.optimizer)
  for (const one of optimizers) checkArgument(one instanceof Optimizer, WHERE, 'options.optimizer', 'an Optimizer or an array of them', one)
  const { tensors = {}, stateful = [], generators = [] } = options
  checkArgument(isPlainObject(tensors), WHERE, 'options.tensors', 'an object of tensors', tensors)
  for (const [name, tensor] of Object.entries(tensors)) checkArgument(tensor instanceof Tensor, WHERE, `options.tensors.${name}`, 'a Tensor', tensor)
  checkArgument(Array.isArray(stateful), WHERE, 'options.stateful', 'an array', stateful)
  for (const one of stateful) checkArgument(isStateful(one), WHERE, 'options.stateful', 'objects with stateDict and loadStateDict', one)
  checkArgument(Array.isArray(generators), WHERE, 'options.generators', 'an array of Generators', generators)
  for (const one of generators) checkArgument(one instanceof Generator, WHERE, 'options.generators', 'Generators', one)
  if (models.length + optimizers.length + Object.keys(tensors).length === 0)
    throw new ArgumentError(
      `${WHERE}: give the model, the optimizer, or both, e.g. flightRecorder({ model, optimizer, steps: 20 }): their state is what is recorded.`,
    )
  return {
    models: models.map((model, i) => [models.length === 1 ? '' : `${i}.`, model]),
    optimizers,
    tensors: new Map(Object.entries(tensors)),
    stateful,
    generators: [...new Set([defaultGenerator, ...generators])],
  }
}

/** What a recorder does: its options with their defaults. */
export interface RecorderSettings {
  readonly sources: Sources
  readonly steps: number
  readonly maxBytes: number
  readonly checks: ReadonlySet<Check>
  readonly jump: number | null
  readonly onTrouble: 'throw' | 'log' | ((report: FlightReport) => void)
  readonly dir: string | null
}

/** Reads the options. Throws ArgumentError for a bad one, and if they name nothing to record. */
export function settingsOf(options: FlightRecorderOptions): RecorderSettings {
  checkOptions(WHERE, options, OPTIONS)
  const { steps = 20, maxBytes = 2 ** 30, check = CHECKS, jump = 10, onTrouble = 'throw', dir } = options
  checkArgument(Number.isSafeInteger(steps) && steps >= 1, WHERE, 'options.steps', 'a number of steps, at least 1', steps)
  checkArgument(typeof maxBytes === 'number' && maxBytes >= 0, WHERE, 'options.maxBytes', 'a number of bytes', maxBytes)
  checkArgument(
    Array.isArray(check) && check.every((one) => CHECKS.includes(one)),
    WHERE,
    'options.check',
    "an array with some of 'loss', 'gradients', 'weights'",
    check,
  )
  checkArgument(jump === null || (typeof jump === 'number' && jump > 1), WHERE, 'options.jump', 'a factor above 1, or null', jump)
  checkArgument(
    onTrouble === 'throw' || onTrouble === 'log' || isFunction(onTrouble),
    WHERE,
    'options.onTrouble',
    "'throw', 'log' or a function",
    onTrouble,
  )
  if (dir !== null && dir !== undefined) checkString(WHERE, 'options.dir', dir)
  return {
    sources: sourcesOf(options),
    steps,
    maxBytes,
    checks: new Set(check),
    jump,
    onTrouble,
    dir: dir === undefined ? joinPath(debugDirectory(null), 'flight') : dir,
  }
}

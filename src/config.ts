// Settings of compile and of its debugger. Each can be set in the environment as TENSORFX_<NAME>, e.g. TENSORFX_REPRO_AFTER=aot.
import { ArgumentError } from './errors/index.ts'
import { checkedLimit, hostLimit, memoryLimit, recordLines, recordsLines, setMemoryLimit } from './kernels/index.ts'
import { checkCallable, checkCount, environmentVariable, isPromise, snakeCase, unknownOption, valueText } from './protocol/index.ts'

/** The settings of compile and of its debugger. Each can be set by a variable of the environment, `TENSORFX_REPRO_AFTER` for `reproAfter`. */
export interface Config {
  /** Where the debugger watches: 'dynamo' (the captured graph), 'aot' (forward and backward graphs), or null. */
  reproAfter: 'dynamo' | 'aot' | null
  /** 1 dumps a repro on failure, 2 a minifier launcher, 3 dumps before every run, 4 checks accuracy. */
  reproLevel: number
  /** Accuracy checks run the forward only. */
  reproForwardOnly: boolean
  /** Tolerance of accuracy checks. */
  reproTolerance: number
  /** Differences in integers and booleans do not count. */
  reproIgnoreNonFp: boolean
  /** How many of a graph's calls a script can replay, the failing one included. */
  reproHistory: number
  /** Compare against a float64 run too. */
  sameTwoModelsUseFp64: boolean
  /** Folder of dumps; null: ./tensorfx_compile_debug. */
  debugDirRoot: string | null
  /** A backend that fails is replaced by eager, with a warning. */
  suppressErrors: boolean
  /** Compiled paths of one function before it runs eagerly. */
  recompileLimit: number
  /**
   * Whether sizes are constants of a graph until something says otherwise (`dynamic`, a mark or, for backends that take any sizes, a second value). False: every size of at least 2 is an input
   * of the graph from the first call on, unless a function is compiled with `dynamic: false`. PyTorch's assume_static_by_default.
   */
  assumeStaticByDefault: boolean
  /**
   * Whether the launches that are kept for lists of sizes run beside the operators at every call, from the first on, and are compared with them. Otherwise they are compared once, when
   * they are made. For tests: it takes more than twice the time.
   */
  verifySizes: boolean
  /** Milliseconds that a function may spend on graphs that are used once, beyond the time that its calls take; then what is new runs eagerly. */
  compileBudget: number
  /**
   * The bytes that tensors and kernels may use in this thread; beyond it an allocation throws OutOfMemoryError. The default is the memory of the container or of the machine, minus a
   * tenth and at least 256 MiB; 4 GiB where that is unknown. Infinity: no limit. See docs/guide/memory.md.
   */
  memoryLimit: number
  /** Records the lines that make tensors, for OutOfMemoryError and `torch.memory.snapshot()`. */
  memoryHistory: boolean
}

const defaults: Readonly<Config> = {
  reproAfter: null,
  reproLevel: 2,
  reproForwardOnly: false,
  reproTolerance: 1e-3,
  reproIgnoreNonFp: false,
  reproHistory: 8,
  sameTwoModelsUseFp64: true,
  debugDirRoot: null,
  suppressErrors: false,
  recompileLimit: 8,
  assumeStaticByDefault: true,
  verifySizes: false,
  compileBudget: 2000,
  get memoryLimit() {
    return hostLimit()
  },
  memoryHistory: false,
}

const usualOf = (key: string): unknown => Reflect.get(defaults, key)

/** The settings that the room of kernels keeps. */
const ofKernels: PropertyDescriptorMap = {
  memoryLimit: { get: memoryLimit, set: setMemoryLimit, enumerable: true },
  memoryHistory: { get: recordsLines, set: recordLines, enumerable: true },
}

/** The variable of the environment that sets an option. */
const variableOf = (key: string): string => `TENSORFX_${snakeCase(key).toUpperCase()}`

/** The options by their variables. */
export const configVariables = (): ReadonlyMap<string, string> => new Map(Object.keys(defaults).map((key) => [variableOf(key), key]))

/** What the variable of a switch can say. */
const switches: ReadonlyMap<string, boolean> = new Map([
  ['1', true],
  ['true', true],
  ['0', false],
  ['false', false],
  ['', false],
])

/** The value that a variable's text means; `usual` is the option's default, and has its type. */
function parsed(text: string, usual: unknown): unknown {
  if (typeof usual === 'boolean') return switches.get(text) ?? text
  if (typeof usual === 'number') return text.trim() === '' ? text : Number(text)
  return text === '' ? null : text
}

/** The value of an option that the text of its variable means. Throws ArgumentError, which names the variable, if the option cannot have it. */
export function readVariable(key: string, text: string): unknown {
  const value = parsed(text, usualOf(key))
  check(key, value, `${variableOf(key)}=${text}: `)
  return value
}

/** The defaults, with what the environment says. */
function fromEnvironment(): Config {
  const config: Config = Object.defineProperties({ ...defaults }, ofKernels)
  for (const [variable, key] of configVariables()) {
    const text = environmentVariable(variable)
    if (text !== undefined) Object.assign(config, { [key]: readVariable(key, text) })
  }
  return config
}

type Check = (value: unknown) => boolean

const isOneOf =
  (...values: readonly unknown[]): Check =>
  (value) =>
    values.includes(value)
const isAtLeastZero: Check = (value) => typeof value === 'number' && value >= 0

/** What an option can be, and the test for it, where its type alone does not say so. Those that default to true or false must be true or false. */
const allowed: ReadonlyMap<string, readonly [what: string, test: Check]> = new Map<keyof Config, readonly [string, Check]>([
  ['reproAfter', ["'dynamo', 'aot' or null", isOneOf('dynamo', 'aot', null)]],
  ['reproLevel', ['1, 2, 3 or 4', isOneOf(1, 2, 3, 4)]],
  ['reproTolerance', ['a number that is at least 0', isAtLeastZero]],
  ['reproHistory', ['a whole number that is at least 1', (value) => Number.isSafeInteger(value) && Number(value) >= 1]],
  ['recompileLimit', ['a number that is at least 0', isAtLeastZero]],
  ['compileBudget', ['a number that is at least 0', isAtLeastZero]],
])

/** Throws ArgumentError if there is no such option or it cannot have that value. `from` says where the value comes from. */
function check(key: string, value: unknown, from = ''): void {
  if (!Object.hasOwn(defaults, key)) throw unknownOption(`${from}config`, key, Object.keys(defaults))
  if (key === 'memoryLimit') checkedLimit(`${from}config.memoryLimit`, value)
  const [what, test] = allowed.get(key) ?? (typeof usualOf(key) === 'boolean' ? SWITCH : ANYTHING)
  if (!test(value)) throw new ArgumentError(`${from}config.${key} must be ${what}, got ${valueText(value)}.`)
}

const SWITCH: readonly [string, Check] = ['true or false', isOneOf(true, false)]
const ANYTHING: readonly [string, Check] = ['anything', () => true]

/** The settings. Assigning an unknown one is an error. */
export const config: Config = new Proxy(fromEnvironment(), {
  set(target, key, value): boolean {
    check(String(key), value)
    return Reflect.set(target, key, value)
  },
})

/** Runs `fn` with some settings changed; if it is async, they stay changed, for all that runs meanwhile, until its promise has settled. */
export function withConfig<T>(patch: Partial<Config>, fn: () => T): T {
  checkCount('withConfig', arguments, 2)
  checkCallable('withConfig', 'fn', fn)
  for (const [key, value] of Object.entries(patch)) check(key, value)
  const before = { ...config }
  const restore = (): void => void Object.assign(config, before)
  Object.assign(config, patch)
  let result: T
  try {
    result = fn()
  } catch (error) {
    restore()
    throw error
  }
  if (isPromise(result)) result.then(restore, restore)
  else restore()
  return result
}

/** Settings that differ from the defaults; a repro script sets them again. */
export function configDifferences(): Partial<Config> {
  const usual = new Map<string, unknown>(Object.entries(defaults))
  return Object.fromEntries(Object.entries(config).filter(([key, value]) => usual.get(key) !== value))
}

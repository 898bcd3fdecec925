// Settings of compile and of its debugger. Each can be set in the environment as TENSORFX_<NAME>, e.g. TENSORFX_REPRO_AFTER=aot.
import { ArgumentError } from '../errors/index.ts'

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
  /** Compare against a float64 run too. */
  sameTwoModelsUseFp64: boolean
  /** Folder of dumps; null: ./tensorfx_compile_debug. */
  debugDirRoot: string | null
  /** A backend that fails is replaced by eager, with a warning. */
  suppressErrors: boolean
  /** Compiled paths of one function before it runs eagerly. */
  recompileLimit: number
}

const defaults: Readonly<Config> = {
  reproAfter: null,
  reproLevel: 2,
  reproForwardOnly: false,
  reproTolerance: 1e-3,
  reproIgnoreNonFp: false,
  sameTwoModelsUseFp64: true,
  debugDirRoot: null,
  suppressErrors: false,
  recompileLimit: 8,
}

function fromEnvironment(): Config {
  const env = (globalThis as { process?: { env?: Record<string, string | undefined> } }).process?.env ?? {}
  const config: Record<string, unknown> = { ...defaults }
  for (const [key, value] of Object.entries(defaults)) {
    const name = `TENSORFX_${key.replace(/[A-Z]/g, (c) => `_${c}`).toUpperCase()}`
    const text = env[name]
    if (text === undefined) continue
    if (typeof value === 'boolean') config[key] = text !== '0' && text !== 'false' && text !== ''
    else if (typeof value === 'number') config[key] = Number(text)
    else config[key] = text === '' ? null : text
  }
  return config as unknown as Config
}

function check(key: string, value: unknown): void {
  if (!Object.hasOwn(defaults, key)) throw new ArgumentError(`config: unknown option '${key}'; known are ${Object.keys(defaults).join(', ')}.`)
  if (key === 'reproAfter' && value !== null && value !== 'dynamo' && value !== 'aot')
    throw new ArgumentError(`config.reproAfter must be 'dynamo', 'aot' or null, got '${String(value)}'.`)
  if (key === 'reproLevel' && ![1, 2, 3, 4].includes(value as number))
    throw new ArgumentError(`config.reproLevel must be 1, 2, 3 or 4, got ${String(value)}.`)
}

/** The settings. Assigning an unknown one is an error. */
export const config: Config = new Proxy(fromEnvironment(), {
  set(target, key, value): boolean {
    check(String(key), value)
    return Reflect.set(target, key, value)
  },
})

/** Runs `fn` with some settings changed. */
export function withConfig<T>(patch: Partial<Config>, fn: () => T): T {
  for (const [key, value] of Object.entries(patch)) check(key, value)
  const before = { ...config }
  Object.assign(config, patch)
  try {
    return fn()
  } finally {
    Object.assign(config, before)
  }
}

/** Settings that differ from the defaults; a repro script sets them again. */
export const configDifferences = (): Partial<Config> =>
  Object.fromEntries(
    Object.entries(config).filter(([key, value]) => (defaults as unknown as Record<string, unknown>)[key] !== value),
  ) as Partial<Config>

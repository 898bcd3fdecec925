// How much of the collectives is checked: the option debugLevel, or the variable TENSORFX_DISTRIBUTED_DEBUG.
import { ArgumentError } from '../errors/index.ts'
import { environmentVariable, valueText } from '../protocol/index.ts'

/** How much is checked and said. PyTorch's `DebugLevel`; the variable TENSORFX_DISTRIBUTED_DEBUG sets it too. */
export type DebugLevel = 'off' | 'info' | 'detail'
const DEBUG_LEVELS: readonly string[] = ['off', 'info', 'detail'] satisfies DebugLevel[]
const isDebugLevel = (value: unknown): value is DebugLevel => typeof value === 'string' && DEBUG_LEVELS.includes(value)

/** The level of an option; that of the environment without it. Throws ArgumentError for another one. */
export function readDebugLevel(given: DebugLevel | undefined): DebugLevel {
  if (given !== undefined) {
    if (!isDebugLevel(given)) throw new ArgumentError(`initProcessGroup: debugLevel must be 'off', 'info' or 'detail', got ${valueText(given)}.`)
    return given
  }
  return debugLevelOf(environmentVariable('TENSORFX_DISTRIBUTED_DEBUG') ?? 'off')
}

/** The level that the text of TENSORFX_DISTRIBUTED_DEBUG means. Throws ArgumentError for another one. */
export function debugLevelOf(text: string): DebugLevel {
  const level = text.toLowerCase()
  if (!isDebugLevel(level)) throw new ArgumentError(`TENSORFX_DISTRIBUTED_DEBUG must be OFF, INFO or DETAIL, got '${level}'.`)
  return level
}

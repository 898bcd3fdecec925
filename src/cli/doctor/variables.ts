// The environment variables of tensorfx in an environment: their values, what is wrong with them, and names that tensorfx does not know.
// Each value is judged by the code that reads it, which is loaded only here: modules read their variables when they are loaded, and refuse wrong values.
import { TensorfxError } from '../../errors/index.ts'
import { nearest } from '../../protocol/index.ts'
import { VARIABLES } from '../../protocol/variables.ts'
import type { Variable, VariableName } from '../../protocol/variables.ts'

/** Names and values of the environment. */
export type Environment = Readonly<Record<string, string | undefined>>

/** A variable in an environment. */
export interface JudgedVariable {
  readonly name: string
  /** null if it is not set. */
  readonly value: string | null
  readonly text: string
  readonly setBy: string | null
  /** Why the value is wrong; null if it is not. */
  readonly problem: string | null
}

/** What an environment says. */
export interface JudgedVariables {
  readonly variables: readonly JudgedVariable[]
  /** Names that begin with TENSORFX_ and are not in the list. */
  readonly unknown: readonly { readonly name: string; readonly didYouMean: string | null; readonly problem: string }[]
  /** The limit that the environment sets; null if it sets none, or a wrong one. */
  readonly memoryLimit: number | null
}

/** Whether a variable belongs to tensorfx. */
export const isOurs = (name: string): boolean => name.startsWith('TENSORFX_')

/** The code that reads a variable, as a function that throws an error of tensorfx for a wrong value. */
type Reader = (text: string) => unknown

const NAMES = Object.keys(VARIABLES) as readonly VariableName[]

/** Why a value is wrong; null if it is not. */
function problemOf(read: Reader | undefined, text: string): string | null {
  try {
    read?.(text)
    return null
  } catch (error) {
    if (error instanceof TensorfxError) return error.message
    throw error
  }
}

/** Reads the variables of an environment. */
export async function judge(env: Environment): Promise<JudgedVariables> {
  const { READERS } = await import('./readers.ts')
  const variables = Object.entries<Variable>(VARIABLES).map(([name, { text, setBy = null }]) => {
    const value = env[name] ?? null
    return { name, value, text, setBy, problem: value === null ? null : problemOf(READERS.get(name), value) }
  })
  const unknown = Object.keys(env)
    .filter((name) => isOurs(name) && !Object.hasOwn(VARIABLES, name))
    .toSorted()
    .map((name) => {
      const didYouMean = nearest(name, NAMES)
      return { name, didYouMean, problem: `tensorfx has no variable ${name}.${didYouMean === null ? '' : ` Did you mean ${didYouMean}?`}` }
    })
  const limit = variables.find(({ name }) => name === 'TENSORFX_MEMORY_LIMIT')
  const memoryLimit = limit === undefined || limit.value === null || limit.problem !== null ? null : Number(limit.value)
  return { variables, unknown, memoryLimit }
}

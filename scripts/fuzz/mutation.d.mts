import type { Random } from './random.mjs'

/** The names that programs use. */
export type MutationApi = Readonly<Record<string, unknown>>

/** What a change of something else has changed. */
export interface MutationFinding {
  readonly seed: number
  readonly expected: string | undefined
  readonly got: string | undefined
  readonly steps: readonly string[]
}

export function vandalize(value: unknown, random: Random): void
export function fuzzMutation(api: MutationApi, seed: number, count?: number): MutationFinding | null
export function fuzzMutations(api: MutationApi, count: number, seed: number, limit?: number): readonly MutationFinding[]
export function mutationApi(load: (entry: string) => Promise<unknown>): Promise<MutationApi>

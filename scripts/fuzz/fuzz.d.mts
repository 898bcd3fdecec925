/** The names that programs use; see api.mjs. */
export type FuzzApi = Readonly<Record<string, unknown>>

export interface DebuggerSetting {
  readonly reproAfter: 'dynamo' | 'aot'
  readonly reproLevel: number
}

export interface FuzzOptions {
  readonly with?: string
  readonly kinds?: readonly string[]
  readonly backend?: string
  readonly shrinking?: boolean
  readonly settings?: readonly DebuggerSetting[] | null
}

export interface FuzzFailure {
  readonly seed: number
  readonly kinds: readonly string[]
  readonly text: string
  readonly difference: { readonly where: string; readonly expected: unknown; readonly got: unknown }
}

export const notYet: Readonly<Record<'compile' | 'automatic' | 'dynamic' | 'makeFx' | 'reinplace' | 'aot', readonly string[]>>
export function kindsOf(wrapper: string): readonly string[]
export function passingKinds(wrapper: string): readonly string[]
export function fuzzOne(api: FuzzApi, seed: number, options?: FuzzOptions): FuzzFailure | null

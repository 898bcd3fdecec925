import type { FuzzApi } from './fuzz.mjs'

export interface Statement {
  readonly text: string
}

export interface Program {
  readonly seed: number
  readonly kinds: readonly string[]
  readonly setup: readonly Statement[]
  readonly params: readonly string[]
  readonly body: readonly Statement[]
  readonly calls: readonly { readonly list: readonly string[]; readonly before: readonly Statement[]; readonly after: readonly Statement[] }[]
}

type Fn = (...args: readonly unknown[]) => unknown

export function judge(
  api: FuzzApi,
  program: Program,
  wrap: (f: Fn) => Fn,
  options?: { readonly traced?: boolean; readonly device?: boolean },
): { readonly where: string; readonly numeric?: boolean } | 'invalid' | null

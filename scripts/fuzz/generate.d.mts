import type { FuzzApi } from './fuzz.mjs'
import type { Program } from './judge.mjs'

export function generate(api: FuzzApi, seed: number, kinds: readonly string[], options?: { readonly traced?: boolean }): Program

import type { FuzzApi } from './fuzz.mjs'

export function loadApi(load: (name: string) => Promise<unknown>): Promise<FuzzApi>

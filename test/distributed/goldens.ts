// PyTorch's results on 2 and 4 ranks.
import { existsSync, readFileSync } from 'node:fs'
import { expect } from 'vitest'

/** What each rank of a recorded run found; null if there is no recording of that name. */
export function golden<T>(name: string): readonly T[] | null {
  const url = new URL(`../goldens/distributed/${name}.json`, import.meta.url)
  if (!existsSync(url)) return null
  const file = JSON.parse(readFileSync(url, 'utf8')) as {
    readonly ranks: readonly T[]
    readonly same_on_all_ranks: boolean
    readonly world_size: number
  }
  const [first] = file.ranks
  return file.same_on_all_ranks && first !== undefined ? Array.from({ length: file.world_size }, () => first) : file.ranks
}

/** Expects numbers within 1e-6, or a millionth of their size. */
export function close(actual: readonly number[] | undefined, expected: readonly number[] | undefined, where = ''): void {
  expect(actual?.length, where).toBe(expected?.length)
  expected?.forEach((value, i) => {
    const difference = Math.abs((actual?.[i] ?? NaN) - value)
    if (!(difference <= 1e-6 * Math.max(1, Math.abs(value)))) expect(actual?.[i], `${where} element ${i}`).toBe(value)
  })
}

/** A tensor in a recording. */
export interface RecordedTensor {
  readonly shape: readonly number[]
  readonly data: readonly number[]
}

/** Recordings of several runs in one file. Equal tensors are written once: `{ $: n }` is the n-th of `pool`. */
export function goldenSet(name: string): ReadonlyMap<string, { readonly world: number; readonly ranks: readonly never[] }> {
  const file = JSON.parse(readFileSync(new URL(`../goldens/distributed/${name}.json`, import.meta.url), 'utf8')) as {
    readonly pool: readonly unknown[]
    readonly cases: Readonly<Record<string, { readonly world_size: number; readonly ranks: readonly unknown[] }>>
  }
  const expand = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(expand)
    if (typeof value !== 'object' || value === null) return value
    if ('$' in value && typeof value.$ === 'number') return file.pool[value.$]
    return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, expand(item)]))
  }
  return new Map(
    Object.entries(file.cases).map(([key, { world_size, ranks }]) => {
      const all = ranks.map(expand)
      return [key, { world: world_size, ranks: (all.length === 1 ? Array.from({ length: world_size }, () => all[0]) : all) as never[] }]
    }),
  )
}

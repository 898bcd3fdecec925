// PyTorch's recordings on 2 and 4 ranks (test/goldens/distributed), and which of their contents the tests have looked at.
import { existsSync, readFileSync, readdirSync } from 'node:fs'
import { expect } from 'vitest'

const FOLDER = new URL('../goldens/distributed/', import.meta.url)

/** Recordings of one run in a file: what each rank found. */
interface RunFile {
  readonly ranks: readonly unknown[]
  readonly same_on_all_ranks: boolean
  readonly world_size: number
}

/** Recordings of several runs in a file. Equal tensors are written once: `{ $: n }` is the n-th of `pool`. */
interface SetFile {
  readonly pool: readonly unknown[]
  readonly cases: Readonly<Record<string, { readonly world_size: number; readonly ranks: readonly unknown[] }>>
}

const load = (name: string): RunFile | SetFile => JSON.parse(readFileSync(new URL(`${name}.json`, FOLDER), 'utf8')) as RunFile | SetFile

const files = readdirSync(FOLDER).map((file) => file.slice(0, -'.json'.length))

/** The names of all recordings. */
export const recordings: readonly string[] = files.flatMap((name) => {
  const file = load(name)
  return 'cases' in file ? Object.keys(file.cases) : [name]
})

/** What tests have looked at: of each recording, the names of results. */
const seen = new Map<string, Set<string>>()

/** A rank's results, which notes what is read of them. */
function noted(recording: string, results: unknown): unknown {
  const names = seen.get(recording) ?? new Set()
  seen.set(recording, names)
  if (typeof results !== 'object' || results === null) {
    names.add('')
    return results
  }
  return new Proxy(results, {
    get(target, name, receiver) {
      if (typeof name === 'string') names.add(name)
      return Reflect.get(target, name, receiver)
    },
  })
}

/**
 * What no test of this file has looked at so far: the names of recordings, among those whose name matches, and of results in them. For the last test of a file.
 */
export function unread(pattern: RegExp): string[] {
  return files.flatMap((name) => {
    const file = load(name)
    const cases = 'cases' in file ? Object.entries(file.cases) : [[name, file] as const]
    return cases.flatMap(([recording, { ranks }]) => {
      if (!pattern.test(recording)) return []
      const names = seen.get(recording)
      if (names === undefined) return [recording]
      const all = new Set(ranks.flatMap((rank) => (typeof rank === 'object' && rank !== null ? Object.keys(rank) : [''])))
      // `error_type` goes with the text of an error: classes have other names here.
      return [...all].filter((result) => !names.has(result) && result !== 'error_type').map((result) => `${recording}: ${result}`)
    })
  })
}

const onAllRanks = (ranks: readonly unknown[], size: number): readonly unknown[] =>
  ranks.length === 1 ? Array.from({ length: size }, () => ranks[0]) : ranks

/** What each rank of a recorded run found; null if there is no recording of that name. */
export function golden<T>(name: string): readonly T[] | null {
  if (!existsSync(new URL(`${name}.json`, FOLDER))) return null
  const file = load(name)
  if ('cases' in file) return null
  const ranks = file.same_on_all_ranks ? file.ranks.slice(0, 1) : file.ranks
  return onAllRanks(ranks, file.world_size).map((results) => noted(name, results)) as readonly T[]
}

/** The runs that were recorded in one file. */
export function goldenSet(name: string): ReadonlyMap<string, { readonly world: number; readonly ranks: readonly never[] }> {
  const file = load(name)
  if (!('cases' in file)) return new Map()
  const expand = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(expand)
    if (typeof value !== 'object' || value === null) return value
    if ('$' in value && typeof value.$ === 'number') return file.pool[value.$]
    return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, expand(item)]))
  }
  return new Map(
    Object.entries(file.cases).map(([key, { world_size: world, ranks }]) => [
      key,
      {
        world,
        // Noted when a test asks for them.
        get ranks() {
          return onAllRanks(ranks.map(expand), world).map((results) => noted(key, results)) as never[]
        },
      },
    ]),
  )
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

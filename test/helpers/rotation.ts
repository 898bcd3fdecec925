// Long tables have many cases of one path through the code. A run takes a tenth of them, another one each day; `npm run test:all -- --full` takes all of them.

/** Whether all cases run. */
export const isFull: boolean = process.env['TENSORFX_FULL'] === '1'

/** Which tenth runs. The configuration of the tests sets it for all processes of a run: by default the number of the day. */
export const rotation: number = Number(process.env['TENSORFX_ROTATION'] ?? Math.floor(Date.now() / 86_400_000))

/** Into how many parts the cases are divided. */
const PARTS = 10

/** FNV-1a. */
export function hashOf(text: string): number {
  let hash = 2166136261
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 16777619) >>> 0
  return hash
}

/** Whether the case of that name runs this time. */
export const isChosen = (name: string): boolean => isFull || (hashOf(name) + rotation) % PARTS === 0

/** Those of the cases that run this time, at least one. */
export function tenth<T>(cases: readonly T[], nameOf: (one: T) => string): readonly T[] {
  const chosen = cases.filter((one) => isChosen(nameOf(one)))
  return chosen.length > 0 ? chosen : turn(cases)
}

/** Every `parts`-th of the cases, the others on the next days; or all. */
const every = <T>(parts: number, cases: readonly T[]): readonly T[] => cases.filter((_, i) => isFull || i % parts === rotation % parts)

/** Every other one of the cases, the others on the next day; or all. */
export const half = <T>(cases: readonly T[]): readonly T[] => every(2, cases)

/** A third of the cases, of which there must be three, the others on the next two days; or all. */
export const third = <T>(cases: readonly T[]): readonly T[] => every(3, cases)

/** One of a few variants, another one each day; or all. */
export const turn = <T>(variants: readonly T[]): readonly T[] => variants.filter((_, i) => isFull || i === rotation % variants.length)

/** `count` seeds of drawn programs: a third of them, the others on the next two days; or all, as where the environment variable says how many. */
export function seeds(variable: string, count: number, first: number = 0): readonly number[] {
  const all = Array.from({ length: count }, (_, i) => first + i)
  return process.env[variable] === undefined ? third(all) : all
}

// The calls below one function: which functions it reaches, how far away they are, and which of them are reached only through others.
import { ArgumentError } from '../../errors/index.ts'
import { folderOf, moduleOf, nameOf } from '../model.ts'
import type { Call, Model, ProgramSymbol } from '../model.ts'
import { groupBy } from '../pages/lookup.ts'
import { dominatorsOf } from './dominators.ts'
import type { Observed } from './observe.ts'

/** A call between two functions of the walk. */
export interface FlowEdge {
  readonly from: string
  readonly to: string
  /** The lines of the calls; none where only an observation knows of it. */
  readonly lines: readonly number[]
  /** How often it ran; null if nothing was observed. */
  readonly count: number | null
}

/** How far calls are followed. */
export interface Limits {
  readonly depth: number
  /** Names, folders or paths whose calls are not followed, and those that are left out. */
  readonly stop: readonly string[]
  readonly skip: readonly string[]
}

/** Whether a function is one of those that are meant: by its name or id, its file, or a folder. */
export const matches = (id: string, words: readonly string[]): boolean =>
  words.some((word) => id === word || nameOf(id) === word || moduleOf(id) === word || `/${folderOf(moduleOf(id))}/`.includes(`/${word}/`))

/** The calls by symbol; those of a member of an interface lead to its only implementation. */
function staticCalls({ symbols, calls }: Model): readonly Call[] {
  const known = new Map(symbols.map((symbol) => [symbol.id, symbol]))
  const heirs = groupBy(
    symbols.flatMap(({ id, heritage }) => heritage.map((of) => ({ of, id }))),
    ({ of }) => of,
  )
  return calls.flatMap((call) => {
    if (call.kind === 'dynamic' || call.kind === 'value') return []
    const target = known.get(call.to)
    if (target === undefined || target.isRunnable) return [call]
    const dot = call.to.lastIndexOf('.')
    const all = (heirs.get(call.to.slice(0, dot)) ?? [])
      .map(({ id }) => `${id}${call.to.slice(dot)}`)
      .filter((id) => known.get(id)?.isRunnable === true)
    return all.length === 1 ? [{ ...call, to: all[0] ?? call.to }] : []
  })
}

/** All edges: what was observed, and calls by symbol between functions that ran. */
function edgesOf(model: Model, observed: readonly Observed[] | null): readonly FlowEdge[] {
  const known = new Set(model.symbols.map(({ id }) => id))
  const runs = (observed ?? []).filter(({ kind, from, to }) => kind === 'call' && from !== to && known.has(from) && known.has(to))
  const ran = new Set((observed ?? []).flatMap(({ from, to }) => [from, to]))
  const found = new Map<string, FlowEdge>()
  for (const { from, to, count } of runs) found.set(`${from} ${to}`, { from, to, lines: [], count })
  for (const { from, to, line } of staticCalls(model)) {
    if (from === to || !known.has(from) || (observed !== null && !(ran.has(from) && ran.has(to)))) continue
    const edge = found.get(`${from} ${to}`) ?? { from, to, lines: [], count: observed === null ? null : 0 }
    found.set(`${from} ${to}`, { ...edge, lines: [...edge.lines, line] })
  }
  return [...found.values()]
}

export class GraphOfCalls {
  readonly root: string
  readonly symbols: ReadonlyMap<string, ProgramSymbol>
  /** How many calls lead from the root to a function, for those that it reaches, the nearest first. */
  readonly distance: ReadonlyMap<string, number>
  /** The calls between these functions. */
  readonly edges: readonly FlowEdge[]
  readonly #after: ReadonlyMap<string, readonly FlowEdge[]>
  readonly #before: ReadonlyMap<string, readonly FlowEdge[]>
  /** For each function the nearest one that every way from the root passes. */
  readonly #above: ReadonlyMap<string, string>
  /** The lines of each function with those that are reached through it alone. */
  readonly #weights: ReadonlyMap<string, number>

  /** Throws ArgumentError if a run was observed that never entered the root. */
  constructor(model: Model, root: string, observed: readonly Observed[] | null, { depth, stop, skip }: Limits) {
    if (observed !== null && !observed.some(({ to }) => to === root))
      throw new ArgumentError(`the observed command never entered ${root}. Observe one that calls it.`)
    this.root = root
    this.symbols = new Map(model.symbols.map((symbol) => [symbol.id, symbol]))
    const followed = edgesOf(model, observed).filter(
      ({ from, to }) => !matches(from, stop) && !matches(to, skip) && this.symbols.get(to)?.isRunnable === true,
    )
    this.#after = groupBy(followed, ({ from }) => from)
    this.#before = groupBy(followed, ({ to }) => to)
    this.distance = this.#distances(depth)
    this.edges = followed.filter(({ from, to }) => this.distance.has(from) && this.distance.has(to))
    this.#above = dominatorsOf(root, (id) => this.next(id))
    this.#weights = this.#sumOfLines()
  }

  #distances(depth: number): ReadonlyMap<string, number> {
    const distance = new Map([[this.root, 0]])
    for (const [id, steps] of distance)
      if (steps < depth) for (const { to } of this.#after.get(id) ?? []) if (!distance.has(to)) distance.set(to, steps + 1)
    return distance
  }

  #sumOfLines(): ReadonlyMap<string, number> {
    const weights = new Map<string, number>()
    for (const id of this.distance.keys()) for (const at of this.#upwards(id)) weights.set(at, (weights.get(at) ?? 0) + this.linesOf(id))
    return weights
  }

  /** A function, and those that every way to it passes, the nearest first. */
  #upwards(id: string): readonly string[] {
    const way: string[] = []
    for (let at: string | undefined = id; at !== undefined; at = this.#above.get(at)) way.push(at)
    return way
  }

  /** The functions that a function calls, of those that are reached. */
  next(id: string): readonly string[] {
    return (this.#after.get(id) ?? []).map(({ to }) => to).filter((to) => this.distance.has(to))
  }

  /** The functions that call a function, reached or not. */
  callersOf(id: string): readonly string[] {
    return [...new Set((this.#before.get(id) ?? []).map(({ from }) => from))]
  }

  linesOf(id: string): number {
    const symbol = this.symbols.get(id)
    return symbol === undefined ? 0 : symbol.endLine - symbol.line + 1
  }

  weightOf(id: string): number {
    return this.#weights.get(id) ?? 0
  }

  /** Whether every way to a function leads through another one. */
  isBelow(id: string, other: string): boolean {
    return this.#upwards(id).includes(other)
  }

  /** Of some functions the nearest one that every way to a function passes; the root if none does. */
  nearestAbove(id: string, among: ReadonlySet<string>): string {
    const [, ...above] = this.#upwards(id)
    return above.find((at) => among.has(at)) ?? this.root
  }
}

// The walk from one function through a program: what it reaches, what of that is drawn, the main path, and sections. Calls that were observed decide; without them the calls by symbol do.
import { ArgumentError } from '../../errors/index.ts'
import { nearest } from '../../protocol/index.ts'
import { folderOf, moduleOf, nameOf } from '../model.ts'
import type { Call, Model, ProgramSymbol } from '../model.ts'
import { groupBy } from '../pages/lookup.ts'
import { dominatorsOf } from './dominators.ts'
import type { Observed } from './observe.ts'

/** What is drawn. */
export interface WalkOptions {
  readonly depth: number
  /** How many functions the first diagram has. */
  readonly nodes: number
  /** Names, folders or paths that are drawn and not followed, left out, or always drawn. */
  readonly stop: readonly string[]
  readonly skip: readonly string[]
  readonly pin: readonly string[]
}

/** A call between two functions of the walk. */
export interface FlowEdge {
  readonly from: string
  readonly to: string
  /** The lines of the calls; none where only an observation knows of it. */
  readonly lines: readonly number[]
  /** How often it ran; null if nothing was observed. */
  readonly count: number | null
}

/** A diagram: functions, and edges between them. `isDirect`: without others in between. */
export interface Diagram {
  readonly ids: readonly string[]
  readonly edges: readonly { readonly from: string; readonly to: string; readonly isDirect: boolean }[]
}

export interface Walk {
  readonly root: string
  readonly edges: readonly FlowEdge[]
  readonly main: readonly string[]
  readonly overview: Diagram
  /** The functions that are reached only through one of the main path. */
  readonly sections: readonly { readonly id: string; readonly diagram: Diagram }[]
  /** All functions of the diagrams, in the order of their first call. */
  readonly cards: readonly string[]
}

/** The most functions that the diagram of a section has. */
const SECTION = 10

const matches = (id: string, words: readonly string[]): boolean =>
  words.some((word) => id === word || nameOf(id) === word || moduleOf(id) === word || `/${folderOf(moduleOf(id))}/`.includes(`/${word}/`))

/** The id that `FILE#function` or a name means. Throws ArgumentError if there is none, or several. */
export function findFunction(model: Model, text: string): string {
  const runnable = model.symbols.filter(({ isRunnable }) => isRunnable)
  const exact = runnable.filter(({ id, name }) => id === text || (text.includes('#') ? id.endsWith(`/${text}`) : name === text))
  if (exact.length === 1) return exact[0]?.id ?? ''
  if (exact.length > 1)
    throw new ArgumentError(
      `'${text}' is ${exact.length} functions: ${exact
        .slice(0, 8)
        .map(({ id }) => id)
        .join(', ')}. Name the file: FILE#function.`,
    )
  const near =
    nearest(
      nameOf(text),
      runnable.map(({ name }) => name),
    ) ?? null
  throw new ArgumentError(
    `there is no function '${text}'. A function is written as src/file.ts#name or src/file.ts#Class.method.${near === null ? '' : ` Did you mean '${runnable.find(({ name }) => name === near)?.id ?? near}'?`}`,
  )
}

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

/** Walks from a function. Throws ArgumentError if a run was observed that never entered it. */
export function walk(model: Model, root: string, observed: readonly Observed[] | null, { depth, nodes, stop, skip, pin }: WalkOptions): Walk {
  if (observed !== null && !observed.some(({ to }) => to === root))
    throw new ArgumentError(`the observed command never entered ${root}. Observe one that calls it.`)
  const symbols = new Map(model.symbols.map((symbol) => [symbol.id, symbol]))
  const edges = edgesOf(model, observed).filter(({ from, to }) => !matches(from, stop) && !matches(to, skip) && symbols.get(to)?.isRunnable === true)
  const after = groupBy(edges, ({ from }) => from)
  const distance = new Map([[root, 0]])
  for (const id of distance.keys()) {
    const from = distance.get(id) ?? 0
    if (from < depth) for (const { to } of after.get(id) ?? []) if (!distance.has(to)) distance.set(to, from + 1)
  }
  const reached = [...distance.keys()]
  const next = (id: string): readonly string[] => (after.get(id) ?? []).map(({ to }) => to).filter((to) => distance.has(to))
  const above = dominatorsOf(root, next)
  const weights = weightsOf(reached, above, symbols)
  const importance = importanceOf(edges, distance, weights, symbols)
  const below = (id: string): readonly string[] => reached.filter((one) => isBelow(above, one, id))
  const isDrawn = (id: string): boolean => importance.drawable.has(id) || matches(id, pin)
  const best = (ids: readonly string[], limit: number): readonly string[] => {
    const sorted = ids
      .filter(isDrawn)
      .toSorted((a, b) => Number(matches(b, pin)) - Number(matches(a, pin)) || (importance.of.get(b) ?? 0) - (importance.of.get(a) ?? 0))
    return sorted.slice(0, limit)
  }
  const order = new Map(
    [...(observed ?? []).filter(({ kind }) => kind === 'call').map(({ to }) => to), ...reached].toReversed().map((id, i) => [id, -i]),
  )
  const inOrder = (ids: readonly string[]): readonly string[] =>
    [...new Set(ids)].toSorted((a, b) => (a === root ? -1 : b === root ? 1 : (order.get(a) ?? 0) - (order.get(b) ?? 0)))
  const drawn = inOrder([
    root,
    ...best(
      reached.filter((id) => id !== root),
      nodes - 1,
    ),
  ])
  const main = mainPath(root, drawn, above, weights)
  const taken = new Set(drawn)
  const sections = main.flatMap((id, i) => {
    const later = main[i + 1]
    const own = below(id).filter((one) => !taken.has(one) && (later === undefined || !isBelow(above, one, later)))
    const chosen = best(own, SECTION - 1)
    for (const one of chosen) taken.add(one)
    return chosen.length === 0 ? [] : [{ id, diagram: diagramOf(inOrder([id, ...chosen]), next) }]
  })
  return {
    root,
    edges: edges.filter(({ from, to }) => distance.has(from) && distance.has(to)),
    main,
    overview: diagramOf(drawn, next),
    sections,
    cards: inOrder([...taken]),
  }
}

/** Whether every way to a function leads through another. */
function isBelow(above: ReadonlyMap<string, string>, id: string, other: string): boolean {
  for (let at: string | undefined = id; at !== undefined; at = above.get(at)) if (at === other) return true
  return false
}

/** The lines of each function with those that are reached through it alone. */
function weightsOf(
  reached: readonly string[],
  above: ReadonlyMap<string, string>,
  symbols: ReadonlyMap<string, ProgramSymbol>,
): ReadonlyMap<string, number> {
  const weights = new Map<string, number>()
  for (const id of reached)
    for (let at: string | undefined = id; at !== undefined; at = above.get(at)) weights.set(at, (weights.get(at) ?? 0) + linesOf(symbols.get(id)))
  return weights
}

const linesOf = (symbol: ProgramSymbol | undefined): number => (symbol === undefined ? 0 : symbol.endLine - symbol.line + 1)

/** Which functions are worth drawing, and how much. Functions that much calls, and those of three lines, are helpers. */
function importanceOf(
  edges: readonly FlowEdge[],
  distance: ReadonlyMap<string, number>,
  weights: ReadonlyMap<string, number>,
  symbols: ReadonlyMap<string, ProgramSymbol>,
): { readonly of: ReadonlyMap<string, number>; readonly drawable: ReadonlySet<string> } {
  const callers = groupBy(edges, ({ to }) => to)
  const of = new Map<string, number>()
  const drawable = new Set<string>()
  for (const [id, steps] of distance) {
    const from = [...new Set((callers.get(id) ?? []).map((edge) => edge.from))]
    const folders = new Set(from.map((one) => folderOf(moduleOf(one))))
    const isHub = from.length >= 6 && folders.size >= 3
    if (!isHub && linesOf(symbols.get(id)) > 3) drawable.add(id)
    const entered = [...folders].some((folder) => folder !== folderOf(moduleOf(id))) ? 1.8 : 1
    const exported = symbols.get(id)?.visibility === 'private' ? 1 : 1.3
    of.set(id, (Math.sqrt(weights.get(id) ?? 0) * entered * exported) / (1 + steps / 4))
  }
  return { of, drawable }
}

/** From the root down to the heaviest part of what is drawn. */
function mainPath(
  root: string,
  drawn: readonly string[],
  above: ReadonlyMap<string, string>,
  weights: ReadonlyMap<string, number>,
): readonly string[] {
  const isDrawn = new Set(drawn)
  const children = groupBy(
    drawn.filter((id) => id !== root),
    (id) => {
      let at = above.get(id)
      while (at !== undefined && !isDrawn.has(at)) at = above.get(at)
      return at ?? root
    },
  )
  const path = [root]
  for (let at = root; ;) {
    const heaviest = (children.get(at) ?? []).toSorted((a, b) => (weights.get(b) ?? 0) - (weights.get(a) ?? 0))[0]
    if (heaviest === undefined) return path
    path.push(heaviest)
    at = heaviest
  }
}

/** The edges between some functions: calls, and ways through functions that are not drawn. The latter are left out where others say the same. */
export function diagramOf(ids: readonly string[], next: (id: string) => readonly string[]): Diagram {
  const drawn = new Set(ids)
  const direct = ids.flatMap((from) =>
    [...new Set(next(from))].filter((to) => drawn.has(to) && to !== from).map((to) => ({ from, to, isDirect: true })),
  )
  const indirect = ids.flatMap((from) => {
    const seen = new Set<string>()
    const queue = next(from).filter((to) => !drawn.has(to))
    const found = new Set<string>()
    for (let id = queue.pop(); id !== undefined; id = queue.pop()) {
      if (seen.has(id)) continue
      seen.add(id)
      for (const to of next(id))
        if (drawn.has(to)) found.add(to)
        else queue.push(to)
    }
    found.delete(from)
    return [...found].filter((to) => !direct.some((edge) => edge.from === from && edge.to === to)).map((to) => ({ from, to, isDirect: false }))
  })
  let edges = [...direct, ...indirect]
  // One after the other: of a cycle, one edge stays.
  for (const edge of indirect) {
    const others = edges.filter((one) => one !== edge)
    if (leads(others, edge.from, edge.to)) edges = others
  }
  return { ids, edges }
}

function leads(edges: readonly { readonly from: string; readonly to: string }[], from: string, to: string): boolean {
  const seen = new Set([from])
  for (const id of seen) for (const edge of edges) if (edge.from === id) seen.add(edge.to)
  return from !== to && seen.has(to)
}

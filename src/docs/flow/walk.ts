// The walk from one function through a program: what of all that it reaches is drawn, the main path, and sections. Calls that were observed decide; without them the calls by symbol do.
import { ArgumentError } from '../../errors/index.ts'
import { nearest } from '../../protocol/index.ts'
import { folderOf, moduleOf, nameOf } from '../model.ts'
import type { Model } from '../model.ts'
import { groupBy } from '../pages/lookup.ts'
import { diagramOf } from './diagram.ts'
import type { Diagram } from './diagram.ts'
import { GraphOfCalls, matches } from './graphOfCalls.ts'
import type { FlowEdge, Limits } from './graphOfCalls.ts'
import type { Observed } from './observe.ts'

/** What is drawn. */
export interface WalkOptions extends Limits {
  /** How many functions the first diagram has. */
  readonly nodes: number
  /** Names, folders or paths that are drawn, however small. */
  readonly pin: readonly string[]
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

/** The id that `FILE#function` or a name means. Throws ArgumentError if there is none, or several. */
export function findFunction(model: Model, text: string): string {
  const runnable = model.symbols.filter(({ isRunnable }) => isRunnable)
  const [found, ...others] = runnable.filter(({ id, name }) => id === text || (text.includes('#') ? id.endsWith(`/${text}`) : name === text))
  if (found !== undefined && others.length === 0) return found.id
  if (found !== undefined) {
    const ids = [found, ...others].map(({ id }) => id)
    throw new ArgumentError(`'${text}' is ${ids.length} functions: ${ids.slice(0, 8).join(', ')}. Name the file: FILE#function.`)
  }
  const names = runnable.map(({ name }) => name)
  const near = nearest(nameOf(text), names)
  const hint = near === null ? '' : ` Did you mean '${runnable.find(({ name }) => name === near)?.id ?? near}'?`
  throw new ArgumentError(`there is no function '${text}'. A function is written as src/file.ts#name or src/file.ts#Class.method.${hint}`)
}

/** Walks from a function. Throws ArgumentError if a run was observed that never entered it. */
export function walk(model: Model, root: string, observed: readonly Observed[] | null, options: WalkOptions): Walk {
  const graph = new GraphOfCalls(model, root, observed, options)
  const ranking = new Ranking(graph, observed, options.pin)
  const others = [...graph.distance.keys()].filter((id) => id !== root)
  const drawn = ranking.inOrder([root, ...ranking.best(others, options.nodes - 1)])
  const main = mainPath(graph, drawn)
  const sections = sectionsOf(graph, ranking, main, drawn)
  const diagram = (ids: readonly string[]): Diagram => diagramOf(ids, (id) => graph.next(id))
  return {
    root,
    edges: graph.edges,
    main,
    overview: diagram(drawn),
    sections: sections.map(({ id, ids }) => ({ id, diagram: diagram(ids) })),
    cards: ranking.inOrder([...drawn, ...sections.flatMap(({ ids }) => ids)]),
  }
}

/** Which of the functions are worth drawing, and their order. */
class Ranking {
  readonly #graph: GraphOfCalls
  readonly #pin: readonly string[]
  /** The place of each function in the order of first calls. */
  readonly #order: ReadonlyMap<string, number>
  readonly #importance: ReadonlyMap<string, number>

  constructor(graph: GraphOfCalls, observed: readonly Observed[] | null, pin: readonly string[]) {
    this.#graph = graph
    this.#pin = pin
    const reached = [...graph.distance.keys()]
    const entered = (observed ?? []).filter(({ kind }) => kind === 'call').map(({ to }) => to)
    this.#order = new Map([...new Set([...entered, ...reached])].map((id, i) => [id, i]))
    this.#importance = new Map(reached.map((id) => [id, this.#importanceOf(id)]))
  }

  /** Much code below it, near the root, entered from another folder, and not private. */
  #importanceOf(id: string): number {
    const isEntrance = this.#foldersOfCallers(id).some((folder) => folder !== folderOf(moduleOf(id)))
    const isPrivate = this.#graph.symbols.get(id)?.visibility === 'private'
    const steps = this.#graph.distance.get(id) ?? 0
    return (Math.sqrt(this.#graph.weightOf(id)) * (isEntrance ? 1.8 : 1) * (isPrivate ? 1 : 1.3)) / (1 + steps / 4)
  }

  #foldersOfCallers(id: string): readonly string[] {
    return [...new Set(this.#graph.callersOf(id).map((from) => folderOf(moduleOf(from))))]
  }

  /** Functions that much calls, and those of three lines. */
  #isHelper(id: string): boolean {
    return this.#graph.linesOf(id) <= 3 || (this.#graph.callersOf(id).length >= 6 && this.#foldersOfCallers(id).length >= 3)
  }

  /** The most important of some functions; those that are pinned come first. */
  best(ids: readonly string[], most: number): readonly string[] {
    const isPinned = new Map(ids.map((id) => [id, matches(id, this.#pin)]))
    const rank = (id: string): number => (isPinned.get(id) === true ? 1 : 0)
    const importance = (id: string): number => this.#importance.get(id) ?? 0
    return ids
      .filter((id) => isPinned.get(id) === true || !this.#isHelper(id))
      .toSorted((a, b) => rank(b) - rank(a) || importance(b) - importance(a))
      .slice(0, most)
  }

  /** Functions in the order of their first call, the root first. */
  inOrder(ids: readonly string[]): readonly string[] {
    const place = (id: string): number => (id === this.#graph.root ? -1 : (this.#order.get(id) ?? 0))
    return [...new Set(ids)].toSorted((a, b) => place(a) - place(b))
  }
}

/** From the root down to the heaviest part of what is drawn. */
function mainPath(graph: GraphOfCalls, drawn: readonly string[]): readonly string[] {
  const among = new Set(drawn)
  const children = groupBy(
    drawn.filter((id) => id !== graph.root),
    (id) => graph.nearestAbove(id, among),
  )
  const path = [graph.root]
  for (let at = graph.root; ;) {
    const [heaviest] = (children.get(at) ?? []).toSorted((a, b) => graph.weightOf(b) - graph.weightOf(a))
    if (heaviest === undefined) return path
    path.push(heaviest)
    at = heaviest
  }
}

/** For the functions of the main path what is below each of them, and not below the next one; no function is in two sections. */
function sectionsOf(
  graph: GraphOfCalls,
  ranking: Ranking,
  main: readonly string[],
  drawn: readonly string[],
): readonly { readonly id: string; readonly ids: readonly string[] }[] {
  const taken = new Set(drawn)
  const reached = [...graph.distance.keys()]
  return main.flatMap((id, i) => {
    const later = main[i + 1]
    const own = reached.filter((one) => graph.isBelow(one, id) && !taken.has(one) && (later === undefined || !graph.isBelow(one, later)))
    const chosen = ranking.best(own, SECTION - 1)
    for (const one of chosen) taken.add(one)
    return chosen.length === 0 ? [] : [{ id, ids: ranking.inOrder([id, ...chosen]) }]
  })
}

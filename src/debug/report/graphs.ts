// What a trace says of each compiled graph: its stages, fusion, memory plan and kernels.
import type { CompileEvent } from '../../events/index.ts'
import type { Frame } from '../../provenance/index.ts'
import { NONE } from './data.ts'
import type { GraphFacts, KernelFacts, MemoryPlan, Place, Refusal, Stage, StageLine } from './data.ts'
import { timeText } from '../../protocol/timeText.ts'
import type { Mutable } from './rows.ts'

/** Values, each once, and named by number. */
export class Shared<T> {
  readonly list: T[] = []
  readonly #known = new Map<string, number>()

  of(value: T): number {
    const key = JSON.stringify(value)
    const known = this.#known.get(key)
    if (known !== undefined) return known
    this.#known.set(key, this.list.length)
    return this.list.push(value) - 1
  }
}

/** The lists of a report that is being made. */
export class Lists {
  readonly places: Shared<Place> = new Shared<Place>()
  readonly texts: Shared<string> = new Shared<string>()

  place(frame: Frame | null | undefined): number {
    if (frame === null || frame === undefined) return NONE
    const { file, line, fn, code } = frame
    return this.places.of({ file, line, fn, code: code ?? null })
  }

  lines(texts: readonly string[], placeOf: (text: string, i: number) => number = () => NONE): StageLine[] {
    return texts.map((text, i) => [this.texts.of(text), placeOf(text, i)] as const)
  }
}

/** Kernels by name: runs, the time of all, and of the fastest. */
export type Launches = ReadonlyMap<string, readonly [runs: number, milliseconds: number, least: number]>

interface Building extends Omit<Mutable<GraphFacts>, 'stages' | 'kernels' | 'memory' | 'groups' | 'refused' | 'fallbacks'> {
  readonly stages: Stage[]
  readonly memory: MemoryPlan[]
  readonly groups: GraphFacts['groups'][number][]
  readonly refused: Refusal[]
  readonly fallbacks: GraphFacts['fallbacks'][number][]
  readonly kernels: CompileEvent<'kernel'>[]
}

const newGraph = (of: Pick<GraphFacts, 'name' | 'fn' | 'reason' | 'operators'>): Building => ({
  ...of,
  backend: null,
  milliseconds: null,
  saved: null,
  stages: [],
  groups: [],
  refused: [],
  fallbacks: [],
  memory: [],
  kernels: [],
})

/** Collects the events of graphs, in order. */
export class GraphReader {
  readonly #lists: Lists
  readonly #graphs: Building[] = []
  /** The place among the graphs by the number of a graph or of one of its halves. */
  readonly #of = new Map<number, number>()
  /** Where the nodes of a graph come from, by the number of the graph. */
  readonly #nodes = new Map<number, ReadonlyMap<string, number>>()
  /** The latest stage of a captured graph or half, by its number. */
  readonly #latest = new Map<number, number>()

  constructor(lists: Lists) {
    this.#lists = lists
  }

  /** The graph that an event belongs to; {@link NONE} if there is none. */
  graphOf({ graph }: Pick<CompileEvent, 'graph'>): number {
    return graph === null ? NONE : (this.#of.get(graph) ?? NONE)
  }

  /** The first line of the program that a graph comes from. */
  firstPlace(at: number): number {
    return this.#graphs[at]?.stages[0]?.lines.find(([, place]) => place !== NONE)?.[1] ?? NONE
  }

  /** The place of a node of a graph. */
  placeOf(graph: number | null, node: string | null): number {
    return graph === null || node === null ? NONE : (this.#nodes.get(graph)?.get(node) ?? NONE)
  }

  /** Takes an event that is about a graph. `fn`: the name of the compiled function. */
  take(event: CompileEvent, fn: string): void {
    if (event.kind === 'graph') this.#graph(event, fn)
    const facts = this.#graphs[this.graphOf(event)]
    if (facts !== undefined) this.#add(facts, event)
  }

  #graph(event: CompileEvent<'graph'>, fn: string): void {
    const { graph, role, name, reason, nodes, stacks, operators } = event
    if (graph === null) return
    const places = new Map(nodes.map((node) => [node.name, node.stack === null ? NONE : this.#lists.place(stacks[node.stack]?.at(-1))]))
    this.#nodes.set(graph, places)
    const parent = event.parent === null ? undefined : this.#of.get(event.parent)
    const at = parent ?? this.#graphs.push(newGraph({ name, fn, reason, operators })) - 1
    this.#of.set(graph, at)
    const lines = this.#lists.lines(
      nodes.map((node) => node.text),
      (_text, i) => places.get(nodes[i]?.name ?? '') ?? NONE,
    )
    const isWhole = ({ title }: Stage): boolean => title === 'joint' || title === 'captured'
    const before = role === 'captured' ? NONE : (this.#graphs[at]?.stages.findLastIndex(isWhole) ?? NONE)
    this.#stage(at, graph, { title: role, note: `${nodes.length} nodes`, lines, before })
  }

  #stage(at: number, graph: number | null, stage: Omit<Stage, 'before'> & { readonly before?: number }): void {
    const facts = this.#graphs[at]
    if (facts === undefined) return
    const before = stage.before ?? (graph === null ? NONE : (this.#latest.get(graph) ?? NONE))
    const place = facts.stages.push({ ...stage, before }) - 1
    if (graph !== null) this.#latest.set(graph, place)
  }

  #add(facts: Building, event: CompileEvent): void {
    const at = this.#graphs.indexOf(facts)
    const { graph } = event
    switch (event.kind) {
      case 'joint':
        if (event.ok)
          this.#stage(at, graph, { title: 'joint', note: `${event.nodes.length} nodes`, lines: this.#lists.lines(event.nodes, this.#byName(graph)) })
        break
      case 'partition':
        facts.saved = event.saved
        break
      case 'pass': {
        const { name, text, milliseconds, error } = event
        const note = `${timeText(milliseconds)}${error === null ? '' : `, failed: ${error}`}`
        if (text !== null) this.#stage(at, graph, { title: name, note, lines: this.#lists.lines(text.split('\n'), this.#byName(graph)) })
        else if (error !== null) this.#stage(at, graph, { title: name, note, lines: [] })
        break
      }
      case 'lower':
        for (const { node, operator, reason } of event.externs) facts.fallbacks.push({ operator, reason, place: this.placeOf(graph, node) })
        break
      case 'fuse':
        facts.groups.push(...event.groups)
        for (const { origins, ...pair } of event.refused)
          facts.refused.push({ ...pair, places: [this.placeOf(graph, origins[0]), this.placeOf(graph, origins[1])] })
        break
      case 'memory':
        facts.memory.push(this.#memory(event))
        break
      case 'kernel':
        facts.kernels.push(event)
        break
      case 'compiled':
        facts.backend = event.backend
        facts.milliseconds = event.milliseconds
        break
      default:
    }
  }

  /** The place of a line of text: that of the first node of the graph that it names. */
  #byName(graph: number | null): (text: string) => number {
    const places = graph === null ? undefined : this.#nodes.get(graph)
    return (text) => {
      for (const [word] of places === undefined ? [] : text.matchAll(/[\p{ID_Start}$_][\p{ID_Continue}$]*/gu)) {
        const place = places?.get(word) ?? NONE
        if (place !== NONE) return place
      }
      return NONE
    }
  }

  #memory({ program, arenaBytes, lifetimes, graph }: CompileEvent<'memory'>): MemoryPlan {
    const steps = Math.max(0, ...lifetimes.map(({ last }) => last + 1))
    const inUse = Array.from({ length: steps }, (_, step) =>
      lifetimes.reduce((sum, { first, last, bytes }) => sum + (first <= step && step <= last ? bytes : 0), 0),
    )
    const peakBytes = Math.max(0, ...inUse)
    return {
      program,
      arenaBytes,
      steps,
      peakBytes,
      peakStep: inUse.indexOf(peakBytes),
      lifetimes: lifetimes.map(({ origin, ...lifetime }) => ({ ...lifetime, place: this.placeOf(graph, origin) })),
    }
  }

  /** The graphs, with how often their kernels have run. */
  finish(launches: Launches): readonly GraphFacts[] {
    return this.#graphs.map((facts) => ({ ...facts, kernels: facts.kernels.map((event) => this.#kernel(event, launches)) }))
  }

  #kernel(event: CompileEvent<'kernel'>, launches: Launches): KernelFacts {
    const { name, type, engine, lines, text, cached, milliseconds: compileMilliseconds, flops, bytes } = event
    const [runs, milliseconds, least] = launches.get(name) ?? [0, 0, 0]
    const places = lines.map((frame) => this.#lists.place(frame))
    return {
      name,
      type,
      engine,
      places,
      text: this.#lists.texts.of(text),
      isCached: cached,
      compileMilliseconds,
      runs,
      milliseconds,
      least,
      flops,
      bytes,
    }
  }
}

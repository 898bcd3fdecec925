// The spans of a profile while it is taken, as rows of numbers: objects would outlive many collections, each of which copies them, and that took longer than some operators.
// `events` makes the objects when the profile is over, and works out what follows from the order of the spans: modules, own times, numbers on the tape.
import type { EngineName } from '../../kernels/index.ts'
import type { ProfileEngine, ProfileEvent, ProfileKind } from './event.ts'

/** What all spans of an operator, a module, a node or a kernel have in common. */
export interface Site {
  readonly kind: ProfileKind
  readonly name: string
  readonly engine: ProfileEngine | null
  readonly instructions: EngineName | null
  /** Of a kernel: the compiled graph and its nodes that it computes. */
  readonly graph: string | null
  readonly nodes: readonly string[]
}

/** The columns of a row. Until its span ends, a row has the peak from before, and the allocations and the memory at its start. */
export const [START, END, PARENT, SEQUENCE, TAPE, FLOPS, BYTES, SHAPES, ALLOCATIONS, MEMORY, PEAK, IN_USE] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]
const WIDTH = 12
/** A block has 2 ** BITS rows: a table grows by blocks, so that no row is copied. */
const BITS = 9
const ROWS = 1 << BITS

const NONE: readonly never[] = []

/** Rows by their positions. */
export class Spans {
  readonly #sites: Site[] = []
  readonly #blocks: Float64Array<ArrayBuffer>[] = []
  /** The shapes of operators one after the other: how many, and of each the number of its dimensions and these. Place 0 stands for none. */
  readonly #shapes: number[] = [0]
  /** Names of nodes of the tape. Place 0 stands for none. */
  readonly #tapeNames: string[] = ['']
  readonly #tapePlaces = new Map<string, number>()
  /** The block and the place in it of the row that was added or looked up last. */
  row = new Float64Array(WIDTH)
  at = 0

  get length(): number {
    return this.#sites.length
  }

  /** Adds a row, which is {@link row} from {@link at} on. Returns its position. */
  add(site: Site): number {
    const position = this.#sites.push(site) - 1
    if ((position & (ROWS - 1)) === 0) this.#blocks.push(new Float64Array(ROWS * WIDTH))
    this.find(position)
    return position
  }

  /** Makes a row {@link row} from {@link at} on. */
  find(position: number): void {
    const block = this.#blocks[position >>> BITS]
    if (block !== undefined && block !== this.row) this.row = block
    this.at = (position & (ROWS - 1)) * WIDTH
  }

  /** The place of the name of a node of the tape, for the column TAPE. */
  placeOfTape(name: string): number {
    let place = this.#tapePlaces.get(name)
    if (place === undefined) this.#tapePlaces.set(name, (place = this.#tapeNames.push(name) - 1))
    return place
  }

  /** Begins the list of shapes of the current row. */
  beginShapes(): void {
    this.row[this.at + SHAPES] = this.#shapes.push(0) - 1
  }

  /** Adds a shape to the list of the current row. */
  addShape(sizes: readonly number[]): void {
    const shapes = this.#shapes
    const first = this.row[this.at + SHAPES] ?? 0
    shapes[first] = (shapes[first] ?? 0) + 1
    shapes.push(sizes.length)
    for (let i = 0; i < sizes.length; i++) shapes.push(sizes[i] ?? 0)
  }

  /** The spans as objects. */
  events(): readonly ProfileEvent[] {
    const events = this.#sites.map((site, position) => this.#event(site, position))
    this.#placeOnTape(events)
    this.#moveIntoKernels(events)
    takeOwnTimes(events)
    return events
  }

  #event({ kind, name, engine, instructions, graph, nodes }: Site, position: number): Event {
    this.find(position)
    const { row, at } = this
    const column = (index: number): number => row[at + index] ?? 0
    const [parent, sequence, tape] = [column(PARENT), column(SEQUENCE), column(TAPE)]
    return {
      kind,
      name,
      start: column(START),
      end: column(END),
      self: column(END) - column(START),
      parent: parent < 0 ? null : parent,
      module: null,
      graph,
      nodes,
      engine,
      instructions,
      shapes: this.#shapesAt(column(SHAPES)),
      backward: tape === 0 ? null : (this.#tapeNames[tape] ?? null),
      sequence: sequence < 0 ? null : sequence,
      flops: column(FLOPS),
      bytes: column(BYTES),
      allocations: column(ALLOCATIONS),
      memory: column(MEMORY),
      peak: column(PEAK),
      inUse: column(IN_USE),
    }
  }

  #shapesAt(first: number): readonly (readonly number[])[] {
    if (first === 0) return NONE
    let next = first + 1
    return Array.from({ length: this.#shapes[first] ?? 0 }, () => {
      const from = next + 1
      next = from + (this.#shapes[next] ?? 0)
      return this.#shapes.slice(from, next)
    })
  }

  /** Finds the modules of spans: in a backward, the one whose forward made the node of the tape. An operator within another one makes no node of its own. */
  #placeOnTape(events: readonly Event[]): void {
    const makers = new Map<number, string | null>()
    /** Whether a span, or one around it, has a number on the tape. */
    const isOnTape: boolean[] = []
    for (const [position, event] of events.entries()) {
      const { kind, name, parent, backward } = event
      const caller = parent === null ? null : (events[parent]?.module ?? null)
      const isInside = parent !== null && isOnTape[parent] === true
      event.module = kind === 'module' ? name : caller
      if (kind === 'node') event.graph = event.module
      if (kind === 'kernel') event.sequence = null
      else if (backward !== null) {
        if (kind !== 'module' && caller === null && event.sequence !== null) event.module = makers.get(event.sequence) ?? null
      } else if (isInside) event.sequence = null
      else if (event.sequence !== null) makers.set(event.sequence, caller)
      isOnTape[position] = isInside || event.sequence !== null
    }
  }

  /** An eager kernel of a compiled function comes after the operators that ran in it. */
  #moveIntoKernels(events: readonly Event[]): void {
    for (const [position, { kind, engine, parent, start }] of events.entries()) {
      if (kind !== 'kernel' || engine !== 'eager') continue
      for (let i = position - 1; i >= 0 && i !== parent; i--) {
        const event = events[i]
        if (event === undefined || event.start < start) break
        if (event.parent === parent) event.parent = position
      }
    }
  }
}

type Event = { -readonly [K in keyof ProfileEvent]: ProfileEvent[K] }

/** Operators and kernels run within each other; modules only within modules, and nodes within nodes. */
const isComputing = (kind: ProfileKind): boolean => kind === 'operator' || kind === 'kernel'

/** Takes the time of each span from that of the one of its kind around it. */
function takeOwnTimes(events: readonly Event[]): void {
  for (const { kind, parent, start, end } of events)
    for (let at = parent; at !== null;) {
      const around: Event | undefined = events[at]
      if (around === undefined) break
      if (around.kind === kind || (isComputing(kind) && isComputing(around.kind))) {
        around.self -= end - start
        break
      }
      at = around.parent
    }
}

// The spans of a profile while it is taken, as rows of numbers: objects would outlive many collections, each of which copies them, and that took longer than some operators.
// `events` makes the objects when the profile is over, and works out what follows from the order of the spans: modules, own times, numbers on the tape.
import { InternalError } from '../../errors/index.ts'
import type { EngineName } from '../../kernels/index.ts'
import type { ProfileEngine, ProfileEvent, ProfileKind } from './event.ts'
import type { Signature } from './signatures.ts'

/** What all spans of an operator, a module, a node or a kernel have in common. */
export interface SiteFacts {
  readonly kind: ProfileKind
  readonly name: string
  readonly engine: ProfileEngine | null
  readonly instructions: EngineName | null
  /** Of a kernel: the compiled graph and its nodes that it computes. */
  readonly graph: string | null
  readonly nodes: readonly string[]
  /** What each run of a kernel costs; 0 for others. */
  readonly flops: number
  readonly bytes: number
}

/** The same, and its place among those of a table. */
export interface Site extends SiteFacts {
  readonly place: number
}

/** The columns of a row. Until its span ends, a row has the peak from before, and the allocations and the memory at its start. */
export const [START, END, SITE, PARENT, SEQUENCE, TAPE, SIGNATURE, ALLOCATIONS, MEMORY, PEAK, IN_USE] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10]
const WIDTH = 11
/** A block has 2 ** BITS rows: a table grows by blocks, so that no row is copied. */
const BITS = 10
const ROWS = 1 << BITS

/** No more blocks than these are made in advance: 45 MB. */
const MOST_RESERVED = 500

const newBlock = (): Float64Array<ArrayBuffer> => new Float64Array(ROWS * WIDTH)

const NONE: readonly never[] = []

/** Rows by their positions. */
export class Spans {
  readonly #sites: Site[] = []
  #length = 0
  readonly #blocks: Float64Array<ArrayBuffer>[] = []
  readonly #signatures: readonly Signature[]
  /** Names of nodes of the tape. Place 0 stands for none. */
  readonly #tapeNames: string[] = ['']
  readonly #tapePlaces = new Map<string, number>()
  /** The block and the place in it of the row that was added or looked up last. */
  row = new Float64Array(WIDTH)
  at = 0

  /** The column SIGNATURE has the position in `signatures`, counted from 1; 0 stands for none. */
  constructor(signatures: readonly Signature[]) {
    this.#signatures = signatures
  }

  /** Adds a site. */
  siteOf<T extends SiteFacts>(facts: T): T & Site {
    const site = { ...facts, place: this.#sites.length }
    this.#sites.push(site)
    return site
  }

  /** Removes all rows, and makes room for `times` as many: memory that is written for the first time costs more than the row. */
  clear(times: number): void {
    const blocks = Math.ceil((this.#length * times) / ROWS)
    for (const block of this.#blocks) block.fill(0)
    while (this.#blocks.length < Math.min(blocks, MOST_RESERVED)) this.#blocks.push(newBlock().fill(0))
    this.#length = 0
  }

  /** Adds a row, which is {@link row} from {@link at} on. Returns its position. */
  add(site: Site): number {
    const position = this.#length++
    if (position >>> BITS === this.#blocks.length) this.#blocks.push(newBlock())
    this.find(position)
    this.row[this.at + SITE] = site.place
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

  /** The spans as objects. */
  events(): readonly ProfileEvent[] {
    const events = Array.from({ length: this.#length }, (_, position) => this.#event(position))
    this.#placeOnTape(events)
    this.#moveIntoKernels(events)
    takeOwnTimes(events)
    return events
  }

  #event(position: number): Event {
    this.find(position)
    const { row, at } = this
    const column = (index: number): number => row[at + index] ?? 0
    const site = this.#sites[column(SITE)]
    if (site === undefined) throw new InternalError(`the span at ${position} has no site`)
    const { kind, name, engine, instructions, graph, nodes, flops, bytes } = site
    const signature = this.#signatures[column(SIGNATURE) - 1]
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
      shapes: signature?.shapes ?? NONE,
      backward: tape === 0 ? null : (this.#tapeNames[tape] ?? null),
      sequence: sequence < 0 ? null : sequence,
      flops: signature?.flops ?? flops,
      bytes: signature?.bytes ?? bytes,
      allocations: column(ALLOCATIONS),
      memory: column(MEMORY),
      peak: column(PEAK),
      inUse: column(IN_USE),
    }
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

// Capture by rank: one recorded path for calls whose tensors have other sizes. The program computes its own sizes, as plain numbers, and runs at every call, so nothing about it needs a guard. A
// position (a dimension of a tensor from outside, or an integer argument that the schema writes SymInt) is a constant of the path until it has a second value, and a size of the path from
// then on: the walk notes its present value, and what is recorded of the results gives way to what `meta` says of the present arguments. 0, 1 and more are three kinds, since broadcasting,
// emptiness and contiguity depend on them: a size is at least 2, and 0 and 1 stay constants.
//
// The compiled kernels of a path with sizes are for any of them where operators can be fused so (see fusedSteps.ts). All else runs on eager kernels (for sizes that came before from a row of launches, see sizedPlans.ts), or on a backend that takes
// any sizes, and a list of sizes that comes often gets a graph of its own, compiled for these numbers.
import type { OpDef } from '../../dispatch/index.ts'
import { contiguousStrides, sameShape } from '../../tensor/index.ts'
import type { Tensor } from '../../tensor/index.ts'
import { anySize, markOf } from './marks.ts'
import type { SizeRange } from './marks.ts'

/** When a position becomes a size: with its second value, or at once. */
export type SizeRule = 'second' | 'all'

/** Whether a number can be a size of a path. */
export const isSize = (value: unknown): value is number => typeof value === 'number' && value >= anySize.min && Number.isSafeInteger(value)

/** Which dimensions of a tensor from outside are sizes of the path. */
export interface SizedLayout {
  /** By dimension: the values that its size may have; null: it is a constant. */
  readonly dims: readonly (SizeRange | null)[]
  /** Whether the elements are not in row-major order without gaps: then all strides are sizes, too. */
  readonly isStrided: boolean
}

const isStrided = (tensor: Tensor): boolean => !tensor.contiguousLayout || !sameShape(tensor.steps, contiguousStrides(tensor.sizes))

/** Whether a tensor has the recorded sizes, but for those of the path. */
export function agreesInSizes({ dims, isStrided: strided }: SizedLayout, tensor: Tensor, recorded: readonly number[]): boolean {
  const { sizes } = tensor
  if (sizes.length !== recorded.length || isStrided(tensor) !== strided) return false
  for (let dim = 0; dim < sizes.length; dim++) {
    const range = dims[dim] ?? null
    if (range === null ? sizes[dim] !== recorded[dim] : !isInside(sizes[dim], range)) return false
  }
  return true
}

const isInside = (size = NaN, { min, max }: SizeRange): boolean => size >= min && size <= max

/** What is known of the results of a step for one list of sizes. */
export interface SizedResults {
  /** Fake tensors like the results. */
  readonly results: readonly Tensor[]
  /** The offset of the first argument. */
  readonly offset: number
  /** Whether they are as they were recorded. */
  readonly isAsRecorded: boolean
  /** The in-place operator as which it was called with these sizes, and its result fits. */
  fits: OpDef | null
}

/** The most lists of sizes, with the beginnings of longer ones, that are remembered of the segments that begin at one point; then all are forgotten. A decoder of 4 layers takes 70 for each length. */
const MOST_SIZES = 2 ** 16

/** The sizes that a walk has noted so far, in their order. Equal lists of one segment are the same object, which keeps what follows from them. */
export class Sizes {
  /** How many lists begin at the same start. */
  readonly #count: { lists: number }
  /** By step. */
  #known: Map<object, SizedResults> | null = null
  /** The size of the first longer list, and that list; most lists go on in one way. */
  #size = -1
  #next: Sizes | null = null
  #others: Map<number, Sizes> | null = null

  private constructor(count: { lists: number }) {
    this.#count = count
  }

  /** The empty list. */
  static none(): Sizes {
    return new Sizes({ lists: 1 })
  }

  get isFull(): boolean {
    return this.#count.lists >= MOST_SIZES
  }

  /** The list with one more size. */
  with(size: number): Sizes {
    if (this.#next !== null && this.#size === size) return this.#next
    const known = this.#others?.get(size)
    if (known !== undefined) return known
    const longer = new Sizes(this.#count)
    this.#count.lists++
    if (this.#next === null) [this.#size, this.#next] = [size, longer]
    else (this.#others ??= new Map()).set(size, longer)
    return longer
  }

  /** What is known of the results of a step after which these are all sizes that were noted. */
  knownAt(step: object): SizedResults | undefined {
    return this.#known?.get(step)
  }

  note(step: object, results: SizedResults): void {
    ;(this.#known ??= new Map()).set(step, results)
  }

  /** The list with the sizes of a tensor. */
  ofTensor({ dims, isStrided: strided }: SizedLayout, tensor: Tensor): Sizes {
    const { sizes, steps } = tensor
    let list: Sizes = this
    for (let dim = 0; dim < sizes.length; dim++) {
      if (dims[dim] !== null) list = list.with(sizes[dim] ?? 0)
      if (strided) list = list.with(steps[dim] ?? 0)
    }
    return list
  }
}

/** What decides which positions of newly recorded paths are sizes. It belongs to a trace tree. */
export class SizePolicy {
  readonly rule: SizeRule
  /** Tensors from outside as they were recorded last, by name, and which of their dimensions had a second value. */
  readonly #met = new Map<string, { readonly sizes: readonly number[]; readonly dims: readonly boolean[] }>()

  constructor(rule: SizeRule) {
    this.rule = rule
  }

  /** Which positions of a tensor are sizes; null if none is. `like`: the tensor at this place of an earlier path; `name`: a name by which the tensor is known. */
  layoutOf(
    tensor: Tensor,
    like: { readonly sizes: SizedLayout | null; readonly shape: readonly number[]; readonly strides: readonly number[] } | null,
    name: string | null,
  ): SizedLayout | null {
    const { sizes } = tensor
    const known = name === null ? undefined : this.#met.get(name)
    const had = [known, like === null ? undefined : { sizes: like.shape, dims: like.sizes?.dims.map((range) => range !== null) ?? [] }].filter(
      (met) => met?.sizes.length === sizes.length,
    )
    const mark = markOf(tensor)
    const changed = sizes.map((size, dim) => had.some((met) => met?.dims[dim] === true || met?.sizes[dim] !== size))
    if (name !== null) this.#met.set(name, { sizes, dims: changed })
    // Parameters keep their shapes: PyTorch's force_parameter_static_shapes.
    const isAll = this.rule === 'all' && !tensor.isParameter
    const dims = sizes.map((size, dim) => {
      const said = mark?.get(dim)
      if (said === 'static' || !isSize(size)) return null
      return said ?? (changed[dim] === true || isAll ? anySize : null)
    })
    const strided = isStrided(tensor)
    const hasOtherStrides =
      strided && like !== null && sameShape(like.shape, sizes) && (like.sizes?.isStrided === true || !sameShape(like.strides, tensor.steps))
    return dims.some((range) => range !== null) || hasOtherStrides ? { dims, isStrided: strided } : null
  }

  /** What follows from another shape than the recorded one, as the end of a sentence. */
  tensorText({ shape }: { readonly shape: readonly number[] }, tensor: Tensor): string {
    const { sizes } = tensor
    const changed = sizes.length === shape.length ? [...sizes.keys()].filter((dim) => sizes[dim] !== shape[dim]) : []
    if (changed.length === 0) return ''
    const dims = changed.filter((dim) => isSize(sizes[dim]) && markOf(tensor)?.get(dim) !== 'static')
    if (dims.length > 1) return `: sizes ${dims.join(', ')} are inputs of the graph from now on (markStatic keeps them constants)`
    if (dims.length === 1) return `: size ${dims[0]} is an input of the graph from now on (markStatic keeps it a constant)`
    return changed.some((dim) => isSize(sizes[dim])) ? ', and markStatic keeps it a constant' : ': 0 and 1 are constants of a graph'
  }
}

/** A list of sizes is often seen when it has come this many times at the end of a segment. */
export const OFTEN = 50

/** The graphs of a list of sizes, and when they were used last. */
interface OwnGraphs<Graph> {
  readonly graphs: Graph[]
  last: number
}

/** At the end of a segment: which lists of sizes come often, and the graphs that were compiled for them. Once as many lists as allowed have graphs, another list gets its own only in the place of one that has gone out of use. */
export class OftenSeen<Graph> {
  readonly #calls = new Map<Sizes, number>()
  readonly #graphs = new Map<Sizes, OwnGraphs<Graph>>()
  #now = 0

  /** Notes a call. Returns the graphs for its sizes; null if these do not come often. `most`: how many lists may have graphs of their own; `elsewhere`: how many calls with these sizes did not come here. */
  graphsFor(sizes: Sizes, most: number, elsewhere: number): Graph[] | null {
    this.#now++
    const known = this.#graphs.get(sizes)
    if (known !== undefined) {
      this.#graphs.delete(sizes)
      this.#graphs.set(sizes, known)
      known.last = this.#now
      return known.graphs
    }
    const calls = (this.#calls.get(sizes) ?? 0) + 1
    this.#calls.set(sizes, calls)
    if (this.#calls.size > MOST_SIZES) this.#calls.clear()
    if (calls + elsewhere < OFTEN || most === 0) return null
    if (this.#graphs.size >= most && !this.#hasDroppedOne(most)) return null
    const graphs: Graph[] = []
    this.#calls.delete(sizes)
    this.#graphs.set(sizes, { graphs, last: this.#now })
    return graphs
  }

  /** Drops the graphs that were used least recently, if enough calls have passed since for every list with graphs to come often. */
  #hasDroppedOne(most: number): boolean {
    const [oldest] = this.#graphs
    if (oldest === undefined || this.#now - oldest[1].last < OFTEN * (most + 1)) return false
    return this.#graphs.delete(oldest[0])
  }
}

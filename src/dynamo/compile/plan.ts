// What is needed of a segment that ends: which values its graph returns, which of them are written back, and from which a backward may start.
import { GradNode, isNode, producerOf } from '../../autograd/index.ts'
import type { Edge } from '../../autograd/index.ts'
import { Tensor } from '../../tensor/index.ts'
import type { Storage } from '../../tensor/index.ts'
import type { BreakReason } from '../reports/breaks.ts'
import type { Segment } from '../segment/segment.ts'
import { savedSlots } from '../segment/saved.ts'
import { tapeOf } from '../segment/tape.ts'

/** What the program needs where a segment ends. */
export interface Demand {
  /** Tensors whose data is needed; those of other segments are ignored. */
  readonly needed: readonly Tensor[]
  /** Storages whose data is needed. */
  readonly storages?: readonly Storage[]
  /** Needed tensors that require grad get a compiled backward. */
  readonly gradients: boolean
  /** The tape is kept (it continues after this segment, or has hooks): every value that it saved is computed. */
  readonly keepTape: boolean
  /** Every value is computed: the program goes on outside of capture. */
  readonly everything?: boolean | undefined
  /** Leaves whose gradients may have been computed. */
  readonly leaves: Iterable<Tensor>
  /** The graph break that ends the segment; null at the end of the call. */
  readonly reason: BreakReason | null
}

/** What is compiled and run. */
export interface Plan {
  /** The slots that the graph returns; written ones come first. */
  readonly outputs: readonly number[]
  /** From output position to the slot of the input that it overwrites. */
  readonly writeBacks: ReadonlyMap<number, number>
  /** The slots from which a backward outside of the function may start. */
  readonly heads: readonly number[]
  /** The tape behind the heads, see {@link tapeOf}. */
  tape: readonly unknown[]
  /** Views of heads, which get a history that leads to the compiled backward. */
  readonly headViews: readonly Tensor[]
}

/** `keepsTape`: heads get the tape itself instead of a compiled backward. */
export function planOf(segment: Segment, demand: Demand, keepsTape: boolean): Plan {
  const plan = collect(segment, demand, demand.gradients && !demand.keepTape)
  if (plan.heads.length === 0) return plan
  if (keepsTape) return collect(segment, demand, false)
  const tape = tapeOf(
    segment,
    plan.heads.map((slot) => segment.lazyAt(slot)),
  )
  if (tape === null) return collect(segment, demand, false)
  plan.tape = tape
  return plan
}

// For each slot the latest collection that wanted it: a set that need not be made anew at every call.
let wantedIn = new Float64Array(64)
let epoch = 0

function grow(slot: number): void {
  const larger = new Float64Array(2 * slot)
  larger.set(wantedIn)
  wantedIn = larger
}

/** Lists a slot, once in a collection. */
function want(outputs: number[], slot: number): void {
  if (wantedIn[slot] === epoch) return
  if (slot >= wantedIn.length) grow(slot)
  wantedIn[slot] = epoch
  outputs.push(slot)
}

/** Lists the slot of the value that a storage of the segment waits for. */
function wantStorage(segment: Segment, outputs: number[], storage: Storage | null | undefined): void {
  if (storage?.writer === segment) want(outputs, storage.captureSlot)
}

/** Lists a slot, unless the value is there. */
const wantSlot = (segment: Segment, outputs: number[], slot: number): void => wantStorage(segment, outputs, segment.lazies[slot]?.storage)

function collect(segment: Segment, demand: Demand, compilesBackward: boolean): Plan {
  const { cursor, lazies, writes } = segment
  /** The slots that the segment is to return, each once. */
  const outputs: number[] = []
  epoch++
  let writeBacks = NO_WRITES
  let writesHistory = false
  if (writes.size > 0) {
    writeBacks = new Map()
    for (const { tensor, slot, input } of writes.values()) {
      writeBacks.set(outputs.length, input)
      want(outputs, slot)
      // The backward to compile would start at the old value of an input, whose place on the tape the new one has taken.
      writesHistory ||= tensor.requiresGrad && tensor.gradFn !== null
    }
  }
  const heads: number[] = []
  const withGradients = compilesBackward && !writesHistory
  for (const tensor of demand.needed) {
    wantStorage(segment, outputs, tensor.storage)
    if (!withGradients || !startsBackward(segment, tensor)) continue
    const { storage } = tensor
    if (storage === null || !storage.isDeferred) continue
    // A view is taken of its base anew, so that its history leads to that of the base.
    const base = segment.lazyAt(storage.captureSlot)
    if (base !== tensor && !(startsBackward(segment, base) && isTakenOf(tensor, base))) return collect(segment, demand, false)
    if (!heads.includes(storage.captureSlot)) heads.push(storage.captureSlot)
  }
  const headViews = heads.length === 0 ? NO_VIEWS : viewsOf(segment, heads)
  if (headViews === null) return collect(segment, demand, false)
  for (const storage of demand.storages ?? []) wantStorage(segment, outputs, storage)
  for (const slot of cursor.kept(writes.size > 0)) wantSlot(segment, outputs, slot)
  for (const [slot] of segment.writeLog) wantSlot(segment, outputs, slot)
  for (const slot of cursor.learned) wantSlot(segment, outputs, slot)
  for (const leaf of demand.leaves) wantStorage(segment, outputs, leaf.grad?.storage)
  if (demand.everything === true) for (const lazy of lazies) wantStorage(segment, outputs, lazy?.storage)
  if (demand.keepTape || (demand.gradients && !withGradients)) wantTape(segment, outputs)
  return { outputs, writeBacks, heads, tape: NO_TAPE, headViews }
}

const NO_WRITES = new Map<number, number>()
const NO_TAPE: readonly unknown[] = []
const NO_VIEWS: readonly Tensor[] = []

/** The views of heads from which a backward may start; null if one has a history of its own. */
function viewsOf(segment: Segment, heads: readonly number[]): readonly Tensor[] | null {
  const views: Tensor[] = []
  for (const slot of segment.views.keys()) {
    const view = segment.lazyAt(slot)
    if (!view.requiresGrad || view.storage === null || !heads.includes(view.storage.captureSlot) || !startsBackward(segment, view)) continue
    if (!isTakenOf(view, segment.lazyAt(view.storage.captureSlot))) return null
    views.push(view)
  }
  return views
}

/** Whether view operators lead from a tensor to its view. A custom Function that returns its argument gives its result, which shares the memory, another history. */
function isTakenOf(view: Tensor, base: Tensor): boolean {
  const root = producerOf(base)
  let node: Edge = producerOf(view)
  while (isNode(node) && node !== root && node.isView) node = node.targets[0] ?? null
  return node === root
}

function startsBackward(segment: Segment, tensor: Tensor): boolean {
  const node = tensor.gradFn
  return segment.slotOf(tensor) >= 0 && tensor.requiresGrad && node !== null && !(node instanceof GradNode && node.released)
}

/** What the nodes of the tape have saved: the values that the derivatives of the recorded calls read. */
function wantTape(segment: Segment, outputs: number[]): void {
  for (const step of segment.cursor.path()) if (step.recording) for (const slot of savedSlots(segment, step)) wantSlot(segment, outputs, slot)
}

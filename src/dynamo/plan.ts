// What is needed of a segment that ends: which values its graph returns, which of them are written back, and from which a backward may start.
import { GradNode } from '../autograd/index.ts'
import { Tensor } from '../tensor/index.ts'
import type { Storage } from '../tensor/index.ts'
import type { Segment } from './segment.ts'
import { savedSlots } from './saved.ts'
import { tapeOf } from './tape.ts'

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
  readonly everything?: boolean
  /** Leaves whose gradients may have been computed. */
  readonly leaves: Iterable<Tensor>
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
  readonly tape: readonly unknown[]
  /** Views of heads, which get a history that leads to the compiled backward. */
  readonly headViews: readonly Tensor[]
}

export function planOf(segment: Segment, demand: Demand, keepsTape: boolean): Plan {
  const plan = collect(segment, demand, demand.gradients && !demand.keepTape && !keepsTape)
  if (plan.heads.length === 0) return plan
  const tape = tapeOf(
    segment,
    plan.heads.map((slot) => segment.lazyAt(slot)),
  )
  return tape === null ? collect(segment, demand, false) : { ...plan, tape }
}

function collect(segment: Segment, demand: Demand, compilesBackward: boolean): Plan {
  const { cursor, lazies, writes } = segment
  const writeBacks = new Map<number, number>()
  const outputs: number[] = []
  const known = new Set<number>()
  let writesHistory = false
  for (const { tensor, slot, input } of writes.values()) {
    writeBacks.set(outputs.length, input)
    outputs.push(slot)
    known.add(slot)
    // The backward to compile would start at the old value of an input, whose place on the tape the new one has taken.
    writesHistory ||= tensor.requiresGrad && tensor.gradFn !== null
  }
  const wantStorage = (storage: Storage | null | undefined): void => {
    if (storage?.writer !== segment || known.has(storage.captureSlot)) return
    known.add(storage.captureSlot)
    outputs.push(storage.captureSlot)
  }
  const wantSlot = (slot: number): void => wantStorage(lazies[slot]?.storage)
  const heads = new Set<number>()
  const withGradients = compilesBackward && !writesHistory
  for (const tensor of demand.needed) {
    wantStorage(tensor.storage)
    if (!withGradients || !startsBackward(segment, tensor)) continue
    const { storage } = tensor
    if (storage === null || !storage.isDeferred) continue
    // A view is taken of its base anew, so that its history leads to that of the base.
    const base = segment.lazyAt(storage.captureSlot)
    if (base !== tensor && !startsBackward(segment, base)) return collect(segment, demand, false)
    heads.add(storage.captureSlot)
  }
  const headViews: Tensor[] = []
  if (heads.size > 0) {
    for (const slot of segment.views.keys()) {
      const view = segment.lazyAt(slot)
      if (view.requiresGrad && view.storage !== null && heads.has(view.storage.captureSlot) && startsBackward(segment, view)) headViews.push(view)
    }
  }
  for (const storage of demand.storages ?? []) wantStorage(storage)
  for (const slot of cursor.kept(writes.size > 0)) wantSlot(slot)
  for (const [slot] of segment.writeLog) wantSlot(slot)
  for (const slot of cursor.learned) wantSlot(slot)
  for (const leaf of demand.leaves) wantStorage(leaf.grad?.storage)
  if (demand.everything === true) for (const lazy of lazies) wantStorage(lazy?.storage)
  if (demand.keepTape || (demand.gradients && !withGradients)) wantTape(segment, wantSlot)
  return { outputs, writeBacks, heads: [...heads], tape: [], headViews }
}

function startsBackward(segment: Segment, tensor: Tensor): boolean {
  const node = tensor.gradFn
  return segment.slotOf(tensor) >= 0 && tensor.requiresGrad && node !== null && !(node instanceof GradNode && node.released)
}

/** What the nodes of the tape have saved: the values that the derivatives of the recorded calls read. */
function wantTape(segment: Segment, want: (slot: number) => void): void {
  for (const step of segment.cursor.path()) if (step.recording) for (const slot of savedSlots(segment, step)) want(slot)
}

// The end of a segment, from top to bottom: what is needed of it, the compiled code for that (compiled now if the tree has none), running it, and the data that tensors get.
import { noGrad } from '../../autograd/index.ts'
import { withoutModes } from '../../dispatch/index.ts'
import { ShapeError } from '../../errors/index.ts'
import { beyondLimit } from '../../kernels/index.ts'
import { copyInto } from '../../ops/eager/copy.ts'
import { Tensor, asTensor, formatShape, sameShape } from '../../tensor/index.ts'
import type { Storage } from '../../tensor/index.ts'
import { compileSegment } from '../compile/compileSegment.ts'
import type { SegmentContext } from '../compile/compileSegment.ts'
import { differenceInWalk } from '../compile/segmentJoint.ts'
import { config } from '../../config.ts'
import { announce } from '../../events/index.ts'
import type { EndedSegment } from './endedSegment.ts'
import { runSteps } from '../run/evaluate.ts'
import { announceFailure } from '../reports/failures.ts'
import { planOf } from '../compile/plan.ts'
import type { Demand, Plan } from '../compile/plan.ts'
import type { Reports } from '../reports/reports.ts'
import type { Segment } from '../segment/segment.ts'
import { numbersFor } from '../tree/traceTree.ts'
import type { CompiledSegment, Step } from '../tree/traceTree.ts'
import { adopt, attachHistory, attachViewHistory, takeResults } from './adoptResults.ts'
import type { OldData } from './adoptResults.ts'

/**
 * Computes what is needed of the segment: `demand`, writes, and what earlier calls turned out to need. `earlier`: the segments of this call before it. Returns false if that took no compiled
 * code, but each operator, because no more graphs may be compiled.
 */
export function endSegment(ended: EndedSegment, demand: Demand, earlier: readonly EndedSegment[], context: SegmentContext): boolean {
  const { segment } = ended
  try {
    const found = compiledFor(ended, demand, earlier, context)
    if (found === null) {
      computeAll(ended)
      return false
    }
    const { plan, compiled } = found
    ended.compiled = compiled
    release(segment)
    if (ended.learns) for (const [storage, { before }] of segment.writes) ended.keepInputs(storage, before)
    ended.isOver = true
    announceWrites(segment)
    if (compiled !== null) run(segment, compiled, plan, earlier, context.choice.label)
    return true
  } catch (error) {
    if (ended.isOver) announceFailure('run', error, context.choice.label)
    // Writes of before the failure take effect, as in eager mode.
    release(segment)
    computeAll(ended)
    throw error
  }
}

/** From here on the memory that the segment writes to may be looked at: it has the old data until the writes are performed. */
function release(segment: Segment): void {
  for (const storage of segment.writes.keys()) if (storage.writer === segment) storage.writer = null
}

/** Tells those who keep the old data of what the segment writes to. */
function announceWrites(segment: Segment): void {
  if (segment.writes.size > 0) withoutModes(() => segment.writes.forEach(({ before }, storage) => storage.announceWrite(before)))
}

/** What to run, compiled now if need be; null if no more graphs may be compiled. */
function compiledFor(
  ended: EndedSegment,
  demand: Demand,
  earlier: readonly EndedSegment[],
  context: SegmentContext,
): { readonly plan: Plan; readonly compiled: CompiledSegment | null } | null {
  const { end, segment } = ended
  const { sizes } = segment
  // With sizes, a graph is for any of them, unless these come often.
  let own = sizes === null || context.choice.takesSizes ? null : end.often.graphsFor(sizes, config.recompileLimit, context.programCalls)
  for (;;) {
    const takesSizes = sizes !== null && own === null
    const plan = planOf(segment, demand, takesSizes ? end.keepsSizedTape : end.keepsTape)
    if (plan.outputs.length === 0) return { plan, compiled: null }
    const ends = own ?? end.ends
    const known = findCompiled(ends, plan, segment)
    if (known !== undefined && isRight(known, plan, segment)) {
      known.cost.repay()
      return { plan, compiled: known }
    }
    const others = ends.filter(({ sizesFor }) => sizesFor !== null).length
    if (known !== undefined || (takesSizes && plan.heads.length > 0 && others > config.recompileLimit)) {
      end.keepsSizedTape = true
      continue
    }
    if (!context.budget.mayCompile) {
      if (own === null) return null
      own = null
      continue
    }
    ended.fresh = true
    const request = { segment, ...plan, takesSizes, mayWriteInPlace: mayWriteInPlace(segment, earlier), reason: demand.reason }
    // A backend, and the debugger around it, may look at the example inputs. They see the old data; reading must not perform the writes.
    release(segment)
    if (takesSizes) tellRefusals(ends, plan, segment, context.reports)
    const done = compileSegment(request, context)
    if (done !== null) {
      ends.push(done)
      return { plan, compiled: done }
    }
    // There is no joint graph: the tape itself is kept.
    if (takesSizes) end.keepsSizedTape = true
    else end.keepsTape = true
  }
}

const findCompiled = (ends: readonly CompiledSegment[], plan: Plan, segment: Segment): CompiledSegment | undefined =>
  ends.find((c) => isForPlan(c, plan) && numbersFor(c, segment) !== null)

const isForPlan = (c: CompiledSegment, plan: Plan): boolean =>
  sameShape(c.outputSlots, plan.outputs) && sameShape(c.heads, plan.heads) && sameList(c.tape, plan.tape)

/** Tells what compiled backwards ask of sizes that does not hold in this walk, which gets one of its own. */
function tellRefusals(ends: readonly CompiledSegment[], plan: Plan, segment: Segment, reports: Reports): void {
  for (const { sizesFor } of ends.filter((c) => isForPlan(c, plan))) {
    const refused = sizesFor?.(segment)
    if (typeof refused !== 'string') continue
    const text = `the compiled backward relies on ${refused}, which does not hold for the sizes of this call`
    reports.missed('step', { expected: refused, actual: 'other sizes', text }, true)
  }
}

/** Whether what a joint graph with sizes has derived is what the tape of this walk says, if sizes are verified. */
function isRight(known: CompiledSegment, plan: Plan, segment: Segment): boolean {
  if (known.sizesFor === null || !config.verifySizes) return true
  const difference = withoutModes(() => differenceInWalk(known, { segment, ...plan, mayWriteInPlace: false }))
  if (difference === null) return true
  announce({ kind: 'limit', what: 'verifySizes' }, () => ({
    kind: 'limit',
    what: 'verifySizes',
    name: known.gm.className,
    reason: `the backward for any sizes is not that for those of a call: ${difference}`,
  }))
  return false
}

const sameList = (a: readonly unknown[], b: readonly unknown[]): boolean => a.length === b.length && a.every((value, i) => Object.is(value, b[i]))

/** Whether the compiled code may overwrite its inputs while it runs: not if it may fail in between, and not if earlier values need them as they are. */
function mayWriteInPlace(segment: Segment, earlier: readonly EndedSegment[]): boolean {
  if (segment.cursor.path().some((step) => mayFail(segment, step))) return false
  return ![...segment.writes].some(([storage, { before }]) => earlier.some((e) => e.needs(storage, before)))
}

/** Whether an operator may reject its data while the compiled code runs: it is a program's own, rejects some data, or has indices that were not known when it was called. */
function mayFail(segment: Segment, { operator, args }: Step): boolean {
  const { indices, schema, tags } = operator
  if (tags.has('custom') || tags.has('rejectsData')) return true
  if (indices === null) return false
  const arg = args[schema.args.findIndex(({ name }) => name === indices.argument)]
  const storage = arg?.kind === 'slot' ? (segment.lazies[arg.slot]?.storage ?? null) : null
  // On a device nothing stops in between: what is wrong is thrown by reads of the results.
  return storage !== null && storage.device === 'cpu' && (storage.writer === segment || segment.writes.has(storage))
}

/** What a segment overwrites, from which values of earlier segments may still be computed. */
class DataOfEarlier implements OldData {
  readonly #segment: Segment
  readonly #earlier: readonly EndedSegment[]

  constructor(segment: Segment, earlier: readonly EndedSegment[]) {
    this.#segment = segment
    this.#earlier = earlier
  }

  isNeeded(storage: Storage): boolean {
    return this.#needing(storage).length > 0
  }

  keep(storage: Storage, old: Storage): void {
    for (const ended of this.#needing(storage)) ended.keepOld(storage, this.#before(storage) ?? 0, old)
  }

  /** Copies it before the compiled code overwrites it. */
  copy(storage: Storage): void {
    for (const ended of this.#needing(storage)) ended.keepInputs(storage, this.#before(storage))
  }

  #before(storage: Storage): number | undefined {
    return this.#segment.writes.get(storage)?.before
  }

  #needing(storage: Storage): readonly EndedSegment[] {
    const before = this.#before(storage)
    return before === undefined ? [] : this.#earlier.filter((ended) => ended.needs(storage, before))
  }
}

function run(segment: Segment, compiled: CompiledSegment, plan: Plan, earlier: readonly EndedSegment[], label: string): void {
  withoutModes(() => {
    const inputs = new Array<unknown>(compiled.inputSlots.length)
    for (let i = 0; i < inputs.length; i++) inputs[i] = segment.bound[compiled.inputSlots[i] ?? -1]
    const written = writtenBy(segment, earlier)
    for (const i of compiled.mayOverwrite) written?.copy(i)
    if (compiled.sizesFor !== null) inputs.push(...(numbersFor(compiled, segment) ?? []))
    const values = noGrad(() => compiled.run(...inputs))
    // From here on inputs may have been overwritten, so that the segment cannot run again.
    const results = beyondLimit(() => {
      const taken = takeResults(compiled, values, inputs, written?.targets ?? NO_TARGETS, written?.oldData ?? null)
      for (let i = 0; i < taken.length; i++) {
        const value = taken[i]
        if (!(value instanceof Tensor)) continue
        const lazy = segment.lazyAt(compiled.outputSlots[i] ?? -1)
        if (segment.sizes !== null && !sameShape(value.sizes, lazy.sizes)) throw wrongShape(label, value, lazy)
        adopt(lazy, value)
      }
      return taken
    })
    if (compiled.heads.length > 0)
      attachHistory(segment, compiled, results, () => {
        if (compiled.sizesFor !== null) segment.cursor.keepsSizedTape = true
        else segment.cursor.keepsTape = true
      })
  })
  for (const view of plan.headViews) attachViewHistory(segment, view)
}

const NO_TARGETS: readonly Tensor[] = []

/** What a segment writes to: the tensors, the old data, and what copies that of a write. Null if there are no writes. */
function writtenBy(
  segment: Segment,
  earlier: readonly EndedSegment[],
): { readonly targets: readonly Tensor[]; readonly oldData: OldData; readonly copy: (write: number) => void } | null {
  if (segment.writes.size === 0) return null
  const writes = [...segment.writes]
  const oldData = new DataOfEarlier(segment, earlier)
  return {
    targets: writes.map(([, { tensor }]) => tensor),
    oldData,
    copy: (write) => {
      const [storage] = writes[write] ?? []
      if (storage !== undefined) oldData.copy(storage)
    },
  }
}

const wrongShape = (label: string, { sizes }: Tensor, expected: Tensor): ShapeError =>
  new ShapeError(
    `compile: the backend '${label}' returned a tensor of shape ${formatShape(sizes)} where the program has one of shape ${formatShape(expected.sizes)}. ` +
      'If its code is for the shapes of its example inputs only, say so: set staticShapes to true on the function, or register it with { staticShapes: true }.',
  )

/**
 * Runs everything that the segment recorded on eager kernels, operator by operator, so that the program can continue without compile. An operator that fails throws its error, which
 * shows the line where the program called it; the writes before it have been performed then.
 */
export function computeAll(ended: EndedSegment): void {
  const { segment, end } = ended
  release(segment)
  ended.isOver = true
  const written = new Map(segment.writeLog)
  announceWrites(segment)
  withoutModes(() =>
    runSteps(
      end.path(),
      (slot) => segment.bound[slot],
      (slot, value) => {
        const target = written.get(slot)
        if (target?.storage?.isDeferred === false && segment.writes.has(target.storage)) copyInto(value, target)
        const lazy = segment.lazies[slot]
        if (lazy === undefined || segment.views.has(slot)) return
        const { storage } = lazy
        if (storage?.isDeferred === true && storage.captureSlot === slot) adopt(lazy, asTensor(value, 'a lazy value'))
      },
    ),
  )
}

// skipReplay: a call whose whole effect is known runs the compiled graph alone, not the function.
import { noGrad } from '../../autograd/index.ts'
import { present } from '../../errors/index.ts'
import { Guards, agreesAsMet, agreesWith, keyOf, structureState, tensorState } from '../../guards/index.ts'
import type { Module } from '../../module/index.ts'
import { treeFlatten, treeUnflatten } from '../../pytree/index.ts'
import type { TreeSpec } from '../../pytree/index.ts'
import { Tensor, areTensors, asTensor, sameShape } from '../../tensor/index.ts'
import type { Capture } from './capture.ts'
import type { Segment } from '../segment/segment.ts'
import type { Sizes } from '../tree/sizes.ts'
import { numbersFor, withoutLists } from '../tree/traceTree.ts'
import type { CompiledSegment, Step } from '../tree/traceTree.ts'
import { takeResults } from '../end/adoptResults.ts'

/** Where an input comes from: a leaf of the arguments, by position, a tensor from outside that the recorded call used, or a size. */
type Source =
  | { readonly kind: 'leaf'; readonly leaf: number }
  | { readonly kind: 'outside'; readonly tensor: Tensor }
  /** A size that the program has computed: it follows from those of the arguments, which are the same at a hit. */
  | { readonly kind: 'constant'; readonly value: number }
type Output =
  | { readonly kind: 'value'; readonly position: number }
  | { readonly kind: 'leaf'; readonly leaf: number }
  | { readonly kind: 'constant'; readonly value: unknown }

/** Whether two calls have taken their values from the same places. */
const sameSources = (a: readonly (Source | Output)[], b: readonly (Source | Output)[]): boolean =>
  a.length === b.length && a.every((source, i) => source.kind === b[i]?.kind && Object.is(placeOf(source), placeOf(present(b[i], 'a source'))))

function placeOf(source: Source | Output): unknown {
  switch (source.kind) {
    case 'leaf':
      return source.leaf
    case 'outside':
      return source.tensor
    case 'value':
      return source.position
    case 'constant':
      return source.value
  }
}

/**
 * A leaf of the recorded call. `first`: the first leaf that is the same tensor. `only`: a function may read a tensor that it is given from a variable as well, which one call does not show. So its
 * answer is for this very tensor, until a call with another one has done the same with that (null).
 */
type Leaf =
  | { readonly kind: 'tensor'; readonly first: number; readonly only: WeakRef<Tensor> | null }
  | { readonly kind: 'constant'; readonly value: unknown }

interface Recipe {
  /** Where the recorded path ended. */
  readonly end: Step
  /** The sizes of that path; the guards compare all shapes. */
  readonly sizes: Sizes | null
  readonly compiled: CompiledSegment | null
  readonly inputs: readonly Source[]
  /** Inputs (positions) that are overwritten, in the order of the first outputs. */
  readonly written: readonly number[]
  readonly outputs: readonly Output[]
  readonly spec: TreeSpec
  readonly leaves: readonly Leaf[]
  readonly guards: Guards
}

/** A call that has ended. */
export interface EndedCall {
  readonly leaves: readonly unknown[]
  /** For each leaf the values of `tensorState` before the call; null if it is not a tensor. */
  readonly before: readonly (readonly unknown[] | null)[]
  readonly modules: readonly Module[]
}

/**
 * A recorded call that can be answered without running the function: one graph, whose tensors come from the arguments or from outside (the same ones each
 * time, by the caller's promise), without numbers as inputs other than sizes, without views among the results, and with no effect but its results and writes to existing tensors.
 */
export class Shortcut {
  readonly #recipe: Recipe

  constructor(recipe: Recipe) {
    this.#recipe = recipe
  }

  /** The shortcut for a call that has ended; null if the function must run each time. */
  static from(capture: Capture, { leaves, before, modules }: EndedCall, result: unknown): Shortcut | null {
    const [ended, ...more] = capture.ended
    if (
      ended === undefined ||
      more.length > 0 ||
      ended.kept ||
      ended.end.learned.size > 0 ||
      ended.end.keepsTape ||
      ended.end.keepsSizedTape ||
      (ended.compiled?.heads.length ?? 0) > 1
    )
      return null
    const { segment, compiled } = ended
    if (segment.bound.some((v) => v instanceof Tensor && v.grad !== null && segment.slotOf(v.grad) >= 0)) return null
    // The call itself changed a tensor in another way than by a write to its data.
    if (!leaves.every((leaf, i) => !(leaf instanceof Tensor) || agreesWith(tensorState, leaf, before[i] ?? [])) || !inputsAreAsMet(segment))
      return null
    const firstLeaf = new Map<unknown, number>()
    leaves.forEach((leaf, i) => {
      if (leaf instanceof Tensor && !firstLeaf.has(leaf)) firstLeaf.set(leaf, i)
    })
    const inputs: Source[] = []
    const sizeSlots = segment.sizes === null ? NO_SLOTS : sizeSlotsOf(segment)
    for (const slot of compiled?.inputSlots ?? []) {
      const value = segment.bound[slot]
      if (typeof value === 'number' && sizeSlots.has(slot)) {
        inputs.push({ kind: 'constant', value })
        continue
      }
      if (!(value instanceof Tensor)) return null
      const leaf = firstLeaf.get(value)
      inputs.push(leaf === undefined ? { kind: 'outside', tensor: value } : { kind: 'leaf', leaf })
    }
    // A shortcut is for one list of sizes.
    if (compiled !== null) for (const value of numbersFor(compiled, segment) ?? []) inputs.push({ kind: 'constant', value })
    const outer = segment.bound.filter((value) => value instanceof Tensor).filter((tensor) => !firstLeaf.has(tensor))
    const { leaves: results, spec } = treeFlatten(result)
    const outputs: Output[] = []
    for (const value of results) {
      const output = outputOf(value, segment, compiled, firstLeaf)
      if (output === null) return null
      outputs.push(output)
    }
    const written = [...segment.writes.values()].map(({ input }) => compiled?.inputSlots.indexOf(input) ?? -1)
    return new Shortcut({
      end: ended.end,
      sizes: segment.sizes,
      compiled,
      inputs,
      written,
      outputs,
      spec,
      leaves: leaves.map((leaf): Leaf =>
        leaf instanceof Tensor ? { kind: 'tensor', first: firstLeaf.get(leaf) ?? -1, only: new WeakRef(leaf) } : { kind: 'constant', value: leaf },
      ),
      guards: new Guards({ args: leaves.filter((leaf) => leaf instanceof Tensor), outer, modules }),
    })
  }

  /** What this call and an earlier one show together: a tensor that was another one in each comes from the arguments alone. Null if they did not do the same. */
  with(earlier: Shortcut): Shortcut | null {
    const [now, before] = [this.#recipe, earlier.#recipe]
    const didTheSame =
      now.end === before.end &&
      now.sizes === before.sizes &&
      now.compiled === before.compiled &&
      sameSources(now.inputs, before.inputs) &&
      sameShape(now.written, before.written) &&
      sameSources(now.outputs, before.outputs) &&
      keyOf(structureState, now.spec) === keyOf(structureState, before.spec)
    if (!didTheSame) return null
    const leaves: Leaf[] = []
    for (const [i, leaf] of now.leaves.entries()) {
      const then = before.leaves[i]
      if (leaf.kind === 'tensor' && then?.kind === 'tensor' && leaf.first === then.first)
        leaves.push(isSameTensor(leaf.only, then.only) ? leaf : { ...leaf, only: null })
      else if (leaf.kind === 'constant' && then?.kind === 'constant' && Object.is(leaf.value, then.value)) leaves.push(leaf)
      else return null
    }
    return new Shortcut({ ...now, leaves })
  }

  /** The result of a call with these leaves; null if they differ from the recorded ones. (The choice of the tree has checked their shapes.) */
  take(leaves: readonly unknown[]): { readonly result: unknown } | null {
    const { compiled, inputs, written, outputs, spec } = this.#recipe
    if (!this.#agrees(leaves)) return null
    let values: readonly (Tensor | null)[] = []
    if (compiled !== null) {
      compiled.cost.repay()
      const given = givenTo(inputs, leaves)
      let targets = NO_TARGETS
      if (written.length > 0) {
        // A write would change other inputs on the same memory; only running the function is right then.
        const tensors = given.filter((value) => value instanceof Tensor)
        if (new Set(tensors.map((tensor) => tensor.storage)).size < tensors.length) return null
        targets = written.map((i) => asTensor(given[i], 'a written argument'))
        for (const target of targets) target.realize().announceWrite()
      }
      const raw = noGrad(() => compiled.run(...given))
      values = takeResults(compiled, raw, given, targets, null)
    }
    const [first] = outputs
    if (spec.kind === 'leaf') return { result: first === undefined ? undefined : resultOf(first, values, leaves) }
    return {
      result: treeUnflatten(
        outputs.map((output) => resultOf(output, values, leaves)),
        spec,
      ),
    }
  }

  #agrees(leaves: readonly unknown[]): boolean {
    const { leaves: recorded, guards } = this.#recipe
    for (let i = 0; i < recorded.length; i++) {
      const leaf = leaves[i]
      const expected = recorded[i]
      if (expected?.kind === 'tensor') {
        if (expected.only === null ? expected.first !== leaves.indexOf(leaf) : expected.only.deref() !== leaf) return false
      } else if (!Object.is(leaf, expected?.value)) return false
    }
    return guards.hold(areTensors(leaves) ? leaves : leaves.filter((leaf) => leaf instanceof Tensor))
  }
}

/** The inputs of the graph, with their memory. Plain loops, here and below: this is all that a call does beside its kernels. */
function givenTo(inputs: readonly Source[], leaves: readonly unknown[]): readonly (Tensor | number)[] {
  const given = new Array<Tensor | number>(inputs.length)
  for (const [i, input] of inputs.entries()) {
    const value = input.kind === 'leaf' ? asTensor(leaves[input.leaf], 'an argument') : input.kind === 'outside' ? input.tensor : input.value
    if (typeof value !== 'number') value.realize()
    given[i] = value
  }
  return given
}

function resultOf(output: Output, values: readonly (Tensor | null)[], leaves: readonly unknown[]): unknown {
  if (output.kind === 'value') return values[output.position]
  return output.kind === 'leaf' ? leaves[output.leaf] : output.value
}

/** Whether both are for any tensor, or for the same one. */
const isSameTensor = (a: WeakRef<Tensor> | null, b: WeakRef<Tensor> | null): boolean => a === b || (a !== null && a.deref() === b?.deref())

/** Whether the outside tensors are still as they were when the segment met them. */
const inputsAreAsMet = (segment: Segment): boolean =>
  segment.cursor.path().every((step) =>
    withoutLists(step.args).every((arg) => {
      const value = arg.kind === 'input' ? segment.bound[arg.slot] : null
      return arg.kind !== 'input' || !(value instanceof Tensor) || agreesAsMet(value, segment.metAs(arg).state)
    }),
  )

/** The slots of numbers that are sizes. */
function sizeSlotsOf(segment: Segment): ReadonlySet<number> {
  const args = segment.cursor.path().flatMap((step) => withoutLists(step.args))
  return new Set(args.flatMap((arg) => (arg.kind === 'scalar' && arg.number === 'size' ? [arg.slot] : [])))
}

function outputOf(value: unknown, segment: Segment, compiled: CompiledSegment | null, leaves: ReadonlyMap<unknown, number>): Output | null {
  if (!(value instanceof Tensor)) return { kind: 'constant', value }
  const leaf = leaves.get(value)
  if (leaf !== undefined) return { kind: 'leaf', leaf }
  // A view of what the call has written is another tensor at each call.
  if (segment.views.has(segment.slotOf(value))) return null
  if (segment.slotOf(value) < 0 || (value.storage !== null && segment.writes.has(value.storage))) return { kind: 'constant', value }
  // The compiled backward starts from heads only. Others have the history that this call recorded.
  if (value.requiresGrad && compiled?.heads.includes(segment.slotOf(value)) !== true) return null
  const position = compiled?.outputSlots.indexOf(value.captureSlot) ?? -1
  return position < 0 ? null : { kind: 'value', position }
}

/** For this many lists of sizes shortcuts are kept; then those of the oldest list go. */
const MOST_LISTS = 1024

/** The shortcuts of a trace tree. Where sizes differ from call to call, each list of sizes that the arguments had has its own; a new list has none, since only the program knows what it does then. */
export class Shortcuts {
  readonly #isSized: boolean
  readonly #known = new Map<string, readonly Shortcut[]>()

  constructor(isSized: boolean) {
    this.#isSized = isSized
  }

  /** Those for calls with these leaves, newest first. */
  for(leaves: readonly unknown[]): readonly Shortcut[] {
    return this.#known.size === 0 ? NO_SHORTCUTS : (this.#known.get(this.#keyOf(leaves)) ?? NO_SHORTCUTS)
  }

  /** Adds that of one more call with these leaves. `most`: how many are kept. */
  add(leaves: readonly unknown[], shortcut: Shortcut, most: number): void {
    const key = this.#keyOf(leaves)
    this.#known.set(key, withShortcut(this.#known.get(key) ?? NO_SHORTCUTS, shortcut).slice(0, most))
    const [oldest] = this.#known.keys()
    if (this.#known.size > MOST_LISTS && oldest !== undefined) this.#known.delete(oldest)
  }

  #keyOf(leaves: readonly unknown[]): string {
    if (!this.#isSized) return ''
    let key = ''
    for (const leaf of leaves) if (leaf instanceof Tensor) key += `[${leaf.sizes.join()}]`
    return key
  }
}

const NO_SLOTS: ReadonlySet<number> = new Set()
const NO_SHORTCUTS: readonly Shortcut[] = []
const NO_TARGETS: readonly Tensor[] = []

/** The shortcuts after one more recorded call, newest first. */
function withShortcut(known: readonly Shortcut[], recorded: Shortcut): readonly Shortcut[] {
  for (const earlier of known) {
    const both = recorded.with(earlier)
    if (both !== null) return [both, ...known.filter((other) => other !== earlier)]
  }
  return [recorded, ...known]
}

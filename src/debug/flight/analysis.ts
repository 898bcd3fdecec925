// What went wrong: rewinds to a recorded step, runs it again under watch, and looks for the origin of what is bad. Afterwards everything is as it was.
import { messageOf } from '../../errors/index.ts'
import { backwardState, noGrad, notingPlaces } from '../../autograd/index.ts'
import { withMode, withoutModes } from '../../dispatch/index.ts'
import { runWatch } from '../../dynamo/index.ts'
import type { Node } from '../../fx/index.ts'
import { Tensor } from '../../tensor/index.ts'
import { badnessOf, badnessOfBytes, largestOf, onBytes } from './badness.ts'
import type { BadKind } from './badness.ts'
import { compilerOrigin, withCompiledGraphs } from './compiledCode.ts'
import type { BadRun, CompilerFinding } from './compiledCode.ts'
import type { Copies, Copy } from './copies.ts'
import { earliest } from './origins.ts'
import type { Origin } from './origins.ts'
import type { Place, TensorPlace } from './places.ts'
import type { Change, FlightOrigin, JumpOrigin, TensorOrigin } from './flightOrigin.ts'
import { Snapshot, stateTensors } from './state.ts'
import type { Sources, StateTensor } from './state.ts'
import { badTensors, lossOf, lossValue, median } from './trouble.ts'
import type { Check, Trigger } from './trouble.ts'
import { StepWatch } from './watch.ts'

/** A recorded step. */
export interface Frame {
  readonly number: number
  readonly run: (...inputs: readonly unknown[]) => unknown
  readonly inputs: readonly unknown[]
  /** The state when the step started. */
  readonly snapshot: Snapshot
  loss: number | null
  /** How many compiled graphs it ran. */
  compiledRuns: number
}

/** What a script can show again: the part of a watched step that leads to a node, the run of a compiled graph, or nothing. */
export type Evidence =
  | { readonly kind: 'node'; readonly watch: StepWatch; readonly node: Node }
  | { readonly kind: 'compiled graph'; readonly run: BadRun }
  | { readonly kind: 'none' }

export const NO_EVIDENCE: Evidence = { kind: 'none' }

const evidenceOf = (watch: StepWatch, node: Node | undefined): Evidence => (node === undefined ? NO_EVIDENCE : { kind: 'node', watch, node })

/** Where the trouble comes from, and the step that shows it. */
export interface Finding {
  readonly frame: Frame
  readonly origin: FlightOrigin
  readonly evidence: Evidence
}

/** A step that was run again. */
interface Rerun {
  readonly watch: StepWatch
  readonly result: unknown
  readonly error: unknown
}

const ALL: ReadonlySet<Check> = new Set<Check>(['loss', 'gradients', 'weights'])

/** One search, which may run several steps again. */
export class Analysis {
  readonly #frames: readonly Frame[]
  readonly #sources: Sources
  readonly #after: Snapshot

  constructor(frames: readonly Frame[], sources: Sources, copies: Copies) {
    this.#frames = frames
    this.#sources = sources
    this.#after = new Snapshot(copies, sources, frames.at(-1)?.inputs ?? [])
  }

  /** Puts back what `undone` does not know of: the optimizers' options and states. */
  end(): void {
    this.#after.restore({ versions: true })
    this.#after.release()
  }

  /** Where the trouble of a step comes from. */
  find(frame: Frame, trigger: Trigger): Finding {
    if (trigger.kind === 'jump') return this.#jump(frame)
    const rerun = this.#run(frame)
    const target = this.#target(frame, rerun)
    if (target !== null) return this.#explain(frame, rerun, target.tensor, target.origin)
    if (frame.compiledRuns > 0) {
      const compiler = this.#runCompiled(frame)
      if (compiler !== null) return { frame, origin: compiler.origin, evidence: { kind: 'compiled graph', run: compiler.run } }
    }
    return { frame, origin: { kind: 'unknown', why: whyUnknown(rerun, trigger) }, evidence: NO_EVIDENCE }
  }

  #run(frame: Frame): Rerun {
    frame.snapshot.restore()
    const known = new Map<Tensor, StateTensor>(stateTensors(this.#sources, frame.inputs).map((one) => [one.tensor, one]))
    const memory = new Map([...known.values()].map((one) => [one.tensor.storage, one]))
    const describe = (tensor: Tensor): Pick<StateTensor, 'kind' | 'name'> =>
      known.get(tensor) ??
      memory.get(tensor.storage) ?? { kind: 'tensor', name: tensor.shape.length === 0 ? 'number' : `tensor_${tensor.shape.join('x')}` }
    const watch = new StepWatch({
      describe,
      isIntended: (tensor, bad) => this.#isIntended(frame, tensor, describe(tensor), bad),
    })
    const outer = runWatch.current
    const { onApplied } = backwardState
    runWatch.current = null
    backwardState.onApplied = (node, gradients, given) => withoutModes(() => watch.derived(node, gradients, given))
    try {
      const result = notingPlaces(() => withMode(watch, () => frame.run(...frame.inputs)))
      const loss = lossOf(result)
      // A step may return an input or a weight as it is.
      if (loss instanceof Tensor && known.has(loss)) watch.nodeOf(loss)
      return { watch, result, error: null }
    } catch (error) {
      return { watch, result: undefined, error }
    } finally {
      runWatch.current = outer
      backwardState.onApplied = onApplied
    }
  }

  /** Whether the infinities of a tensor from outside belong to the program: a mask, or what earlier, healthy steps had too. */
  #isIntended(frame: Frame, tensor: Tensor, { kind, name }: Pick<StateTensor, 'kind' | 'name'>, bad: BadKind): boolean {
    if (bad === 'nan') return false
    if (kind === 'tensor') return true
    if (kind !== 'buffer' && kind !== 'input') return false
    const [first] = this.#frames
    if (first === undefined || (kind === 'input' && first === frame)) return false
    const inputs = [...first.snapshot.tensors.values()].filter((one) => one.kind === kind && one.name === name)
    return inputs.some((one) => badnessOfBytes(one.tensor, one.copy.content())[bad] !== null)
  }

  /** The bad tensor of a step that was run again whose origin comes first. */
  #target(frame: Frame, { watch, result }: Rerun): { readonly tensor: Tensor; readonly origin: Origin<Place> } | null {
    const loss = lossOf(result)
    const tensors = [
      ...(loss instanceof Tensor ? [loss] : []),
      ...(typeof loss === 'number' ? watch.scalars(loss) : []),
      ...badTensors(stateTensors(this.#sources, frame.inputs), frame.snapshot, ALL).map(({ tensor }) => tensor),
    ]
    const found = tensors.flatMap((tensor) => {
      const badness = badnessOf(tensor)
      return (['nan', 'infinite'] as const).flatMap((bad) => {
        const origin = badness[bad] === null ? null : watch.origins.of(tensor, bad)
        return origin === null ? [] : [{ tensor, origin }]
      })
    })
    const first = earliest(found.map(({ origin }) => origin).filter((origin) => !origin.isIntended)) ?? earliest(found.map(({ origin }) => origin))
    return found.find(({ origin }) => origin === first) ?? null
  }

  #explain(frame: Frame, { watch }: Rerun, target: Tensor, found: Origin<Place>): Finding {
    const { where, index, element, output } = found
    if (where.kind === 'operator') {
      const { phase, operator, computedBy, gradFn, given, stack, node } = where
      const reached = watch.reached.get(found.order) ?? null
      return {
        frame,
        origin: { kind: 'operator', phase, operator, computedBy, gradFn, given, stack, output, index, element, reached },
        evidence: { kind: 'node', watch, node },
      }
    }
    const origin: TensorOrigin = { kind: where.kind, name: where.name, index, element, wasGood: false }
    return this.#since({ frame, origin, evidence: evidenceOf(watch, watch.known(target)) }, where, found.bad)
  }

  #isBadIn({ snapshot }: Frame, { kind, name }: TensorPlace, bad: BadKind): boolean {
    for (const one of snapshot.tensors.values())
      if (one.kind === kind && one.name === name && badnessOfBytes(one.tensor, one.copy.content())[bad] !== null) return true
    return false
  }

  /** A tensor was bad when a step started: looks for the earlier step that made it so. If there is none, the tensor itself is all that can be named. */
  #since(finding: Finding & { readonly origin: TensorOrigin }, place: TensorPlace, bad: BadKind): Finding {
    const { kind, name } = place
    // Inputs differ from step to step, and nothing was recorded of tensors outside the state.
    if (kind === 'input' || !this.#isBadIn(finding.frame, place, bad)) return finding
    let at = this.#frames.indexOf(finding.frame)
    for (let before = this.#frames[at - 1]; before !== undefined && this.#isBadIn(before, place, bad); before = this.#frames[at - 1]) at--
    const before = this.#frames[at - 1]
    if (before !== undefined) {
      const rerun = this.#run(before)
      const made = stateTensors(this.#sources, before.inputs).find((one) => one.kind === kind && one.name === name)
      const origin = made === undefined || badnessOf(made.tensor)[bad] === null ? null : rerun.watch.origins.of(made.tensor, bad)
      if (made !== undefined && origin !== null) return this.#explain(before, rerun, made.tensor, origin)
    }
    // The program wrote to it outside of the recorded steps.
    return { ...finding, frame: this.#frames[at] ?? finding.frame, origin: { ...finding.origin, wasGood: before !== undefined } }
  }

  /** Runs a step as it ran, and looks for a compiled graph that makes bad results of good inputs. */
  #runCompiled(frame: Frame): CompilerFinding | null {
    frame.snapshot.restore()
    const run = withCompiledGraphs(() => frame.run(...frame.inputs))
    return run === null ? null : noGrad(() => compilerOrigin(run))
  }

  #jump(frame: Frame): Finding {
    const changes = this.#changes(frame)
    const inputs = inputSizes(this.#frames, frame)
    const origin: JumpOrigin = { kind: 'jump', changes, inputs }
    const rerun = this.#run(frame)
    const loss = lossOf(rerun.result)
    const target = loss instanceof Tensor ? loss : loss === null ? null : (rerun.watch.scalars(loss).at(-1) ?? null)
    return { frame, origin, evidence: evidenceOf(rerun.watch, target === null ? undefined : rerun.watch.known(target)) }
  }

  /** The weights by how much larger the update before the step was than usual. */
  #changes(frame: Frame): readonly Change[] {
    const frames = this.#frames.slice(0, this.#frames.indexOf(frame) + 1)
    const rows: Change[] = []
    for (const { kind, name, tensor } of frame.snapshot.tensors.values()) {
      if (kind !== 'parameter') continue
      const contents = frames.map(({ snapshot }) => {
        const one = snapshot.tensors.get(tensor)
        return one === undefined ? null : Array.from(onBytesOf(tensor, one.copy))
      })
      const updates = contents.flatMap((content, i) => {
        const next = contents[i + 1]
        return content === null || next === null || next === undefined ? [] : [ratio(content, next)]
      })
      const gradients = frames.flatMap(({ snapshot }) =>
        [...snapshot.tensors.values()].flatMap((one) =>
          one.kind === 'gradient' && one.name === name ? [norm(Array.from(onBytesOf(one.tensor, one.copy)))] : [],
        ),
      )
      const last = updates.at(-1) ?? null
      rows.push({
        name,
        update: last,
        usualUpdate: updates.length < 2 ? null : median(updates.slice(0, -1)),
        gradient: tensor.grad === null ? null : norm(numbersIn(tensor.grad)),
        usualGradient: gradients.length === 0 ? null : median(gradients),
      })
    }
    const weight = ({ update, usualUpdate }: Change): number => (update === null ? 0 : update / Math.max(usualUpdate ?? 1, Number.MIN_VALUE))
    return rows.toSorted((a, b) => weight(b) - weight(a))
  }
}

function whyUnknown({ error, result }: Rerun, trigger: Trigger): string {
  if (error !== null) return `the step threw when it was run again: ${messageOf(error)}`
  if (trigger.kind === 'loss' && !Number.isFinite(lossValue(lossOf(result)) ?? 0))
    return 'the loss is a number that the program computed without tensors.'
  return 'the step gave good numbers when it was run again. It reads something that is not recorded: pass it as an argument, or name it in the options.'
}

const numbersIn = (tensor: Tensor): readonly number[] => Array.from(noGrad(() => tensor.detach().contiguous()).toTypedArray(), Number)
const onBytesOf = (tensor: Tensor, copy: Copy): readonly number[] => numbersIn(onBytes(tensor, copy.content()))
const norm = (values: readonly number[]): number => Math.sqrt(values.reduce((sum, value) => sum + value * value, 0))
const ratio = (before: readonly number[], after: readonly number[]): number =>
  norm(after.map((value, i) => value - (before[i] ?? 0))) / Math.max(norm(before), Number.MIN_VALUE)

/** The largest magnitudes of the inputs of a step, and those of the steps before it. */
function inputSizes(frames: readonly Frame[], frame: Frame): JumpOrigin['inputs'] {
  const sizes = (of: Frame): ReadonlyMap<string, number> =>
    new Map(
      [...of.snapshot.tensors.values()].flatMap((one) =>
        one.kind === 'input' ? [[one.name, largestOf(onBytes(one.tensor, one.copy.content()))] as const] : [],
      ),
    )
  const earlier = frames.filter((one) => one.number < frame.number).map(sizes)
  return [...sizes(frame)].map(([name, largest]) => {
    const known = earlier.flatMap((one) => one.get(name) ?? [])
    return { name, largest, usual: known.length === 0 ? null : median(known) }
  })
}

// One call of compiled code, judged: the numbers against those of the graph on eager kernels and in float64, and what a backend promises. It leaves inputs alone
// that the graph does not write, its outputs stay as they are at later calls, none of them lies in the memory of an input unless it does on eager kernels, and the
// same inputs give the same result. Level 4 and the launcher judge by this.
import { noGrad } from '../../autograd/index.ts'
import { withMode } from '../../dispatch/index.ts'
import { config } from '../../config.ts'
import { resultsOf } from '../../dynamo/index.ts'
import { Node } from '../../fx/index.ts'
import type { GraphModule } from '../../fx/index.ts'
import { copyInto } from '../../ops/eager/copy.ts'
import { valueText } from '../../protocol/index.ts'
import { Storage, Tensor, getRngState, setRngState } from '../../tensor/index.ts'
import type { GeneratorState } from '../../tensor/index.ts'
import { castToFp64 } from '../runs/castToFp64.ts'
import { describe } from '../common/describeError.ts'
import { sameBytes } from '../../kernels/index.ts'
import { contained, isolated, isolatedInputs } from '../runs/isolated.ts'
import { Rounding, judgedWithRuns, moveInputs } from '../closeness/rounding.ts'
import { judgedSame } from '../closeness/same.ts'

/** Compiled code, as the debugger calls it. */
export type Compiled = (...inputs: readonly unknown[]) => unknown

/** What a call did wrong. `inputs`: it changed one; `outputs`: it changed what earlier calls returned; `aliases`: an output lies in an input; `repeats`: the same inputs gave another result. */
export const RULES = ['numbers', 'inputs', 'outputs', 'aliases', 'repeats'] as const
/** One of {@link RULES}. */
export type Rule = (typeof RULES)[number]

export interface Finding {
  readonly rule: Rule
  /** A sentence without the name of the graph. */
  readonly message: string
  /** Where the numbers differ, and by how much. */
  readonly reasons: readonly string[]
}

/** What eager kernels compute. */
interface Reference {
  readonly outputs: readonly unknown[]
  /** The inputs and the attributes afterwards. */
  readonly inputs: readonly unknown[]
  readonly attributes: readonly unknown[]
}

/** How often a result is computed again, to tell whether it comes and goes. */
const RERUNS = 7

/** Calls whose outputs are watched. */
const WATCHED_CALLS = 8

interface Watched {
  readonly memory: WeakRef<Storage>
  readonly label: string
}

/** What an earlier call returned, before the next one. */
interface Earlier {
  readonly storage: Storage
  readonly label: string
  readonly bytes: Uint8Array
}

export class CallCheck {
  readonly #gm: GraphModule
  readonly #compiled: Compiled
  readonly #names: readonly string[]
  readonly #inputNames: readonly string[]
  readonly #writeBacks: ReadonlyMap<number, number>
  readonly #report: (message: string) => void
  #calls: (readonly Watched[])[] = []
  #count = 0
  #earlier: readonly Earlier[] = []
  #random: GeneratorState = getRngState()
  /** Tensors that the graph reads as attributes, by name, and copies of them from before the call. */
  readonly #attributes: ReadonlyMap<string, Tensor>
  #attributesBefore: readonly unknown[] = []

  /** `compiled` is what a backend made of `gm`, and is not watched itself. `report` is told why a call could not be checked. */
  constructor(gm: GraphModule, compiled: Compiled, report: (why: string) => void) {
    this.#gm = gm
    this.#compiled = compiled
    this.#names = outputNames(gm)
    this.#inputNames = gm.graph.findNodes({ op: 'placeholder' }).map((node) => node.name)
    const writeBacks = gm.meta['writeBacks']
    this.#writeBacks = writeBacks instanceof Map ? writeBacks : new Map()
    this.#report = report
    this.#attributes = attributesOf(gm)
  }

  /** To be called before each call. */
  begin(): void {
    this.#random = getRngState()
    this.#attributesBefore = isolatedInputs([...this.#attributes.values()])
    const earlier = new Map<Storage, string>()
    for (const { memory, label } of this.#calls.flat()) {
      const storage = memory.deref()
      if (storage !== undefined) earlier.set(storage, label)
    }
    this.#earlier = [...earlier].flatMap(([storage, label]) => {
      const bytes = storage.peekBytes()
      return bytes === null ? [] : [{ storage, label, bytes }]
    })
  }

  /**
   * To be called after a call: `inputs` are what the compiled code got, and `before` a copy of them from before it; `returned` is its result, `kept` what else it made
   * for later. Returns what is wrong, or null. Then the inputs and the outputs of earlier calls are as they were before the call.
   */
  judge(before: readonly unknown[], inputs: readonly unknown[], returned: unknown, kept: readonly unknown[] = []): Finding | null {
    const outputs = resultsOf(returned)
    const earlier = this.#earlier
    this.#earlier = []
    const reference = this.#reference(before)
    if (reference === null) return null
    const finding =
      this.#changedInput(before, inputs, outputs, reference) ??
      changedOutput(earlier, inputs) ??
      this.#secretAlias(inputs, outputs, reference) ??
      this.#numbersOf(before, outputs, reference)
    if (finding !== null) {
      restore(before, inputs)
      restore(this.#attributesBefore, [...this.#attributes.values()])
      for (const { storage, bytes } of earlier) restoreBytes(storage, bytes)
      return finding
    }
    this.#watch([...outputs, ...kept], inputs)
    return null
  }

  /** Judges numbers alone: for what compiled code makes beside the results that {@link judge} has found right. */
  judgeNumbers(before: readonly unknown[], inputs: readonly unknown[], outputs: readonly unknown[]): Finding | null {
    const reference = this.#reference(before)
    const reasons = reference === null ? null : this.#wrongNumbers(before, outputs, reference, this.#inFloat64(before))
    if (reasons === null) return null
    restore(before, inputs)
    return { rule: 'numbers', message: 'What it saves for the backward is wrong.', reasons }
  }

  #reference(before: readonly unknown[]): Reference | null {
    try {
      return this.#onEager(before)
    } catch (error) {
      this.#report(`it fails on eager kernels: ${describe(error)}`)
      return null
    }
  }

  #wrongNumbers(before: readonly unknown[], outputs: readonly unknown[], reference: Reference, fp64: Reference | null): readonly string[] | null {
    return this.#wrong(before, this.#named(outputs), ({ outputs: values }) => this.#named(values), reference, fp64)
  }

  /** Where values differ from what `of` takes out of the reference; null if they do not. */
  #wrong(
    before: readonly unknown[],
    got: unknown,
    of: (run: Reference) => unknown,
    reference: Reference,
    fp64: Reference | null,
  ): readonly string[] | null {
    const { reproTolerance: tol, reproIgnoreNonFp: ignoreNonFp } = config
    const judged = (others: readonly Reference[]): readonly string[] | null => {
      const reasons: string[] = []
      const options = { tol, ignoreNonFp, logError: (reason: string): void => void reasons.push(reason) }
      return judgedSame(of(reference), got, fp64 === null ? null : of(fp64), options, others.map(of)) ? null : reasons
    }
    // The reference may be exact by luck: what rounding does to it is seen only with other inputs.
    return judgedWithRuns(
      (seed) => this.#rounded(before, seed),
      judged,
      (reasons) => reasons === null,
    )
  }

  #rounded(before: readonly unknown[], moved: number): Reference | null {
    try {
      return this.#onEager(before, { moved })
    } catch {
      return null
    }
  }

  /** Runs `fn` outside of the program, with the random numbers and the attributes from before the call. */
  #asBefore<T>(fn: () => T): T {
    return contained(() => {
      setRngState(this.#random)
      this.#resetAttributes(this.#gm)
      return fn()
    })
  }

  #resetAttributes(gm: GraphModule): void {
    ;[...this.#attributes.keys()].forEach((name, i) => {
      restoreTo(gm.attribute(name), this.#attributesBefore[i])
    })
  }

  /** What the graph computes from copies: in float64 if `wide`, and with everything moved by a few units in the last place if `moved`, a seed, is given. */
  #onEager(before: readonly unknown[], { wide = false, moved = null }: { readonly wide?: boolean; readonly moved?: number | null } = {}): Reference {
    return this.#asBefore(() => {
      const copy = isolated(this.#gm, before)
      const { gm, inputs } = wide ? castToFp64(copy.model, copy.inputs) : { gm: copy.model, inputs: copy.inputs }
      const run = (): readonly unknown[] => resultsOf(noGrad(() => gm.forward(...inputs)))
      if (moved !== null) moveInputs(inputs, moved)
      const outputs = moved === null ? run() : withMode(new Rounding(moved), run)
      return { outputs, inputs, attributes: [...this.#attributes.keys()].map((name) => gm.attribute(name)) }
    })
  }

  /** Runs the compiled code on copies. Returns copies of its results, and what `look` says right after it: the memory that it has written may be put back then. */
  #again<T>(before: readonly unknown[], look: (results: readonly unknown[]) => T): { readonly results: readonly unknown[]; readonly seen: T } {
    return this.#asBefore(() => {
      const results = resultsOf(noGrad(() => this.#compiled(...isolatedInputs(before))))
      return { results: isolatedInputs(results), seen: look(results) }
    })
  }

  // ---- the rules ----

  #changedInput(before: readonly unknown[], inputs: readonly unknown[], outputs: readonly unknown[], reference: Reference): Finding | null {
    for (const [i, input] of inputs.entries()) {
      const wanted = reference.inputs[i]
      const [now, then] = [bytesOf(input), bytesOf(before[i])]
      const isWritten = !sameBytes(bytesOf(wanted), then)
      if (sameBytes(now, then) ? !isWritten : sameBytes(now, this.#writtenBytes(then, input, inputs, before, outputs))) continue
      const reasons = isWritten ? this.#wrong(before, input, (run) => run.inputs[i], reference, null) : []
      if (reasons === null) continue
      const why = isWritten
        ? 'has another value after the call than the graph writes to it on eager kernels'
        : 'was overwritten, and the graph does not write to it'
      return { rule: 'inputs', message: `Input ${labelOf(i, this.#inputNames)} ${why}.`, reasons }
    }
    return null
  }

  /** The memory of an input, of which `then` is a copy, after the writes of the graph, which its outputs hold. */
  #writtenBytes(then: Uint8Array, input: unknown, inputs: readonly unknown[], before: readonly unknown[], outputs: readonly unknown[]): Uint8Array {
    const memory = Storage.allocate(then.length)
    memory.writeBytes(then)
    for (const [position, index] of this.#writeBacks) {
      // The value may lie in the very memory that is compared.
      const [like, value] = [before[index], isolatedInputs([outputs[position]])[0]]
      if (!(like instanceof Tensor) || !(value instanceof Tensor) || !shareMemory(inputs[index], input)) continue
      copyInto(value, new Tensor(like.sizes, like.dtype, memory, undefined, undefined, like))
    }
    return memory.readBytes()
  }

  #secretAlias(inputs: readonly unknown[], outputs: readonly unknown[], reference: Reference): Finding | null {
    for (const [i, output] of outputs.entries()) {
      const shared = inputs.flatMap((input, k) => (shareMemory(input, output) ? [k] : []))
      const [first] = shared
      if (first === undefined) continue
      const wanted = reference.outputs[i]
      // The new value of an input may lie in it, and so may what shares memory with that value on eager kernels.
      const isNewValue = [...this.#writeBacks].some(([position, k]) => shared.includes(k) && shareMemory(reference.outputs[position], wanted))
      if (isNewValue || shareMemory(reference.inputs[first], wanted)) continue
      return {
        rule: 'aliases',
        message: `Output ${labelOf(i, this.#names)} lies in the memory of input ${labelOf(first, this.#inputNames)}: a write to one would change the other. On eager kernels it has memory of its own.`,
        reasons: [],
      }
    }
    return null
  }

  #numbersOf(before: readonly unknown[], outputs: readonly unknown[], reference: Reference): Finding | null {
    const fp64 = this.#inFloat64(before)
    const wrong = (results: readonly unknown[]): readonly string[] | null => this.#wrongNumbers(before, results, reference, fp64)
    const first = wrong(outputs) ?? this.#wrongAttributes(before, reference, fp64)
    const copies = isolatedInputs(outputs)
    // A run on the same inputs may write the values that are there.
    const changed = (results: readonly unknown[]): number =>
      outputs.findIndex((output, i) => !sameValue(output, copies[i]) || (this.#isOwn(output) && isMemoryOf(output, results)))
    let overwritten = -1
    /** What each run had wrong. */
    const runs: (readonly string[] | null)[] = [first]
    let threw: string | null = null
    const rerun = (): void => {
      try {
        const { results, seen } = this.#again(before, changed)
        overwritten = Math.max(overwritten, seen)
        runs.push(sameData(copies, results) ? first : wrong(results))
      } catch (error) {
        threw ??= describe(error)
        runs.push([threw])
      }
    }
    rerun()
    if (overwritten >= 0) {
      outputs.forEach((output, i) => restoreTo(output, copies[i]))
      return {
        rule: 'outputs',
        message: `Output ${labelOf(overwritten, this.#names)} lies in memory that the next call uses again for its result, while the program still has it.`,
        reasons: [],
      }
    }
    if (runs.every((reasons) => reasons === null)) return null
    while (runs.length <= RERUNS) rerun()
    const bad = runs.filter((reasons) => reasons !== null)
    const [reasons = []] = bad
    if (bad.length === runs.length && threw === null) return { rule: 'numbers', message: 'Its numbers are wrong.', reasons }
    const what = threw === null ? 'had wrong numbers' : 'had wrong numbers or threw'
    return {
      rule: 'repeats',
      message: `The same inputs do not always give the same result: ${bad.length} of ${runs.length} runs ${what}. The backend is flaky, or its result depends on earlier calls.`,
      reasons: threw === null ? reasons : [threw],
    }
  }

  /** Whether a result has memory that no attribute of the graph has. */
  readonly #isOwn = (output: unknown): boolean => !isMemoryOf(output, [...this.#attributes.values()])

  #wrongAttributes(before: readonly unknown[], reference: Reference, fp64: Reference | null): readonly string[] | null {
    const named = (values: readonly unknown[]): Record<string, unknown> =>
      Object.fromEntries([...this.#attributes.keys()].map((name, i) => [`attribute '${name}'`, values[i]]))
    return this.#wrong(before, named([...this.#attributes.values()]), ({ attributes }) => named(attributes), reference, fp64)
  }

  #inFloat64(before: readonly unknown[]): Reference | null {
    if (!config.sameTwoModelsUseFp64) return null
    try {
      return this.#onEager(before, { wide: true })
    } catch {
      // Some operators have no float64; the tolerance decides.
      return null
    }
  }

  readonly #named = (values: readonly unknown[]): Record<string, unknown> =>
    Object.fromEntries(values.map((value, i) => [`output ${i} (${this.#names[i] ?? '?'})`, value]))

  #watch(outputs: readonly unknown[], inputs: readonly unknown[]): void {
    const call = ++this.#count
    const watched = outputs.flatMap((output, i): readonly Watched[] => {
      const what = i < this.#names.length ? `output ${labelOf(i, this.#names)}` : 'a value that was saved for the backward'
      const memory = isMemoryOf(output, inputs) ? null : memoryOf(output)
      return memory === null ? [] : [{ memory: new WeakRef(memory), label: `${what} of call ${call}` }]
    })
    this.#calls = [...this.#calls, watched].slice(-WATCHED_CALLS)
  }
}

function attributesOf(gm: GraphModule): ReadonlyMap<string, Tensor> {
  const attributes = new Map<string, Tensor>()
  for (const { target } of gm.graph.findNodes({ op: 'get_attr' })) {
    const value = gm.attribute(target)
    if (value instanceof Tensor) attributes.set(target, value)
  }
  return attributes
}

function outputNames(gm: GraphModule): readonly string[] {
  const [result] = gm.graph.outputNode().args
  return resultsOf(result).map((value) => (value instanceof Node ? value.name : valueText(value)))
}

const labelOf = (i: number, names: readonly string[]): string => `${i} ('${names[i] ?? ''}')`

/** The memory that a value shows; null if it is not a tensor, or one without elements. */
const memoryOf = (value: unknown): Storage | null => (value instanceof Tensor && value.numel > 0 ? (value.storage?.home ?? null) : null)

function shareMemory(a: unknown, b: unknown): boolean {
  const memory = memoryOf(a)
  return memory !== null && memory === memoryOf(b)
}

const isMemoryOf = (of: unknown, values: readonly unknown[]): boolean => values.some((value) => shareMemory(of, value))

function changedOutput(earlier: readonly Earlier[], inputs: readonly unknown[]): Finding | null {
  for (const { storage, label, bytes } of earlier) {
    const now = storage.peekBytes()
    if (inputs.some((input) => memoryOf(input) === storage.home) || now === null || sameBytes(now, bytes)) continue
    return { rule: 'outputs', message: `The call overwrote ${label}: its memory was used again, while the program still has it.`, reasons: [] }
  }
  return null
}

/** Whether two lists of results have the same bits. */
function sameData(a: readonly unknown[], b: readonly unknown[]): boolean {
  return a.length === b.length && a.every((value, i) => sameValue(value, b[i]))
}

function sameValue(a: unknown, b: unknown): boolean {
  if (!(a instanceof Tensor) || !(b instanceof Tensor)) return Object.is(a, b)
  if (a.dtype !== b.dtype || a.shape.join() !== b.shape.join()) return false
  return sameBytes(denseBytes(a), denseBytes(b))
}

const denseBytes = (tensor: Tensor): Uint8Array => {
  const dense = Tensor.empty(tensor.sizes, tensor.dtype)
  copyInto(tensor, dense)
  return dense.realize().readBytes()
}

const NO_BYTES = new Uint8Array()

/** A copy of the memory behind a value; no bytes if there is none. */
const bytesOf = (value: unknown): Uint8Array => (value instanceof Tensor ? value.storage?.peekBytes() : null) ?? NO_BYTES

/** Gives the memory of tensors the data of copies. */
export function restore(before: readonly unknown[], inputs: readonly unknown[]): void {
  inputs.forEach((input, i) => restoreTo(input, before[i]))
}

/** Gives a tensor's memory the data of a copy's. */
function restoreTo(value: unknown, copy: unknown): void {
  if (value instanceof Tensor && value.storage !== null) restoreBytes(value.storage, bytesOf(copy))
}

function restoreBytes(storage: Storage, bytes: Uint8Array): void {
  if (sameBytes(storage.readBytes(), bytes)) return
  storage.announceWrite()
  storage.writeBytes(bytes)
}

// A graph on a backend, several times: whether it computes what it should, always, and leaves alone what is not its own. Every run gets copies of the inputs and the same
// state of the random generator; results are copied before the next run.
import { noGrad } from '../../autograd/index.ts'
import { clone, copy_ } from '../../ops/index.ts'
import { setRngState } from '../../tensor/index.ts'
import type { Storage, Tensor } from '../../tensor/index.ts'
import { describe } from '../common/describeError.ts'
import type { Candidate, Prepared, Ran } from './backends.ts'
import { tensorsIn } from './float64.ts'
import type { Held } from './moduleTensors.ts'
import { sameValues } from './moduleTensors.ts'
import { measure, RIGHT } from './measure.ts'
import type { Measured, Rule } from './measure.ts'
import type { Task } from './reference.ts'

/** How often a node runs that is right so far. */
const RUNS = 2
/** How often one runs that was right and wrong. */
const PATIENCE = 16

/** How often a graph has to run to show again what was seen. */
export const runsToShow = ({ status, rule }: Pick<Measured, 'status' | 'rule'>): number => (status === 'flaky' ? PATIENCE : rule === null ? 1 : 2)

const copyOf = (tensor: Tensor): Tensor => noGrad(() => clone(tensor.detach()))

/** What one run came to; `results` are copies, made before anything else ran. */
export interface Run {
  readonly measured: Measured
  readonly results: readonly Tensor[]
  /** The output of the run before that this run has changed; -1 if there is none. */
  readonly overwritten: number
}

/** Runs a prepared graph, and looks at everything that it could have changed. */
export class Trial {
  readonly #prepared: Prepared
  readonly #task: Task
  readonly #tol: number
  /** What the backend's own weights were before the first run. */
  readonly #before: Held
  /** Whether the run before may have left the weights with other values. */
  #changesHeld = false
  /** The outputs of the run before: the backend has handed them over. */
  #handed: Handed | null = null

  constructor(prepared: Prepared, task: Task, tol: number) {
    this.#prepared = prepared
    this.#task = task
    this.#tol = tol
    this.#before = new Map([...prepared.held].map(([name, tensor]) => [name, copyOf(tensor)]))
  }

  /** Gives the backend's weights the values that they had before the first run. */
  restore(): void {
    if (!this.#changesHeld) return
    for (const [name, tensor] of this.#prepared.held) {
      const before = this.#before.get(name)
      if (before !== undefined) noGrad(() => copy_(tensor, before))
    }
    this.#changesHeld = false
  }

  /** Runs once. With `judge` results are measured by it, and not by those of the task. */
  async run(judge?: (results: readonly Tensor[]) => Measured): Promise<Run> {
    const { inputs, state } = this.#task
    this.restore()
    this.#changesHeld = true
    this.#handed?.mark()
    setRngState(state)
    let ran: Ran
    try {
      ran = await this.#prepared.run(inputs)
    } catch (thrown) {
      return { measured: { ...RIGHT, status: 'failed', error: NaN, reason: describe(thrown), rate: 1, thrown }, results: [], overwritten: -1 }
    }
    const overwritten = this.#handed?.overwritten() ?? -1
    this.#handed?.unmark(ran.outputs)
    const results = ran.outputs.map(copyOf)
    this.#handed = new Handed(ran.outputs, [...ran.given, ...this.#prepared.held.values()])
    const measured = judge === undefined ? measure(this.#task, results, this.#tol) : judge(results)
    if (measured.status !== 'ok') return { measured, results, overwritten }
    const left = this.#left(ran, overwritten)
    this.#changesHeld = left !== null || this.#task.heldAfter.size > 0
    return { measured: left ?? measured, results, overwritten }
  }

  /** What is wrong with what the run left behind; null if nothing is. */
  #left({ given }: Ran, overwritten: number): Measured | null {
    const { inputs, inputsAfter, heldAfter } = this.#task
    const broken = (rule: Rule, reason: string): Measured => ({ ...RIGHT, status: 'differs', error: Infinity, rule, reason, rate: 1 })
    const wrong = (name: string, after: Tensor, got: Tensor): Measured | null => {
      const measured = measure({ want: [after], like: [after] }, [got], this.#tol)
      return measured.status === 'ok' ? null : { ...measured, reason: `what it writes to ${name}` }
    }
    const originals = tensorsIn(inputs)
    for (const [i, tensor] of given.entries()) {
      const after = inputsAfter.get(i)
      if (after === undefined) {
        if (!sameValues(tensor, originals[i])) return broken('overwrites an input', `input ${i} has other values after the run`)
      } else {
        const found = wrong(`input ${i}`, after, tensor)
        if (found !== null) return found
      }
    }
    for (const [name, tensor] of this.#prepared.held) {
      const after = heldAfter.get(name)
      if (after === undefined) {
        if (!sameValues(tensor, this.#before.get(name))) return broken('overwrites a weight', `'${name}' has other values after the run`)
      } else {
        const found = wrong(`'${name}'`, after, tensor)
        if (found !== null) return found
      }
    }
    return overwritten < 0 ? null : broken('overwrites an earlier output', 'a run changed what the run before had returned')
  }
}

/** What a run returned. Before the next one its memory gets other bytes; a backend that has handed it over leaves them as they are. */
class Handed {
  /** The memory of each output; null if it is not the backend's to keep. */
  readonly #storages: readonly (Storage | null)[]
  readonly #marks = new Map<Storage, Uint8Array>()

  /** `lent` is not the backend's to keep: a result may be a view of an input or a weight. */
  constructor(outputs: readonly Tensor[], lent: readonly Tensor[]) {
    const others = new Set(lent.map(({ storage }) => storage))
    this.#storages = outputs.map(({ storage }) => (storage === null || others.has(storage) ? null : storage))
  }

  mark(): void {
    for (const storage of new Set(this.#storages)) {
      if (storage === null) continue
      const bytes = storage.readBytes().map((byte) => byte ^ 0xff)
      storage.writeBytes(bytes)
      this.#marks.set(storage, bytes)
    }
  }

  /** A constant that the backend returns each time is what it was, unless the backend has written to it. */
  unmark(outputs: readonly Tensor[]): void {
    const again = new Set(outputs.map(({ storage }) => storage))
    for (const [storage, bytes] of this.#marks) if (again.has(storage) && isHeld(storage, bytes)) storage.writeBytes(bytes.map((byte) => byte ^ 0xff))
  }

  /** The first output whose memory was written to since; -1 if there is none. */
  overwritten(): number {
    const written = new Set([...this.#marks].filter(([storage, bytes]) => !isHeld(storage, bytes)).map(([storage]) => storage))
    return this.#storages.findIndex((storage) => storage !== null && written.has(storage))
  }
}

const isHeld = (storage: Storage, bytes: Uint8Array): boolean => storage.readBytes().every((byte, i) => byte === bytes[i])

/** Several runs as one verdict. */
export function verdictOf(runs: readonly Measured[]): Measured {
  const bad = runs.filter(({ status }) => status !== 'ok')
  const [first] = bad
  const worst = runs.reduce((a, b) => (b.error > a.error ? b : a), first ?? RIGHT)
  if (first === undefined) return worst
  if (bad.length === runs.length) return first
  // A rule is a rule. That an output is overwritten, the first run cannot show.
  if (bad.every(({ rule }) => rule !== null)) return first
  const rate = bad.length / runs.length
  const reason = `not right in ${bad.length} of ${runs.length} runs with the same inputs${first.reason === null ? '' : `: ${first.reason}`}`
  return { ...worst, status: 'flaky', reason, rule: first.rule, rate, thrown: first.thrown }
}

/** Whether more runs are needed: some were right and some were not. */
const isMixed = (runs: readonly Measured[]): boolean =>
  runs.some(({ status }) => status === 'ok') && runs.some(({ status, rule }) => status !== 'ok' && rule === null)

/** Runs until it is clear what to say: at least twice, and oftener where runs differ. */
export async function repeated(run: () => Promise<Measured>, atLeast: number = RUNS): Promise<Measured> {
  const runs: Measured[] = []
  while (runs.length < (isMixed(runs) ? PATIENCE : atLeast)) {
    // oxlint-disable-next-line no-await-in-loop -- one run after the other
    runs.push(await run())
  }
  return verdictOf(runs)
}

/** What a backend makes of a task. */
export async function tried(one: Candidate, task: Task, tol: number, atLeast: number = RUNS): Promise<Measured> {
  if (task.isRandom && !one.isHere)
    return { ...RIGHT, status: 'skipped', error: NaN, reason: 'it draws random numbers, and the backend has a generator of its own' }
  try {
    return await one.with(task.gm, task.inputs, async (prepared) => {
      const trial = new Trial(prepared, task, tol)
      return repeated(async () => (await trial.run()).measured, atLeast)
    })
  } catch (thrown) {
    return { ...RIGHT, status: 'failed', error: NaN, reason: describe(thrown), rate: 1, thrown }
  }
}

/** The same, compiled several times: a fault that is confirmed comes each time, and one that does not is flaky. */
export async function confirmed(one: Candidate, task: Task, tol: number, first: Measured): Promise<Measured> {
  if (first.status === 'ok' || first.status === 'skipped' || first.status === 'flaky') return first
  const again: Measured[] = []
  // oxlint-disable-next-line no-await-in-loop -- one compile after the other
  while (again.length < 2) again.push(await tried(one, task, tol))
  if (again.every(({ status }) => status === first.status || status === 'failed')) return first
  return verdictOf([first, ...again].flatMap((measured) => (measured.status === 'flaky' ? [measured, RIGHT] : [measured])))
}

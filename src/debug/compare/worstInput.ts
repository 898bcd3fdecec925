// A search for the inputs with which a backend is farthest from the reference: first values of all magnitudes and signs, then changes of the best that was found.
import { dtypeInfo } from '../../kernels/index.ts'
import type { DType } from '../../kernels/index.ts'
import { copyInto } from '../../ops/eager/copy.ts'
import { checkArgument, checkCallable, checkOptions, isObject } from '../../protocol/index.ts'
import type { OnProgress } from '../../protocol/index.ts'
import { asTensor, exactElements, finfo, Generator, philox, Tensor, tensorFromValues } from '../../tensor/index.ts'
import { elementsOf, magnitudeOf } from '../closeness/closeness.ts'
import { isolatedInputs } from '../runs/isolated.ts'
import type { Candidate, Prepared } from './backends.ts'
import type { Compared } from './comparing.ts'
import type { Status } from './culprit.ts'
import { sameValues } from './moduleTensors.ts'
import { measure } from './measure.ts'
import type { Measured } from './measure.ts'
import { taskOf } from './reference.ts'
import type { Step, Task } from './reference.ts'
import { Trial } from './trial.ts'

/** How the worst input is searched for. */
export interface WorstInputOptions {
  /** How many inputs are tried for each backend. Default 100. */
  readonly tries?: number
  /** The same seed gives the same inputs. Default 0. */
  readonly seed?: number
  /** Gets the progress of the search: the number of inputs that were tried on a backend, which `text` names. What it throws ends the comparison. */
  readonly onProgress?: OnProgress
}

/** The inputs with the largest error that a search has found. */
export interface WorstInput {
  /** As `result.inputs`: one per placeholder. */
  readonly inputs: readonly unknown[]
  /** The placeholders whose values it takes: with all others as they were given, the backend is still wrong. Empty if nothing was worse than the given inputs. */
  readonly names: readonly string[]
  /** The largest error of a result of the graph, see `tol`; NaN if the backend threw. */
  readonly error: number
  /** What is said of the backend on these inputs. */
  readonly status: Status
}

type Search = WorstInputOptions & Required<Omit<WorstInputOptions, 'onProgress'>>

/** The options with their defaults. Throws ArgumentError for bad ones. */
export function checkWorstInput(options: WorstInputOptions): Search {
  checkArgument(isObject(options), 'compareBackends', 'options.worstInput', 'an object { tries, seed }', options)
  checkOptions('compareBackends (options.worstInput)', options, { tries: 'number', seed: 'number', onProgress: true })
  const { tries = 100, seed = 0, onProgress } = options
  checkArgument(Number.isSafeInteger(tries) && tries > 0, 'compareBackends', 'options.worstInput.tries', 'a whole number of at least 1', tries)
  checkArgument(Number.isSafeInteger(seed) && seed >= 0, 'compareBackends', 'options.worstInput.seed', 'a whole number', seed)
  if (onProgress !== undefined) checkCallable('compareBackends', 'options.worstInput.onProgress', onProgress)
  return { tries, seed, ...(onProgress === undefined ? {} : { onProgress }) }
}

/** Sums of this many values in another order may overflow too. */
const NEARLY = 1024

/** Whether a result has a value that is too large for its dtype, or nearly so. */
const overflows = ({ want, like }: Step): boolean =>
  want.some((wide, i) => {
    const { dtype } = like[i] ?? wide
    return dtypeInfo[dtype].floating && magnitudeOf(wide) > finfo(dtype).max / NEARLY
  })

/** Of all tries, how many look around; the others change the best one. */
const EXPLORING = 0.6

/** Random choices. */
class Draws {
  readonly #generator: Generator
  constructor(seed: number) {
    this.#generator = new Generator(seed)
  }

  /** From 0 up to 1. */
  uniform(): number {
    return philox(this.#generator.draw(), 0)[0] / 2 ** 32
  }

  normal(): number {
    return Math.sqrt(-2 * Math.log(1 - this.uniform())) * Math.cos(2 * Math.PI * this.uniform())
  }

  below(count: number): number {
    return Math.floor(this.uniform() * count)
  }

  sign(): number {
    return this.uniform() < 0.5 ? -1 : 1
  }
}

/** Makes an element of a floating-point input of what it was. */
type Change = (value: number, dtype: DType) => number

/** The powers of ten that are drawn: for float16 those that it has. */
const decades = (dtype: DType): readonly [least: number, most: number] => (dtype === 'float16' ? [-5, 4] : [-8, 8])

function magnitude(draws: Draws, dtype: DType): number {
  const [least, most] = decades(dtype)
  return 10 ** (least + (most - least) * draws.uniform())
}

/** Numbers at which functions change: an implementation may take another way there. */
function special(draws: Draws, dtype: DType): number {
  const { tiny, eps, max } = finfo(dtype)
  const values = [0, -0, tiny, eps, 0.5, 1, 1 - eps, 1 + eps, 2, Math.sqrt(max)]
  return draws.sign() * (values[draws.below(values.length)] ?? 0)
}

const BEYOND = [NaN, Infinity, -Infinity]

/** Ways to change inputs as a whole. */
const WAYS: readonly Way[] = [
  (draws, dtype) => {
    const scale = magnitude(draws, dtype)
    return (value) => value * scale
  },
  (draws, dtype) => {
    const scale = magnitude(draws, dtype)
    return () => draws.normal() * scale
  },
  (draws, dtype) => {
    const scale = -magnitude(draws, dtype)
    return (value) => Math.abs(value) * scale
  },
  (draws, dtype) => {
    const scale = magnitude(draws, dtype)
    return () => draws.uniform() * scale
  },
  (draws) => (_, dtype) => draws.sign() * magnitude(draws, dtype),
  (draws) => (value, dtype) => (draws.uniform() < 0.3 ? special(draws, dtype) : value),
]

type Way = (draws: Draws, dtype: DType) => Change

const withoutNumbers: Way = (draws) => (value) => (draws.uniform() < 0.3 ? (BEYOND[draws.below(3)] ?? value) : value)

/** One after the other. NaN and infinities come later: whatever is wrong with numbers is found before. */
const wayAt = (i: number, numbersOnly: boolean): Way => (!numbersOnly && i % 2 === 0 ? withoutNumbers : (WAYS[i % WAYS.length] ?? withoutNumbers))

/** Small changes of some elements. */
function nearby(draws: Draws, numel: number): Change {
  const chance = Math.max(1 / Math.max(1, numel), 0.3)
  return (value, dtype) => {
    if (draws.uniform() >= chance) return value
    const way = draws.below(4)
    if (way === 0) return value * 10 ** (draws.normal() / 2)
    if (way === 1) return -value
    if (way === 2) return value + draws.normal()
    return special(draws, dtype)
  }
}

/** The tensor with its floating-point elements changed, and others drawn anew from `least` to `most`. */
function changed(tensor: Tensor, change: Change, range: Range, draws: Draws): void {
  const { dtype, shape } = tensor
  if (dtypeInfo[dtype].floating) {
    const { max } = finfo(dtype)
    const within = (value: number): number => (Number.isFinite(value) ? Math.max(-max, Math.min(max, value)) : value)
    copyInto(
      tensorFromValues(
        elementsOf(tensor).map((value) => (Number.isFinite(value) ? within(change(value, dtype)) : change(value, dtype))),
        shape,
        dtype,
      ),
      tensor,
    )
    return
  }
  const [least, most] = range
  const span = Number(most - least) + 1
  const values = Array.from({ length: tensor.numel }, () => least + BigInt(Math.min(draws.below(span), span - 1)))
  copyInto(tensorFromValues(dtype === 'int64' ? values : values.map(Number), shape, dtype), tensor)
}

/** The smallest and the largest element of an input of integers. */
type Range = readonly [least: bigint, most: bigint]

function rangeOf(tensor: Tensor): Range {
  if (dtypeInfo[tensor.dtype].floating || tensor.numel === 0) return [0n, 0n]
  if (tensor.dtype === 'bool') return [0n, 1n]
  const elements = Array.from(exactElements(tensor), BigInt)
  return [elements.reduce((a, b) => (b < a ? b : a)), elements.reduce((a, b) => (b > a ? b : a))]
}

/** Inputs, and how wrong the backend is with them. */
interface Tried {
  readonly inputs: readonly unknown[]
  readonly measured: Measured
}

const RANKS: Readonly<Record<Measured['status'], number>> = { skipped: 0, ok: 0, flaky: 1, differs: 1, failed: 2 }

/** What is wrong is worse than what is right, and an error that is thrown worse than all others. */
function isWorse(a: Measured, b: Measured): boolean {
  const [x, y] = [RANKS[a.status], RANKS[b.status]]
  return x === y ? a.error > b.error : x > y
}

/** Whether it is still wrong; for what is right, whether the error is at least half as large. */
const isStillSo = (a: Measured, b: Measured): boolean => RANKS[a.status] === RANKS[b.status] && (b.status !== 'ok' || a.error >= b.error / 2)

/** Nothing can be worse. */
const isWorst = ({ status, error }: Measured): boolean => status === 'failed' || error === Infinity

const tensorAt = (values: readonly unknown[], i: number): Tensor => asTensor(values[i], 'an input')

/** Runs a graph once, and leaves the backend's weights as they were. */
async function measuredOnce(prepared: Prepared, task: Task, tol: number): Promise<Measured> {
  const trial = new Trial(prepared, task, tol)
  try {
    return (await trial.run()).measured
  } finally {
    trial.restore()
  }
}

/** The inputs with the largest error among those that are tried. `given` are the names of the placeholders to change; null for all. */
export async function worstInputOf(
  one: Candidate,
  { gm, inputs, reference, tol, task: first }: Compared,
  given: ReadonlySet<string> | null,
  { tries, seed, onProgress }: Search,
): Promise<{ readonly inputs: readonly unknown[]; readonly names: readonly string[] } & Pick<Measured, 'error' | 'status'>> {
  const draws = new Draws(seed)
  const names = gm.graph.findNodes({ op: 'placeholder' }).map(({ name }) => name)
  const places = [...inputs.keys()].filter((i) => inputs[i] instanceof Tensor && (given === null || given.has(names[i] ?? '')))
  const ranges = new Map(places.map((i) => [i, rangeOf(tensorAt(inputs, i))]))
  const taskWith = (values: readonly unknown[]): Task | null => {
    try {
      const task = taskOf(gm, values, reference, first.state)
      // Where values overflow that float64 has, another order of the same operations may not: nothing can be said.
      return task.run.steps.some(overflows) || measure(task, task.like, tol).status !== 'ok' ? null : task
    } catch {
      // What eager kernels reject is no input.
      return null
    }
  }
  /** Some of the inputs with other values. */
  const varied = (from: readonly unknown[], changeOf: (tensor: Tensor) => Change): readonly unknown[] => {
    const values = isolatedInputs(from)
    const only = places.length > 1 && draws.uniform() < 0.5 ? places[draws.below(places.length)] : undefined
    for (const i of only === undefined ? places : [only]) {
      const tensor = tensorAt(values, i)
      changed(tensor, changeOf(tensor), ranges.get(i) ?? [0n, 0n], draws)
    }
    return values
  }
  return one.with(gm, inputs, async (prepared) => {
    const attempt = async (values: readonly unknown[]): Promise<Tried | null> => {
      const task = taskWith(values)
      return task === null ? null : { inputs: values, measured: await measuredOnce(prepared, task, tol) }
    }
    let best: Tried = { inputs, measured: await measuredOnce(prepared, first, tol) }
    for (let i = 1; i < tries && places.length > 0 && !isWorst(best.measured); i++) {
      onProgress?.({ task: 'worst input', done: i, total: tries, text: one.name })
      const exploring = i < tries * EXPLORING
      const values = exploring
        ? varied(inputs, ({ dtype }) => wayAt(i, i < tries * (EXPLORING / 2))(draws, dtype))
        : varied(best.inputs, ({ numel }) => nearby(draws, numel))
      // oxlint-disable-next-line no-await-in-loop -- each try depends on those before
      const next = await attempt(values)
      if (next !== null && isWorse(next.measured, best.measured)) best = next
    }
    // Which of the inputs it takes.
    const matter: string[] = []
    let values = best.inputs
    for (const i of places) {
      if (sameValues(tensorAt(best.inputs, i), tensorAt(inputs, i))) continue
      const without = values.map((value, k) => (k === i ? inputs[i] : value))
      // oxlint-disable-next-line no-await-in-loop -- as above
      const next = await attempt(without)
      if (next !== null && isStillSo(next.measured, best.measured)) values = without
      else matter.push(names[i] ?? '')
    }
    return { inputs: best.inputs, names: matter, error: best.measured.error, status: best.measured.status }
  })
}

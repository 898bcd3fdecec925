// What the live page is told of a training, and when: steps some times a second, parameters as seldom as their histograms cost little.
import { noGrad } from '../autograd/index.ts'
import { heapStats, isComplexDType } from '../kernels/index.ts'
import type { Module } from '../module/index.ts'
import { histc, norm } from '../ops/index.ts'
import type { Optimizer } from '../optim/optimizer.ts'
import { Tensor } from '../tensor/index.ts'
import type { EpochReport } from './fitOptions.ts'
import { servePage } from './livePage.ts'
import type { LivePage } from './livePage.ts'
import type { WeightRow } from './page/data.ts'

/** Milliseconds between two steps that are shown, and between turns in which the server answers. */
const STEP_EVERY = 250
const TURN_EVERY = 50
/** Milliseconds between histograms at least, and how much more of the time must pass than they took. */
const WEIGHTS_EVERY = 4000
const WEIGHTS_SHARE = 50
const BINS = 32
/** Parameters that are shown. */
const MOST_ROWS = 200

/** How far the training is. */
export interface Moment {
  readonly step: number
  readonly epoch: number
  /** How much of the epoch is done; null if its length is not known. */
  readonly done: number | null
  readonly loss: number
  /** Samples of this process so far. */
  readonly seen: number
  /** The norm of each gradient, as gradNorms computes them; null if they were not asked for. */
  readonly norms: Tensor | null
}

const numbersOf = (tensor: Tensor): readonly number[] => [tensor.toArray()].flat().map(Number)

/** The parameter with a histogram of its values, of absolute ones if it is complex. */
function rowOf(name: string, parameter: Tensor, gradNorm: number | undefined): WeightRow {
  const values = (isComplexDType(parameter.dtype) ? parameter.detach().abs() : parameter.detach()).float().flatten()
  const [from, to] = values.numel === 0 ? [0, 0] : [Number(values.min().item()), Number(values.max().item())]
  const isFinite = Number.isFinite(from) && Number.isFinite(to)
  return {
    name,
    shape: parameter.shape,
    norm: Number(norm(values).item()),
    gradNorm: gradNorm === undefined || Number.isNaN(gradNorm) ? null : gradNorm,
    from,
    to,
    counts: isFinite && from < to ? numbersOf(histc(values, BINS, from, to)) : isFinite ? [values.numel] : [0],
  }
}

/** A training that a page looks at. */
export class Watch {
  readonly #page: LivePage
  readonly #optimizer: Optimizer
  readonly #parameters: readonly (readonly [name: string, parameter: Tensor])[]
  readonly #began = performance.now()
  /** The step shown last, with which the next one is compared. */
  #shown = { at: -Infinity, seen: 0, step: 0 }
  /** The newest step, and when it was. */
  #last: (Moment & { readonly at: number }) | null = null
  #turned = performance.now()
  #weightsDue = 0
  #norms: readonly number[] = []

  private constructor(page: LivePage, model: Module, optimizer: Optimizer) {
    this.#page = page
    this.#optimizer = optimizer
    this.#parameters = parametersOf(model)
  }

  /** Serves the page. */
  static async open(model: Module, optimizer: Optimizer, epochs: number, port: number): Promise<Watch> {
    const parameters = parametersOf(model).reduce((sum, [, { numel }]) => sum + numel, 0)
    const page = await servePage({ model: model.getName(), parameters, epochs }, port)
    return new Watch(page, model, optimizer)
  }

  get url(): string {
    return this.#page.url
  }

  /** Whether the next step should be shown, and so compute the norms of its gradients. */
  get isDue(): boolean {
    return performance.now() - this.#shown.at >= STEP_EVERY
  }

  /** A step is done. Lets the server answer, too. */
  async step(moment: Moment): Promise<void> {
    this.#last = { ...moment, at: performance.now() }
    if (moment.norms !== null) {
      this.#norms = numbersOf(moment.norms)
      this.#show()
      if (performance.now() >= this.#weightsDue) this.#weights()
    }
    if (performance.now() - this.#turned >= TURN_EVERY) await this.#turn()
  }

  /** Shows the newest step, with the norm of all gradients if it has those of each. */
  #show(): void {
    if (this.#last === null || this.#last.step === this.#shown.step) return
    const { step, epoch, done, loss, seen, norms, at } = this.#last
    const passed = (at - this.#shown.at) / 1000
    this.#page.tell({
      kind: 'step',
      step,
      epoch,
      done,
      seconds: (at - this.#began) / 1000,
      values: {
        loss,
        ...(norms === null ? {} : { gradNorm: Math.sqrt(this.#norms.reduce((sum, one) => (Number.isNaN(one) ? sum : sum + one * one), 0)) }),
        learningRate: this.#optimizer.paramGroups[0]?.lr ?? NaN,
        ...(Number.isFinite(passed) ? { samplesPerSecond: (seen - this.#shown.seen) / passed } : {}),
        memory: heapStats().inUse,
      },
    })
    this.#shown = { at, seen, step }
  }

  /** The parameters, with how long that takes setting when they come again. */
  #weights(): void {
    const began = performance.now()
    const rows = noGrad(() => this.#parameters.slice(0, MOST_ROWS).map(([name, parameter], i) => rowOf(name, parameter, this.#norms[i])))
    this.#page.tell({ kind: 'weights', step: this.#last?.step ?? 0, rows })
    const took = performance.now() - began
    this.#weightsDue = performance.now() + Math.max(WEIGHTS_EVERY, WEIGHTS_SHARE * took)
  }

  /** Steps hold the thread: the server answers in turns between them. */
  async #turn(): Promise<void> {
    for (let i = 0; i < 3; i++) await new Promise<void>((resolve) => setImmediate(resolve))
    this.#turned = performance.now()
  }

  epoch({ epoch, step, values }: EpochReport): void {
    this.#page.tell({ kind: 'epoch', epoch, step, values })
  }

  /** The training ended, or failed: the last step is shown, and the server closes. */
  async end(text: string): Promise<void> {
    this.#show()
    if (text === 'done') this.#weights()
    await this.#page.end(text)
  }
}

const parametersOf = (model: Module): readonly (readonly [string, Tensor])[] =>
  [...model.namedParameters()].flatMap(([name, parameter]) => (parameter instanceof Tensor ? [[name, parameter] as const] : []))

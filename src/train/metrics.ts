// Metrics over a stream of batches: sums that are updated by each batch, and added up over ranks.
import { noGrad } from '../autograd/index.ts'
import { ArgumentError, ShapeError } from '../errors/index.ts'
import { checkCount, checkMethod, checkOptions, valueText } from '../protocol/index.ts'
import { checkTensor, formatShape, sameShape } from '../tensor/index.ts'
import type { Tensor } from '../tensor/index.ts'

/** A number that says how good predictions are, computed batch by batch. */
export abstract class Metric {
  /** Takes a batch in. */
  abstract update(prediction: Tensor, target: Tensor): void
  /** The value for all batches so far; NaN before the first one. */
  abstract compute(): number
  /** Forgets all batches. */
  abstract reset(): void
  /** What has been counted: plain numbers, which a checkpoint holds and other ranks can take in. */
  abstract counted(): readonly number[]
  /** Takes in what another rank has counted, or a checkpoint held. */
  abstract merge(counted: readonly number[]): void
}

/** A metric of sums. */
abstract class SumMetric extends Metric {
  readonly #sums: Float64Array

  constructor(size: number) {
    super()
    this.#sums = new Float64Array(size)
  }

  /** The sums so far. */
  protected get sums(): Float64Array {
    return this.#sums
  }

  override update(prediction: Tensor, target: Tensor): void {
    const where = `${this.constructor.name}.update`
    checkMethod(this, 'update', arguments, 2)
    checkTensor(where, 'prediction', prediction)
    checkTensor(where, 'target', target)
    this.merge(noGrad(() => this.sumsOf(where, prediction.detach(), target.detach())))
  }

  /** The sums of one batch. */
  protected abstract sumsOf(where: string, prediction: Tensor, target: Tensor): readonly number[]

  override reset(): void {
    this.#sums.fill(0)
  }

  override counted(): readonly number[] {
    return [...this.#sums]
  }

  override merge(counted: readonly number[]): void {
    if (!Array.isArray(counted) || counted.length !== this.#sums.length)
      throw new ArgumentError(`${this.constructor.name}.merge: argument 'counted' must be ${this.#sums.length} numbers, got ${valueText(counted)}.`)
    for (const [i, value] of counted.entries()) this.#sums[i] = (this.#sums[i] ?? 0) + value
  }
}

/** The elements as numbers. */
const elementsOf = (x: Tensor): readonly number[] => Array.from(x.contiguous().toTypedArray(), Number)

/** Throws ShapeError unless both have the same shape. */
function checkSame(where: string, prediction: Tensor, target: Tensor): void {
  if (!sameShape(prediction.shape, target.shape))
    throw new ShapeError(
      `${where}: prediction and target must have the same shape, got ${formatShape(prediction.shape)} and ${formatShape(target.shape)}.`,
    )
}

/** Throws ShapeError unless the prediction has scores of classes in dimension 1 (or the last, of one sample) for each target. Returns scores of shape [N, C] and targets of shape [N]. */
function scoresOf(where: string, prediction: Tensor, target: Tensor): readonly [scores: Tensor, classes: readonly number[], count: number] {
  const count = prediction.shape[1] ?? 0
  const wanted = [prediction.shape[0] ?? 0, ...prediction.shape.slice(2)]
  if (prediction.ndim < 2 || !sameShape(target.shape, wanted))
    throw new ShapeError(
      `${where}: prediction must have scores of classes in dimension 1, [N, C, …], and target the classes, [N, …]; got ${formatShape(prediction.shape)} and ${formatShape(target.shape)}.`,
    )
  return [prediction.movedim(1, -1).reshape([-1, count]), elementsOf(target.reshape([-1])), count]
}

/** Options of {@link Accuracy}. */
export interface AccuracyOptions {
  /** A target counts as found if its score is among the k highest. Default 1. */
  readonly topK?: number
  /** For predictions of the target's shape: from which value on they mean 1. Default 0.5, as of probabilities; 0 for logits. */
  readonly threshold?: number
}

/** The part of samples whose class has the highest score: scores [N, C, …] and classes [N, …], or probabilities and zeros and ones of one shape. */
export class Accuracy extends SumMetric {
  readonly topK: number
  readonly threshold: number

  constructor(options: AccuracyOptions = {}) {
    checkCount('Accuracy', arguments, 1)
    checkOptions('Accuracy', options, { topK: 'number', threshold: 'number' })
    super(2)
    const { topK = 1, threshold = 0.5 } = options
    if (!Number.isInteger(topK) || topK < 1) throw new ArgumentError(`Accuracy: option 'topK' must be an integer from 1 on, got ${valueText(topK)}.`)
    this.topK = topK
    this.threshold = threshold
  }

  protected override sumsOf(where: string, prediction: Tensor, target: Tensor): readonly number[] {
    if (sameShape(prediction.shape, target.shape)) {
      const right = prediction.ge(this.threshold).eq(target.gt(0.5)).to('float64').sum().item()
      return [right, target.numel]
    }
    const [scores, classes, count] = scoresOf(where, prediction, target)
    const best = elementsOf(scores.topk(Math.min(this.topK, count), -1)[1])
    const each = classes.length === 0 ? 1 : best.length / classes.length
    const right = classes.filter((one, i) => best.slice(i * each, (i + 1) * each).includes(one)).length
    return [right, classes.length]
  }

  override compute(): number {
    const [right = 0, total = 0] = this.sums
    return right / total
  }
}

/** How often each class was taken for each other one: scores [N, C, …] and classes [N, …]. Its value is the accuracy; {@link matrix} has the counts. */
export class ConfusionMatrix extends SumMetric {
  readonly classes: number

  constructor(classes: number) {
    checkCount('ConfusionMatrix', arguments, 1)
    if (!Number.isSafeInteger(classes) || classes < 2 || classes > 10_000)
      throw new ArgumentError(`ConfusionMatrix: argument 'classes' must be an integer from 2 to 10,000, got ${valueText(classes)}.`)
    super(classes * classes)
    this.classes = classes
  }

  /** Rows are the classes, columns what they were taken for. */
  get matrix(): readonly (readonly number[])[] {
    return Array.from({ length: this.classes }, (_, row) => [...this.sums.subarray(row * this.classes, (row + 1) * this.classes)])
  }

  protected override sumsOf(where: string, prediction: Tensor, target: Tensor): readonly number[] {
    const [scores, classes, count] = scoresOf(where, prediction, target)
    if (count !== this.classes) throw new ShapeError(`${where}: there are scores of ${count} classes, but the metric was made for ${this.classes}.`)
    const out = Array.from({ length: this.classes * this.classes }, () => 0)
    for (const [i, best] of elementsOf(scores.argmax(-1)).entries()) {
      const row = classes[i] ?? -1
      if (!(Number.isInteger(row) && row >= 0 && row < this.classes))
        throw new ArgumentError(`${where}: targets must be classes from 0 to ${this.classes - 1}, got ${row}.`)
      const at = row * this.classes + best
      out[at] = (out[at] ?? 0) + 1
    }
    return out
  }

  override compute(): number {
    const { matrix } = this
    const total = this.sums.reduce((a, b) => a + b, 0)
    return matrix.reduce((sum, row, i) => sum + (row[i] ?? 0), 0) / total
  }
}

/** The harmonic mean of precision and recall: of each class, then the mean over classes (`'macro'`), that weighted by their samples (`'weighted'`), or of all samples (`'micro'`). */
export class F1Score extends ConfusionMatrix {
  readonly average: 'macro' | 'micro' | 'weighted'

  constructor(classes: number, options: { readonly average?: 'macro' | 'micro' | 'weighted' } = {}) {
    super(classes)
    checkOptions('F1Score', options, { average: true })
    const { average = 'macro' } = options
    if (!['macro', 'micro', 'weighted'].includes(average))
      throw new ArgumentError(`F1Score: option 'average' must be 'macro', 'micro' or 'weighted', got ${valueText(average)}.`)
    this.average = average
  }

  override compute(): number {
    // With one class per sample, precision and recall over all of them are the accuracy.
    if (this.average === 'micro') return super.compute()
    const { matrix } = this
    let [sum, weights] = [0, 0]
    for (const [i, row] of matrix.entries()) {
      const found = row[i] ?? 0
      const actual = row.reduce((a, b) => a + b, 0)
      const predicted = matrix.reduce((a, other) => a + (other[i] ?? 0), 0)
      // A class that neither occurs nor is predicted says nothing.
      if (actual + predicted === 0) continue
      const weight = this.average === 'macro' ? 1 : actual
      sum += (weight * 2 * found) / (actual + predicted)
      weights += weight
    }
    return sum / weights
  }
}

/** e to the mean of the negative logarithms of the probabilities of targets: logits [N, C, …] and classes [N, …]; targets `ignoreIndex` (-100) do not count. */
export class Perplexity extends SumMetric {
  readonly ignoreIndex: number

  constructor(options: { readonly ignoreIndex?: number } = {}) {
    checkCount('Perplexity', arguments, 1)
    checkOptions('Perplexity', options, { ignoreIndex: 'number' })
    super(2)
    this.ignoreIndex = options.ignoreIndex ?? -100
  }

  protected override sumsOf(where: string, prediction: Tensor, target: Tensor): readonly number[] {
    const [scores, classes, count] = scoresOf(where, prediction, target)
    const logs = elementsOf(scores.to('float64').logSoftmax(-1))
    let [sum, total] = [0, 0]
    for (const [i, one] of classes.entries()) {
      if (one === this.ignoreIndex) continue
      const log = Number.isInteger(one) && one >= 0 && one < count ? logs[i * count + one] : undefined
      if (log === undefined) throw new ArgumentError(`${where}: targets must be classes from 0 to ${count - 1}, or ${this.ignoreIndex}; got ${one}.`)
      sum -= log
      total++
    }
    return [sum, total]
  }

  override compute(): number {
    const [sum = 0, total = 0] = this.sums
    return Math.exp(sum / total)
  }
}

/** The mean of the squares of errors; with `{ squared: false }` its root. */
export class MeanSquaredError extends SumMetric {
  readonly squared: boolean

  constructor(options: { readonly squared?: boolean } = {}) {
    checkCount('MeanSquaredError', arguments, 1)
    checkOptions('MeanSquaredError', options, { squared: 'boolean' })
    super(2)
    this.squared = options.squared ?? true
  }

  protected override sumsOf(where: string, prediction: Tensor, target: Tensor): readonly number[] {
    checkSame(where, prediction, target)
    return [prediction.to('float64').sub(target).square().sum().item(), target.numel]
  }

  override compute(): number {
    const [sum = 0, total = 0] = this.sums
    return this.squared ? sum / total : Math.sqrt(sum / total)
  }
}

/** R²: the part of the variance of targets that predictions explain; 1 is perfect, 0 as good as the mean. */
export class R2Score extends SumMetric {
  constructor() {
    checkCount('R2Score', arguments, 0)
    super(4)
  }

  protected override sumsOf(where: string, prediction: Tensor, target: Tensor): readonly number[] {
    checkSame(where, prediction, target)
    const y = target.to('float64')
    return [target.numel, y.sum().item(), y.square().sum().item(), prediction.to('float64').sub(y).square().sum().item()]
  }

  override compute(): number {
    const [count = 0, sum = 0, squares = 0, errors = 0] = this.sums
    return 1 - errors / (squares - (sum * sum) / count)
  }
}

/** The area under the ROC curve: how often a sample of class 1 has a higher score than one of class 0. Scores and zeros and ones of one shape, which it keeps. */
export class AUC extends Metric {
  #pairs: number[] = []

  constructor() {
    checkCount('AUC', arguments, 0)
    super()
  }

  override update(prediction: Tensor, target: Tensor): void {
    checkMethod(this, 'update', arguments, 2)
    checkTensor('AUC.update', 'prediction', prediction)
    checkTensor('AUC.update', 'target', target)
    checkSame('AUC.update', prediction, target)
    const [scores, labels] = [elementsOf(prediction.detach()), elementsOf(target.detach())]
    for (const [i, score] of scores.entries()) this.#pairs.push(score, (labels[i] ?? 0) > 0.5 ? 1 : 0)
  }

  /** Each score of class 1 beats the scores of class 0 below it, and half of those that are equal. */
  override compute(): number {
    const sorted = Array.from({ length: this.#pairs.length / 2 }, (_, i) => [this.#pairs[2 * i] ?? 0, this.#pairs[2 * i + 1] ?? 0] as const)
    sorted.sort(([a], [b]) => a - b)
    const positives = sorted.filter(([, label]) => label === 1).length
    const negatives = sorted.length - positives
    let [below, beaten] = [0, 0]
    for (let at = 0; at < sorted.length;) {
      const score = sorted[at]?.[0]
      let [ones, zeros] = [0, 0]
      for (; at < sorted.length && sorted[at]?.[0] === score; at++) {
        if (sorted[at]?.[1] === 1) ones++
        else zeros++
      }
      beaten += ones * (below + zeros / 2)
      below += zeros
    }
    return beaten / (positives * negatives)
  }

  override reset(): void {
    this.#pairs = []
  }

  override counted(): readonly number[] {
    return [...this.#pairs]
  }

  override merge(counted: readonly number[]): void {
    if (!Array.isArray(counted) || counted.length % 2 !== 0 || !counted.every((one) => typeof one === 'number'))
      throw new ArgumentError(`AUC.merge: argument 'counted' must be scores and labels in turns, got ${valueText(counted)}.`)
    for (const one of counted) this.#pairs.push(one)
  }
}

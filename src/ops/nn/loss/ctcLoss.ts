// Connectionist temporal classification: the likelihood of a sequence of labels, over all its alignments with a longer sequence of predictions.
import { ShapeError } from '../../../errors/index.ts'
import { valueText } from '../../../protocol/index.ts'
import { ArgumentError } from '../../../errors/index.ts'
import { Tensor, formatShape, scalarOf, sizeAdd, sizeAtMost, sizeMax, sizeMul, sizeNumber, sizeSub, tensorFromValues } from '../../../tensor/index.ts'
import { withoutModes } from '../../../dispatch/index.ts'
import { arange, full } from '../../create/creation.ts'
import type { OpFunction } from '../../define/declaration.ts'
import { defineOp } from '../../define/defineOp.ts'
import { cat, constantPadNd, stack } from '../../join/join.ts'
import { add, div, mul, neg, sub } from '../../pointwise/arithmetic.ts'
import { to } from '../../pointwise/cast.ts'
import { eq, ge, logicalAnd, lt, ne } from '../../pointwise/comparison.ts'
import { clamp, where } from '../../pointwise/select.ts'
import { exp } from '../../pointwise/unary.ts'
import { mean } from '../../reduction/mean.ts'
import { logsumexp } from '../../reduction/softmax.ts'
import { cumsum } from '../../reduction/cumsum.ts'
import { sum } from '../../reduction/sum.ts'
import { sizeAt } from '../../shared/shapes.ts'
import { gather } from '../../view/indexing.ts'
import { expand } from '../../view/windows.ts'
import { reshape, squeeze, unsqueeze } from '../../view/reshape.ts'
import { narrow, select } from '../../view/slicing.ts'
import { checkedReduction } from './nllLoss.ts'
import type { LossOptions } from './losses.ts'

const NAME = 'torch.nn.functional.ctc_loss'

/** The logarithm of an impossible event: finite, so that differences of two of them are numbers. */
const IMPOSSIBLE = -1e30

export interface CtcOptions extends LossOptions {
  /** The label that stands for none. Default 0. */
  readonly blank?: number
  /** Whether infinite losses, of targets that are too long for their inputs, count as 0. */
  readonly zeroInfinity?: boolean
}

type Lengths = Tensor | readonly number[]

function lengthsOf(name: string, given: unknown): Tensor {
  if (given instanceof Tensor) return to(reshape(given, [-1]), 'int64')
  if (Array.isArray(given) && given.every((v) => Number.isInteger(v)))
    return withoutModes(() => tensorFromValues(given.map(Number), [given.length], 'int64'))
  throw new ArgumentError(`${NAME}: ${name} must be a Tensor or a list of integers, got ${valueText(given)}.`)
}

/** Targets as rows [N, S]: those of a list in a row start where the ones before end. */
function targetRows(targets: Tensor, lengths: Tensor): Tensor {
  if (targets.ndim === 2) return to(targets, 'int64')
  const starts = reshape(sub(cumsum(lengths, 0), lengths), [-1, 1])
  const last = sizeMax(0, sizeSub(targets.symNumel, 1))
  const positions = clamp(add(starts, arange(scalarOf(targets.symNumel), { dtype: 'int64' })), 0, scalarOf(last))
  return reshape(gather(to(targets, 'int64'), 0, reshape(positions, [-1])), positions.symSizes)
}

/** log(e^a + e^b + …), where IMPOSSIBLE counts as nothing. */
const logAdd = (terms: readonly Tensor[]): Tensor => logsumexp(stack(terms, 0), [0])

/** The loss of each sample: [T, N, C] log-probabilities, and labels [N, S]. */
function lossesOf(logProbs: Tensor, labels: Tensor, inputLengths: Tensor, targetLengths: Tensor, blank: number): Tensor {
  // The steps are a loop of this program, so a symbol becomes their number.
  const steps = sizeNumber(sizeAt(logProbs.symSizes, 0))
  const [samples, longest] = [sizeAt(logProbs.symSizes, 1), sizeAt(labels.symSizes, 1)]
  const states = sizeAdd(sizeMul(2, longest), 1)
  // Blank, label, blank, label, …, blank.
  const blanks = full([samples, longest], blank, { dtype: 'int64' })
  const path = cat([reshape(stack([blanks, labels], 2), [samples, sizeMul(2, longest)]), full([samples, 1], blank, { dtype: 'int64' })], 1)
  const position = arange(scalarOf(states), { dtype: 'int64' })
  const before = (t: Tensor, shift: number, fill: number): Tensor => narrow(constantPadNd(t, [shift, 0], fill), 1, 0, states)
  const maySkip = logicalAnd(ne(path, blank), ne(path, before(path, 2, blank)))
  const at = (t: number): Tensor => gather(select(logProbs, 0, t), 1, path)
  const ends = reshape(mul(targetLengths, 2), [-1, 1])
  let alpha = where(logicalAnd(lt(position, 2), lt(position, add(ends, 1))), at(0), IMPOSSIBLE)
  for (let t = 1; t < steps; t++) {
    const skipped = where(maySkip, before(alpha, 2, IMPOSSIBLE), IMPOSSIBLE)
    const next = clamp(add(logAdd([alpha, before(alpha, 1, IMPOSSIBLE), skipped]), at(t)), IMPOSSIBLE)
    alpha = where(ge(reshape(inputLengths, [-1, 1]), t + 1), next, alpha)
  }
  const last = squeeze(gather(alpha, 1, ends), 1)
  // A target of no labels has one end only.
  const other = where(eq(targetLengths, 0), IMPOSSIBLE, squeeze(gather(alpha, 1, clamp(sub(ends, 1), 0)), 1))
  const total = logAdd([last, other])
  return where(lt(total, IMPOSSIBLE / 2), Infinity, neg(total))
}

/** Throws unless the lengths fit the predictions and the targets. */
function checkLengths(logProbs: Tensor, targets: Tensor, inputLengths: Tensor, targetLengths: Tensor): void {
  if (inputLengths.isFake || targetLengths.isFake) return
  const steps = sizeAt(logProbs.sizes, 0)
  const inside = (name: string, lengths: readonly number[], most: number, what: string): void => {
    const wrong = lengths.find((n) => n < 0 || n > most)
    if (wrong !== undefined) throw new ArgumentError(`${NAME}: ${name} must be between 0 and ${most}, ${what}, got ${wrong}.`)
  }
  const numbers = (t: Tensor): readonly number[] => Array.from(t.toTypedArray(), Number)
  const labels = numbers(targetLengths)
  inside('input_lengths', numbers(inputLengths), steps, 'the number of steps of log_probs')
  const most = targets.ndim === 1 && sizeAt(logProbs.sizes, 1) > 1 ? targets.numel : sizeAt(targets.sizes, -1)
  inside('target_lengths', labels, most, 'the number of labels in targets')
  const all = labels.reduce((a, b) => a + b, 0)
  if (targets.ndim === 1 && all > targets.numel)
    throw new ArgumentError(`${NAME}: target_lengths name ${all} labels, but targets holds only ${targets.numel}.`)
}

/**
 * 0 for each sample, with the gradient e^x of each log-probability x that counts. PyTorch's gradient has this term: it takes the inputs for logarithms of
 * probabilities, and makes the gradients of each step add up to 0. Behind a log-softmax it changes nothing.
 */
function normalized(logProbs: Tensor, inputLengths: Tensor): Tensor {
  const odds = exp(logProbs)
  const steps = reshape(arange(scalarOf(sizeAt(logProbs.symSizes, 0)), { dtype: 'int64' }), [-1, 1, 1])
  const counted = where(lt(steps, reshape(inputLengths, [1, -1, 1])), sub(odds, odds.detach()), 0)
  return sum(counted, [0, 2])
}

/**
 * The negative logarithm of the probability that the predictions spell the target, with blanks and repeats left out. The mean divides each loss by the length of its target.
 * PyTorch's `F.ctc_loss`.
 *
 * Shapes: `logProbs` [T, N, C] or [T, C]; `targets` [N, S], or all of them in a row; `inputLengths` and `targetLengths` [N] or []. The result is a scalar, or [N] or []
 * for reduction 'none'.
 *
 * @throws ShapeError unless `logProbs` has 2 or 3 dimensions.
 * @throws ArgumentError for an unknown `reduction`, if `blank` is not a class, or for lengths beyond the predictions or the targets.
 * @example F.ctcLoss(torch.zeros([2, 1, 2]), torch.tensor([[1]]).long(), [2], [1], { reduction: 'sum' }).item() // -1.098612
 */
export const ctcLoss: OpFunction<(logProbs: Tensor, targets: Tensor, inputLengths: Lengths, targetLengths: Lengths, options?: CtcOptions) => Tensor> =
  defineOp({
    schema:
      "ctc_loss(Tensor log_probs, Tensor targets, any input_lengths, any target_lengths, int blank=0, str reduction='mean', bool zero_infinity=False) -> Tensor",
    namespace: 'torch.nn.functional',
    autocast: 'float32',
    decompose: (given, targets, inputs, lengths, blank, reductionName, zeroInfinity) => {
      const reduction = checkedReduction(NAME, reductionName)
      if (given.ndim !== 2 && given.ndim !== 3)
        throw new ShapeError(`${NAME}: expected log_probs [T, N, C] or [T, C], got shape ${formatShape(given.symSizes)}.`)
      const logProbs = given.ndim === 2 ? unsqueeze(given, 1) : given
      if (blank < 0 || sizeAtMost(sizeAt(logProbs.symSizes, 2), blank))
        throw new ArgumentError(`${NAME}: blank must be one of the ${sizeAt(logProbs.symSizes, 2).toString()} classes, got ${blank}.`)
      const targetLengths = lengthsOf('target_lengths', lengths)
      const all = expand(targetLengths, [sizeAt(logProbs.symSizes, 1)])
      const inputLengths = expand(lengthsOf('input_lengths', inputs), [sizeAt(logProbs.symSizes, 1)])
      checkLengths(logProbs, targets, inputLengths, all)
      const losses = add(lossesOf(logProbs, targetRows(targets, all), inputLengths, all, blank), normalized(logProbs, inputLengths))
      const counted = zeroInfinity ? where(eq(losses, Infinity), 0, losses) : losses
      if (reduction === 'mean') return mean(div(counted, clamp(to(all, losses.dtype), 1)))
      return reduction === 'sum' ? sum(counted) : given.ndim === 2 ? squeeze(counted, 0) : counted
    },
  })

// How the next token is chosen from scores: the best one, or one drawn from those that temperature, top-k and top-p leave.
import type { Tensor } from '../tensor/index.ts'

/** How tokens are drawn. */
export interface Sampling {
  readonly temperature: number
  /** 0: all. */
  readonly topK: number
  /** 1: all. */
  readonly topP: number
}

/** Scores [rows, vocabulary] by the temperature, with -Infinity for tokens that must not be drawn. The order is that of Hugging Face's `generate`: temperature, top-k, top-p. */
export function filteredScores(scores: Tensor, { temperature, topK, topP }: Sampling): Tensor {
  let left = scores.float().div(temperature)
  const size = left.size(-1)
  if (topK > 0 && topK < size) {
    const [best] = left.topk(topK, -1)
    left = left.maskedFill(left.lt(best.narrow(-1, topK - 1, 1)), -Infinity)
  }
  if (topP < 1) {
    const [sorted, order] = left.sort({ dim: -1, descending: true })
    const probabilities = sorted.softmax(-1)
    // What the better tokens add up to: a token is left out if they are enough. The best one stays.
    const better = probabilities.cumsum(-1).sub(probabilities)
    const isOut = better.ge(topP)
    isOut.narrow(-1, 0, 1).fill_(0)
    left = left.maskedFill(isOut.scatter(-1, order, isOut), -Infinity)
  }
  return left
}

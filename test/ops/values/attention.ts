// Attention with the logarithms of its rows' sums, and its gradients: small calls, which are composed, and one that the kernels take.
import { Plain, build, sample, sumOf } from '../plain.ts'
import type { ValueCases } from '../valueCases.ts'

/** Reads the scores of [heads, rows, keys], the key's head for each of `groups` heads of the query. */
function scoresOf(q: Plain, k: Plain, mask: Plain | null, isCausal: boolean, scale: number): Plain {
  const [heads = 0, rows = 0, depth = 0] = q.shape
  const groups = heads / (k.shape[0] ?? 1)
  return build([heads, rows, k.shape[1] ?? 0], (h, i, j) => {
    if (isCausal && j > i) return -Infinity
    return sumOf(depth, (e) => q.at(h, i, e) * k.at(Math.floor(h / groups), j, e)) * scale + (mask?.at(h, i, j) ?? 0)
  })
}

/** [result, logarithms]. */
function attention(q: Plain, k: Plain, v: Plain, mask: Plain | null, isCausal: boolean, scale: number): readonly [Plain, Plain] {
  const scores = scoresOf(q, k, mask, isCausal, scale)
  const [heads = 0, rows = 0, keys = 0] = scores.shape
  const logs = build([heads, rows], (h, i) => Math.log(sumOf(keys, (j) => Math.exp(scores.at(h, i, j)))) || 0)
  const groups = heads / (v.shape[0] ?? 1)
  const out = build([heads, rows, v.shape[2] ?? 0], (h, i, c) =>
    sumOf(keys, (j) => Math.exp(scores.at(h, i, j) - logs.at(h, i)) * v.at(Math.floor(h / groups), j, c)),
  )
  return [out, logs]
}

/** The gradients of query, key and value, from their sums. */
function gradients(
  g: Plain,
  q: Plain,
  k: Plain,
  v: Plain,
  mask: Plain | null,
  _out: Plain,
  _logs: Plain,
  isCausal: boolean,
  scale: number,
): readonly Plain[] {
  const scores = scoresOf(q, k, mask, isCausal, scale)
  const [out, logs] = attention(q, k, v, mask, isCausal, scale)
  const [heads = 0, rows = 0, keys = 0] = scores.shape
  const groups = heads / (v.shape[0] ?? 1)
  const width = v.shape[2] ?? 0
  const weights = build(scores.shape, (h, i, j) => Math.exp(scores.at(h, i, j) - logs.at(h, i)))
  const slopes = build(
    scores.shape,
    (h, i, j) => weights.at(h, i, j) * sumOf(width, (c) => g.at(h, i, c) * (v.at(Math.floor(h / groups), j, c) - out.at(h, i, c))) * scale,
  )
  const overGroup = (owner: number, of: (h: number) => number): number => sumOf(groups, (n) => of(owner * groups + n))
  return [
    build(q.shape, (h, i, e) => sumOf(keys, (j) => slopes.at(h, i, j) * k.at(Math.floor(h / groups), j, e))),
    build(k.shape, (owner, j, e) => overGroup(owner, (h) => sumOf(rows, (i) => slopes.at(h, i, j) * q.at(h, i, e)))),
    build(v.shape, (owner, j, c) => overGroup(owner, (h) => sumOf(rows, (i) => weights.at(h, i, j) * g.at(h, i, c)))),
  ]
}

const [q, k, v, mask] = [sample([4, 3, 4], 6), sample([2, 5, 4], 7), sample([2, 5, 2], 8), sample([4, 3, 5], 9)]
const [many, keys, values] = [sample([1, 17, 8], 3), sample([1, 5, 8], 4), sample([1, 5, 8], 5)]
const g = (out: readonly [Plain, Plain]): Plain => sample(out[0].shape, 11)
const [grouped, causal] = [attention(q, k, v, mask, false, 0.5), attention(many, keys, values, null, true, 0.4)]
const never = 'it is never recorded'

export default {
  'torch.ops.tensorfx.block_attention': [
    { args: [q, k, v, mask, false, 0.5], gives: attention, differentiable: 1, halfTolerance: 16 },
    {
      args: [many, keys, values, null, true, 0.4],
      ...{ gives: attention, noGradient: 'test/ops/attentionBlocks.test.ts compares it with float64', halfTolerance: 16, tolerance: 2e-5 },
    },
  ],
  'torch.ops.tensorfx.block_attention_backward': [
    { args: [g(grouped), q, k, v, mask, ...grouped, false, 0.5], gives: gradients, noGradient: never, halfTolerance: 64, tolerance: 2e-5 },
    {
      args: [g(causal), many, keys, values, null, ...causal, true, 0.4],
      ...{ gives: gradients, noGradient: never, notInHalf: 'sums of opposite signs cancel', tolerance: 1e-4 },
    },
  ],
} satisfies ValueCases

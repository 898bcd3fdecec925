// Normalization.
import { Plain, build, reduce, sample, t, total } from '../plain.ts'
import type { ValueCases } from '../valueCases.ts'

const EPS = 1e-5
const mean = (line: readonly number[]): number => total(line) / line.length
const spread = (line: readonly number[]): number => mean(line.map((v) => (v - mean(line)) ** 2))
const others = (x: Plain): number[] => x.shape.map((_, d) => d).filter((d) => d !== 1)
const channel = (v: unknown, c: number | undefined, fallback: number): number => (v instanceof Plain ? v.at(c ?? 0) : fallback)

/** [result, mean, 1 / sqrt(variance + eps), variance] of batch normalization. */
function batch(x: Plain, weight: Plain | null, bias: Plain | null, eps = EPS): readonly [Plain, Plain, Plain, Plain] {
  const mu = reduce(x, others(x), false, mean)
  const variance = reduce(x, others(x), false, spread)
  const inverse = variance.map((v) => 1 / Math.sqrt(v + eps))
  const out = build(
    x.shape,
    (...at) => (x.at(...at) - mu.at(at[1] ?? 0)) * inverse.at(at[1] ?? 0) * channel(weight, at[1], 1) + channel(bias, at[1], 0),
  )
  return [out, mu, inverse, variance]
}

function batchBackward(g: Plain, x: Plain, weight: Plain | null, mu: Plain, inverse: Plain): readonly [Plain, Plain, Plain] {
  const normal = build(x.shape, (...at) => (x.at(...at) - mu.at(at[1] ?? 0)) * inverse.at(at[1] ?? 0))
  const count = x.data.length / (x.shape[1] ?? 1)
  const gb = reduce(g, others(x), false, total)
  const gw = reduce(
    normal.map((v, i) => v * (g.data[i] ?? NaN)),
    others(x),
    false,
    total,
  )
  const gi = build(x.shape, (...at) => {
    const c = at[1] ?? 0
    return inverse.at(c) * channel(weight, c, 1) * (g.at(...at) - gb.at(c) / count - (normal.at(...at) * gw.at(c)) / count)
  })
  return [gi, gw, gb]
}

const last = (x: Plain, n: number): number[] => Array.from({ length: n }, (_, k) => x.shape.length - n + k)
/** [result, mean, 1 / sqrt(variance + eps)] of layer normalization over the last n dimensions. */
function layer(x: Plain, n: number, weight: Plain | null, bias: Plain | null, eps = EPS): readonly [Plain, Plain, Plain] {
  const mu = reduce(x, last(x, n), true, mean)
  const inverse = reduce(x, last(x, n), true, (line) => 1 / Math.sqrt(spread(line) + eps))
  const lead = x.shape.length - n
  const out = build(
    x.shape,
    (...at) => (x.at(...at) - mu.at(...at)) * inverse.at(...at) * (weight?.at(...at.slice(lead)) ?? 1) + (bias?.at(...at.slice(lead)) ?? 0),
  )
  return [out, mu, inverse]
}

/** Rows are normalized, over the last dimension. */
function layerBackward(g: Plain, x: Plain, _: unknown, mu: Plain, inverse: Plain, weight: Plain | null): readonly [Plain, Plain, Plain] {
  const normal = build(x.shape, (i, j) => (x.at(i, j) - mu.at(i, 0)) * inverse.at(i, 0))
  const weighted = build(x.shape, (i, j) => g.at(i, j) * (weight?.at(j) ?? 1))
  const slopes = reduce(
    weighted.map((v, i) => v * (normal.data[i] ?? NaN)),
    [1],
    true,
    mean,
  )
  const means = reduce(weighted, [1], true, mean)
  const gi = build(x.shape, (i, j) => inverse.at(i, 0) * (weighted.at(i, j) - means.at(i, 0) - normal.at(i, j) * slopes.at(i, 0)))
  const gw = reduce(
    g.map((v, i) => v * (normal.data[i] ?? NaN)),
    [0],
    false,
    total,
  )
  return [gi, gw, reduce(g, [0], false, total)]
}

function group(x: Plain, groups: number, weight: Plain | null, bias: Plain | null, eps = EPS): Plain {
  const [n = 0] = x.shape
  const [normal] = layer(x.reshape(n, groups, x.data.length / n / groups), 1, null, null, eps)
  return build(x.shape, (...at) => normal.reshape(...x.shape).at(...at) * channel(weight, at[1], 1) + channel(bias, at[1], 0))
}

function groupWithStatistics(x: Plain, groups: number, weight: Plain | null, bias: Plain | null, eps: number): readonly Plain[] {
  const [n = 0] = x.shape
  const [, mu, inverse] = layer(x.reshape(n, groups, x.data.length / n / groups), 1, null, null, eps)
  return [group(x, groups, weight, bias, eps), mu.reshape(n, groups), inverse.reshape(n, groups)]
}

/** The gradients of group normalization; statistics are [N, groups]. */
function groupBackward(g: Plain, x: Plain, groups: number, mu: Plain, inverse: Plain, weight: Plain | null): readonly [Plain, Plain, Plain] {
  const [n0 = 0, channels = 0] = x.shape
  const each = channels / groups
  const of = (c: number | undefined): number => Math.floor((c ?? 0) / each)
  const normal = build(x.shape, (...at) => (x.at(...at) - mu.at(at[0] ?? 0, of(at[1]))) * inverse.at(at[0] ?? 0, of(at[1])))
  const weighted = build(x.shape, (...at) => g.at(...at) * channel(weight, at[1], 1))
  const inGroups = (p: Plain): Plain => reduce(p.reshape(n0, groups, p.data.length / n0 / groups), [2], false, mean)
  const slopes = inGroups(weighted.map((v, i) => v * (normal.data[i] ?? NaN)))
  const means = inGroups(weighted)
  const gi = build(x.shape, (...at) => {
    const [n, k] = [at[0] ?? 0, of(at[1])]
    return inverse.at(n, k) * (weighted.at(...at) - means.at(n, k) - normal.at(...at) * slopes.at(n, k))
  })
  const gw = reduce(
    g.map((v, i) => v * (normal.data[i] ?? NaN)),
    others(x),
    false,
    total,
  )
  return [gi, gw, reduce(g, others(x), false, total)]
}

const x = sample([3, 2, 2, 2], 1)
const rows = sample([3, 4], 2)
const [w2, b2] = [sample([2], 3), sample([2], 4)]
const [w4, b4] = [sample([4], 5), sample([4], 6)]
const [mean2, var2] = [sample([2], 7), sample([2], 8, 0.5, 1.5)]
const evaluated = (a: Plain, mu: Plain, variance: Plain, weight?: Plain | null, bias?: Plain | null): Plain =>
  build(a.shape, (...at) => {
    const c = at[1] ?? 0
    return ((a.at(...at) - mu.at(c)) / Math.sqrt(variance.at(c) + EPS)) * channel(weight, c, 1) + channel(bias, c, 0)
  })
const g = sample([3, 2, 2, 2], 9)
const stats = batch(x, null, null)
const rowStats = layer(rows, 1, null, null)

export default {
  'torch.ops.tensorfx.native_batch_norm': [
    { args: [x, w2, b2, EPS], gives: batch, differentiable: 1 },
    { args: [x, null, null, 0.1], gives: batch, differentiable: 1 },
    { args: [sample([5, 3], 2), null, sample([3], 3), EPS], gives: batch, differentiable: 1 },
    { args: [sample([5, 3], 2), sample([3], 3), null, EPS], gives: batch, differentiable: 1 },
  ],
  'torch.ops.tensorfx.native_batch_norm_backward': [
    { args: [g, x, w2, stats[1], stats[2]], gives: batchBackward, noGradient: 'it is never recorded' },
    { args: [g, x, null, stats[1], stats[2]], gives: batchBackward, noGradient: 'it is never recorded' },
    { args: [sample([4, 2], 1), sample([4, 2], 2), null, mean2, var2], gives: batchBackward, noGradient: 'it is never recorded' },
  ],
  'torch.nn.functional.batch_norm': [
    { args: [x, mean2, var2, w2, b2], gives: evaluated },
    { args: [x, mean2, var2], gives: evaluated },
    {
      args: [x, null, null, { training: true, weight: w2 }],
      gives: (a: Plain, _m: null, _v: null, o: { weight: Plain }) => batch(a, o.weight, null)[0],
    },
    {
      args: [x, null, null, w2, b2, { training: true, eps: 0.1 }],
      gives: (a: Plain, _m: null, _v: null, w: Plain, b: Plain) => batch(a, w, b, 0.1)[0],
    },
  ],
  'torch.ops.tensorfx.native_layer_norm': [
    { args: [rows, [4], w4, b4, EPS], gives: (a: Plain, _: number[], w: Plain, b: Plain) => layer(a, 1, w, b), differentiable: 1 },
    {
      args: [x, [2, 2], null, sample([2, 2], 3), 0.1],
      gives: (a: Plain, _: number[], w: null, b: Plain) => layer(a, 2, w, b, 0.1),
      differentiable: 1,
    },
    { args: [x, [2, 2], sample([2, 2], 3), null, EPS], gives: (a: Plain, _: number[], w: Plain) => layer(a, 2, w, null), differentiable: 1 },
  ],
  'torch.ops.tensorfx.native_layer_norm_backward': [
    { args: [sample([3, 4], 1), rows, [4], rowStats[1], rowStats[2], w4], gives: layerBackward, noGradient: 'it is never recorded' },
    { args: [sample([3, 4], 1), rows, [4], rowStats[1], rowStats[2], null], gives: layerBackward, noGradient: 'it is never recorded' },
  ],
  'torch.nn.functional.layer_norm': [
    { args: [rows, [4], w4, b4], gives: (a: Plain, _: number[], w: Plain, b: Plain) => layer(a, 1, w, b)[0] },
    { args: [x, [2, 2, 2], { eps: 0.1 }], gives: (a: Plain) => layer(a, 3, null, null, 0.1)[0] },
  ],
  'torch.native_layer_norm': [
    {
      args: [rows, [4], w4, b4, EPS],
      gives: (a: Plain, _: number[], w: Plain, b: Plain) => layer(a, 1, w, b),
      differentiable: 1,
    },
    { args: [x, [2, 2], null, null, 0.1], gives: (a: Plain) => layer(a, 2, null, null, 0.1), differentiable: 1 },
  ],
  'torch.native_group_norm': [
    { args: [sample([2, 4, 3], 1), w4, b4, 2, 4, 3, 2, EPS], gives: (a: Plain, w: Plain, b: Plain) => groupWithStatistics(a, 2, w, b, EPS) },
    { args: [sample([2, 4], 1), null, null, 2, 4, 1, 1, 0.1], gives: (a: Plain) => groupWithStatistics(a, 1, null, null, 0.1) },
  ],
  'torch.native_batch_norm': [
    { args: [x, w2, b2, null, null, true, 0.1, EPS], gives: (a: Plain, w: Plain, b: Plain) => batch(a, w, b).slice(0, 3), differentiable: 1 },
    {
      args: [x, w2, b2, mean2, var2, false, 0.1, EPS],
      gives: (a: Plain, w: Plain, b: Plain, mu: Plain, variance: Plain) => [evaluated(a, mu, variance, w, b), t([]), t([])],
      differentiable: 1,
    },
  ],
  'torch._native_batch_norm_legit': [
    { args: [x, w2, null, true, 0.1, EPS], gives: (a: Plain, w: Plain) => batch(a, w, null).slice(0, 3), differentiable: 1 },
    {
      args: [x, w2, b2, mean2, var2, false, 0.1, EPS],
      gives: (a: Plain, w: Plain, b: Plain, mu: Plain, variance: Plain) => [evaluated(a, mu, variance, w, b), t([]), t([])],
      differentiable: 1,
    },
  ],
  'torch._batch_norm_with_update': [
    {
      // With momentum 0 the running statistics stay.
      args: [x, w2, b2, mean2, var2, 0, EPS],
      gives: (a: Plain, w: Plain, b: Plain) => [...batch(a, w, b).slice(0, 3), t([], 'uint8')],
      differentiable: 1,
      constants: [3, 4],
    },
  ],
  'torch.ops.tensorfx.fused_group_norm': [
    {
      args: [sample([2, 4, 3], 1), 2, w4, b4, EPS],
      gives: (a: Plain, n: number, w: Plain, b: Plain) => groupWithStatistics(a, n, w, b, EPS),
    },
    {
      args: [sample([3, 4, 2, 5], 1), 1, w4, null, 0.1],
      gives: (a: Plain, n: number, w: Plain) => groupWithStatistics(a, n, w, null, 0.1),
    },
    { args: [sample([3, 6], 1), 2, null, null, 0.1], gives: (a: Plain, n: number) => groupWithStatistics(a, n, null, null, 0.1) },
    {
      args: [sample([2, 12], 1), 2, sample([12], 2), sample([12], 3), EPS],
      gives: (a: Plain, n: number, w: Plain, b: Plain) => groupWithStatistics(a, n, w, b, EPS),
    },
  ],
  'torch.ops.tensorfx.fused_group_norm_backward': [
    {
      args: [sample([2, 4, 3], 1), sample([2, 4, 3], 2), 2, sample([2, 2], 3), sample([2, 2], 4), w4],
      gives: groupBackward,
      noGradient: 'it is never recorded',
    },
    {
      args: [sample([3, 4, 2, 5], 1), sample([3, 4, 2, 5], 2), 1, sample([3, 1], 3), sample([3, 1], 4), null],
      gives: groupBackward,
      noGradient: 'it is never recorded',
    },
    {
      args: [sample([3, 12], 1), sample([3, 12], 2), 2, sample([3, 2], 3), sample([3, 2], 4), sample([12], 5)],
      gives: groupBackward,
      noGradient: 'it is never recorded',
    },
  ],
  'torch.nn.functional.group_norm': [
    { args: [sample([2, 4, 3], 1), 2, w4, b4], gives: group },
    { args: [sample([2, 4], 1), 1, { eps: 0.1 }], gives: (a: Plain) => group(a, 1, null, null, 0.1) },
  ],
  'torch.nn.functional.instance_norm': [
    { args: [x], gives: (a: Plain) => group(a, 2, null, null) },
    { args: [x, null, null, w2, b2], gives: (a: Plain, _m: null, _v: null, w: Plain, b: Plain) => group(a, 2, w, b) },
    { args: [x, mean2, var2, { useInputStats: false }], gives: evaluated },
    { args: [t([[[1, 3]]]), { eps: 0 }], gives: t([[[-1, 1]]]), noGradient: 'two values are always -1 and 1' },
  ],
} satisfies ValueCases

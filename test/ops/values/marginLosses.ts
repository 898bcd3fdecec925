// Losses of margins, of distances and of likelihoods, and the distances themselves.
import { Plain, build, each, longs, sample, sumOf, t, total } from '../plain.ts'
import type { ValueCase, ValueCases } from '../valueCases.ts'

const [x, y, z] = [sample([3, 4], 1), sample([3, 4], 2), sample([3, 4], 3)]
const positive = sample([3, 4], 4, 0.3, 2)
const signs = build([3, 4], (i, j) => ((i + j) % 2 === 0 ? 1 : -1))
const [rowSigns, labels] = [t([1, -1, 1]), longs([2, 0, 3])]
const mean = (a: Plain): Plain => t(total(a.data) / a.data.length)
const CONSTANT_TARGET = 'the target counts by its value'

type Reference = (...args: Plain[]) => Plain
/** The three reductions of losses. */
const reductions = (args: readonly unknown[], fn: Reference, options: object = {}, more: Partial<ValueCase> = {}): ValueCase[] => [
  { args: [...args, options], gives: (...given: never[]) => mean(fn(...plains(given))), ...more },
  { args: [...args, { ...options, reduction: 'none' }], gives: (...given: never[]) => fn(...plains(given)), ...more },
  { args: [...args, { ...options, reduction: 'sum' }], gives: (...given: never[]) => t(total(fn(...plains(given)).data)), ...more },
]
const plains = (given: readonly unknown[]): Plain[] => given.filter((arg) => arg instanceof Plain)
const part = (v: number): number => Math.max(0, v)
const columns = (a: Plain): number => a.shape.at(-1) ?? 1
const rows = (a: Plain, fn: (row: number) => number): Plain => build([a.shape[0] ?? 1], fn)
const distance = (a: Plain, i: number, b: Plain, j: number, p: number, eps = 1e-6): number =>
  sumOf(columns(a), (k) => Math.abs(a.at(i, k) - b.at(j, k) + eps) ** p) ** (1 / p)
const cosine = (a: Plain, b: Plain, i: number): number => {
  const product = (u: Plain, v: Plain): number => sumOf(columns(a), (k) => u.at(i, k) * v.at(i, k))
  return product(a, b) / Math.sqrt(product(a, a) * product(b, b))
}
const softplus = (v: number): number => Math.log1p(Math.exp(v))
const triplets =
  (p: number, margin: number, swap: boolean): Reference =>
  (a = x, b = y, c = z) =>
    rows(a, (i) => {
      const far = distance(a, i, c, i, p)
      return part(distance(a, i, b, i, p) - (swap ? Math.min(far, distance(b, i, c, i, p)) : far) + margin)
    })
const multiMargin =
  (p: number, margin: number, weight: readonly number[]): Reference =>
  (a = x, target = labels) =>
    rows(a, (i) => {
      const own = target.at(i)
      return sumOf(columns(a), (k) => (k === own ? 0 : (weight[own] ?? 1) * part(margin - a.at(i, own) + a.at(i, k)) ** p)) / columns(a)
    })
const multilabel: Reference = (a = x, target = labels) =>
  rows(a, (i) => {
    const chosen: number[] = []
    for (let j = 0; j < columns(a) && target.at(i, j) >= 0; j++) chosen.push(target.at(i, j))
    return total(chosen.map((own) => sumOf(columns(a), (k) => (chosen.includes(k) ? 0 : part(1 - a.at(i, own) + a.at(i, k)))))) / columns(a)
  })

/** The loss of one sample, from the probabilities of all sequences of classes that spell the target. */
function ctc(logProbs: Plain, n: number, target: readonly number[], steps: number, blank: number): number {
  const classes = logProbs.shape[2] ?? 0
  let probability = 0
  for (let code = 0; code < classes ** steps; code++) {
    const path = Array.from({ length: steps }, (_, step) => Math.floor(code / classes ** step) % classes)
    const spelt = path.filter((label, step) => label !== blank && label !== path[step - 1])
    if (spelt.join() === target.join()) probability += Math.exp(total(path.map((label, step) => logProbs.at(step, n, label))))
  }
  return -Math.log(probability)
}
const logProbs = sample([4, 2, 3], 9, -3, -0.5)
const OVERFLOW = 'impossible events have logarithms beyond float16'

export default {
  'torch.nn.functional.soft_margin_loss': reductions(
    [x, signs],
    each((a, b) => softplus(-a * b)),
    {},
    { constants: [1] },
  ),
  'torch.nn.functional.hinge_embedding_loss': reductions(
    [x, signs],
    each((a, b) => (b === 1 ? a : part(0.7 - a))),
    { margin: 0.7 },
    { constants: [1] },
  ),
  'torch.nn.functional.margin_ranking_loss': reductions(
    [x, y, signs],
    each((a, b, c) => part(0.2 - c * (a - b))),
    { margin: 0.2 },
    { constants: [2] },
  ),
  'torch.nn.functional.cosine_embedding_loss': reductions(
    [x, y, rowSigns],
    (a = x, b = y, s = rowSigns) => rows(a, (i) => (s.at(i) === 1 ? 1 - cosine(a, b, i) : part(cosine(a, b, i) + 0.5))),
    { margin: -0.5 },
    { constants: [2] },
  ),
  'torch.nn.functional.triplet_margin_loss': [
    ...reductions([x, y, z], triplets(2, 1, false)),
    ...reductions([x, y, z], triplets(1, 0.5, true), { p: 1, margin: 0.5, swap: true }),
  ],
  'torch.nn.functional.triplet_margin_with_distance_loss': reductions([x, y, z], triplets(2, 0.7, true), { margin: 0.7, swap: true }),
  'torch.nn.functional.multi_margin_loss': [
    ...reductions([x, labels], multiMargin(1, 1, [])),
    {
      args: [x, labels, { p: 2, margin: 0.5, weight: t([0.5, 1, 2, 3]), reduction: 'none' }],
      gives: (a: Plain, b: Plain) => multiMargin(2, 0.5, [0.5, 1, 2, 3])(a, b),
      constants: [2],
    },
    { args: [sample([4], 1), longs(2)], gives: (a: Plain) => t(multiMargin(1, 1, [])(a.reshape(1, 4), longs([2])).data[0] ?? NaN) },
  ],
  'torch.nn.functional.multilabel_margin_loss': reductions(
    [
      x,
      longs([
        [2, 0, -1, 1],
        [3, -1, 0, 0],
        [0, 1, 2, -1],
      ]),
    ],
    multilabel,
  ),
  'torch.nn.functional.multilabel_soft_margin_loss': reductions([x, signs.map((v) => (v + 1) / 2)], (a = x, target = signs) =>
    rows(a, (i) => sumOf(4, (k) => target.at(i, k) * softplus(-a.at(i, k)) + (1 - target.at(i, k)) * softplus(a.at(i, k))) / 4),
  ),
  'torch.nn.functional.cosine_similarity': [
    { args: [x, y], gives: (a: Plain, b: Plain) => rows(a, (i) => cosine(a, b, i)) },
    {
      args: [x, y, 0],
      gives: (a: Plain, b: Plain) =>
        build([4], (k) =>
          cosine(
            build([1, 3], (_, i) => a.at(i, k)),
            build([1, 3], (_, i) => b.at(i, k)),
            0,
          ),
        ),
    },
  ],
  'torch.nn.functional.pairwise_distance': [
    { args: [x, y], gives: (a: Plain, b: Plain) => rows(a, (i) => distance(a, i, b, i, 2)) },
    { args: [x, y, { p: 1, keepdim: true }], gives: (a: Plain, b: Plain) => build([3, 1], (i) => distance(a, i, b, i, 1)) },
  ],
  'torch.cdist': [
    { args: [x, sample([2, 4], 7)], gives: (a: Plain, b: Plain) => build([3, 2], (i, j) => distance(a, i, b, j, 2, 0)) },
    { args: [x, sample([2, 4], 7), 3], gives: (a: Plain, b: Plain) => build([3, 2], (i, j) => distance(a, i, b, j, 3, 0)) },
  ],
  'torch.nn.functional.pdist': [
    { args: [x], gives: (a: Plain) => t([distance(a, 0, a, 1, 2, 0), distance(a, 0, a, 2, 2, 0), distance(a, 1, a, 2, 2, 0)]) },
  ],
  'torch.nn.functional.kl_div': [
    ...reductions(
      [x, positive],
      each((a, b) => b * (Math.log(b) - a)),
    ),
    ...reductions(
      [x, y],
      each((a, b) => Math.exp(b) * (b - a)),
      { logTarget: true },
    ),
    {
      args: [x, positive, { reduction: 'batchmean' }],
      gives: (a: Plain, b: Plain) => t(total(each((u, v) => v * (Math.log(v) - u))(a, b).data) / 3),
    },
  ],
  'torch.nn.functional.poisson_nll_loss': [
    ...reductions(
      [x, positive],
      each((a, b) => Math.exp(a) - b * a),
    ),
    ...reductions(
      [positive, positive],
      each((a, b) => a - b * Math.log(a + 1e-8)),
      { logInput: false },
    ),
    {
      args: [x, t([2, 3, 1, 5]), { full: true, reduction: 'none' }],
      gives: each((a, b) => Math.exp(a) - b * a + (b > 1 ? b * Math.log(b) - b + 0.5 * Math.log(2 * Math.PI * b) : 0)),
      noGradient: CONSTANT_TARGET,
    },
  ],
  'torch.nn.functional.gaussian_nll_loss': [
    ...reductions(
      [x, y, positive],
      each((a, b, v) => 0.5 * (Math.log(v) + (a - b) ** 2 / v)),
    ),
    {
      args: [x, y, t([0.5, 2, 1.5]), { full: true, reduction: 'none' }],
      gives: (a: Plain, b: Plain, v: Plain) =>
        build([3, 4], (i, k) => 0.5 * (Math.log(v.at(i)) + (a.at(i, k) - b.at(i, k)) ** 2 / v.at(i) + Math.log(2 * Math.PI))),
    },
  ],
  'torch.nn.functional.ctc_loss': [
    {
      args: [
        logProbs,
        longs([
          [1, 2],
          [2, 0],
        ]),
        [4, 3],
        [2, 1],
        { reduction: 'none' },
      ],
      noGradient: 'PyTorch takes the input for logarithms of probabilities: see normalized in ctcLoss.ts',
      gives: (a: Plain) => t([ctc(a, 0, [1, 2], 4, 0), ctc(a, 1, [2], 3, 0)]),
      notInHalf: OVERFLOW,
    },
    {
      args: [logProbs, longs([1, 1, 0]), longs([4, 4]), longs([2, 1]), { blank: 2 }],
      noGradient: 'PyTorch takes the input for logarithms of probabilities: see normalized in ctcLoss.ts',
      gives: (a: Plain) => t((ctc(a, 0, [1, 1], 4, 2) / 2 + ctc(a, 1, [0], 4, 2)) / 2),
      notInHalf: OVERFLOW,
    },
    {
      args: [
        logProbs,
        longs([
          [1, 1],
          [2, 1],
        ]),
        [2, 4],
        [2, 0],
        { reduction: 'none' },
      ],
      gives: (a: Plain) => t([Infinity, ctc(a, 1, [], 4, 0)]),
      noGradient: 'infinite',
      notInHalf: OVERFLOW,
    },
    {
      args: [
        logProbs,
        longs([
          [1, 1],
          [2, 1],
        ]),
        [2, 4],
        [2, 2],
        { reduction: 'sum', zeroInfinity: true },
      ],
      noGradient: 'PyTorch takes the input for logarithms of probabilities: see normalized in ctcLoss.ts',
      gives: (a: Plain) => t(ctc(a, 1, [2, 1], 4, 0)),
      notInHalf: OVERFLOW,
    },
  ],
} satisfies ValueCases

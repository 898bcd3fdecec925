// Metrics against their definitions, computed from all samples at once; in parts and over ranks they give the same.
import { describe, expect, it } from 'vitest'
import { torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { AUC, Accuracy, ConfusionMatrix, EarlyStopping, F1Score, MeanSquaredError, Perplexity, R2Score } from 'tensorfx/train'
import type { Metric } from 'tensorfx/train'

const N = 60
const C = 4
torch.manualSeed(8)
const generator = new torch.Generator(8)
const scores = torch.randn([N, C], { generator })
const classes = torch.randint(0, C, [N], { generator })
const numbers = torch.randn([N], { generator })
const near = numbers.add(torch.randn([N], { generator }).mul(0.4))
const bits = torch.rand([N], { generator }).lt(0.4).to('float32')
// With ties.
const chances = bits
  .mul(0.3)
  .add(torch.rand([N], { generator }))
  .mul(8)
  .floor()
  .div(8)

const rows = scores.toArray() as number[][]
const labels = classes.toArray() as number[]
const [x, y] = [near.toArray() as number[], numbers.toArray() as number[]]
const [p, b] = [chances.toArray() as number[], bits.toArray() as number[]]
const best = rows.map((row) => row.indexOf(Math.max(...row)))
const mean = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0) / values.length

/** F1 of a class by counting. */
function f1(one: number): number {
  const hits = labels.filter((label, i) => label === one && best[i] === one).length
  const [precision, recall] = [hits / best.filter((c) => c === one).length, hits / labels.filter((c) => c === one).length]
  return (2 * precision * recall) / (precision + recall)
}
const nll = rows.map((row, i) => Math.log(row.reduce((sum, v) => sum + Math.exp(v), 0)) - (row[labels[i] ?? 0] ?? 0))
const yMean = mean(y)

const CASES: Readonly<Record<string, readonly [make: () => Metric, prediction: Tensor, target: Tensor, expected: number]>> = {
  accuracy: [() => new Accuracy(), scores, classes, mean(best.map((c, i) => (c === labels[i] ? 1 : 0)))],
  'accuracy of the best two': [
    () => new Accuracy({ topK: 2 }),
    scores,
    classes,
    mean(rows.map((row, i) => (row.filter((v) => v > (row[labels[i] ?? 0] ?? 0)).length < 2 ? 1 : 0))),
  ],
  'binary accuracy': [() => new Accuracy({ threshold: 0.6 }), chances, bits, mean(p.map((v, i) => (v >= 0.6 === (b[i] === 1) ? 1 : 0)))],
  confusion: [() => new ConfusionMatrix(C), scores, classes, mean(best.map((c, i) => (c === labels[i] ? 1 : 0)))],
  'macro F1': [() => new F1Score(C), scores, classes, mean([0, 1, 2, 3].map(f1))],
  'weighted F1': [() => new F1Score(C, { average: 'weighted' }), scores, classes, mean(labels.map(f1))],
  'micro F1': [() => new F1Score(C, { average: 'micro' }), scores, classes, mean(best.map((c, i) => (c === labels[i] ? 1 : 0)))],
  perplexity: [() => new Perplexity(), scores, classes, Math.exp(mean(nll))],
  'mean squared error': [() => new MeanSquaredError(), near, numbers, mean(x.map((v, i) => (v - (y[i] ?? 0)) ** 2))],
  'its root': [() => new MeanSquaredError({ squared: false }), near, numbers, Math.sqrt(mean(x.map((v, i) => (v - (y[i] ?? 0)) ** 2)))],
  'R²': [() => new R2Score(), near, numbers, 1 - mean(x.map((v, i) => (v - (y[i] ?? 0)) ** 2)) / mean(y.map((v) => (v - yMean) ** 2))],
  AUC: [
    () => new AUC(),
    chances,
    bits,
    mean(p.flatMap((v, i) => (b[i] === 1 ? p.flatMap((w, j) => (b[j] === 0 ? [v > w ? 1 : v === w ? 0.5 : 0] : [])) : []))),
  ],
}

describe.each(Object.entries(CASES))('%s', (_, [make, prediction, target, expected]) => {
  const parts = (metric: Metric, from: number, to: number): void => {
    for (let at = from; at < to; at += 7) metric.update(prediction.narrow(0, at, Math.min(7, to - at)), target.narrow(0, at, Math.min(7, to - at)))
  }
  it('is its definition, in one batch, in parts and over ranks', () => {
    const whole = make()
    expect(whole.compute()).toBeNaN()
    whole.update(prediction, target)
    expect(whole.compute()).toBeCloseTo(expected, 6)
    const one = make()
    parts(one, 0, N)
    expect(one.compute()).toBeCloseTo(expected, 6)
    const [first, second] = [make(), make()]
    parts(first, 0, 20)
    parts(second, 20, N)
    first.merge(JSON.parse(JSON.stringify(second.counted())))
    expect(first.compute()).toBeCloseTo(expected, 6)
    first.reset()
    expect(first.compute()).toBeNaN()
    expect(() => first.merge([1, 2, 3])).toThrow(/merge: argument 'counted' must be/)
    expect(() => first.update(prediction, target.narrow(0, 0, 3))).toThrow(/update: prediction/)
  })
})

it('scores of classes may have more dimensions, as logits of a sequence', () => {
  const logits = torch.randn([2, C, 5])
  const targets = torch.randint(0, C, [2, 5])
  const [deep, flat] = [new Accuracy(), new Accuracy()]
  deep.update(logits, targets)
  flat.update(logits.transpose(1, 2).reshape([10, C]), targets.reshape([10]))
  expect(deep.compute()).toBe(flat.compute())
  const perplexity = new Perplexity({ ignoreIndex: 0 })
  perplexity.update(torch.zeros([2, C]), torch.tensor([0, 2], { dtype: 'int64' }))
  expect(perplexity.compute()).toBeCloseTo(C, 9)
  expect(() => perplexity.update(torch.zeros([1, C]), torch.tensor([9], { dtype: 'int64' }))).toThrow(
    'targets must be classes from 0 to 3, or 0; got 9',
  )
})

it('the confusion matrix has the classes as rows', () => {
  const metric = new ConfusionMatrix(2)
  metric.update(
    torch.tensor([
      [1, 0],
      [1, 0],
      [0, 1],
    ]),
    torch.tensor([0, 1, 1]),
  )
  expect(metric.matrix).toEqual([
    [1, 0],
    [1, 1],
  ])
  expect(() => new ConfusionMatrix(1)).toThrow("argument 'classes' must be an integer from 2 to 10,000, got 1")
  expect(() => new Accuracy({ topK: 0 })).toThrow("option 'topK' must be an integer from 1 on")
  expect(() => new F1Score(2, { average: 'mean' as never })).toThrow("option 'average' must be 'macro', 'micro' or 'weighted', got 'mean'")
})

describe('EarlyStopping', () => {
  const stopsAt = (stopping: EarlyStopping, values: readonly number[]): number => values.findIndex((value) => stopping.update(value))
  it('stops when nothing got better for its patience', () => {
    expect(stopsAt(new EarlyStopping({ patience: 2 }), [3, 2, 2.5, 1.9, 2, NaN, 0])).toBe(5)
    expect(stopsAt(new EarlyStopping({ patience: 1, mode: 'max' }), [0.1, 0.2, 0.2])).toBe(2)
    expect(stopsAt(new EarlyStopping({ patience: 1, minDelta: 0.5 }), [3, 2.4, 2.2])).toBe(2)
    expect(stopsAt(new EarlyStopping({ patience: 2 }), [NaN, NaN])).toBe(1)
  })
  it('goes on from its state', () => {
    const first = new EarlyStopping({ patience: 2 })
    stopsAt(first, [1, 2])
    const second = new EarlyStopping({ patience: 2 })
    second.loadStateDict(first.stateDict())
    expect(second.update(1.5)).toBe(true)
    expect(() => second.loadStateDict({ best: 'x' } as never)).toThrow("argument 'state' must be what stateDict gives")
    expect(() => new EarlyStopping({ patience: 0 })).toThrow("option 'patience' must be an integer from 1 on, got 0")
    expect(() => new EarlyStopping({ mode: 'least' as never })).toThrow("option 'mode' must be 'min' or 'max'")
  })
})

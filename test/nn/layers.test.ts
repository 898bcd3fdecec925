// Layers one by one: text, parameters, behaviour in training and evaluation, options and their errors.
import { describe, expect, test } from 'vitest'
import { ArgumentError, ShapeError, noGrad, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import * as nn from 'tensorfx/nn'
import { LEAF_MODULE } from '../../src/protocol/index.ts'
import { detInput } from '../helpers/deterministic.ts'

const { manualSeed, ones, randn, tensor, zeros } = torch

const values = (t: Tensor): number[] => Array.from(t.contiguous().toTypedArray(), Number)
const mean = (v: readonly number[]): number => v.reduce((a, b) => a + b, 0) / v.length

describe('layers print as in PyTorch', () => {
  test.each([
    [new nn.Linear(4, 5), 'Linear(in_features=4, out_features=5, bias=True)'],
    [new nn.Linear(4, 5, false), 'Linear(in_features=4, out_features=5, bias=False)'],
    [new nn.Conv2d(1, 8, 3), 'Conv2d(1, 8, kernel_size=(3, 3), stride=(1, 1))'],
    [new nn.Conv2d(3, 8, 3, { stride: 1, padding: 1, bias: false }), 'Conv2d(3, 8, kernel_size=(3, 3), stride=(1, 1), padding=(1, 1), bias=False)'],
    [
      new nn.Conv2d(4, 8, [3, 5], 2, [1, 2], { dilation: 2, groups: 4 }),
      'Conv2d(4, 8, kernel_size=(3, 5), stride=(2, 2), padding=(1, 2), dilation=(2, 2), groups=4)',
    ],
    [new nn.Conv2d(3, 3, 3, { padding: 'same' }), 'Conv2d(3, 3, kernel_size=(3, 3), stride=(1, 1), padding=same)'],
    [new nn.Conv1d(2, 4, 3, { padding: 1 }), 'Conv1d(2, 4, kernel_size=(3,), stride=(1,), padding=(1,))'],
    [new nn.BatchNorm2d(8), 'BatchNorm2d(8, eps=1e-05, momentum=0.1, affine=True, bias=True, track_running_stats=True)'],
    [new nn.BatchNorm1d(8, 1e-3, null, false, false), 'BatchNorm1d(8, eps=0.001, momentum=None, affine=False, bias=True, track_running_stats=False)'],
    [new nn.LayerNorm(16), 'LayerNorm((16,), eps=1e-05, elementwise_affine=True, bias=True)'],
    [new nn.LayerNorm([2, 3], { bias: false }), 'LayerNorm((2, 3), eps=1e-05, elementwise_affine=True, bias=False)'],
    [new nn.GroupNorm(2, 4), 'GroupNorm(2, 4, eps=1e-05, affine=True)'],
    [new nn.Embedding(8, 16), 'Embedding(8, 16)'],
    [new nn.Embedding(8, 16, -1), 'Embedding(8, 16, padding_idx=7)'],
    [new nn.ReLU(), 'ReLU()'],
    [new nn.ReLU(true), 'ReLU(inplace=True)'],
    [new nn.GELU({ approximate: 'tanh' }), "GELU(approximate='tanh')"],
    [new nn.SiLU(), 'SiLU()'],
    [new nn.Sigmoid(), 'Sigmoid()'],
    [new nn.Tanh(), 'Tanh()'],
    [new nn.LeakyReLU(0.2), 'LeakyReLU(negative_slope=0.2)'],
    [new nn.ELU(), 'ELU(alpha=1.0)'],
    [new nn.Softmax(-1), 'Softmax(dim=-1)'],
    [new nn.LogSoftmax({ dim: 1 }), 'LogSoftmax(dim=1)'],
    [new nn.Dropout(0.1), 'Dropout(p=0.1, inplace=False)'],
    [new nn.MaxPool2d(3, 2, { padding: 1 }), 'MaxPool2d(kernel_size=3, stride=2, padding=1, dilation=1, ceil_mode=False)'],
    [new nn.MaxPool2d([2, 2]), 'MaxPool2d(kernel_size=(2, 2), stride=(2, 2), padding=0, dilation=1, ceil_mode=False)'],
    [new nn.AvgPool2d(2), 'AvgPool2d(kernel_size=2, stride=2, padding=0)'],
    [new nn.AdaptiveAvgPool2d([1, null]), 'AdaptiveAvgPool2d(output_size=(1, None))'],
    [new nn.Flatten(), 'Flatten(start_dim=1, end_dim=-1)'],
    [new nn.Identity(1, { anything: 2 }), 'Identity()'],
    [new nn.CrossEntropyLoss(), 'CrossEntropyLoss()'],
    [new nn.MSELoss(), 'MSELoss()'],
  ])('%s', (layer, text) => {
    expect(layer.toString()).toBe(text)
  })
})

describe('initial values', () => {
  test('of Linear and Conv2d are uniform within 1 / sqrt(fan in)', () => {
    manualSeed(3)
    const linear = new nn.Linear(64, 200)
    const conv = new nn.Conv2d(16, 50, 3)
    for (const [weights, fanIn] of [
      [linear.weight, 64],
      [linear.bias as Tensor, 64],
      [conv.weight, 144],
    ] as const) {
      const v = values(weights)
      const bound = 1 / Math.sqrt(fanIn)
      expect(Math.max(...v.map(Math.abs))).toBeLessThanOrEqual(bound * 1.0001)
      expect(mean(v)).toBeCloseTo(0, 1)
      // A uniform distribution's variance is bound^2 / 3.
      expect(mean(v.map((x) => x * x)) / (bound * bound)).toBeCloseTo(1 / 3, 1)
    }
  })

  test('are the same for the same seed', () => {
    const make = (): number[] => {
      manualSeed(7)
      return values(new nn.Linear(3, 4).weight)
    }
    expect(make()).toEqual(make())
  })

  test('of Embedding are normal, with a zero row for padding', () => {
    manualSeed(1)
    const v = values(new nn.Embedding(500, 8, { paddingIdx: 0 }).weight)
    expect(v.slice(0, 8)).toEqual(Array(8).fill(0))
    const rest = v.slice(8)
    expect(mean(rest)).toBeCloseTo(0, 1)
    expect(mean(rest.map((x) => x * x))).toBeCloseTo(1, 1)
  })

  test('can be set by the functions of init', () => {
    const t = zeros([200, 100])
    const spread = (): number => Math.sqrt(mean(values(t).map((x) => x * x)))
    nn.init.kaimingNormal_(t, { nonlinearity: 'relu' })
    expect(spread()).toBeCloseTo(Math.sqrt(2 / 100), 2)
    nn.init.xavierUniform_(t)
    expect(spread()).toBeCloseTo(Math.sqrt(2 / 300), 2)
    nn.init.xavierNormal_(t, 2)
    expect(spread()).toBeCloseTo(2 * Math.sqrt(2 / 300), 2)
    nn.init.constant_(t, 3)
    expect(values(t).every((v) => v === 3)).toBe(true)
    expect(nn.init.calculateFanInAndFanOut(zeros([8, 3, 2, 2]))).toEqual([12, 32])
    expect(() => nn.init.xavierUniform_(zeros([3]))).toThrow(/fewer than 2 dimensions/)
    expect(() => nn.init.kaimingUniform_(t, { mode: 'fan' as 'fan_in' })).toThrow(/fan_in/)
  })
})

describe('batch normalization', () => {
  test('updates its running statistics in training and uses them in evaluation', () => {
    const bn = new nn.BatchNorm2d(2)
    const x = detInput([4, 2, 3, 3], 5, 2, 1)
    const out = bn.call(x)
    for (const channel of [0, 1]) {
      const v = values(out.select(1, channel))
      expect(mean(v)).toBeCloseTo(0, 5)
      expect(mean(v.map((a) => a * a))).toBeCloseTo(1, 3)
    }
    const stats = [0, 1].map((channel) => {
      const v = values(x.select(1, channel))
      const m = mean(v)
      return { mean: m, variance: v.reduce((s, a) => s + (a - m) ** 2, 0) / (v.length - 1) }
    })
    values(bn.runningMean as Tensor).forEach((v, c) => expect(v).toBeCloseTo(0.1 * (stats[c]?.mean as number), 5))
    values(bn.runningVar as Tensor).forEach((v, c) => expect(v).toBeCloseTo(0.9 + 0.1 * (stats[c]?.variance as number), 5))
    expect((bn.numBatchesTracked as Tensor).item()).toBe(1)
    bn.eval()
    const before = values(bn.runningMean as Tensor)
    const evaluated = bn.call(x)
    expect(values(bn.runningMean as Tensor)).toEqual(before)
    const [m, v] = [before[1] as number, values(bn.runningVar as Tensor)[1] as number]
    const [first] = values(x.select(1, 1)) as [number]
    expect(values(evaluated.select(1, 1))[0]).toBeCloseTo((first - m) / Math.sqrt(v + 1e-5), 4)
  })

  test('with momentum null averages all batches', () => {
    const bn = new nn.BatchNorm1d(1, { momentum: null })
    for (const shift of [1, 2, 6]) bn.call(tensor([[shift], [shift]]))
    expect((bn.runningMean as Tensor).item()).toBeCloseTo(3, 5)
  })

  test('without running statistics always uses the batch', () => {
    const bn = new nn.BatchNorm1d(1, { trackRunningStats: false }).eval()
    expect([...bn.stateDict().keys()]).toEqual(['weight', 'bias'])
    expect(values(bn.call(tensor([[1], [3]])))[1]).toBeCloseTo(1, 3)
  })

  test('refuses an input of the wrong form', () => {
    expect(() => new nn.BatchNorm2d(3).call(ones([2, 3]))).toThrow(ShapeError)
    expect(() => new nn.BatchNorm2d(3).call(ones([2, 4, 2, 2]))).toThrow(/3 channels, got shape \[2, 4, 2, 2\]/)
  })
})

describe('dropout', () => {
  test('zeroes about p of the elements and keeps the mean', () => {
    manualSeed(11)
    const out = values(new nn.Dropout(0.25).call(ones([10_000])))
    expect(out.filter((v) => v === 0).length / out.length).toBeCloseTo(0.25, 1)
    expect(mean(out)).toBeCloseTo(1, 1)
  })

  test('gives the same mask for the same seed, and a new one each call', () => {
    const drop = new nn.Dropout()
    const twice = (): number[][] => {
      manualSeed(5)
      return [values(drop.call(ones([64]))), values(drop.call(ones([64])))]
    }
    const [first, second] = twice() as [number[], number[]]
    expect(twice()).toEqual([first, second])
    expect(first).not.toEqual(second)
  })

  test('does nothing in evaluation', () => {
    const x = ones([8])
    expect(new nn.Dropout(0.9).eval().call(x)).toBe(x)
  })
})

describe('the layers compute their functions', () => {
  const x = detInput([2, 3, 6, 6], 21)
  test.each([
    [new nn.ReLU(), (t: Tensor) => nn.F.relu(t)],
    [new nn.GELU(), (t: Tensor) => nn.F.gelu(t)],
    [new nn.SiLU(), (t: Tensor) => nn.F.silu(t)],
    [new nn.Sigmoid(), (t: Tensor) => nn.F.sigmoid(t)],
    [new nn.Tanh(), (t: Tensor) => nn.F.tanh(t)],
    [new nn.LeakyReLU(), (t: Tensor) => nn.F.leakyRelu(t, 0.01)],
    [new nn.ELU(2), (t: Tensor) => nn.F.elu(t, 2)],
    [new nn.Softmax(1), (t: Tensor) => nn.F.softmax(t, 1)],
    [new nn.LogSoftmax(1), (t: Tensor) => nn.F.logSoftmax(t, 1)],
    [new nn.MaxPool2d(2, { ceilMode: true }), (t: Tensor) => nn.F.maxPool2d(t, 2)],
    [new nn.AvgPool2d(3, 1, 1), (t: Tensor) => nn.F.avgPool2d(t, 3, 1, 1)],
    [new nn.AdaptiveAvgPool2d(2), (t: Tensor) => nn.F.adaptiveAvgPool2d(t, 2)],
    [new nn.Flatten(), (t: Tensor) => t.reshape(2, -1)],
    [new nn.Identity(), (t: Tensor) => t],
  ] as readonly (readonly [nn.Module, (t: Tensor) => Tensor])[])('%s', (layer, fn) => {
    const out = layer.forward(x as never) as Tensor
    const expected = fn(x)
    expect(out.shape).toEqual(expected.shape)
    expect(values(out)).toEqual(values(expected))
  })

  test("Conv2d with padding 'same' keeps the size, with 'valid' pads nothing", () => {
    expect(new nn.Conv2d(3, 2, [3, 4], { padding: 'same' }).call(x).shape).toEqual([2, 2, 6, 6])
    expect(new nn.Conv2d(3, 2, 3, { padding: 'valid' }).call(x).shape).toEqual([2, 2, 4, 4])
    expect(new nn.Conv1d(3, 2, 3, { stride: 2, padding: 1 }).call(ones([1, 3, 7])).shape).toEqual([1, 2, 4])
  })

  test('losses reduce as asked', () => {
    const [a, b] = [tensor([1, 2]), tensor([3, 5])]
    expect(new nn.MSELoss().call(a, b).item()).toBeCloseTo(6.5)
    expect(new nn.MSELoss({ reduction: 'sum' }).call(a, b).item()).toBeCloseTo(13)
    expect(new nn.L1Loss({ reduction: 'none' }).call(a, b).toArray()).toEqual([2, 3])
    expect(new nn.SmoothL1Loss().call(a, b).item()).toBeCloseTo(2)
    const logits = tensor([
      [1, 2, 0.5],
      [0, 0, 3],
    ])
    const classes = tensor(Int32Array.of(1, 2))
    const direct = nn.F.crossEntropy(logits, classes)
    expect(new nn.CrossEntropyLoss().call(logits, classes).item()).toBe(direct.item())
    expect(new nn.NLLLoss().call(nn.F.logSoftmax(logits, 1), classes).item()).toBeCloseTo(Number(direct.item()), 6)
    const weighted = new nn.CrossEntropyLoss(tensor([1, 2, 3]), { ignoreIndex: 2 })
    expect([...weighted.stateDict().keys()]).toEqual(['weight'])
    expect(weighted.call(logits, classes).item()).toBeCloseTo(Number(nn.F.crossEntropy(logits.select(0, 0), tensor(1).to('int32')).item()), 5)
    expect(new nn.BCEWithLogitsLoss().call(tensor([0, 0]), tensor([1, 0])).item()).toBeCloseTo(Math.log(2), 5)
  })
})

describe('options', () => {
  test('that do not exist are errors', () => {
    expect(() => new nn.Linear(1, 2, { biass: false } as never)).toThrow(/unknown option 'biass'; did you mean 'bias'\? Known are bias, dtype/)
    expect(() => new nn.Conv2d(1, 2, 3, 1, { stride: 2 })).toThrow(/'stride' was given twice/)
    expect(() => new nn.Flatten(1, -1, 3 as never)).toThrow(ArgumentError)
  })

  test('of the wrong kind are errors that name the layer and the option', () => {
    expect(() => new nn.Linear(1, 2, { bias: 1 as never })).toThrow(/nn\.Linear: option 'bias' must be true or false/)
    expect(() => new nn.Linear(1.5, 2)).toThrow(/nn\.Linear: inFeatures must be an integer/)
    expect(() => new nn.Conv2d(3, 4, 3, { groups: 2 })).toThrow(/divisible by groups/)
    expect(() => new nn.Conv2d(3, 4, [3])).toThrow(/kernelSize must be an integer of at least 1 or an array of 2, got \[3\]/)
    expect(() => new nn.Conv2d(3, 4, 3, { stride: 2, padding: 'same' })).toThrow(/needs stride 1/)
    expect(() => new nn.Dropout(2)).toThrow(/nn\.Dropout: p must be a probability/)
    expect(() => new nn.GroupNorm(3, 4)).toThrow(/divisible by numGroups/)
    expect(() => new nn.Embedding(4, 2, { paddingIdx: 4 })).toThrow(/paddingIdx must be between -4 and 3/)
    expect(() => new (nn.Softmax as unknown as new () => nn.Softmax)()).toThrow(
      /nn\.Softmax: dim must be an integer, got null\. Give the dimension: new nn\.Softmax\(-1\)\./,
    )
  })

  test('of dtype hold for all parameters', () => {
    const layer = new nn.Linear(2, 3, { dtype: 'float64' })
    expect([layer.weight.dtype, (layer.bias as Tensor).dtype]).toEqual(['float64', 'float64'])
  })
})

describe('parameters', () => {
  test('are leaves on the memory of the given tensor', () => {
    const data = randn([2])
    const parameter = new nn.Parameter(data)
    expect(parameter.isParameter && parameter.requiresGrad && parameter.isLeaf).toBe(true)
    expect(parameter instanceof nn.Parameter).toBe(true)
    expect(data instanceof nn.Parameter).toBe(false)
    noGrad(() => parameter.fill_(4))
    expect(data.toArray()).toEqual([4, 4])
  })

  test('of integers cannot require gradients', () => {
    expect(() => new nn.Parameter(tensor(Int32Array.of(1)))).toThrow(/requiresGrad: false/)
    expect(new nn.Parameter(tensor(Int32Array.of(1)), { requiresGrad: false }).isParameter).toBe(true)
  })
})

test('layers are fx leaves; containers and subclasses of layers are not', () => {
  class MyLinear extends nn.Linear {
    override forward(x: Tensor): Tensor {
      return super.forward(x).relu()
    }
  }
  const leaf = (m: nn.Module): unknown => (m as unknown as Record<symbol, unknown>)[LEAF_MODULE]
  expect(leaf(new nn.Linear(1, 1))).toBe(true)
  expect(leaf(new nn.MultiheadAttention(2, 1))).toBe(true)
  expect(leaf(new MyLinear(1, 1))).toBe(false)
  expect(leaf(new nn.Sequential())).toBe(false)
})

test('layers with windows take a number for each dimension, by name and by position', () => {
  const [stride, padding, dilation] = [
    [1, 2],
    [1, 0],
    [1, 2],
  ] as const
  for (const layer of [
    new nn.MaxPool2d([2, 2], { stride, padding, dilation }),
    new nn.MaxPool2d([2, 2], stride, padding, dilation),
    new nn.AvgPool2d([2, 2], { stride, padding }),
    new nn.MaxUnpool2d([2, 2], { stride, padding }),
    new nn.Unfold([2, 2], { stride, padding, dilation }),
    new nn.Fold([4, 4], [2, 2], { stride, padding, dilation }),
  ])
    expect([layer.stride, layer.padding]).toEqual([stride, padding])
  expect(new nn.MaxPool2d(2, { stride: 1, padding: [1, 0] }).call(ones([1, 1, 4, 4])).shape).toEqual([1, 1, 5, 3])
  expect(() => new nn.AvgPool2d(2, { padding: [1, 0, 0] })).toThrow(
    'nn.AvgPool2d: padding must be an integer of at least 0 or an array of 2, got [1, 0, 0].',
  )
})

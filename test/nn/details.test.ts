// The smaller promises of layers: what FxGraphDrawer prints of them, how they reset, what their arguments may be, and what errors say.
import { describe, expect, test } from 'vitest'
import { ArgumentError, ShapeError, nn, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { py, pyFloat } from '../../src/protocol/pythonText.ts'

const values = (x: Tensor | null): number[] => Array.from(x?.toTypedArray() ?? [])

test.each([
  [nn.ReLU, ['inplace']],
  [nn.GELU, ['approximate']],
  [nn.LeakyReLU, ['negative_slope']],
  [nn.ELU, ['alpha']],
  [nn.Softmax, ['dim']],
  [nn.LogSoftmax, ['dim']],
  [nn.Dropout, ['p', 'inplace']],
  [nn.Linear, ['in_features', 'out_features']],
  [nn.Flatten, ['start_dim', 'end_dim']],
  [nn.Embedding, ['num_embeddings', 'embedding_dim', 'padding_idx']],
  [nn.Conv2d, ['stride', 'padding', 'dilation', 'groups', 'in_channels', 'out_channels', 'kernel_size']],
  [nn.BatchNorm2d, ['track_running_stats', 'momentum', 'eps', 'num_features', 'affine']],
  [nn.LayerNorm, ['normalized_shape', 'eps', 'elementwise_affine']],
  [nn.GroupNorm, ['num_groups', 'num_channels', 'eps', 'affine']],
  [nn.MaxPool2d, ['kernel_size', 'stride', 'padding', 'dilation', 'ceil_mode']],
  [nn.AvgPool2d, ['kernel_size', 'stride', 'padding', 'ceil_mode', 'count_include_pad', 'divisor_override']],
  [nn.AdaptiveAvgPool2d, ['output_size']],
])('%o has PyTorch’s __constants__', (layer: { readonly constants: readonly string[] }, names: readonly string[]) => {
  expect(layer.constants).toEqual(names)
})

describe('resetting', () => {
  const changed = (...tensors: readonly (Tensor | null)[]): void => torch.noGrad(() => tensors.forEach((t) => t?.fill_(7)))

  test('batch norm gets scale 1, shift 0 and new statistics', () => {
    const layer = new nn.BatchNorm1d(2)
    changed(layer.weight, layer.bias, layer.runningMean, layer.runningVar, layer.numBatchesTracked)
    layer.resetParameters()
    expect([layer.weight, layer.bias, layer.runningMean, layer.runningVar, layer.numBatchesTracked].map(values)).toEqual([
      [1, 1],
      [0, 0],
      [0, 0],
      [1, 1],
      [0],
    ])
    expect(new nn.BatchNorm1d(2).bias?.toArray()).toEqual([0, 0])
    const bare = new nn.BatchNorm1d(2, { affine: false, trackRunningStats: false })
    bare.resetParameters()
    expect([bare.weight, bare.bias, bare.runningMean, bare.runningVar, bare.numBatchesTracked]).toEqual([null, null, null, null, null])
    expect(new nn.BatchNorm1d(2, { bias: false }).bias).toBeNull()
  })

  test.each([
    ['layer norm', new nn.LayerNorm([2]), new nn.LayerNorm([2], { elementwiseAffine: false })],
    ['group norm', new nn.GroupNorm(1, 2), new nn.GroupNorm(1, 2, { affine: false })],
  ])('%s gets scale 1 and shift 0', (_, layer, bare) => {
    changed(layer.weight, layer.bias)
    layer.resetParameters()
    expect([values(layer.weight), values(layer.bias)]).toEqual([
      [1, 1],
      [0, 0],
    ])
    bare.resetParameters()
    expect([bare.weight, bare.bias]).toEqual([null, null])
  })

  test('the bias of a convolution is within 1 / sqrt(fan in)', () => {
    const layer = new nn.Conv2d(8, 64, 5)
    const largest = Math.max(...values(layer.bias).map(Math.abs))
    expect(largest).toBeLessThanOrEqual(1 / Math.sqrt(200))
    expect(largest).toBeGreaterThan(0.5 / Math.sqrt(200))
  })
})

test.each([
  ['linear', 1],
  ['conv1d', 1],
  ['conv2d', 1],
  ['sigmoid', 1],
  ['tanh', 5 / 3],
  ['relu', Math.SQRT2],
  ['leaky_relu', Math.sqrt(2 / 1.0001)],
  ['selu', 3 / 4],
] as const)('the gain of %s is %d', (name, gain) => {
  expect(nn.init.calculateGain(name)).toBeCloseTo(gain, 12)
})

test('gains of slopes and unknown activations', () => {
  expect(nn.init.calculateGain('leaky_relu', 1)).toBe(1)
  expect(() => nn.init.calculateGain('swish' as never)).toThrow("init.calculateGain: unknown nonlinearity 'swish'; choose one of linear, conv1d")
  expect(() => nn.init.eye_(torch.zeros([2]))).toThrow('init.eye_: expected a matrix, got shape [2].')
  expect(() => nn.init.eye_(torch.zeros([2, 2, 2]))).toThrow(ShapeError)
  expect(nn.init.eye_(torch.zeros([2, 3])).toArray()).toEqual([
    [1, 0, 0],
    [0, 1, 0],
  ])
})

test.each([
  [1, '1.0'],
  [0, '0.0'],
  [0.5, '0.5'],
  [1e-5, '1e-05'],
  [1e-4, '0.0001'],
  [1e16, '1e+16'],
  [1e15, '1000000000000000.0'],
  [1.5e-12, '1.5e-12'],
  [-2, '-2.0'],
  [Infinity, 'inf'],
  [-Infinity, '-inf'],
  [Number.NaN, 'nan'],
])('%d prints as Python’s float %s', (value, text) => expect(pyFloat(value)).toBe(text))

test.each([
  [null, 'None'],
  [true, 'True'],
  [false, 'False'],
  [3, '3'],
  ['same', "'same'"],
  [[1], '(1,)'],
  [[1, null], '(1, None)'],
  [[], '()'],
])('%j prints as Python’s %s', (value, text) => expect(py(value)).toBe(text))

describe('arguments of layers', () => {
  test.each([
    [() => new nn.Linear(0, 3, 1 as never), "nn.Linear: argument 'bias' must be true or false, got 1."],
    [() => new nn.Linear(-1, 3), 'nn.Linear: inFeatures must be an integer of at least 0, got -1.'],
    [() => new nn.Linear('2' as never, 3), "nn.Linear: inFeatures must be an integer of at least 0, got '2'."],
    [() => new nn.Flatten(1, 2, 3 as never), 'nn.Flatten: 1 argument(s) too many. The optional arguments are startDim, endDim.'],
    [() => new nn.Flatten({ start: 1 } as never), "nn.Flatten: unknown option 'start'; known are startDim, endDim."],
    [() => new nn.Conv2d(3, 4, 2), ''],
    [() => new nn.Conv2d(3, 4, 2, { groups: 3 }), 'nn.Conv2d: inChannels and outChannels must be divisible by groups, got 3, 4 and 3.'],
    [() => new nn.Conv2d(4, 3, 2, { groups: 2 }), 'nn.Conv2d: inChannels and outChannels must be divisible by groups, got 4, 3 and 2.'],
    [() => new nn.Conv2d(1, 1, 0), 'nn.Conv2d: kernelSize must be an integer of at least 1 or an array of 2, got 0.'],
    [() => new nn.Conv2d(1, 1, [1, 2.5]), 'nn.Conv2d: kernelSize must be an integer of at least 1 or an array of 2, got [1, 2.5].'],
    [() => new nn.Conv1d(1, 1, 0), 'nn.Conv1d: kernelSize must be an integer of at least 1, got 0.'],
    [() => new nn.Conv2d(1, 1, 3, { padding: 'same', stride: 2 }), "nn.Conv2d: padding 'same' needs stride 1, got stride (2, 2)."],
    [() => new nn.Dropout(1.5), 'nn.Dropout: p must be a probability between 0 and 1, got 1.5.'],
    [() => new nn.Dropout(-0.5), 'nn.Dropout: p must be a probability between 0 and 1, got -0.5.'],
    [() => new nn.Dropout('1' as never), "nn.Dropout: argument 'p' must be a number, got '1'."],
    [() => new nn.GroupNorm(3, 4), 'nn.GroupNorm: numChannels must be divisible by numGroups, got 4 and 3.'],
    [() => new nn.Embedding(3, 2, 3), 'nn.Embedding: paddingIdx must be between -3 and 2, got 3.'],
    [() => new nn.Embedding(3, 2, -4), 'nn.Embedding: paddingIdx must be between -3 and 2, got -4.'],
    [() => new nn.GELU('fast' as never), "nn.GELU: approximate must be 'none' or 'tanh', got 'fast'."],
    [() => new nn.MultiheadAttention(6, 4), 'nn.MultiheadAttention: embedDim must be divisible by numHeads, got 6 and 4.'],
    [() => new nn.MultiheadAttention(0, 1), 'nn.MultiheadAttention: embedDim must be an integer of at least 1, got 0.'],
    [() => new nn.MultiheadAttention(4, 0), 'nn.MultiheadAttention: numHeads must be an integer of at least 1, got 0.'],
    [() => new nn.MultiheadAttention(4, 2, { dropout: 2 }), 'nn.MultiheadAttention: dropout must be a probability between 0 and 1, got 2.'],
    [() => new nn.MultiheadAttention(4, 2, { dropout: -1 }), 'nn.MultiheadAttention: dropout must be a probability between 0 and 1, got -1.'],
    [() => new nn.BatchNorm1d(3).call(torch.zeros([2, 4])), 'nn.BatchNorm1d: expected input [N, C] or [N, C, L] with 3 channels, got shape [2, 4].'],
    [() => new nn.BatchNorm2d(3).call(torch.zeros([2, 3])), 'nn.BatchNorm2d: expected input [N, C, H, W] with 3 channels, got shape [2, 3].'],
  ])('case %#', (make, message) => {
    if (message === '') expect(make).not.toThrow()
    else expect(make).toThrow(message)
  })

  test('an undefined option is the default, and losses ignore class -100', () => {
    expect(new nn.Dropout({ p: undefined as never }).p).toBe(0.5)
    expect([new nn.CrossEntropyLoss().ignoreIndex, new nn.NLLLoss().ignoreIndex]).toEqual([-100, -100])
    expect(new nn.Embedding(3, 2, -1).paddingIdx).toBe(2)
    expect(new nn.Embedding(3, 2, { paddingIdx: 0 }).weight.select(0, 0).toArray()).toEqual([0, 0])
  })
})

describe('containers', () => {
  const list = new nn.ModuleList([new nn.ReLU(), new nn.Tanh()])
  const dict = new nn.ModuleDict({ a: new nn.ReLU(), b: new nn.Tanh() })

  test('find modules by position and by name', () => {
    expect(list.at(-2)).toBe([...list][0])
    expect(new nn.Sequential(...list).at(1)).toBe([...list][1])
    expect([...dict.values()]).toEqual([dict.get('a'), dict.get('b')])
    expect([...dict.entries()]).toEqual([
      ['a', dict.get('a')],
      ['b', dict.get('b')],
    ])
    expect([...dict]).toEqual(['a', 'b'])
    expect([dict.has('a'), dict.has('training'), dict.has('c')]).toEqual([true, false, false])
    expect(dict.delete('c')).toBe(false)
  })

  test.each([
    [() => list.at(2), 'nn.ModuleList.at: index 2 is out of range for 2 module(s).'],
    [() => list.at(-3), 'nn.ModuleList.at: index -3 is out of range for 2 module(s).'],
    [() => list.at(0.5), 'nn.ModuleList.at: index 0.5 is out of range for 2 module(s).'],
    [() => list.set(5, new nn.ReLU()), 'nn.ModuleList.set: index 5 is out of range for 2 module(s).'],
    [() => list.insert(3, new nn.ReLU()), 'nn.ModuleList.insert: index 3 is out of range for 2 module(s).'],
    [() => list.append(null as never), "nn.ModuleList.append: '2' must be a Module, got null."],
    [() => list.append(3 as never), "nn.ModuleList.append: '2' must be a Module, got 3."],
    [() => new nn.Sequential(new nn.ReLU()).at(1), 'nn.Sequential.at: index 1 is out of range for 1 module(s).'],
    [() => dict.get('c'), "nn.ModuleDict.get: there is no module 'c'. The modules are a, b."],
    [() => dict.set('forward', new nn.ReLU()), "nn.ModuleDict.set: the name 'forward' is taken by a property of ModuleDict; choose another one."],
    [() => dict.call(), 'nn.ModuleDict has no forward: call the module that you need'],
    [() => list.call(), 'nn.ModuleList has no forward: call its modules one by one, or use nn.Sequential.'],
  ])('errors say what is wrong: case %#', (run, message) => {
    expect(run).toThrow(message)
  })
})

describe('attention', () => {
  const x = (...shape: number[]): Tensor => torch.randn(shape)

  test('has the bias and the dtype of its options in both projections', () => {
    const layer = new nn.MultiheadAttention(4, 2, { bias: false, dtype: 'float64' })
    expect([layer.inProjBias, layer.outProj.bias]).toEqual([null, null])
    expect([layer.inProjWeight?.dtype, layer.outProj.weight.dtype]).toEqual(['float64', 'float64'])
  })

  test('query, key and value may differ', () => {
    const layer = new nn.MultiheadAttention(4, 2, { batchFirst: true })
    const [q, k, v] = [x(2, 3, 4), x(2, 5, 4), x(2, 5, 4)]
    const [same] = layer.call(q, k, k)
    const [other] = layer.call(q, k, v)
    expect(other.shape).toEqual([2, 3, 4])
    expect(torch.allclose(same, other)).toBe(false)
    expect(torch.allclose(layer.call(q, q, q)[0], layer.call(q, q.clone(), q.clone())[0], { atol: 1e-5 })).toBe(true)
  })

  test('a mask per head, and a mask together with padding', () => {
    const layer = new nn.MultiheadAttention(4, 2, { batchFirst: true })
    const q = x(2, 3, 4)
    const causal = torch.triu(torch.ones([3, 3]), 1).to('bool')
    const padding = torch.tensor([
      [false, false, true],
      [false, false, false],
    ])
    const [plain] = layer.call(q, q, q, { attnMask: causal })
    const perHead = torch.stack([causal, causal, causal, causal])
    expect(torch.allclose(layer.call(q, q, q, { attnMask: perHead })[0], plain, { atol: 1e-6 })).toBe(true)
    const [, weights] = layer.call(q, q, q, { attnMask: causal, keyPaddingMask: padding })
    // Nothing looks ahead, and in the first sequence nothing attends to the padding.
    const zeros = weights?.eq(0).toArray()
    expect(zeros).toEqual([
      [
        [false, true, true],
        [false, false, true],
        [false, false, true],
      ],
      [
        [false, true, true],
        [false, false, true],
        [false, false, false],
      ],
    ])
  })

  test.each([
    [() => new nn.MultiheadAttention(4, 2).call(x(3, 4), x(2, 3, 4), x(3, 4)), 'key must have 2 or 3 dimensions, as many as query, and 4 features'],
    [() => new nn.MultiheadAttention(4, 2).call(x(4), x(4), x(4)), 'query must have 2 or 3 dimensions'],
    [
      () => new nn.MultiheadAttention(4, 2).call(x(2, 3, 5), x(2, 3, 4), x(2, 3, 4)),
      'query must have 2 or 3 dimensions, as many as query, and 4 features in the last; got shape [2, 3, 5]',
    ],
    [
      () => new nn.MultiheadAttention(4, 2, { batchFirst: true }).call(x(2, 3, 4), x(2, 3, 4), x(2, 3, 4), { attnMask: torch.zeros([2, 2]) }),
      'attnMask has shape [2, 2]; expected [3, 3] or [4, 3, 3].',
    ],
    [
      () => new nn.MultiheadAttention(4, 2, { batchFirst: true }).call(x(2, 3, 4), x(2, 3, 4), x(2, 3, 4), { keyPaddingMask: torch.zeros([3, 2]) }),
      'keyPaddingMask has shape [3, 2]; expected [2, 3].',
    ],
  ])('shapes that do not fit are errors: case %#', (run, message) => {
    expect(run).toThrow(message)
  })
})

test('options that are not there are ArgumentErrors', () => {
  expect(() => new nn.Softmax({ axis: 1 } as never)).toThrow(ArgumentError)
})

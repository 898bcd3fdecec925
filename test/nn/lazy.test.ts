// Lazy layers: nothing can be read before the first call, and afterwards they are ordinary layers.
import { describe, expect, it } from 'vitest'
import { compile, fx, nn, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { hooksOf } from '../../src/module/index.ts'

interface Case {
  readonly lazy: () => nn.Module
  readonly ordinary: () => nn.Module
  readonly input: readonly number[]
  readonly text: string
}

const cases: Readonly<Record<string, Case>> = {
  LazyLinear: {
    lazy: () => new nn.LazyLinear(3),
    ordinary: () => new nn.Linear(5, 3),
    input: [2, 5],
    text: 'LazyLinear(in_features=0, out_features=3, bias=True)',
  },
  'LazyLinear without a bias': {
    lazy: () => new nn.LazyLinear(3, false),
    ordinary: () => new nn.Linear(5, 3, false),
    input: [5],
    text: 'LazyLinear(in_features=0, out_features=3, bias=False)',
  },
  LazyConv1d: {
    lazy: () => new nn.LazyConv1d(4, 3),
    ordinary: () => new nn.Conv1d(2, 4, 3),
    input: [1, 2, 8],
    text: 'LazyConv1d(0, 4, kernel_size=(3,), stride=(1,))',
  },
  LazyConv2d: {
    lazy: () => new nn.LazyConv2d(4, 3, { groups: 2, padding: 'same', paddingMode: 'circular' }),
    ordinary: () => new nn.Conv2d(6, 4, 3, { groups: 2, padding: 'same', paddingMode: 'circular' }),
    input: [1, 6, 5, 5],
    text: 'LazyConv2d(0, 4, kernel_size=(3, 3), stride=(1, 1), padding=same, groups=2, padding_mode=circular)',
  },
  'LazyConv2d, unbatched': {
    lazy: () => new nn.LazyConv2d(4, 3, 2),
    ordinary: () => new nn.Conv2d(6, 4, 3, 2),
    input: [6, 5, 5],
    text: 'LazyConv2d(0, 4, kernel_size=(3, 3), stride=(2, 2))',
  },
  LazyConv3d: {
    lazy: () => new nn.LazyConv3d(2, 2),
    ordinary: () => new nn.Conv3d(3, 2, 2),
    input: [1, 3, 4, 4, 4],
    text: 'LazyConv3d(0, 2, kernel_size=(2, 2, 2), stride=(1, 1, 1))',
  },
  LazyConvTranspose1d: {
    lazy: () => new nn.LazyConvTranspose1d(4, 3),
    ordinary: () => new nn.ConvTranspose1d(2, 4, 3),
    input: [1, 2, 8],
    text: 'LazyConvTranspose1d(0, 4, kernel_size=(3,), stride=(1,))',
  },
  LazyConvTranspose2d: {
    lazy: () => new nn.LazyConvTranspose2d(4, 3, { stride: 2, outputPadding: 1, groups: 2, bias: false }),
    ordinary: () => new nn.ConvTranspose2d(6, 4, 3, { stride: 2, outputPadding: 1, groups: 2, bias: false }),
    input: [1, 6, 5, 5],
    text: 'LazyConvTranspose2d(0, 4, kernel_size=(3, 3), stride=(2, 2), output_padding=(1, 1), groups=2, bias=False)',
  },
  LazyConvTranspose3d: {
    lazy: () => new nn.LazyConvTranspose3d(2, 2),
    ordinary: () => new nn.ConvTranspose3d(3, 2, 2),
    input: [1, 3, 3, 3, 3],
    text: 'LazyConvTranspose3d(0, 2, kernel_size=(2, 2, 2), stride=(1, 1, 1))',
  },
  LazyBatchNorm1d: {
    lazy: () => new nn.LazyBatchNorm1d(),
    ordinary: () => new nn.BatchNorm1d(4),
    input: [3, 4],
    text: 'LazyBatchNorm1d(0, eps=1e-05, momentum=0.1, affine=True, bias=True, track_running_stats=True)',
  },
  LazyBatchNorm2d: {
    lazy: () => new nn.LazyBatchNorm2d({ eps: 0.1, affine: false }),
    ordinary: () => new nn.BatchNorm2d(4, { eps: 0.1, affine: false }),
    input: [3, 4, 2, 2],
    text: 'LazyBatchNorm2d(0, eps=0.1, momentum=0.1, affine=False, bias=True, track_running_stats=True)',
  },
  LazyBatchNorm3d: {
    lazy: () => new nn.LazyBatchNorm3d({ trackRunningStats: false }),
    ordinary: () => new nn.BatchNorm3d(4, { trackRunningStats: false }),
    input: [3, 4, 2, 2, 2],
    text: 'LazyBatchNorm3d(0, eps=1e-05, momentum=0.1, affine=True, bias=True, track_running_stats=False)',
  },
  LazyInstanceNorm1d: {
    lazy: () => new nn.LazyInstanceNorm1d({ affine: true, trackRunningStats: true }),
    ordinary: () => new nn.InstanceNorm1d(4, { affine: true, trackRunningStats: true }),
    input: [3, 4, 5],
    text: 'LazyInstanceNorm1d(0, eps=1e-05, momentum=0.1, affine=True, bias=True, track_running_stats=True)',
  },
  LazyInstanceNorm2d: {
    lazy: () => new nn.LazyInstanceNorm2d(),
    ordinary: () => new nn.InstanceNorm2d(4),
    input: [3, 4, 2, 2],
    text: 'LazyInstanceNorm2d(0, eps=1e-05, momentum=0.1, affine=False, bias=True, track_running_stats=False)',
  },
  LazyInstanceNorm3d: {
    lazy: () => new nn.LazyInstanceNorm3d({ affine: true }),
    ordinary: () => new nn.InstanceNorm3d(4, { affine: true }),
    input: [3, 4, 2, 2, 2],
    text: 'LazyInstanceNorm3d(0, eps=1e-05, momentum=0.1, affine=True, bias=True, track_running_stats=False)',
  },
}

const call = (module: nn.Module, x: Tensor): Tensor => Reflect.apply(module, undefined, [x]) as Tensor

describe.each(Object.entries(cases))('%s', (_, { lazy, ordinary, input, text }) => {
  it('is after its first call what the ordinary layer is, drawn from the same random numbers', () => {
    torch.manualSeed(1)
    const expected = ordinary()
    const x = torch.randn(input)
    torch.manualSeed(1)
    const layer = lazy()
    expect(String(layer)).toBe(text)
    const wanted = call(expected, x)
    torch.manualSeed(1)
    const out = call(layer, x)
    expect(torch.equal(out, wanted)).toBe(true)
    expect(String(layer)).toBe(String(expected))
    expect(Object.getPrototypeOf(layer)).toBe(Object.getPrototypeOf(expected))
    expect([...layer.stateDict().keys()]).toEqual([...expected.stateDict().keys()])
    expect(torch.equal(call(layer.eval(), x), call(expected.eval(), x))).toBe(true)
  })

  it.each([
    ['takes its shapes from a state dict', lazy],
    ['takes them as a copy too', () => lazy().deepCopy()],
  ])('%s', (__, make) => {
    const from = ordinary()
    const layer = make()
    layer.loadStateDict(from.stateDict({ names: 'pytorch' }))
    const x = torch.randn(input)
    expect(torch.equal(call(layer.eval(), x), call(from.eval(), x))).toBe(true)
  })

  it('runs compiled from the first call on, and copies before it', () => {
    const x = torch.randn(input)
    const layer = lazy()
    const copy = layer.deepCopy()
    torch.manualSeed(2)
    const compiled = compile(layer.eval())(x as never) as Tensor
    torch.manualSeed(2)
    expect(torch.allclose(compiled, call(copy.eval(), x), { rtol: 1e-5, atol: 1e-6 })).toBe(true)
    expect(torch.allclose(call(layer, x), compiled, { rtol: 1e-5, atol: 1e-6 })).toBe(true)
  })
})

describe('before the first call', () => {
  it('a parameter has no shape, and says so', () => {
    const layer = new nn.LazyLinear(3)
    const { weight } = layer
    expect(weight instanceof nn.Parameter).toBe(true)
    expect(weight.requiresGrad).toBe(true)
    expect(weight.dtype).toBe('float32')
    expect(String(weight)).toBe('<UninitializedParameter>')
    for (const read of [
      () => weight.shape,
      () => weight.numel,
      () => torch.relu(weight),
      () => weight.add(1),
      () => weight.toArray(),
      () => torch.zeros([1]).add(weight),
    ])
      expect(read).toThrow('has no shape yet. A lazy layer makes its parameters when it is first called')
    expect([...layer.stateDict().keys()]).toEqual(['weight', 'bias'])
    expect([...layer.parameters()]).toHaveLength(2)
  })

  it('requiresGrad can be set, and is kept', () => {
    const layer = new nn.LazyLinear(3)
    layer.requiresGrad_(false)
    layer(torch.ones([1, 2]))
    expect(layer.weight.requiresGrad).toBe(false)
  })

  it('an input of the wrong form is refused, and leaves the layer as it was', () => {
    const layer = new nn.LazyConv2d(3, 2)
    expect(() => layer(torch.ones([2, 3]))).toThrow('nn.LazyConv2d: expected 3D (unbatched) or 4D (batched) input, got shape [2, 3]')
    expect(() => layer.weight.shape).toThrow('has no shape yet')
    expect(layer(torch.ones([1, 2, 4, 4])).shape).toEqual([1, 3, 3, 3])
    expect(() => new nn.LazyBatchNorm2d()(torch.ones([2, 3]))).toThrow('nn.LazyBatchNorm2d: expected 4D input')
  })

  it('a model of lazy layers gets all shapes from one batch, trains, and is traced', () => {
    const model = new nn.Sequential(new nn.LazyConv2d(4, 3), new nn.LazyBatchNorm2d(), new nn.ReLU(), new nn.Flatten(), new nn.LazyLinear(2))
    const x = torch.randn([2, 3, 5, 5])
    model(x)
    expect([...model.namedParameters()].map(([name, { shape }]) => [name, shape])).toEqual([
      ['0.weight', [4, 3, 3, 3]],
      ['0.bias', [4]],
      ['1.weight', [4]],
      ['1.bias', [4]],
      ['4.weight', [2, 36]],
      ['4.bias', [2]],
    ])
    const optimizer = new torch.optim.SGD(model.parameters(), { lr: 0.1 })
    model(x).sum().backward()
    optimizer.step()
    model.eval()
    expect(torch.equal(fx.symbolicTrace(model)(x), model(x))).toBe(true)
  })

  it.each([
    ['an input', (layer: nn.LazyLinear) => void layer(torch.ones([1, 2]))],
    ['a state dict', (layer: nn.LazyLinear) => void layer.loadStateDict(new nn.Linear(2, 3).stateDict())],
  ])('once %s has given it its size, neither a layer nor its copy keeps the hooks that waited for it', (_, give) => {
    const layer = new nn.LazyLinear(3)
    const copy = layer.deepCopy()
    for (const lazy of [layer, copy]) {
      give(lazy)
      expect(lazy.weight.shape).toEqual([3, 2])
      expect([hooksOf(lazy, 'forwardPre'), hooksOf(lazy, 'loadStateDictPre')]).toEqual([undefined, undefined])
    }
  })

  it('hooks of the program see the layer with its size', () => {
    const layer = new nn.LazyLinear(3)
    const seen: (readonly number[])[] = []
    layer.registerForwardPreHook((module, args) => {
      seen.push((module as nn.Linear).weight.shape)
      return args
    })
    layer(torch.ones([1, 2]))
    layer(torch.ones([4, 2]))
    expect(seen).toEqual([
      [3, 2],
      [3, 2],
    ])
  })

  it('what is no tensor is refused by the layer, which stays as it was', () => {
    const layer = new nn.LazyLinear(3)
    expect(() => layer('x' as never)).toThrow("'x'")
    expect(() => layer.weight.shape).toThrow('has no shape yet')
  })

  it('UninitializedParameter and UninitializedBuffer can be made', () => {
    expect(() => new nn.UninitializedParameter({ dtype: 'float64' }).shape).toThrow('UninitializedParameter: cannot read')
    expect(() => new nn.UninitializedBuffer().shape).toThrow('UninitializedBuffer: cannot read')
  })
})

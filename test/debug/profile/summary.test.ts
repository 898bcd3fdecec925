// FLOPs by FlopCounterMode's rules, and the summary of a model.
import { describe, expect, it } from 'vitest'
import { nn, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { compile } from 'tensorfx/compile'
import { FlopCounterMode, summary } from 'tensorfx/debug'
import { plain as gpt } from '../../fx/samples/s06_gpt2.ts'
import { samples as resnets } from '../../fx/samples/s04_resnet18.ts'

const {
  nn: { functional: F },
} = torch

const flopsOf = (fn: () => unknown): number => {
  const counter = new FlopCounterMode()
  counter.during(fn)
  return counter.getTotalFlops()
}

/** Of a function that only multiplies and adds: with ones everywhere, the sum of its results is the number of its products. */
const twiceTheSum = (fn: () => Tensor): number => 2 * Number(fn().sum().item())

describe('FLOPs', () => {
  it('are 2 for each product, whatever the operator is called', () => {
    const ones = (...shape: number[]): Tensor => torch.ones(shape)
    const programs: Readonly<Record<string, () => Tensor>> = {
      mm: () => ones(3, 4).mm(ones(4, 5)),
      'matmul of batches': () => ones(2, 1, 3, 4).matmul(ones(5, 4, 2)),
      'matmul by a vector': () => ones(3, 4).matmul(ones(4)),
      bmm: () => ones(2, 3, 4).bmm(ones(2, 4, 5)),
      linear: () => F.linear(ones(2, 3, 4), ones(5, 4)),
      einsum: () => torch.einsum('bij,bjk->bik', ones(2, 3, 4), ones(2, 4, 5)),
      tensordot: () => torch.tensordot(ones(2, 3, 4), ones(3, 4, 5)),
      conv1d: () => F.conv1d(ones(2, 4, 9), ones(6, 4, 3), null, { stride: 2 }),
      'conv2d with groups': () => F.conv2d(ones(2, 4, 9, 8), ones(6, 2, 3, 2), null, { stride: [2, 1], dilation: [1, 2], groups: 2 }),
      conv3d: () => F.conv3d(ones(1, 2, 5, 4, 3), ones(3, 2, 2, 2, 2)),
    }
    for (const [name, fn] of Object.entries(programs)) expect([name, flopsOf(fn)]).toEqual([name, twiceTheSum(fn)])
  })

  it('are those of the product in addmm and baddbmm, and 0 for what multiplies no matrices', () => {
    expect(flopsOf(() => torch.addmm(torch.ones([5]), torch.ones([3, 4]), torch.ones([4, 5])))).toBe(2 * 3 * 4 * 5)
    expect(flopsOf(() => torch.baddbmm(torch.ones([5]), torch.ones([2, 3, 4]), torch.ones([2, 4, 5])))).toBe(2 * 2 * 3 * 4 * 5)
    expect(
      flopsOf(() =>
        torch
          .relu(torch.ones([9]))
          .add(1)
          .softmax(0),
      ),
    ).toBe(0)
    expect(flopsOf(() => torch.ones([0, 4]).mm(torch.ones([4, 5])))).toBe(0)
  })

  it('of a transposed convolution count the zeros between its elements, which it multiplies (difference: flops-transposed-conv)', () => {
    const [x, w] = [torch.ones([1, 4, 3, 5]), torch.ones([4, 2, 3, 2])]
    const perOutput = 2 * 4 * (3 * 2)
    expect(flopsOf(() => F.convTranspose2d(x, w))).toBe(perOutput * (2 * 5 * 6))
    expect(flopsOf(() => F.convTranspose2d(x, w, null, { stride: 2 }))).toBe(perOutput * (2 * 7 * 10))
  })

  it('are two products of queries, keys and values in attention', () => {
    const [q, k, v] = [torch.ones([2, 3, 5, 8]), torch.ones([2, 3, 7, 8]), torch.ones([2, 3, 7, 4])]
    expect(flopsOf(() => F.scaledDotProductAttention(q, k, v))).toBe(2 * 6 * 5 * 7 * 8 + 2 * 6 * 5 * 7 * 4)
  })

  it('of a backward are as many for each gradient that is asked for', () => {
    const step = (input: Tensor, weight: Tensor, fn: (input: Tensor, weight: Tensor) => Tensor): number =>
      flopsOf(() => fn(input, weight).sum().backward())
    const conv = (x: Tensor, w: Tensor): Tensor => F.conv2d(x, w, null, { groups: 2 })
    const forward = 2 * 6 * 7 * 7 * (2 * 9)
    const [x, w] = [torch.ones([1, 4, 9, 9]), torch.ones([6, 2, 3, 3])]
    const leaf = (t: Tensor): Tensor => t.clone().requiresGrad_()
    expect(step(x, leaf(w), conv)).toBe(2 * forward)
    expect(step(leaf(x), leaf(w), conv)).toBe(3 * forward)
    expect(step(leaf(torch.ones([3, 4])), leaf(torch.ones([5, 4])), F.linear)).toBe(3 * 2 * 3 * 4 * 5)
  })

  it('are known by module and operator, those of compiled functions included', () => {
    const net = new nn.Sequential(new nn.Linear(4, 8), new nn.ReLU(), new nn.Linear(8, 2))
    const [first, second] = [2 * 3 * 4 * 8, 2 * 3 * 8 * 2]
    const counter = new FlopCounterMode()
    expect(counter.during(() => net(torch.ones([3, 4])).shape)).toEqual([3, 2])
    const linear = 'torch.nn.functional.linear'
    expect([...counter.getFlopCounts()].map(([path, counts]) => [path, [...counts]])).toEqual([
      ['Global', [[linear, first + second]]],
      ['Sequential', [[linear, first + second]]],
      ['Sequential.0', [[linear, first]]],
      ['Sequential.2', [[linear, second]]],
    ])
    const compiled = compile(net)
    compiled(torch.ones([3, 4]))
    expect(flopsOf(() => compiled(torch.ones([3, 4])))).toBe(first + second)
    // @ts-expect-error -- no function
    expect(() => counter.during(3)).toThrow("FlopCounterMode.during: argument 'fn' must be a function, got 3")
  })
})

describe('summary', () => {
  it('has the FLOPs of ResNet-18, derived by hand', () => {
    const resnet = resnets[0]?.make() ?? new nn.Identity()
    const { rows, totals } = summary(resnet, torch.randn([1, 3, 32, 32]))
    const conv = (size: number, from: number, to: number, window: number): number => 2 * size * size * to * from * window * window
    const block = (size: number, from: number, to: number): number =>
      conv(size, from, to, 3) + conv(size, to, to, 3) + (from === to ? 0 : conv(size, from, to, 1))
    const layer = (size: number, from: number, to: number): number => block(size, from, to) + block(size, to, to)
    const layers = [layer(8, 64, 64), layer(4, 64, 128), layer(2, 128, 256), layer(1, 256, 512)]
    const stem = conv(16, 3, 64, 7)
    const fc = 2 * 512 * 1000
    const at = (name: string): number | undefined => rows.find((row) => row.name === name)?.flops
    expect([1, 2, 3, 4].map((i) => at(`layer${i}`))).toEqual(layers)
    expect([at('conv1'), at('bn1'), at('fc'), at('')]).toEqual([stem, 0, fc, totals.flops])
    expect(totals.flops).toBe(stem + layers.reduce((a, b) => a + b) + fc)
    // PyTorch's FlopCounterMode counts 3,628,146,688 for images of 224, which have 7² as many pixels in every layer.
    expect((totals.flops - fc) * 7 ** 2 + fc).toBe(3_628_146_688)
    expect(totals).toMatchObject({
      parameters: 11_689_512,
      trainableParameters: 11_689_512,
      parameterBytes: 4 * 11_689_512,
      inputBytes: 4 * 3 * 32 * 32,
    })
    expect(rows.find(({ name }) => name === 'layer2.0.downsample')).toMatchObject({
      type: 'Sequential',
      depth: 3,
      outputShapes: [[1, 128, 4, 4]],
      calls: 1,
    })
  })

  it('has the FLOPs of a small GPT, derived by hand', () => {
    const [batch, time, width, heads, layers, vocabulary] = [2, 6, 16, 2, 2, 64]
    const linear = (from: number, to: number): number => 2 * batch * time * from * to
    const attention = 2 * (2 * batch * heads * time * time * (width / heads))
    const layer = linear(width, 3 * width) + attention + linear(width, width) + 2 * linear(width, 4 * width)
    const { rows, totals } = summary(gpt.make(), torch.zeros([batch, time], { dtype: 'int64' }))
    expect(totals.flops).toBe(layers * layer + linear(width, vocabulary))
    expect(rows.find(({ name }) => name === 'blocks.1.attn')?.flops).toBe(linear(width, 3 * width) + attention + linear(width, width))
    expect(rows.find(({ name }) => name === 'blocks')).toMatchObject({ calls: 0, flops: 0 })
  })

  class Twice extends nn.Module {
    fc = new nn.Linear(3, 3)
    drop = new nn.Dropout(0.5)
    unused = new nn.Linear(3, 1)
    override forward(x: Tensor): readonly [Tensor, Tensor] {
      const y = this.fc(this.fc(x))
      return [this.drop(y), y.sum()]
    }
  }

  it('is a table', () => {
    const net = new Twice()
    net.unused.requiresGrad_(false)
    expect(String(summary(net, torch.ones([2, 3])))).toBe(
      [
        'layer                   output      parameters  FLOPs    memory',
        '----------------------  ----------  ----------  -----  --------',
        'Twice                   [2, 3], []          16     72  28 bytes',
        '  fc: Linear (2 calls)  [2, 3]              12     72  48 bytes',
        '  drop: Dropout         [2, 3]                         24 bytes',
        '  unused: Linear        not called           4',
        '',
        'parameters: 16, of which 12 are trainable',
        'FLOPs: 72',
        'memory: input 24 bytes, parameters 64 bytes, buffers 0 bytes, outputs of layers 72 bytes',
      ].join('\n'),
    )
  })

  it('counts a module that is called twice, and leaves the model as it was', () => {
    const net = new Twice()
    net.drop.eval()
    const generator = torch.getRngState()
    const { rows, totals } = summary(net, [torch.ones([2, 3])])
    expect(
      rows.map(({ name, calls, outputShapes, parameters, flops, outputBytes }) => [name, calls, outputShapes, parameters, flops, outputBytes]),
    ).toEqual([
      ['', 1, [[2, 3], []], 16, 72, 28],
      ['fc', 2, [[2, 3]], 12, 72, 48],
      ['drop', 1, [[2, 3]], 0, 0, 24],
      ['unused', 0, [], 4, 0, 0],
    ])
    expect(totals.activationBytes).toBe(48 + 24)
    expect([net.training, net.fc.training, net.drop.training]).toEqual([true, true, false])
    expect(torch.getRngState()).toEqual(generator)
    expect(summary(net, torch.ones([2, 3]), { depth: 0 }).rows.map(({ name }) => name)).toEqual([''])
    expect(summary(compile(net), torch.ones([2, 3])).totals.flops).toBe(72)
  })

  it('refuses wrong arguments, and restores modes after an error of the model', () => {
    const net = new Twice()
    // @ts-expect-error -- no model
    expect(() => summary(3, torch.ones([2, 3]))).toThrow("summary: argument 'model' must be a Module, or a module that was compiled, got 3")
    expect(() => summary(() => 1, torch.ones([2, 3]))).toThrow("summary: argument 'model' must be a Module")
    // @ts-expect-error -- no input
    expect(() => summary(net)).toThrow("summary: argument 'input' is missing")
    expect(() => summary(net, torch.ones([2, 3]), { depth: -1 })).toThrow("summary: option 'depth' must be a number from 0 on, got -1")
    // @ts-expect-error -- unknown option
    expect(() => summary(net, torch.ones([2, 3]), { deep: 1 })).toThrow("summary: unknown option 'deep'")
    expect(() => summary(net, torch.ones([2, 4]))).toThrow('linear')
    expect(net.training).toBe(true)
  })
})

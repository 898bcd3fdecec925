// checkShapes: every shape error of a model, with the user's line, without running it.
import { describe, expect, it } from 'vitest'
import { torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { symbolicTrace } from 'tensorfx/fx'
import { checkShapes } from 'tensorfx/fx/experimental'
import { BatchNorm2d, Conv2d, Embedding, Linear, Module, ReLU } from 'tensorfx/nn'
import { ResNet50 } from '../../fx/modules/gradual.ts'

class Net extends Module {
  conv: Conv2d = new Conv2d(3, 8, 3, { padding: 1 })
  bn: BatchNorm2d = new BatchNorm2d(8)
  relu: ReLU = new ReLU()
  fc: Linear

  constructor(features: number) {
    super()
    this.fc = new Linear(features, 10)
  }

  override forward(x: Tensor): Tensor {
    return this.fc.call(torch.flatten(this.relu.call(this.bn.call(this.conv.call(x))), 1))
  }
}

describe('checkShapes', () => {
  it('accepts a model, and gives shapes in terms of the names', () => {
    const model = new Net(8 * 4 * 4)
    const before = model.bn.runningMean?.toArray()
    const report = checkShapes(model, { x: ['batch', 3, 4, 4] })
    expect([report.ok, report.errors, report.unchecked]).toEqual([true, [], []])
    expect(report.shapes).toMatchObject({ x: '[batch, 3, 4, 4]', conv: '[batch, 8, 4, 4]', flatten: '[batch, 128]', fc: '[batch, 10]' })
    expect(String(report)).toContain('Shapes fit.\n  x: [batch, 3, 4, 4]')
    expect(model.bn.runningMean?.toArray()).toEqual(before)
  })

  it('reports every error with its line, and leaves out what depends on a wrong value', () => {
    const program = (x: Tensor, y: Tensor): unknown => {
      const bad = torch.matmul(x, y)
      const next = bad.relu()
      const other = torch.cat([x, x], 1).add(y)
      return [next, other, x.sum(1)]
    }
    const report = checkShapes(program, { x: [2, 3], y: [4, 5] })
    expect(report.errors.map(({ node, when }) => [node.name, when])).toEqual([
      ['matmul', null],
      ['add', null],
    ])
    expect(report.unchecked).toEqual(['relu'])
    expect(report.shapes).toEqual({ x: '[2, 3]', y: '[4, 5]', cat: '[2, 6]', sum_1: '[2]' })
    const text = String(report)
    expect(text).toMatch(/^2 shape errors:\n\nmatmul: .*\n {2}at .*checkShapes\.test\.ts:\d+:\d+\)/)
    expect(text).toContain('const bad = torch.matmul(x, y)')
  })

  it('says for which numbers a name fails', () => {
    const report = checkShapes((x: Tensor) => x.reshape([-1, 4]), { x: ['n', 2] })
    expect(report.errors).toHaveLength(1)
    expect(report.errors[0]?.when).toBe('n = 97')
    expect(checkShapes((x: Tensor) => x.reshape([-1, 4]), { x: ['2*n', 2] }).shapes['reshape']).toBe('[n, 4]')
  })

  it('knows that names stand for different numbers, and finds sums and products of them', () => {
    const add = (x: Tensor, y: Tensor): Tensor => x.add(y)
    expect(checkShapes(add, { x: ['a'], y: ['b'] }).errors).toHaveLength(1)
    expect(checkShapes(add, { x: ['a'], y: ['a'] }).shapes['add']).toBe('[a]')
    const report = checkShapes((x: Tensor) => [torch.cat([x, x], 0), x.flatten(), torch.nn.functional.pad(x, [1, 2])], { x: ['a', 'b'] })
    expect(report.shapes).toMatchObject({ cat: '[2*a, b]', flatten: '[a*b]', pad: '[a, b + 3]' })
  })

  it('takes dtypes, values with defaults, and graphs that were traced before', () => {
    class Tokens extends Module {
      embedding: Embedding = new Embedding(10, 4)

      override forward(tokens: Tensor, scale = 2): Tensor {
        return this.embedding.call(tokens).mul(scale)
      }
    }
    const gm = symbolicTrace(new Tokens())
    const text = String(gm.graph)
    const report = checkShapes(gm, { tokens: { shape: ['batch', 16], dtype: 'int64' } })
    expect(report.shapes['embedding']).toBe('[batch, 16, 4]')
    expect([String(gm.graph), [...gm.graph.nodes].some((node) => 'val' in node.meta)]).toEqual([text, false])
  })

  it('names inputs and sizes that are wrong', () => {
    const program = (image: Tensor): Tensor => image.relu()
    expect(() => checkShapes(program, { images: [1] } as never)).toThrow(
      "the model has no input 'images'; did you mean 'image'? Its inputs are image.",
    )
    expect(() => checkShapes(program, {})).toThrow("input 'image' needs a shape")
    expect(() => checkShapes(program, { image: [2.5] })).toThrow("must be an array of numbers and names such as ['batch', 3, '2*h'], got 2.5")
    expect(() => checkShapes(program, { image: 3 as never })).toThrow('got 3')
  })

  it('checks a ResNet for any batch and any size of images', { timeout: 60_000 }, () => {
    const report = checkShapes(new ResNet50(4, 10), { x: ['batch', 3, 'h', 'w'] })
    expect([report.ok, report.shapes['fc']]).toEqual([true, '[batch, 10]'])
    const wrong = checkShapes(new ResNet50(4, 10), { x: ['batch', 1, 'h', 'w'] })
    expect(wrong.errors.map(({ node }) => node.name)).toEqual(['conv1'])
    expect(wrong.unchecked.length).toBeGreaterThan(100)
  })
})

describe('the words of a report', () => {
  it('count errors, give multiples and differences of names, and the numbers of all names', () => {
    const one = checkShapes((x: Tensor) => x.reshape([5]), { x: [3] })
    expect(String(one)).toMatch(/^1 shape error:\n\nreshape: /)
    const report = checkShapes((x: Tensor, y: Tensor) => [torch.cat([x, x, y]), x.slice(0, 2), x.matmul(y.t())], { x: ['n', 4], y: ['3*m', 4] })
    expect(report.shapes).toMatchObject({ y: '[3*m, 4]', slice_1: '[n - 2, 4]', matmul: '[n, 3*m]' })
    const both = checkShapes((x: Tensor, y: Tensor) => x.add(y), { x: ['n'], y: ['m'] })
    expect(both.errors[0]?.when).toBe('n = 97, m = 101')
  })

  it('a size is a number or a name, perhaps with a factor', () => {
    for (const size of ['n+1', '2*', '-n', 'n m', '*n', '2n', 1.5, -1])
      expect(() => checkShapes((x: Tensor) => x, { x: [size] })).toThrow(/must be an array of numbers and names/)
  })
})

it('tells twenty names apart, and multiples of them plus a constant', () => {
  const names = Array.from({ length: 20 }, (_, i) => `n${i}`)
  const inputs = ['a', 'b', 'c', 'd', 'e'].map((input, i): [string, string[]] => [input, names.slice(4 * i, 4 * i + 4)])
  const grown = (x: Tensor): Tensor => torch.cat([torch.cat([x, x], 3), torch.ones([1, 1, 1, 5]).expand([x.size(0), x.size(1), x.size(2), 5])], 3)
  const program = (a: Tensor, b: Tensor, c: Tensor, d: Tensor, e: Tensor): unknown => [a, b, c, d, e].map(grown)
  const { shapes } = checkShapes(program, Object.fromEntries(inputs))
  expect(inputs.map(([input]) => shapes[input])).toEqual(inputs.map(([, sizes]) => `[${sizes.join(', ')}]`))
  expect(Object.entries(shapes).flatMap(([node, shape]) => (/^cat_[13579]$/.test(node) ? [shape] : []))).toEqual(
    inputs.map(([, [m, n, o, p]]) => `[${m}, ${n}, ${o}, 2*${p} + 5]`),
  )
})

it.each(['float23', '', 3, null])('refuses the dtype %j', (dtype) => {
  expect(() => checkShapes((x: Tensor) => x, { x: { shape: [2], dtype } as never })).toThrow(/checkShapes: the dtype of 'x' must be one of .*float32/)
})

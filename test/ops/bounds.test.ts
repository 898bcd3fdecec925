// Memory: windows stay inside their storage, sizes are possible ones, and indices are checked wherever they are read.
import { describe, expect, test } from 'vitest'
import { ArgumentError, ShapeError, TensorfxError, compile, nn, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { OutOfMemoryError, heapStats } from 'tensorfx/kernels'
import { FakeTensorMode, withMode } from 'tensorfx/dispatch'

const F = torch.nn.functional

describe('asStrided', () => {
  const outside: readonly (readonly [size: number[], stride: number[], offset: number])[] = [
    [[2 ** 18], [1], 0],
    [[5], [1], 0],
    [[4], [1], 1],
    [[2], [2 ** 52], 0],
    [[2], [4], 0],
    [[1], [1], 4],
    [[1], [1], -1],
    [[2, 2], [2, 2], 0],
    [[2 ** 31, 2 ** 31], [0, 1], 0],
  ]

  test('makes no window that reaches outside the storage', () => {
    const neighbour = torch.zeros([4])
    const x = torch.arange(4)
    for (const [size, stride, offset] of outside)
      expect(() => x.asStrided(size, stride, offset).fill_(7), `${size} ${stride} ${offset}`).toThrow(ShapeError)
    expect(neighbour.toArray()).toEqual([0, 0, 0, 0])
    expect(() => x.asStrided([5], [1], 0)).toThrow(
      'torch.as_strided: size [5], stride [1] and storageOffset 0 reach from element 0 to 4, but the storage of self (shape [4]) has 4 elements.',
    )
  })

  test('refuses negative and non-finite strides, negative sizes, and lists of different lengths', () => {
    const x = torch.arange(4)
    for (const [size, stride, offset] of [
      [[2], [-1], 3],
      [[2], [NaN], 0],
      [[1], [Infinity], 0],
      [[-2], [1], 0],
      [[NaN], [1], 0],
      [[-1, -1], [1, 1], 0],
      [[2], [1, 1], 0],
      [[2, 2], [1], 0],
      [[2], [1], NaN],
    ] as const)
      expect(() => x.asStrided(size, stride, offset), `${size} ${stride} ${offset}`).toThrow(/^torch\.as_strided: /)
  })

  test('makes any window inside, also of a view and of empty tensors', () => {
    const x = torch.arange(6)
    expect(x.asStrided([2, 3], [2, 1], 1).toArray()).toEqual([
      [1, 2, 3],
      [3, 4, 5],
    ])
    expect(x.slice(0, 4, 6).asStrided([6], [1], 0).toArray()).toEqual([0, 1, 2, 3, 4, 5])
    expect(x.asStrided([0, 1000], [1, 1], 0).numel).toBe(0)
    expect(x.asStrided([3], [0], 5).toArray()).toEqual([5, 5, 5])
    expect(torch.zeros([0]).asStrided([0], [1], 0).numel).toBe(0)
  })

  test('is checked on fake tensors and in compiled code too', () => {
    for (const [size, stride, offset] of outside) {
      expect(() => withMode(new FakeTensorMode(), () => torch.arange(4).asStrided(size, stride, offset))).toThrow(ShapeError)
      const compiled = compile((x: Tensor) => x.add(1).asStrided(size, stride, offset).mul(2))
      expect(() => compiled(torch.arange(4)), `${size} ${stride} ${offset}`).toThrow(ShapeError)
    }
  })

  test('counts the offset from the start of the storage in compiled code as in eager mode', () => {
    const part = (from: number, to: number): Tensor => torch.arange(8).slice(0, from, to)
    const window = compile((x: Tensor) => x.asStrided([2, 2], [1, 1], 1).mul(2))
    for (const x of [part(4, 8), part(0, 4), part(2, 6)])
      expect(window(x).toArray()).toEqual([
        [2, 4],
        [4, 6],
      ])
    expect(() => window(torch.arange(4).slice(0, 1, 3).clone())).toThrow(ShapeError)
    const inner = compile((x: Tensor) => x.add(1).slice(0, 2, 4).asStrided([8], [1], 0).mul(2))
    expect(inner(part(0, 8)).toArray()).toEqual([2, 4, 6, 8, 10, 12, 14, 16])
    const own = compile((x: Tensor) => x.asStrided([2], [2]).mul(2))
    expect(own(part(4, 8)).toArray()).toEqual([8, 12])
  })
})

describe('sizes', () => {
  test('beyond the heap are an OutOfMemoryError, after which the heap works', () => {
    const before = heapStats().inUse
    for (const size of [[2 ** 29], [2 ** 30], [2 ** 31 - 1], [2 ** 40], [1e15], [2 ** 20, 2 ** 20]])
      expect(() => torch.zeros(size), `${size}`).toThrow(OutOfMemoryError)
    expect(heapStats().inUse).toBe(before)
    expect(torch.ones([1000]).sum().item()).toBe(1000)
  })

  test('whose product no number holds are refused with the operator and the shape', () => {
    expect(() => torch.zeros([2 ** 30, 2 ** 30])).toThrow(
      'torch.zeros: a tensor of shape [1073741824, 1073741824] would have more than 9007199254740991 elements',
    )
    expect(() => new nn.Embedding(1e9, 1e9)).toThrow(ShapeError)
  })

  test('of views are at most what kernels count to', () => {
    expect(() => torch.ones([1]).expand([2 ** 32 + 5])).toThrow(ShapeError)
    expect(torch.ones([1]).expand([2 ** 31 - 1]).shape).toEqual([2 ** 31 - 1])
    const fake = withMode(new FakeTensorMode(), () => torch.ones([1]).expand([2 ** 32 + 5]))
    expect(fake.numel).toBe(2 ** 32 + 5)
  })
})

describe('torch.tensor', () => {
  test('of an array that contains itself is an error', () => {
    const cyclic: unknown[] = []
    cyclic.push(cyclic)
    const both: unknown[] = [[1]]
    both.unshift([both])
    for (const data of [cyclic, both])
      expect(() => Reflect.apply(torch.tensor, null, [data])).toThrow(
        'torch.tensor: the arrays are nested more than 64 deep; does one of them contain itself?',
      )
  })

  test('takes 64 dimensions', () => {
    let data: unknown = 5
    for (let i = 0; i < 64; i++) data = [data]
    expect(Reflect.apply(torch.tensor, null, [data])).toHaveProperty('ndim', 64)
    expect(() => Reflect.apply(torch.tensor, null, [[data]])).toThrow(ArgumentError)
  })
})

describe('classes out of range', () => {
  const logits = torch.tensor([
    [1, 2, 3],
    [3, 1, 2],
  ])
  const losses: Readonly<Record<string, (input: Tensor, target: Tensor) => Tensor>> = {
    crossEntropy: (input, target) => F.crossEntropy(input, target),
    'crossEntropy with weights': (input, target) => F.crossEntropy(input, target, { weight: torch.ones([3]) }),
    'crossEntropy with smoothing': (input, target) => F.crossEntropy(input, target, { labelSmoothing: 0.1 }),
    'crossEntropy that ignores': (input, target) => F.crossEntropy(input, target, { ignoreIndex: 1 }),
    nllLoss: (input, target) => F.nllLoss(input, target),
  }

  for (const [name, loss] of Object.entries(losses)) {
    test(`are the same error in compiled ${name} as in eager mode, with and without gradients`, () => {
      const compiled = compile(loss)
      for (const leaf of [logits, logits.clone().requiresGrad_()]) {
        for (const classes of [
          [0, 3],
          [-1, 0],
          [0, 2 ** 31],
        ]) {
          const target = torch.tensor(classes).long()
          const message = messageOf(() => loss(leaf, target))
          const called = name === 'nllLoss' ? 'nll_loss' : 'cross_entropy'
          expect(message.replace(/-?\d+/, '#').replace(/\d,/, '#,')).toBe(
            `torch.nn.functional.${called}: target has the index # at flat position #, but only 0 to 2 exist.`,
          )
          expect(messageOf(() => compiled(leaf, target).item())).toBe(message)
        }
        for (const classes of [
          [0, 2],
          [1, 1],
          [0, -100],
        ]) {
          if (name === 'crossEntropy that ignores' && classes.includes(-100)) continue
          const target = torch.tensor(classes).long()
          expect(compiled(leaf, target).isnan().item()).toBe(loss(leaf, target).isnan().item())
          if (!loss(leaf, target).isnan().item()) expect(compiled(leaf, target).item()).toBeCloseTo(loss(leaf, target).item(), 5)
        }
      }
    })
  }
})

test('oneHot refuses classes that it has no column for, compiled too', () => {
  const compiled = compile((x: Tensor) => F.oneHot(x, 3).mul(2))
  for (const classes of [
    [0, 3],
    [-1, 0],
  ]) {
    const target = torch.tensor(classes).long()
    expect(messageOf(() => F.oneHot(target, 3))).toMatch(/^torch\.nn\.functional\.one_hot: self has the index/)
    expect(messageOf(() => compiled(target).toArray())).toMatch(/^torch\.nn\.functional\.one_hot: self has the index/)
  }
  expect(() => F.oneHot(torch.tensor([-1, 2]).long())).toThrow(ArgumentError)
})

function messageOf(fn: () => unknown): string {
  try {
    fn()
  } catch (error) {
    if (error instanceof ArgumentError) return error.message
    throw error
  }
  return 'no error'
}

describe('operators that graphs from files may call with any arguments', () => {
  const { tensorfx } = torch.ops
  const classes = torch.tensor([1, 0, 2]).long()
  const refused: Readonly<Record<string, () => unknown>> = {
    'a gradient that has fewer rows than there are indices': () => tensorfx.embeddingBackward(torch.ones([2, 2]), classes, 4, -1),
    'statistics of fewer channels': () =>
      tensorfx.nativeBatchNormBackward(torch.ones([4, 2]), torch.ones([4, 2]), null, torch.ones([1]), torch.ones([2])),
    'statistics in another dtype': () =>
      tensorfx.nativeBatchNormBackward(torch.ones([4, 2]), torch.ones([4, 2]), null, torch.ones([2]).to('bool'), torch.ones([2])),
    'a weight of another dtype': () => tensorfx.nativeBatchNorm(torch.ones([4, 2]), torch.ones([2]).to('bool'), null, 1e-5),
    'statistics of fewer rows': () =>
      tensorfx.nativeLayerNormBackward(torch.ones([3, 4]), torch.ones([3, 4]), [4], torch.ones([1, 1]), torch.ones([3, 1]), null),
    'a gradient of fewer elements': () => tensorfx.nllLossBackward(torch.ones([2]), torch.ones([3, 4]), classes, null, -100),
    'positions of fewer elements': () => tensorfx.maxPool2dBackward(torch.ones([2, 2, 2]), torch.zeros([1, 2, 2]).long(), 3, 3),
    'a gradient of fewer windows': () => tensorfx.avgPool2dBackward(torch.ones([1, 1, 1]), torch.ones([1, 4, 4]), 2, null, 0, false, true, null),
    'a gradient that no convolution of that input has': () =>
      tensorfx.convolutionBackward(
        torch.ones([1, 1, 1, 1]),
        torch.ones([1, 1, 64, 64]),
        torch.ones([1, 1, 2, 2]),
        [1, 1],
        [0, 0],
        [1, 1],
        1,
        true,
        true,
      ),
    'a bias of another dtype': () => F.conv2d(torch.ones([1, 1, 2, 2]), torch.ones([8, 1, 1, 1]), torch.ones([8]).to('bool')),
    'a gradient that does not fit into the slice': () => tensorfx.sliceBackward(torch.ones([1, 3]), [3, 3], 0, 0, 2, 1),
    'a gradient that does not fit into the selection': () => tensorfx.selectBackward(torch.ones([2]), [2, 3], 0, 0),
    'a negative number of repeats': () => torch.repeatInterleave(torch.ones([2]), torch.tensor([-1, 3]).long()),
  }
  for (const [name, run] of Object.entries(refused))
    test(`refuse ${name}, compiled too`, () => {
      expect(run).toThrow(/must (be|have)|expected \[2\]|whole numbers/)
      expect(() => compile(run)()).toThrow(/must (be|have)|expected \[2\]|whole numbers/)
    })

  test('write nothing outside of the plane for positions that are not in it', () => {
    const positions = torch
      .tensor([
        [
          [2 ** 28 + 5, -(2 ** 28)],
          [-1, 3],
        ],
      ])
      .long()
    expect(tensorfx.maxPool2dBackward(torch.ones([1, 2, 2]), positions, 2, 2).toArray()).toEqual([
      [
        [0, 0],
        [0, 1],
      ],
    ])
  })

  test('make no lists that take all memory of JavaScript', () => {
    for (const run of [
      () => torch.tensorSplit(torch.ones([5]), 2 ** 30),
      () => torch.unbind(torch.ones([1]).expand([2 ** 30])),
      () => torch.split(torch.ones([1]).expand([2 ** 30]), 1),
      () => F.interpolate(torch.ones([1, 1, 2, 2]), { size: 2 ** 53, mode: 'bilinear', antialias: true }),
      () => F.maxPool2d(torch.ones([1, 2, 2]), 2 ** 20, 2 ** 32, 0, 1, true),
      () => torch.combinations(torch.ones([2]), 2 ** 32, true),
      () => torch.ops.tensorfx.philoxPermutation(2 ** 32, 0, 0, 0, 0),
      () => torch.repeatInterleave(torch.ones([2]), torch.tensor([2 ** 31, 1]).long()),
    ])
      expect(run).toThrow(TensorfxError)
  })

  test('compute what they did: adaptive means of more windows than elements, and choices in order', () => {
    const wide = F.adaptiveAvgPool2d(torch.tensor([[[1, 2, 4]]]), [1, 5])
    expect(wide.toArray()).toEqual([[[1, 1.5, 2, 3, 4]]])
    expect(torch.combinations(torch.tensor([1, 2, 3]), 2, true).toArray()).toEqual([
      [1, 1],
      [1, 2],
      [1, 3],
      [2, 2],
      [2, 3],
      [3, 3],
    ])
    expect(torch.combinations(torch.tensor([1, 2, 3, 4]), 3).toArray()).toEqual([
      [1, 2, 3],
      [1, 2, 4],
      [1, 3, 4],
      [2, 3, 4],
    ])
    expect(torch.combinations(torch.tensor([1, 2]), 3).shape).toEqual([0, 3])
  })
})

// Values and gradients at the points where formulas break down, as PyTorch defines them: ties, zeros, masked rows, infinities.
import { describe, expect, it } from 'vitest'
import { compile, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'

const { tensor } = torch
const F = torch.nn.functional

/** The gradients of the sum of `fn`, eager and compiled, which must agree. */
function gradients(fn: (...inputs: Tensor[]) => Tensor, ...values: Parameters<typeof tensor>[0][]): unknown[] {
  const run = (call: (...inputs: Tensor[]) => Tensor): unknown[] => {
    const inputs = values.map((value) => tensor(value, { requiresGrad: true }))
    call(...inputs)
      .sum()
      .backward()
    return inputs.map((input) => input.grad?.toArray())
  }
  const eager = run(fn)
  expect(run(compile(fn)), 'compiled').toEqual(eager)
  return eager
}

describe('gradients where there are several slopes', () => {
  it('maximum and minimum share the gradient of a tie', () => {
    expect(gradients((x, y) => torch.maximum(x, y), [1, 2, 5], [1, 3, 4])).toEqual([
      [0.5, 0, 1],
      [0.5, 1, 0],
    ])
    expect(gradients((x, y) => torch.minimum(x, y), [1, 2, 5], [1, 3, 4])).toEqual([
      [0.5, 1, 0],
      [0.5, 0, 1],
    ])
  })

  it('the cross entropy of logits is smooth at 0', () => {
    const target = tensor([0, 1])
    expect(gradients((x) => F.binaryCrossEntropyWithLogits(x, target, { reduction: 'sum' }), [0, 0])).toEqual([[0.5, -0.5]])
  })

  it.each([2, 0.5, 1.5, 3, 1])('the %d-norm of zeros has the gradient 0', (p) => {
    expect(gradients((x) => x.norm(p), [0, 0])).toEqual([[0, 0]])
  })

  it('a norm along a dimension is 0 in the lines of zeros only', () => {
    expect(
      gradients(
        (x) => x.norm(2, 1),
        [
          [0, 0],
          [3, 4],
        ],
      ),
    ).toEqual([
      [
        [0, 0],
        [expect.closeTo(0.6), expect.closeTo(0.8)],
      ],
    ])
  })
})

describe('gradients of results that hardly depend on their argument', () => {
  it('the norm of order 0, the power 0 of a matrix and the determinant of a singular one have the gradient 0, and not none', () => {
    expect(gradients((x) => x.norm(0), [0, 3])).toEqual([[0, 0]])
    expect(gradients((x) => torch.cdist(x, x.add(1), 0), [[1, 2]])).toEqual([[[0, 0]]])
    const square = [
      [1, 2],
      [2, 4],
    ]
    const none = [
      [0, 0],
      [0, 0],
    ]
    expect(gradients((x) => x.matrixPower(0), square)).toEqual([none])
    // Zeros of any sign.
    expect(gradients((x) => x.det().add(0), square)).toEqual([none.map((row) => row.map(() => expect.closeTo(0)))])
  })

  it('equal elements share the gradient of the median of all', () => {
    expect(gradients((x) => x.median(), [3, 1, 3, 1])).toEqual([[0, 0.5, 0, 0.5]])
    expect(gradients((x) => x.nanmedian(), [3, 1, 3, 1])).toEqual([[0, 0.5, 0, 0.5]])
  })

  it('limits of clamp get the gradient of the elements that they replace, the upper one where they are in the wrong order', () => {
    expect(gradients((x, low, high) => x.clamp(low, high), [-2, 0, 2, 0], [-1, -1, -1, 5], [1, 1, 1, 4])).toEqual([
      [0, 1, 0, 0],
      [1, 0, 0, 0],
      [0, 0, 1, 1],
    ])
  })

  it('embedding with scaleGradByFreq divides the gradient of a row by its occurrences', () => {
    const indices = tensor([0, 2, 2], { dtype: 'int64' })
    expect(gradients((w) => F.embedding(indices, w, { scaleGradByFreq: true }), [[1], [2], [3]])).toEqual([[[1], [0], [1]]])
    expect(gradients((w) => F.embedding(indices, w), [[1], [2], [3]])).toEqual([[[1], [0], [2]]])
  })
})

describe('gradients that do not exist', () => {
  it('qr in the other modes computes, eager and compiled, and its backward pass says what to do', () => {
    const matrix = tensor([[1], [2]], { requiresGrad: true })
    for (const fn of [(x: Tensor) => torch.linalg.qr(x, 'complete')[1], compile((x: Tensor) => torch.linalg.qr(x, 'complete')[1])]) {
      const out = fn(matrix)
      expect(Math.abs(out.select(0, 0).item())).toBeCloseTo(Math.sqrt(5))
      expect(() => out.sum().backward()).toThrow(/no gradient in mode 'complete' for matrices of 2 rows and 1 columns; use mode 'reduced'/)
    }
  })
})

describe('the second gradient of a product', () => {
  const second = (values: number[], fn = (x: Tensor): Tensor => x.prod()): unknown => {
    const x = tensor(values, { requiresGrad: true })
    const [first] = torch.autograd.grad([fn(x)], [x], { createGraph: true })
    first?.sum().backward()
    return x.grad?.toArray()
  }

  it('counts the products of pairs without a zero', () => {
    expect(second([2, 3, 4])).toEqual([7, 6, 5])
    expect(second([0, 2, 3])).toEqual([5, 3, 2])
    expect(second([0, 0, 3])).toEqual([3, 3, 0])
    expect(second([0, 0, 0])).toEqual([0, 0, 0])
  })

  it('is that of each line over several dimensions', () => {
    // Over dimensions 0 and 2: the lines [1, 0, 2, 5] and [3, 4, 0, 1].
    expect(second([1, 0, 3, 4, 2, 5, 0, 1], (x) => x.view(2, 2, 2).prod([0, -1]).sum())).toEqual([10, 17, 4, 3, 5, 2, 19, 12])
  })
})

describe('attention with a row that attends to nothing', () => {
  const q = tensor([
    [1, 2],
    [3, 4],
  ])
  it.each([
    [
      'bool',
      tensor([
        [false, false],
        [true, true],
      ]),
    ],
    [
      'float',
      tensor([
        [-Infinity, -Infinity],
        [0, 0],
      ]),
    ],
  ])('gives zeros there, and no gradient: %s mask', (_, attnMask) => {
    const call = (x: Tensor): Tensor => F.scaledDotProductAttention(x, x, x, { attnMask })
    expect(call(q).select(0, 0).toArray()).toEqual([0, 0])
    expect(compile(call)(q).select(0, 0).toArray()).toEqual([0, 0])
    for (const row of gradients(call, [
      [1, 2],
      [3, 4],
    ]).flat(3))
      expect(row).not.toBeNaN()
  })

  it('does not change the rows that attend to something', () => {
    const attnMask = tensor([
      [true, false],
      [true, true],
    ])
    const out = F.scaledDotProductAttention(q, q, q, { attnMask })
    expect(out.select(0, 0).toArray()).toEqual([1, 2])
  })
})

describe('indexing by a tensor', () => {
  it('counts negative positions from the end', () => {
    const x = tensor([
      [1, 2],
      [3, 4],
      [5, 6],
    ])
    expect(x.getitem(tensor([-1, 0], { dtype: 'int64' })).toArray()).toEqual([
      [5, 6],
      [1, 2],
    ])
    expect(() => x.getitem(tensor([-4], { dtype: 'int64' }))).toThrow(/only 0 to 2 exist/)
  })
})

describe('what a program wrote before it compiles', () => {
  it('a compiled function differentiates views of a parameter that was written to', () => {
    const weight = tensor([1, 2], { requiresGrad: true })
    torch.noGrad(() => weight.mul_(3))
    compile((x: Tensor) => x.mul(weight.view(2, 1)))(
      tensor(
        [
          [1, 2],
          [3, 4],
        ],
        { requiresGrad: true },
      ),
    )
      .sum()
      .backward()
    expect(weight.grad?.toArray()).toEqual([3, 7])
  })

  it('a compiled function may return tensors without elements', () => {
    expect(compile((x: Tensor) => [...torch.sort(x)])(torch.zeros([2, 0])).map(({ shape }) => shape)).toEqual([
      [2, 0],
      [2, 0],
    ])
  })
})

// Tensors as text. The expected strings are PyTorch's own.
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { torch } from 'tensorfx'
import { pythonExponential, pythonFixed } from '../../src/tensor/print.ts'
import { Tensor } from '../../src/tensor/index.ts'

const { arange, full, tensor, zeros } = torch

describe('a tensor prints as in PyTorch', () => {
  test('decimals are padded to one width', () => {
    expect(
      String(
        tensor([
          [0.1, -2],
          [30.25, 4],
        ]).toString(),
      ),
    ).toBe('tensor([[ 0.1000, -2.0000],\n        [30.2500,  4.0000]])')
  })
  test('whole numbers have a point and no decimals', () => {
    expect(tensor([1, 2, 30]).toString()).toBe('tensor([ 1.,  2., 30.])')
  })
  test('wide ranges use the scientific notation', () => {
    expect(tensor([0.00001, 1]).toString()).toBe('tensor([1.0000e-05, 1.0000e+00])')
    expect(tensor([1e10]).toString()).toBe('tensor([1.0000e+10])')
  })
  test('infinities and NaN', () => {
    expect(tensor([1, Infinity, NaN]).toString()).toBe('tensor([1., inf, nan])')
    expect(tensor([1.5, -Infinity, NaN]).toString()).toBe('tensor([1.5000,   -inf,    nan])')
  })
  test('scalars, empty tensors and other dtypes', () => {
    expect(tensor(3.5).toString()).toBe('tensor(3.5000)')
    expect(zeros([0]).toString()).toBe('tensor([])')
    expect(zeros([2, 0]).toString()).toBe('tensor([], size=(2, 0))')
    expect(tensor([1, 2], { dtype: 'int32' }).toString()).toBe('tensor([1, 2], dtype=torch.int32)')
    expect(tensor([true, false]).toString()).toBe('tensor([ True, False])')
    expect(tensor([1.5], { dtype: 'float64' }).toString()).toBe('tensor([1.5000], dtype=torch.float64)')
  })
  test('deeper tensors have blank lines between their matrices', () => {
    expect(zeros([2, 2, 2]).toString()).toBe('tensor([[[0., 0.],\n         [0., 0.]],\n\n        [[0., 0.],\n         [0., 0.]]])')
  })
  test('long lines break at 80 columns', () => {
    expect(arange(24).toString()).toBe(
      'tensor([ 0.,  1.,  2.,  3.,  4.,  5.,  6.,  7.,  8.,  9., 10., 11., 12., 13.,\n        14., 15., 16., 17., 18., 19., 20., 21., 22., 23.])',
    )
  })
  test('beyond 1000 elements only the edges are shown', () => {
    expect(arange(2000).toString()).toBe('tensor([0.0000e+00, 1.0000e+00, 2.0000e+00,  ..., 1.9970e+03, 1.9980e+03,\n        1.9990e+03])')
    expect(full([1100, 2], 1).toString()).toBe(
      'tensor([[1., 1.],\n        [1., 1.],\n        [1., 1.],\n        ...,\n        [1., 1.],\n        [1., 1.],\n        [1., 1.]])',
    )
  })
  test('views print what they show', () => {
    expect(
      tensor([
        [1, 2],
        [3, 4],
      ])
        .t()
        .toString(),
    ).toBe('tensor([[1., 3.],\n        [2., 4.]])')
  })
  test('requires_grad is told', () => {
    expect(tensor([1, 2], { requiresGrad: true }).toString()).toBe('tensor([1., 2.], requires_grad=True)')
  })
  test('gradients and parameters are told', () => {
    const x = tensor([1, 2], { requiresGrad: true })
    expect(x.mul(2).toString()).toBe('tensor([2., 4.], grad_fn=<MulBackward0>)')
    x.isParameter = true
    expect(x.toString()).toBe('Parameter containing:\ntensor([1., 2.], requires_grad=True)')
    expect(arange(2).mul(0).add(0.5).to('float64').toString()).toBe('tensor([0.5000, 0.5000], dtype=torch.float64)')
  })
  test('what follows the elements goes to a line of its own beyond 80 columns', () => {
    const suffix = 'dtype=torch.float64'
    const line = (count: number): string => `tensor([${Array.from({ length: count }, (_, i) => `${i}.`).join(', ')}]`
    expect(arange(10, { dtype: 'float64' }).toString()).toBe(`${line(10)}, ${suffix})`)
    // 54 columns, and 21 for the suffix with its comma.
    const wide = tensor([111.5, 222.5, 333.5, 444.5, 555.5, 666.5], { dtype: 'float64' })
    const text = '[111.5000, 222.5000, 333.5000, 444.5000, 555.5000, 666.5000]'
    expect(wide.toString()).toBe(`tensor(${text},\n       ${suffix})`)
    expect(tensor([1000, 22, 333, 4444, 5555, 66666, 77777], { dtype: 'int32' }).toString()).toBe(
      'tensor([ 1000,    22,   333,  4444,  5555, 66666, 77777], dtype=torch.int32)',
    )
    expect(tensor([1111111, 2222222, 3333333, 4444444, 5555555], { dtype: 'int32' }).toString()).toBe(
      'tensor([1111111, 2222222, 3333333, 4444444, 5555555], dtype=torch.int32)',
    )
    expect(tensor([11111111, 2222222, 3333333, 4444444, 5555555], { dtype: 'int32' }).toString()).toBe(
      'tensor([11111111,  2222222,  3333333,  4444444,  5555555], dtype=torch.int32)',
    )
  })
  test('the scientific notation begins where PyTorch begins it', () => {
    // A ratio of more than 1000, values above 1e8, values below 1e-4.
    expect(tensor([1, 1000.5]).toString()).toBe('tensor([1.0000e+00, 1.0005e+03])')
    expect(tensor([1.5, 1500]).toString()).toBe('tensor([   1.5000, 1500.0000])')
    expect(tensor([1, 1001]).toString()).toBe('tensor([1.0000e+00, 1.0010e+03])')
    expect(tensor([-1001, 1]).toString()).toBe('tensor([-1.0010e+03,  1.0000e+00])')
    expect(tensor([1e8]).toString()).toBe('tensor([100000000.])')
    expect(tensor([2e8]).toString()).toBe('tensor([2.0000e+08])')
    expect(tensor([2e-4]).toString()).toBe('tensor([0.0002])')
    expect(tensor([9e-5]).toString()).toBe('tensor([9.0000e-05])')
    expect(zeros([2]).toString()).toBe('tensor([0., 0.])')
    expect(tensor([NaN]).toString()).toBe('tensor([nan])')
  })
  test('a fake tensor shows its shape', () => {
    expect(Tensor.fake({ shape: [2, 3], dtype: 'float32' }).toString()).toBe('FakeTensor(..., size=(2, 3))')
    expect(Tensor.fake({ shape: [2], dtype: 'bool' }).toString()).toBe('FakeTensor(..., size=(2,), dtype=torch.bool)')
    expect(zeros([0, 1], { dtype: 'bool' }).toString()).toBe('tensor([], size=(0, 1), dtype=torch.bool)')
  })
})

describe('numbers are formatted as Python does', () => {
  test('halves go to the even digit', () => {
    expect(pythonFixed(0.5, 0)).toBe('0')
    expect(pythonFixed(1.5, 0)).toBe('2')
    expect(pythonFixed(2.5, 0)).toBe('2')
    expect(pythonFixed(0.03125, 4)).toBe('0.0312')
    expect(pythonFixed(0.09375, 4)).toBe('0.0938')
    expect(pythonFixed(-0.00001, 4)).toBe('-0.0000')
    expect(pythonFixed(-2.5, 0)).toBe('-2')
    expect(pythonFixed(-0, 1)).toBe('-0.0')
    // Near a half, but not one.
    expect(pythonFixed(0.15, 1)).toBe('0.1')
    expect(pythonFixed(2.51, 0)).toBe('3')
    expect(pythonFixed(12.55, 1)).toBe('12.6')
    expect([Infinity, -Infinity, NaN].map((x) => pythonFixed(x, 4))).toEqual(['inf', '-inf', 'nan'])
  })
  test('exponents have two digits', () => {
    expect(pythonExponential(1234.5678, 4)).toBe('1.2346e+03')
    expect(pythonExponential(1e-100, 4)).toBe('1.0000e-100')
    expect(pythonExponential(1e100, 4)).toBe('1.0000e+100')
    expect(pythonExponential(-0, 4)).toBe('-0.0000e+00')
    expect(pythonExponential(-2.5, 4)).toBe('-2.5000e+00')
    expect([Infinity, -Infinity, NaN].map((x) => pythonExponential(x, 4))).toEqual(['inf', '-inf', 'nan'])
  })
})

describe("PyTorch's own programs print the same", () => {
  const path = fileURLToPath(new URL('../goldens/dtypes/printing.json', import.meta.url))
  const { printing } = JSON.parse(readFileSync(path, 'utf8')) as {
    printing: Readonly<Record<string, { readonly python: string; readonly repr: string }>>
  }
  const long = { dtype: 'int64' } as const
  const programs: Readonly<Record<string, () => Tensor>> = {
    scalar: () => tensor(1),
    int: () => tensor([1n, 2n, 300n]),
    bool: () => tensor([[true, false]]),
    half: () => tensor([1.5, 1 / 3]).half(),
    bf16: () => tensor([1.5, 1 / 3]).bfloat16(),
    double: () => tensor([1 / 3], { dtype: 'float64' }),
    uint8: () => tensor([0, 255], { dtype: 'uint8' }),
    empty: () => zeros([0, 3]),
    empty_int: () => zeros([0], long),
    nan: () => tensor([NaN, Infinity, -Infinity, 1]),
    wide_range: () => tensor([1e-8, 1, 1e8]),
    small: () => tensor([1e-5, 2e-5]),
    integral_floats: () => tensor([1, 20, 300]),
    negative: () => tensor([-1.25, 3]),
    matrix: () => arange(6).reshape(2, 3).div(7),
    three: () => arange(8, long).reshape(2, 2, 2),
    long: () => arange(2000),
    long_matrix: () => arange(40000).reshape(200, 200),
    grad: () => torch.ones([2], { requiresGrad: true }),
    grad_fn: () => torch.ones([2], { requiresGrad: true }).mul(2),
    big_int: () => tensor([2n ** 62n, -1n]),
    // oxlint-disable-next-line approx-constant -- the golden's number
    one_element: () => tensor([3.14159265]),
    zeros: () => zeros([2, 2]),
    parameter: () => new torch.nn.Parameter(torch.ones([2])),
    mixed: () => tensor([0.0001, 1000]),
    thousands: () => tensor([1234567, 0.5]),
  }
  test('all of them', () => expect(Object.keys(programs).sort()).toEqual(Object.keys(printing).sort()))
  test.each(Object.entries(printing))('%s', (name, { repr }) => expect(programs[name]?.().toString()).toBe(repr))
  test('the default dtype is the one that is left out', () => {
    torch.setDefaultDtype('float64')
    expect([tensor([1.5]).toString(), tensor([1.5], { dtype: 'float32' }).toString()]).toEqual([
      'tensor([1.5000])',
      'tensor([1.5000], dtype=torch.float32)',
    ])
    torch.setDefaultDtype('float32')
  })
})

// torch.testing.assertClose says what PyTorch's assert_close says. The texts are PyTorch's.
import { describe, expect, it } from 'vitest'
import { NotCloseError, torch } from 'tensorfx'

const { assertClose } = torch.testing
const textOf = (...args: Parameters<typeof assertClose>): string => {
  try {
    assertClose(...args)
  } catch (error) {
    if (error instanceof NotCloseError) return error.message
    throw error
  }
  return 'close'
}
const t = (data: number[] | number[][], dtype: 'float32' | 'float64' | 'float16' | 'int64' = 'float32') => torch.tensor(data, { dtype })

describe('tensors', () => {
  it('that are close pass', () => {
    expect(textOf(t([1, 2]), t([1, 2.000001]))).toBe('close')
    expect(textOf(t([]), t([]))).toBe('close')
    expect(textOf(torch.tensor([true]), torch.tensor([true]))).toBe('close')
    expect(textOf(new torch.nn.Parameter(t([1])), t([1]))).toBe('close')
  })

  it('that are not have a report of the mismatched elements', () => {
    expect(textOf(t([1, 2, 5]), t([1, 2, 4]))).toBe(
      'Tensor-likes are not close!\n\nMismatched elements: 1 / 3 (33.3%)\nGreatest absolute difference: 1.0 at index (2,) (up to 1e-05 allowed)\nGreatest relative difference: 0.25 at index (2,) (up to 1.3e-06 allowed)',
    )
    expect(
      textOf(
        t(
          [
            [1, 2],
            [3, 4.5],
          ],
          'float64',
        ),
        t(
          [
            [1, 2.1],
            [3, 4],
          ],
          'float64',
        ),
      ),
    ).toBe(
      'Tensor-likes are not close!\n\nMismatched elements: 2 / 4 (50.0%)\nGreatest absolute difference: 0.5 at index (1, 1) (up to 1e-07 allowed)\nGreatest relative difference: 0.125 at index (1, 1) (up to 1e-07 allowed)',
    )
  })

  it('of integers must be equal, and so must all with tolerances of 0', () => {
    expect(textOf(t([1, 2], 'int64'), t([1, 4], 'int64'))).toBe(
      'Tensor-likes are not equal!\n\nMismatched elements: 1 / 2 (50.0%)\nGreatest absolute difference: 2 at index (1,)\nGreatest relative difference: 0.5 at index (1,)',
    )
    expect(textOf(t([1]), t([1.5]), { rtol: 0, atol: 0 })).toBe(
      'Tensor-likes are not equal!\n\nMismatched elements: 1 / 1 (100.0%)\nGreatest absolute difference: 0.5 at index (0,)\nGreatest relative difference: 0.3333333432674408 at index (0,)',
    )
    expect(textOf(torch.tensor(true), torch.tensor(false))).toBe(
      'Tensor-likes are not equal!\n\nMismatched elements: 1 / 1 (100.0%)\nGreatest absolute difference: 1 at index ()\nGreatest relative difference: inf at index ()',
    )
  })

  it('have other digits in float32, as PyTorch prints them', () => {
    expect(textOf(t([1.1]), t([1]))).toContain('Greatest absolute difference: 0.10000002384185791 at index (0,)')
    expect(textOf(t([1.5], 'float16'), t([1.4], 'float16'))).toContain('(up to 1e-05 allowed)\nGreatest relative difference: 0.07')
    expect(textOf(t([1]), t([2]), { rtol: 0.1, atol: 0 })).toContain('(up to 0 allowed)')
  })

  it('with NaN differ, unless equalNan', () => {
    expect(textOf(t([NaN, 1]), t([NaN, 1]))).toBe(
      'Tensor-likes are not close!\n\nMismatched elements: 1 / 2 (50.0%)\nGreatest absolute difference: nan at index (0,) (up to 1e-05 allowed)\nGreatest relative difference: nan at index (0,) (up to 1.3e-06 allowed)',
    )
    expect(textOf(t([NaN, 1]), t([NaN, 1]), { equalNan: true })).toBe('close')
    expect(textOf(t([Infinity]), t([Infinity]))).toBe('close')
    expect(textOf(t([0.1]), t([0]))).toContain('Greatest relative difference: inf at index (0,)')
  })

  it('must agree in shape and dtype, and in strides if asked to', () => {
    expect(textOf(t([1, 2]), t([1]))).toBe("The values for attribute 'shape' do not match: torch.Size([2]) != torch.Size([1]).")
    expect(textOf(t([1]), t([1], 'float64'))).toBe("The values for attribute 'dtype' do not match: torch.float32 != torch.float64.")
    expect(textOf(t([1]), t([1.000001], 'float64'), { checkDtype: false })).toBe('close')
    const x = torch.ones([2, 3])
    expect(textOf(x, torch.ones([3, 2]).t())).toBe('close')
    expect(textOf(x, torch.ones([3, 2]).t(), { checkStride: true })).toBe("The values for attribute 'stride()' do not match: (3, 1) != (1, 2).")
  })
})

describe('numbers, booleans and null', () => {
  it('have reports of their own', () => {
    expect(textOf(1, 2)).toBe('Scalars are not equal!\n\nExpected 2 but got 1.\nAbsolute difference: 1\nRelative difference: 0.5')
    expect(textOf(1.5, 2)).toBe(
      'Scalars are not close!\n\nExpected 2.0 but got 1.5.\nAbsolute difference: 0.5 (up to 1e-07 allowed)\nRelative difference: 0.25 (up to 1e-07 allowed)',
    )
    expect(textOf(1 / 3, 0.33333333333)).toBe('close')
    expect(textOf(1, 2, { rtol: 1, atol: 0 })).toBe('close')
    expect(textOf(true, false)).toBe('Booleans mismatch: True is not False')
    expect(textOf(1, null)).toBe('None mismatch: 1 is not None')
    expect(textOf(null, null)).toBe('close')
  })
})

describe('sequences and mappings', () => {
  it('are compared item by item, and the item is named', () => {
    expect(textOf([t([1]), t([2])], [t([1]), t([2])])).toBe('close')
    expect(textOf([t([1]), t([2])], [t([1]), t([3])])).toMatch(/^Tensor-likes are not close![^]*\n\nThe failure occurred for item \[1\]$/)
    expect(textOf({ a: [1, { b: 2 }] }, new Map([['a', [1, { b: 3 }]]]))).toMatch(/\n\nThe failure occurred for item \['a'\]\[1\]\['b'\]$/)
    expect(textOf([1], [1, 2])).toBe('The length of the sequences mismatch: 1 != 2')
    expect(textOf([[1]], [[1, 2]])).toBe('The length of the sequences mismatch: 1 != 2\n\nThe failure occurred for item [0]')
    expect(textOf({ a: 1, c: 2 }, { a: 1, b: 2 })).toBe(
      "The keys of the mappings do not match:\nMissing keys in the actual mapping: ['b']\nAdditional keys in the actual mapping: ['c']",
    )
  })
})

describe('options', () => {
  it('msg replaces the text, or makes one of it', () => {
    expect(textOf(1, 2, { msg: 'the counts differ' })).toBe('the counts differ')
    expect(textOf(1, 2, { msg: (text) => `counts: ${text.split('\n')[0] ?? ''}` })).toBe('counts: Scalars are not equal!')
  })

  it('are checked', () => {
    expect(() => assertClose(1, 1, { rtol: 1 })).toThrow('rtol and atol must both be given or both be left out, got rtol=1 and atol=null')
    expect(() => assertClose(1, 1, { rtol: -1, atol: 0 })).toThrow('rtol must be a number of at least 0, got -1')
    expect(() => Reflect.apply(assertClose, null, [1, 1, { equal_nan: true }])).toThrow('equalNan')
    expect(() => assertClose('a', 'a')).toThrow("cannot compare 'a' with 'a'")
    expect(() => assertClose(t([1]), 1)).toThrow('torch.testing.assert_close: cannot compare')
  })
})

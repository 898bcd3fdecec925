// Bad arguments of the operators of linalg/ and nn/: the message names the operator, the argument and the shapes.
import { describe, expect, it } from 'vitest'
import { DTypeError, torch } from 'tensorfx'

const { tensor, zeros } = torch

const F = torch.nn.functional
const z = (...shape: number[]) => zeros(shape)

describe('shape errors name the operator, the argument and both shapes', () => {
  it('linear', () => {
    expect(() => F.linear(z(2, 4), z(3, 5))).toThrow(
      'torch.nn.functional.linear: input has 4 features in its last dimension (shape [2, 4]) but weight expects 5 (shape [3, 5])',
    )
    expect(() => F.linear(z(2, 5), z(3, 5), z(4))).toThrow(/bias has shape \[4\].*expected \[3\]/)
  })

  it('mm, bmm and matmul', () => {
    expect(() => torch.mm(z(2, 3), z(2, 3))).toThrow(/self has 3 columns \(shape \[2, 3\]\) but mat2 has 2 rows \(shape \[2, 3\]\)/)
    expect(() => torch.mm(z(2, 3, 4), z(4, 3))).toThrow(/must be matrices.*\[2, 3, 4\]/)
    expect(() => torch.bmm(z(2, 3, 4), z(3, 4, 5))).toThrow(/b is 2 in self and 3 in mat2/)
    expect(() => torch.matmul(z(2, 3), z(4))).toThrow(/self has 3 elements.*\[2, 3\].*other has 4.*\[4\]/)
    expect(() => torch.matmul(tensor(1), z(4))).toThrow(/at least 1 dimension/)
  })

  it('conv2d', () => {
    expect(() => F.conv2d(z(1, 2, 4, 4), z(3, 1, 3, 3))).toThrow(
      /input has 2 channels \(shape \[1, 2, 4, 4\]\) but weight expects 1 \(shape \[3, 1, 3, 3\], groups 1\)/,
    )
    expect(() => F.conv2d(z(1, 2, 2, 2), z(3, 2, 3, 3))).toThrow(/the kernel does not fit.*\[1, 2, 2, 2\].*\[3, 3\]/)
    expect(() => F.conv2d(z(1, 2, 4, 4), z(3, 2, 3, 3), null, { stride: 0 })).toThrow(/stride must be an integer >= 1/)
    expect(() => F.conv2d(z(1, 2, 4, 4), z(3, 2, 3, 3), null, { padding: 'full' as never })).toThrow(/'same' or 'valid'/)
    expect(() => F.conv2d(z(1, 2, 4, 4), z(3, 2, 3, 3), null, { strides: 2 } as never)).toThrow(/strides/)
  })

  it('pooling', () => {
    expect(() => F.maxPool2d(z(4, 4), 2)).toThrow(/must have 4 dimensions.*\[4, 4\]/)
    expect(() => F.maxPool2d(z(1, 1, 2, 2), 3)).toThrow(/does not fit.*\[1, 1, 2, 2\]/)
    expect(() => F.avgPool2d(z(1, 1, 4, 4), 2, 2, 2)).toThrow(/at most half the kernel size/)
  })

  it('normalization', () => {
    expect(() => F.batchNorm(z(2, 3, 4), z(4), z(3), { training: true })).toThrow(/running_mean has shape \[4\] but input has 3 channels/)
    expect(() => F.batchNorm(z(1, 3), null, null, { training: true })).toThrow(/more than 1 value per channel/)
    expect(() => F.batchNorm(z(2, 3), null, null)).toThrow(/arguments 'runningMean' and 'runningVar' are missing/)
    expect(() => F.layerNorm(z(2, 3), [4])).toThrow(/input of shape \[2, 3\] must end in normalized_shape \[4\]/)
    expect(() => F.groupNorm(z(2, 3, 4), 2)).toThrow(/num_groups must divide/)
  })

  it('embedding and losses', () => {
    const classes = tensor(Int32Array.from([0, 5]))
    expect(() => F.embedding(classes, z(3, 2))).toThrow(/index 5 at flat position 1, but only 0 to 2 exist/)
    expect(() => F.embedding(z(2), z(3, 2))).toThrow(/argument 'input' holds indices and must have an integer dtype, got float32/)
    expect(() => F.crossEntropy(z(2, 3), classes)).toThrow(/target has the index 5/)
    expect(() => F.crossEntropy(z(2, 3), tensor(Int32Array.from([0])))).toThrow(/target has shape \[1\].*input has shape \[2, 3\]/)
    expect(() => F.mseLoss(z(2, 3), z(4))).toThrow(/\[2, 3\].*\[4\]/)
    expect(() => F.mseLoss(z(2), z(2), { reduction: 'average' as never })).toThrow(/'none', 'mean' or 'sum'/)
  })

  it('dtypes', () => {
    expect(() => torch.mm(z(2, 2), zeros([2, 2], { dtype: 'float64' }))).toThrow(/self has dtype float32 and mat2 has dtype float64/)
    expect(() => F.conv2d(z(1, 1, 2, 2), zeros([1, 1, 1, 1], { dtype: 'float64' }))).toThrow(/input has dtype float32 and weight has dtype float64/)
  })
})

describe('operators that compute float16 and bfloat16 in float32', () => {
  const x = torch.ones([1, 1, 4])
  const w = torch.ones([1, 1, 2])
  it.each([
    ['conv1d', (): unknown => torch.nn.functional.conv1d(x.bfloat16(), w)],
    ['conv2d', (): unknown => torch.nn.functional.conv2d(x.unsqueeze(2), w.unsqueeze(2).half())],
    ['mm', (): unknown => torch.mm(torch.ones([2, 2]).half(), torch.ones([2, 2]))],
    ['linear', (): unknown => torch.nn.functional.linear(torch.ones([2, 2]), torch.ones([2, 2]).bfloat16())],
    ['bmm', (): unknown => torch.bmm(x.half(), x.transpose(1, 2))],
  ])('%s refuses operands of which only one is half', (_, call) => expect(call).toThrow(DTypeError))
})

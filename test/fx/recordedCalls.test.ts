// How calls of functions that PyTorch writes in Python are recorded, as PyTorch records them.
import { describe, expect, it } from 'vitest'
import { torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { symbolicTrace } from 'tensorfx/fx'
import { F } from 'tensorfx/nn'

const line = (fn: (x: Tensor) => unknown): string => (String(symbolicTrace(fn).graph).split('\n')[2] as string).trim()

describe('calls of functions that PyTorch writes in Python', () => {
  it('show arguments with defaults as keywords, given or not', () => {
    expect(line((x) => F.relu(x))).toBe(
      '%relu : [num_users=1] = call_function[target=torch.nn.functional.relu](args = (%x,), kwargs = {inplace: False})',
    )
    expect(line((x) => F.softmax(x, 1))).toBe(
      '%softmax : [num_users=1] = call_function[target=torch.nn.functional.softmax](args = (%x,), kwargs = {dim: 1, dtype: None})',
    )
    expect(line((x) => torch.split(x, 2))).toBe('%split : [num_users=1] = call_function[target=torch.split](args = (%x, 2), kwargs = {dim: 0})')
    expect(line((x) => F.batchNorm(x, null, null, { training: true }))).toBe(
      '%batch_norm : [num_users=1] = call_function[target=torch.nn.functional.batch_norm](args = (%x, None, None), kwargs = {weight: None, bias: None, training: True, momentum: 0.1, eps: 1e-05})',
    )
  })

  it('show the method where the function only calls it', () => {
    expect(line((x) => F.sigmoid(x))).toBe('%sigmoid : [num_users=1] = call_method[target=sigmoid](args = (%x,), kwargs = {})')
    expect(line((x) => F.tanh(x))).toBe('%tanh : [num_users=1] = call_method[target=tanh](args = (%x,), kwargs = {})')
  })

  it('other functions and methods show what the user wrote', () => {
    expect(line((x) => F.gelu(x))).toBe('%gelu : [num_users=1] = call_function[target=torch.nn.functional.gelu](args = (%x,), kwargs = {})')
    expect(line((x) => torch.sum(x, { dim: 1 }))).toBe('%sum_1 : [num_users=1] = call_function[target=torch.sum](args = (%x,), kwargs = {dim: 1})')
    expect(line((x) => x.split(2))).toBe('%split : [num_users=1] = call_method[target=split](args = (%x, 2), kwargs = {})')
  })
})

// PyTorch's other names of operators: what they compute, and the name under which traces record them. values.test.ts runs them on the cases of the operators
// that they stand for.
import { describe, expect, test } from 'vitest'
import { torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { makeFx } from 'tensorfx/aot'
import { symbolicTrace } from 'tensorfx/fx'
import type { OpDef } from 'tensorfx/dispatch'
import { opOf } from 'tensorfx/ops'
import { builtInOps } from '../builtInOps.ts'

const aliases = builtInOps().filter((op) => op.aliasOf !== null)

/** PyTorch's names, and what each stands for. */
const NAMES = `absolute abs, arccos acos, arccosh acosh, arcsin asin, arcsinh asinh, arctan atan, arctan2 atan2, arctanh atanh, divide div, ger outer, greater gt,
  greater_equal ge, less lt, less_equal le, multiply mul, negative neg, not_equal ne, row_stack vstack, subtract sub, trapz trapezoid, split_with_sizes split, unsafe_chunk chunk, unsafe_split split, unsafe_split_with_sizes split`

/** Functions of torch that torch.nn.functional, torch.linalg or tensors have too, with the same arguments. */
const ALSO_OF_TORCH = `adaptive_avg_pool1d alpha_dropout avg_pool1d bilinear channel_shuffle conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d
  cosine_similarity dropout feature_alpha_dropout fill fill_ group_norm hardshrink layer_norm max_pool1d max_pool2d max_pool3d orgqr pairwise_distance pdist
  pixel_shuffle pixel_unshuffle prelu rms_norm rrelu rrelu_ threshold threshold_ zero_`

/** Functions of torch that give copies of views, and the views. */
const COPIES = `alias_copy positive, as_strided_copy as_strided, detach_copy detach, diagonal_copy diagonal, expand_copy expand, permute_copy permute, select_copy select,
  slice_copy slice, split_copy split, split_with_sizes_copy split, squeeze_copy squeeze, t_copy t, transpose_copy transpose, unbind_copy unbind, unfold_copy unfold,
  unsqueeze_copy unsqueeze, view_copy view`

const spaceOf = (op: OpDef | null): string => (op === null ? '' : op.qualname.slice(0, -op.name.length - 1))
const copies = aliases.filter((op) => op.name.endsWith('_copy'))
const names = aliases.filter((op) => !copies.includes(op))
const inSameSpace = names.filter((op) => spaceOf(op) === spaceOf(op.aliasOf))

test('torch has these functions of other namespaces', () => {
  const others = names.filter((op) => !inSameSpace.includes(op))
  expect(others.map((op) => op.qualname).toSorted()).toEqual(
    ALSO_OF_TORCH.split(/\s+/)
      .map((name) => `torch.${name}`)
      .toSorted(),
  )
  for (const op of others) expect(op.aliasOf?.name).toBe(op.name === 'orgqr' ? 'householder_product' : op.name)
  const x = torch.tensor([[[1, 2, 3]]])
  expect(torch.conv1d(x, torch.tensor([[[1, 1]]]), null, 1, 1).toArray()).toEqual([[[1, 3, 5, 3]]])
  expect(String(symbolicTrace((y: Tensor) => torch.prelu(y, y)).graph)).toContain('target=torch.prelu')
  expect(String(makeFx((y: Tensor) => torch.layerNorm(y, [3]))(x).graph)).not.toContain('target=torch.layer_norm')
})

test('torch has copies of views', () => {
  const expected = COPIES.split(',').map((pair) => pair.trim().split(' '))
  expect(copies.map((op) => [op.name, op.aliasOf?.name]).toSorted()).toEqual(expected.toSorted())
  const x = torch.arange(4)
  torch.viewCopy(x, [2, 2]).add_(1)
  for (const part of torch.unbindCopy(x)) part.add_(1)
  torch.aliasCopy(x).add_(1)
  expect(x.toArray()).toEqual([0, 1, 2, 3])
})

test('these operators have other names', () => {
  const expected = NAMES.split(',').map((pair) => pair.trim().split(' '))
  const functions = inSameSpace.filter(({ name }) => !name.endsWith('_')).map((op) => [op.name, op.aliasOf?.name])
  expect(functions.toSorted()).toEqual(expected.toSorted())
  // And where the operator has an in-place form, the other name has one too.
  const forms = new Set(inSameSpace.filter(({ name }) => name.endsWith('_')).map((op) => `${op.name} ${op.aliasOf?.name ?? ''}`))
  const known = new Set(builtInOps().map((op) => op.qualname))
  const wanted = expected.filter(([, name = '']) => known.has(`torch.${name}_`) || known.has(`torch.Tensor.${name}_`))
  expect(forms).toEqual(new Set(wanted.map(([alias = '', name = '']) => `${alias}_ ${name}_`)))
})

describe('a trace', () => {
  test('of functions and methods records the name that the program uses', () => {
    const traced = symbolicTrace((x: Tensor, y: Tensor) => torch.multiply(x, y).greaterEqual(y))
    expect(String(traced.graph)).toContain('call_function[target=torch.multiply](args = (%x, %y)')
    expect(String(traced.graph)).toContain('call_method[target=greater_equal](args = (%multiply, %y)')
    expect((traced.call(torch.tensor([1, 2]), torch.tensor([3, 0])) as Tensor).toArray()).toEqual([true, true])
  })

  test('of operators records the operator itself', () => {
    const graph = String(makeFx((x: Tensor) => torch.subtract(x, 1, { alpha: 2 }).arctan())(torch.ones([2])).graph)
    expect(graph).toContain('torch.sub')
    expect(graph).toContain('torch.atan')
    expect(graph).not.toMatch(/subtract|arctan/)
  })
})

test('gradients and writes in place are those of the operator', () => {
  const x = torch.tensor([2, 3]).requiresGrad_()
  x.multiply(x).divide(2).sum().backward()
  expect(x.grad?.toArray()).toEqual([2, 3])
  const y = torch.tensor([1, -2])
  expect(y.absolute_().multiply_(3)).toBe(y)
  expect(y.toArray()).toEqual([3, 6])
  expect(torch.tensor([7]).divide(2, { roundingMode: 'floor' }).toArray()).toEqual([3])
})

test('each is an operator of its own, whose row names the other', () => {
  expect(opOf(torch.multiply)?.qualname).toBe('torch.multiply')
  expect(opOf(torch.multiply)?.aliasOf).toBe(opOf(torch.mul))
})

test('where is a method too: of what is kept', () => {
  const kept = torch.tensor([1, 2]).where(torch.tensor([true, false]), 0)
  expect(kept.toArray()).toEqual([1, 0])
})

test('newTensor makes a tensor of data in the dtype of another one', () => {
  const made = torch
    .zeros([1])
    .int()
    .newTensor([[1, 2]])
  expect([made.dtype, made.toArray()]).toEqual(['int32', [[1, 2]]])
  expect(made.newTensor([1.5], { dtype: 'float64', requiresGrad: true }).requiresGrad).toBe(true)
})

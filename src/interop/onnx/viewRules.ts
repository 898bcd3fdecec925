// How views are written, and writes to a part of a tensor. ONNX has no views: a value in another order is a copy, which runtimes fuse away where they can.
import type { Arg, OpDef } from '../../dispatch/index.ts'
import { opByName } from '../../ops/index.ts'
import { contiguousStrides, numbersOf, numelOf, Tensor, wrapDim } from '../../tensor/index.ts'
import type { TensorSpec } from '../../tensor/index.ts'
import type { Call } from './call.ts'
import type { Value } from './model.ts'

type ViewRule = (call: Call) => Value

const self = (call: Call): Value => call.tensor('self')

const reshape: ViewRule = (call) => call.reshape(self(call), call.result().shape)

const identity: ViewRule = (call) => call.node('Identity', [self(call)], call.result().dtype, call.result().shape)

function transposed(call: Call, perm: readonly number[]): Value {
  const { dtype, shape } = call.result()
  return shape.length < 2 ? identity(call) : call.node('Transpose', [self(call)], dtype, shape, { perm })
}

const permute: ViewRule = (call) => {
  const { length } = self(call).shape
  return transposed(
    call,
    (call.numbers('dims') ?? []).map((d) => wrapDim('torch.permute', d, length)),
  )
}

const transpose: ViewRule = (call) => {
  const { length } = self(call).shape
  if (length === 0) return identity(call)
  const [a, b] = ['dim0', 'dim1'].map((name) => wrapDim('torch.transpose', call.number(name), length))
  return transposed(
    call,
    Array.from({ length }, (_, i) => (i === a ? (b ?? i) : i === b ? (a ?? i) : i)),
  )
}

const expand: ViewRule = (call) => {
  const { dtype, shape } = call.result()
  return call.node('Expand', [self(call), call.ints(shape)], dtype, shape)
}

const select: ViewRule = (call) => {
  const value = self(call)
  const axis = wrapDim('torch.select', call.number('dim'), value.shape.length)
  const { dtype, shape } = call.result()
  return call.node('Gather', [value, call.ints([call.number('index')], [])], dtype, shape, { axis })
}

const slice: ViewRule = (call) => {
  const value = self(call)
  const axis = wrapDim('torch.Tensor.slice', call.number('dim'), value.shape.length)
  const size = value.shape[axis] ?? 0
  const [start, end] = [call.numbers('start')?.[0] ?? 0, call.numbers('end')?.[0] ?? size]
  const { dtype, shape } = call.result()
  const bounds = [start, Math.min(end, size), axis, call.number('step')].map((number) => call.ints([number]))
  return call.node('Slice', [value, ...bounds], dtype, shape)
}

/** Where the elements of a view lie in a contiguous tensor. */
function positionsOf({ shape, strides = contiguousStrides(shape), offset = 0 }: TensorSpec): readonly number[] {
  let positions: readonly number[] = [offset]
  for (const [d, size] of shape.entries()) {
    const stride = strides[d] ?? 0
    positions = positions.flatMap((at) => Array.from({ length: size }, (_, i) => at + i * stride))
  }
  return positions
}

/** The layout that a view operator gives to a contiguous tensor of this shape. */
function viewOf(call: Call, view: OpDef, value: Pick<Value, 'shape' | 'dtype'>, rest: readonly Arg[]): TensorSpec {
  const whole = Tensor.fake({ shape: value.shape, dtype: value.dtype })
  const spec = view.meta(whole, ...rest)
  return 'shape' in spec ? numbersOf(spec) : call.unsupported('it has several results')
}

/** Any view: the elements at its positions. What `as_strided` means depends on the layout, which ONNX does not have: it is that of a contiguous tensor. */
const positions: ViewRule = (call) => {
  const value = self(call)
  const spec = viewOf(call, call.op, value, call.fakes().slice(1))
  const flat = call.reshape(value, [numelOf(value.shape)])
  return call.node('Gather', [flat, call.ints(positionsOf(spec), spec.shape)], value.dtype, spec.shape, { axis: 0 })
}

/** A write to the part of a tensor that a view operator, given the arguments after the first two, would show. */
export function writeTo({
  writeTo: whole,
  view,
  part,
}: {
  readonly writeTo: 'self' | 'zeros'
  readonly view: string
  readonly part: string
}): ViewRule {
  return (call) => {
    const op = opByName(view)
    if (op === undefined) return call.unsupported(`there is no ${view}`)
    const target = whole === 'self' ? self(call) : zeros(call)
    const spec = viewOf(call, op, target, call.fakes().slice(2))
    const count = numelOf(spec.shape)
    const flat = call.reshape(target, [numelOf(target.shape)])
    const updates = call.reshape(call.tensor(part), [count])
    const written = call.node('ScatterElements', [flat, call.ints(positionsOf(spec)), updates], target.dtype, flat.shape, { axis: 0 })
    return call.reshape(written, target.shape)
  }
}

const zeros = (call: Call): Value => {
  const { dtype, shape } = call.result()
  return call.node('Expand', [call.scalar(dtype, 0), call.ints(shape)], dtype, shape)
}

function cat(call: Call): Value {
  const parts = call.tensors('tensors').filter((part) => part.shape.length !== 1 || part.shape[0] !== 0 || call.result().shape.length === 1)
  const { dtype, shape } = call.result()
  const axis = wrapDim('torch.cat', call.number('dim'), shape.length)
  return call.node(
    'Concat',
    parts.map((part) => call.cast(part, dtype)),
    dtype,
    shape,
    { axis },
  )
}

/** By the names that declarations have for them. */
export const viewRules = { cat, expand, identity, permute, positions, reshape, select, slice, transpose }

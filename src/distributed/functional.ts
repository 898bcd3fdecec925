// Collectives as operators: new tensors, derivatives, and calls that graphs record, print, save and compile. PyTorch's
// torch.distributed._functional_collectives; the operators are torch.ops._c10d_functional.*. Groups go by name, so that graphs can be saved.
//
// An operator runs its collective to the end; `wait_tensor`, which follows each as in PyTorch's graphs, marks where the result is needed.
import { noGrad } from '../autograd/index.ts'
import { ArgumentError } from '../errors/index.ts'
import { publish } from '../library/index.ts'
import { cat, chunk, makeOp, registerOp } from '../ops/index.ts'
import type { OpFunction } from '../ops/index.ts'
import { checkCount, declareEffects, valueText } from '../protocol/index.ts'
import { Tensor, checkTensor } from '../tensor/index.ts'
import type { TensorSpec } from '../tensor/index.ts'
import type { Arg } from '../dispatch/index.ts'
import { REDUCE_OPS } from './collective.ts'
import type { ReduceOp } from './collective.ts'
import { contiguous, reduction } from './prepare.ts'
import { groupNamed, groupOr } from './processGroup.ts'
import type { ProcessGroup } from './processGroup.ts'

const NAMESPACE = '_c10d_functional'

const tensorArg = (value: Arg | undefined): Tensor => {
  if (value instanceof Tensor) return value
  throw new ArgumentError(`a collective's tensor must be a Tensor, got ${valueText(value)}.`)
}
const numberArg = (value: Arg | undefined): number => {
  if (typeof value === 'number') return value
  throw new ArgumentError(`a collective's size must be a number, got ${valueText(value)}.`)
}
const opArg = (value: Arg | undefined): ReduceOp => {
  const op = REDUCE_OPS.find((name) => name === value)
  if (op === undefined) throw new ArgumentError(`reduce_op must be one of ${REDUCE_OPS.join(', ')}, got ${valueText(value)}.`)
  return op
}
const groupArg = (value: Arg | undefined): ProcessGroup => groupNamed(String(value))
const splitsArg = (value: Arg | undefined): number[] => (Array.isArray(value) ? value.map((item) => numberArg(item)) : [])

/** The shape with dimension 0 multiplied or divided; a tensor without dimensions counts as one row. */
const scaled = (tensor: Tensor, factor: number): TensorSpec => {
  const [rows = 1, ...rest] = tensor.shape
  return { shape: [rows * factor, ...rest], dtype: tensor.dtype }
}

/** Reduces `data`, which is the kernel's own. */
function reduceCopy(where: string, input: Tensor, op: ReduceOp, group: ProcessGroup): Tensor {
  const rule = reduction(where, input, op, group.size)
  const data = noGrad(() => contiguous(where, 'tensor', input).to(rule.dtype).clone())
  group.run({ kind: 'allreduce', op: rule.op, data })
  rule.after(data)
  return noGrad(() => data.to(input.dtype))
}

const allReduceOp: OpFunction = makeOp({
  schema: 'all_reduce(Tensor input, str reduce_op, str group_name) -> Tensor',
  namespace: `torch.ops.${NAMESPACE}`,
  tags: ['custom'],
  meta: (input) => ({ shape: tensorArg(input).shape, dtype: tensorArg(input).dtype }),
  kernel: (input, op, group) => reduceCopy('all_reduce', tensorArg(input), opArg(op), groupArg(group)),
  derivative: ([grad = null], { args: [, op, name] }) => {
    const how = opArg(op)
    if (how !== 'sum' && how !== 'avg') throw new ArgumentError(`all_reduce: '${how}' has no derivative; only 'sum' and 'avg' have one.`)
    return [grad === null ? null : allReduce(grad, how, groupArg(name)), null, null]
  },
})

const allGatherOp: OpFunction = makeOp({
  schema: 'all_gather_into_tensor(Tensor input, int group_size, str group_name) -> Tensor',
  namespace: `torch.ops.${NAMESPACE}`,
  tags: ['custom'],
  meta: (input, size) => scaled(tensorArg(input), numberArg(size)),
  kernel: (given, size, group) => {
    const input = contiguous('all_gather_into_tensor', 'input', given)
    const { shape, dtype } = scaled(input, numberArg(size))
    const output = Tensor.empty(shape, dtype)
    groupArg(group).run({ kind: 'allgather', input, output })
    return output
  },
  derivative: ([grad = null], { args: [, , name] }) => [grad === null ? null : reduceScatterTensor(grad, 'sum', 0, groupArg(name)), null, null],
})

const reduceScatterOp: OpFunction = makeOp({
  schema: 'reduce_scatter_tensor(Tensor input, str reduce_op, int group_size, str group_name) -> Tensor',
  namespace: `torch.ops.${NAMESPACE}`,
  tags: ['custom'],
  meta: (input, _op, size) => scaled(tensorArg(input), 1 / numberArg(size)),
  kernel: (given, op, size, group) => {
    const where = 'reduce_scatter_tensor'
    const input = contiguous(where, 'input', given)
    const rule = reduction(where, input, opArg(op), numberArg(size))
    const output = Tensor.empty(scaled(input, 1 / numberArg(size)).shape, rule.dtype)
    groupArg(group).run({ kind: 'reducescatter', op: rule.op, input: noGrad(() => input.to(rule.dtype)), output })
    rule.after(output)
    return noGrad(() => output.to(input.dtype))
  },
  derivative: ([grad = null], { args: [, op, , name] }) => {
    if (grad === null) return [null, null, null, null]
    const how = opArg(op)
    if (how !== 'sum' && how !== 'avg') throw new ArgumentError(`reduce_scatter_tensor: '${how}' has no derivative; only 'sum' and 'avg' have one.`)
    const group = groupArg(name)
    const gathered = allGatherTensor(grad, 0, group)
    return [how === 'avg' ? gathered.div(group.size) : gathered, null, null, null]
  },
})

const allToAllOp: OpFunction = makeOp({
  schema: 'all_to_all_single(Tensor input, int[] output_split_sizes, int[] input_split_sizes, str group_name) -> Tensor',
  namespace: `torch.ops.${NAMESPACE}`,
  tags: ['custom'],
  meta: (input, outputSplits) => {
    const { shape, dtype } = tensorArg(input)
    return { shape: [splitsArg(outputSplits).reduce((a, b) => a + b, 0), ...shape.slice(1)], dtype }
  },
  kernel: (given, outputSplits, inputSplits, group) => {
    const input = contiguous('all_to_all_single', 'input', given)
    const rest = input.shape.slice(1)
    const width = rest.reduce((a, b) => a * b, 1)
    const [outputs, inputs] = [splitsArg(outputSplits), splitsArg(inputSplits)]
    const output = Tensor.empty([outputs.reduce((a, b) => a + b, 0), ...rest], input.dtype)
    const counts = (splits: readonly number[]): number[] => splits.map((rows) => rows * width)
    groupArg(group).run({ kind: 'alltoall', input, output, inputCounts: counts(inputs), outputCounts: counts(outputs) })
    return output
  },
  derivative: ([grad = null], { args: [, outputs, inputs, name] }) => [
    grad === null ? null : allToAllSingle(grad, splitsArg(inputs), splitsArg(outputs), groupArg(name)),
    null,
    null,
    null,
  ],
})

const broadcastOp: OpFunction = makeOp({
  schema: 'broadcast(Tensor input, int src, str group_name) -> Tensor',
  namespace: `torch.ops.${NAMESPACE}`,
  tags: ['custom'],
  meta: (input) => ({ shape: tensorArg(input).shape, dtype: tensorArg(input).dtype }),
  kernel: (input, src, group) => {
    const data = noGrad(() => contiguous('broadcast', 'input', input).clone())
    groupArg(group).run({ kind: 'broadcast', root: numberArg(src), data })
    return data
  },
})

const waitOp: OpFunction = makeOp({
  schema: 'wait_tensor(Tensor tensor) -> Tensor',
  namespace: `torch.ops.${NAMESPACE}`,
  tags: ['custom'],
  meta: (input) => ({ shape: tensorArg(input).shape, dtype: tensorArg(input).dtype }),
  kernel: (input) => noGrad(() => tensorArg(input).clone()),
  derivative: ([grad = null]) => [grad],
})

const OPERATORS = [allReduceOp, allGatherOp, reduceScatterOp, allToAllOp, broadcastOp, waitOp]

/**
 * Makes the operators known to graphs, as torch.ops._c10d_functional.*. They are never removed, merged or reordered: a graph that drops a collective on one rank
 * leaves the others waiting. For the composition root.
 */
export function installCollectives(): void {
  for (const fn of OPERATORS) {
    const { name } = fn.op.schema
    registerOp(fn)
    declareEffects(fn, 'io')
    publish({ namespace: NAMESPACE, name, path: `torch.ops.${NAMESPACE}` }, fn)
  }
}

function call(fn: OpFunction, ...args: readonly unknown[]): Tensor {
  const started: unknown = fn(...args)
  const result: unknown = waitOp(started)
  if (result instanceof Tensor) return result
  throw new ArgumentError(`${fn.op.qualname} gave no tensor`)
}

/** The reduction of all ranks' tensors. Differentiable for 'sum' and 'avg'. PyTorch's functional `all_reduce`. */
export const allReduce = (tensor: Tensor, op: ReduceOp = 'sum', group?: ProcessGroup): Tensor => call(allReduceOp, tensor, op, groupOr(group).name)

/** All ranks' tensors, joined along `dim`. PyTorch's functional `all_gather_tensor`. */
export function allGatherTensor(tensor: Tensor, dim = 0, group?: ProcessGroup): Tensor {
  checkCount('allGatherTensor', arguments, 3)
  const { size, name } = groupOr(group)
  const rows = call(allGatherOp, tensor, size, name)
  return dim === 0 ? rows : cat(chunk(rows, size, 0), dim)
}

/** This rank's part, along `dim`, of the reduction of all ranks' tensors. PyTorch's functional `reduce_scatter_tensor`. */
export function reduceScatterTensor(tensor: Tensor, op: ReduceOp = 'sum', dim = 0, group?: ProcessGroup): Tensor {
  checkCount('reduceScatterTensor', arguments, 4)
  const { size, name } = groupOr(group)
  checkTensor('reduceScatterTensor', 'tensor', tensor)
  const length = tensor.shape[dim] ?? 1
  if (length % size !== 0) throw new ArgumentError(`reduceScatterTensor: dimension ${dim} (${length}) must divide by the number of ranks (${size}).`)
  const rows = dim === 0 ? tensor : cat(chunk(tensor, size, dim), 0)
  return call(reduceScatterOp, rows, op, size, name)
}

/** Rows from all ranks: `outputSplits[r]` from rank r, which gets `inputSplits[r]` of this one's. Default: equal parts. PyTorch's functional `all_to_all_single`. */
export function allToAllSingle(
  tensor: Tensor,
  outputSplits: readonly number[] | null = null,
  inputSplits: readonly number[] | null = null,
  group?: ProcessGroup,
): Tensor {
  checkCount('allToAllSingle', arguments, 4)
  const { size, name } = groupOr(group)
  checkTensor('allToAllSingle', 'tensor', tensor)
  const equal = Array.from({ length: size }, () => (tensor.shape[0] ?? 0) / size)
  if ((outputSplits === null || inputSplits === null) && !Number.isInteger(equal[0] ?? 0))
    throw new ArgumentError(
      `allToAllSingle: dimension 0 (${tensor.shape[0]}) must divide by the number of ranks (${size}); pass outputSplits and inputSplits.`,
    )
  return call(allToAllOp, tensor, outputSplits ?? equal, inputSplits ?? equal, name)
}

/** The tensor of rank `src` of the group. PyTorch's functional `broadcast`. */
export const broadcast = (tensor: Tensor, src: number, group?: ProcessGroup): Tensor => call(broadcastOp, tensor, src, groupOr(group).name)

/** Marks where the result of a collective is needed. PyTorch's functional `wait_tensor`. */
export function waitTensor(tensor: Tensor): Tensor {
  const result: unknown = waitOp(tensor)
  return result instanceof Tensor ? result : tensor
}

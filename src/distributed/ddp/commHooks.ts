// Communication hooks for DistributedDataParallel. PyTorch's torch.distributed.algorithms.ddp_comm_hooks.default_hooks.
import { noGrad } from '../../autograd/index.ts'
import { ArgumentError } from '../../errors/index.ts'
import { checkCallable, checkCount, isObject, valueText } from '../../protocol/index.ts'
import { Tensor } from '../../tensor/index.ts'
import { groupOr } from '../processGroup.ts'
import type { ProcessGroup } from '../processGroup.ts'
import { gradientViews } from './reducer.ts'
import type { CommFuture, GradBucket } from './reducer.ts'
import { startSum, sumOfHalves } from './sums.ts'
import type { Half } from './sums.ts'

/** The gradients of a bucket, which a hook gets from DistributedDataParallel. */
export function bufferOf(where: string, bucket: unknown): Tensor {
  const buffer: unknown = isObject(bucket) ? Reflect.get(bucket, 'buffer') : null
  if (buffer instanceof Tensor) return buffer
  throw new ArgumentError(
    `${where}: argument 'bucket' must be the GradBucket that DistributedDataParallel gives to a hook, got ${valueText(bucket)}.`,
  )
}

/**
 * The mean over the ranks of a group (null: all), as without a hook. PyTorch's `allreduce_hook`.
 *
 * @example model.registerCommHook(null, allreduceHook)
 */
export function allreduceHook(group: ProcessGroup | null, bucket: GradBucket): Tensor | CommFuture {
  const buffer = bufferOf('allreduceHook', bucket)
  const members = groupOr(group)
  noGrad(() => buffer.div_(members.size))
  return startSum(members, buffer)
}

/** The mean over the ranks, with gradients that travel as a narrower dtype: they are rounded once, and their sum once. */
function compressed(dtype: Half, group: ProcessGroup | null, buffer: Tensor): CommFuture {
  const members = groupOr(group)
  const sum = sumOfHalves(
    members,
    noGrad(() => buffer.div(members.size).to(dtype)),
    buffer.dtype,
  )
  return { wait: () => noGrad(() => sum.wait().to(buffer.dtype)) }
}

/** The mean over the ranks of a group (null: all), with gradients that travel as float16: half the bytes. PyTorch's `fp16_compress_hook`. */
export const fp16CompressHook = (group: ProcessGroup | null, bucket: GradBucket): CommFuture =>
  compressed('float16', group, bufferOf('fp16CompressHook', bucket))

/** The same as bfloat16, which has float32's range. PyTorch's `bf16_compress_hook`. */
export const bf16CompressHook = (group: ProcessGroup | null, bucket: GradBucket): CommFuture =>
  compressed('bfloat16', group, bufferOf('bf16CompressHook', bucket))

/** A communication hook, as `registerCommHook` takes it with its state. */
export type DdpCommHook<S> = (state: S, bucket: GradBucket) => Tensor | CommFuture

function compressWrapper<S>(where: string, dtype: Half, hook: DdpCommHook<S>): DdpCommHook<S> {
  checkCallable(where, 'hook', hook)
  return (state, bucket) => {
    const buffer = bufferOf(where, bucket)
    return noGrad(() => {
      const halves = buffer.to(dtype)
      const sent = hook(state, { ...bucket, buffer: halves, gradients: gradientViews(halves, bucket.parameters) })
      return {
        wait: () =>
          noGrad(() => {
            const result = sent instanceof Tensor ? sent : sent.wait()
            return (result instanceof Tensor ? result : halves).to(buffer.dtype)
          }),
      }
    })
  }
}

/**
 * A hook that gives `hook` the gradients as float16, and what it returns the gradients' dtype. PyTorch's `fp16_compress_wrapper`.
 *
 * @throws ArgumentError unless `hook` is a function.
 * @example model.registerCommHook(state, fp16CompressWrapper(powerSGDHook))
 */
export function fp16CompressWrapper<S>(hook: DdpCommHook<S>): DdpCommHook<S> {
  checkCount('fp16CompressWrapper', arguments, 1)
  return compressWrapper('fp16CompressWrapper', 'float16', hook)
}

/**
 * The same with bfloat16, which has float32's range. PyTorch's `bf16_compress_wrapper`.
 *
 * @throws ArgumentError unless `hook` is a function.
 * @example model.registerCommHook(null, bf16CompressWrapper(allreduceHook))
 */
export function bf16CompressWrapper<S>(hook: DdpCommHook<S>): DdpCommHook<S> {
  checkCount('bf16CompressWrapper', arguments, 1)
  return compressWrapper('bf16CompressWrapper', 'bfloat16', hook)
}

// Communication hooks for DistributedDataParallel. PyTorch's torch.distributed.algorithms.ddp_comm_hooks.default_hooks.
import { noGrad } from '../../autograd/index.ts'
import { zeros } from '../../ops/index.ts'
import { ArgumentError } from '../../errors/index.ts'
import { isObject, valueText } from '../../protocol/index.ts'
import { Tensor } from '../../tensor/index.ts'
import { allGatherIntoTensor, allReduce, allToAllSingle } from '../inPlace.ts'
import { groupOr } from '../processGroup.ts'
import type { ProcessGroup } from '../processGroup.ts'
import type { CommFuture, GradBucket } from './reducer.ts'

/** The gradients of a bucket, which a hook gets from DistributedDataParallel. */
function bufferOf(where: string, bucket: unknown): Tensor {
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
  return allReduce(buffer, { group: members, asyncOp: true }) ?? buffer
}

/**
 * The mean over the ranks, with gradients that travel as a narrower dtype. Each rank adds up its share of the elements in the gradients' dtype, so the ranks' gradients are rounded once, and their sum once.
 */
function compressed(dtype: 'float16' | 'bfloat16', group: ProcessGroup | null, buffer: Tensor): CommFuture {
  const members = groupOr(group)
  const { size } = members
  const share = Math.ceil(buffer.numel / size)
  return noGrad(() => {
    const sent = zeros([share * size], { dtype })
    sent.narrow(0, 0, buffer.numel).copy_(buffer.div(size))
    const parts = Tensor.empty([share * size], dtype)
    const work = allToAllSingle(parts, sent, null, null, { group: members, asyncOp: true })
    return {
      wait: () =>
        noGrad(() => {
          work?.wait()
          const own = parts.view([size, share]).to(buffer.dtype).sum([0]).to(dtype)
          const all = Tensor.empty([share * size], dtype)
          allGatherIntoTensor(all, own, { group: members })
          return all.narrow(0, 0, buffer.numel).to(buffer.dtype)
        }),
    }
  })
}

/** The mean over the ranks of a group (null: all), with gradients that travel as float16: half the bytes. PyTorch's `fp16_compress_hook`. */
export const fp16CompressHook = (group: ProcessGroup | null, bucket: GradBucket): CommFuture =>
  compressed('float16', group, bufferOf('fp16CompressHook', bucket))

/** The same as bfloat16, which has float32's range. PyTorch's `bf16_compress_hook`. */
export const bf16CompressHook = (group: ProcessGroup | null, bucket: GradBucket): CommFuture =>
  compressed('bfloat16', group, bufferOf('bf16CompressHook', bucket))

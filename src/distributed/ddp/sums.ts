// Sums of gradients over the ranks. Halves travel as halves, and are added up in a wider dtype.
import { noGrad } from '../../autograd/index.ts'
import type { DType } from '../../kernels/index.ts'
import { zeros } from '../../ops/index.ts'
import { Tensor } from '../../tensor/index.ts'
import { allGatherIntoTensor, allReduce, allToAllSingle } from '../inPlace.ts'
import type { ProcessGroup } from '../processGroup.ts'
import type { CommFuture } from './reducer.ts'

/** The dtypes of half precision. */
export type Half = 'float16' | 'bfloat16'

const isHalf = (dtype: DType): dtype is Half => dtype === 'float16' || dtype === 'bfloat16'

/** Starts to sum a 1-dimensional tensor over the ranks, in place. All ranks wait for their sums in the same order. */
export function startSum(members: ProcessGroup, tensor: Tensor): CommFuture {
  if (!isHalf(tensor.dtype)) return allReduce(tensor, { group: members, asyncOp: true }) ?? { wait: () => undefined }
  const sum = sumOfHalves(members, tensor, 'float32')
  return { wait: () => noGrad(() => void tensor.copy_(sum.wait())) }
}

/** The sum over the ranks of halves. Each rank adds up its share of the elements in another dtype, so their sum is rounded once. */
export function sumOfHalves(members: ProcessGroup, buffer: Tensor, dtype: DType): { wait(): Tensor } {
  const { size } = members
  const share = Math.ceil(buffer.numel / size)
  return noGrad(() => {
    const sent = zeros([share * size], { dtype: buffer.dtype })
    sent.narrow(0, 0, buffer.numel).copy_(buffer)
    const parts = Tensor.empty([share * size], buffer.dtype)
    const work = allToAllSingle(parts, sent, null, null, { group: members, asyncOp: true })
    return {
      wait: () =>
        noGrad(() => {
          work?.wait()
          const own = parts.view([size, share]).to(dtype).sum([0]).to(buffer.dtype)
          const all = Tensor.empty([share * size], buffer.dtype)
          allGatherIntoTensor(all, own, { group: members })
          return all.narrow(0, 0, buffer.numel)
        }),
    }
  })
}

// Uneven inputs: a rank that has no more of them takes part in what the others send until they have none either. PyTorch's torch.distributed.algorithms.join.
import { DistributedError } from '../errors.ts'
import { zeros } from '../../ops/index.ts'
import { allReduce } from '../inPlace.ts'
import type { ProcessGroup } from '../processGroup.ts'

/** What a rank is about to do in a forward. */
export interface Round {
  /** Whether a backward follows that sends gradients. */
  readonly reduces: boolean
  /** Whether buffers are sent. */
  readonly sendsBuffers: boolean
}

/** What the ranks agreed on for a round. */
export interface AgreedRound extends Round {
  /** The ranks, within the group, that still have inputs. */
  readonly active: readonly number[]
}

/** All ranks say whether they still have inputs (null: no), and hear what the round is. */
export function agreeOnRound(group: ProcessGroup, own: Round | null): AgreedRound {
  const { size, rank } = group
  const words = zeros([size + 2], { dtype: 'int32' })
  const flags = own === null ? [] : [rank, ...(own.reduces ? [size] : []), ...(own.sendsBuffers ? [size + 1] : [])]
  for (const at of flags) words.narrow(0, at, 1).fill_(1)
  allReduce(words, { group, op: 'max' })
  const values = [...words.toTypedArray()].map(Number)
  return {
    active: values.slice(0, size).flatMap((flag, at) => (flag === 0 ? [] : [at])),
    reduces: values[size] === 1,
    sendsBuffers: values[size + 1] === 1,
  }
}

/** What all ranks throw with `throwOnEarlyTermination`, in PyTorch's words. */
export const exhausted = (): DistributedError => new DistributedError('Detected at least one rank that exhausted inputs. Throwing across all ranks.')

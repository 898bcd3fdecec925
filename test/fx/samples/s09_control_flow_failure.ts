// s09: a condition on a value, which cannot be traced.
import { torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { detInput } from './common.ts'
import type { Sample } from './common.ts'

function funcToTrace(x: Tensor): Tensor {
  return x.sum().gt(0).item() ? torch.relu(x) : torch.neg(x)
}

export const failing: Sample = { golden: 'control_flow_failure', make: () => funcToTrace, inputs: () => [detInput([3], 113)] }

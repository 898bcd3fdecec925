// s08: functions that are recorded as one call.
import type { Tensor } from 'tensorfx'
import { len, math, wrap } from 'tensorfx/fx'
import { detInput } from './common.ts'
import type { Sample } from './common.ts'

const normalize = (x: Tensor): Tensor => x.div(math.sqrt(len(x)))

const myCustomFunction = wrap((x: Tensor, y: Tensor): Tensor => x.mul(x).add(y.mul(y)), { name: 's08_wrap_normalize.my_custom_function' })

const usesCustom = (x: Tensor, y: Tensor): Tensor => myCustomFunction(x, y).relu()

export const samples: readonly Sample[] = [
  { golden: 'wrap_normalize', make: () => normalize, inputs: () => [detInput([3, 4], 110)] },
  { golden: 'wrap_normalize.wrap_decorator', make: () => usesCustom, inputs: () => [detInput([3], 111), detInput([3], 112)] },
]

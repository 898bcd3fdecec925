// s10: parameters that are fixed while tracing, nested inputs, default values.
import type { Tensor } from 'tensorfx'
import { PH, operator } from 'tensorfx/fx'
import { detInput } from './common.ts'
import type { Sample } from './common.ts'

const f = (a: Tensor, b: boolean): Tensor => (b === true ? a : a.mul(2))

function g(x: Readonly<Record<'a' | 'b' | 'c', Tensor>>): unknown {
  let out: unknown = 0
  for (const v of Object.values(x)) out = operator.add(out, v)
  return out
}

// oxlint-disable-next-line no-unused-vars -- as in the original
function h(x: Tensor, y: Tensor, scale: number = 2.0, bias: Tensor | null = null): Tensor {
  return x.add(y).mul(scale)
}

const pair = (): readonly Tensor[] => [detInput([2], 1), detInput([2], 2)]

export const samples: readonly Sample[] = [
  { golden: 'concrete_args', make: () => f, inputs: () => [detInput([3], 114)], trace: () => ({ concreteArgs: { b: false } }) },
  {
    golden: 'concrete_args.pytree_ph',
    make: () => g,
    inputs: () => [{ a: detInput([2], 1), b: detInput([2], 2), c: detInput([2], 3) }],
    trace: () => ({ concreteArgs: { x: { a: PH, b: PH, c: PH } } }),
  },
  { golden: 'concrete_args.default_args', make: () => h, inputs: pair },
  { golden: 'concrete_args.none_arg', make: () => h, inputs: pair, trace: () => ({ concreteArgs: { bias: null, scale: 3.0 } }) },
]

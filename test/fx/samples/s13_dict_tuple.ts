// s13: an object with nested arrays as the output.
import type { Tensor } from 'tensorfx'
import { Linear, Module } from 'tensorfx/nn'
import { detInit, detInput } from './common.ts'
import type { Sample, Variant } from './common.ts'

class M extends Module {
  l: Linear = new Linear(4, 4)

  override forward(x: Tensor, y: Tensor): unknown {
    const a = this.l.call(x)
    const b = a.mul(y)
    return { a, pair: [b, [a.add(b), 3]], none: null }
  }
}

class T extends Module {
  l: Linear = new Linear(4, 4)

  override forward(d: Readonly<Record<'x' | 'y', Tensor>>): unknown {
    return [this.l.call(d.x), d.y.sub(1.5)]
  }
}

export const samples: readonly Sample[] = [
  { golden: 'dict_tuple', make: () => detInit(new M()).eval(), inputs: () => [detInput([2, 4], 117), detInput([2, 4], 118)] },
]

export const variants: readonly Variant[] = [
  {
    name: 'dict_in_tuple_out',
    make: () => detInit(new T()).eval(),
    inputs: () => [{ x: detInput([2, 4], 117), y: detInput([2, 4], 118) }],
  },
]

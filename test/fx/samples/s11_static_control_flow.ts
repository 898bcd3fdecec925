// s11: control flow that depends on the module, not on values.
import { torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { Linear, Module } from 'tensorfx/nn'
import { detInit, detInput } from './common.ts'
import type { Sample } from './common.ts'

class MyModule extends Module {
  readonly doActivation: boolean
  linear: Linear = new Linear(512, 512)

  constructor(doActivation = false) {
    super()
    this.doActivation = doActivation
  }

  override forward(x: Tensor): Tensor {
    x = this.linear.call(x)
    if (this.doActivation) x = torch.relu(x)
    return x
  }
}

const inputs = (): readonly Tensor[] => [detInput([2, 512], 115)]

export const samples: readonly Sample[] = [
  { golden: 'static_control_flow', make: () => detInit(new MyModule(false)).eval(), inputs },
  { golden: 'static_control_flow.with_activation', make: () => detInit(new MyModule(true)).eval(), inputs },
]

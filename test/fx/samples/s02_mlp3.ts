// s02: three linear layers with activations and dropout between them.
import type { Tensor } from 'tensorfx'
import { Dropout, Linear, Module, ReLU } from 'tensorfx/nn'
import { detInit, detInput } from './common.ts'
import type { Sample } from './common.ts'

class MLP extends Module {
  fc1: Linear
  act1: ReLU = new ReLU()
  drop1: Dropout
  fc2: Linear
  act2: ReLU = new ReLU()
  drop2: Dropout
  fc3: Linear

  constructor(inputs = 8, hidden = 16, outputs = 4, p = 0.1) {
    super()
    this.fc1 = new Linear(inputs, hidden)
    this.drop1 = new Dropout(p)
    this.fc2 = new Linear(hidden, hidden)
    this.drop2 = new Dropout(p)
    this.fc3 = new Linear(hidden, outputs)
  }

  override forward(x: Tensor): Tensor {
    x = this.drop1.call(this.act1.call(this.fc1.call(x)))
    x = this.drop2.call(this.act2.call(this.fc2.call(x)))
    return this.fc3.call(x)
  }
}

export const samples: readonly Sample[] = [{ golden: 'mlp3', make: () => detInit(new MLP()).eval(), inputs: () => [detInput([3, 8], 102)] }]

// s01: the module of the fx guide: an addition with a parameter, a layer, a method, two functions.
import { torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { Linear, Module, Parameter } from 'tensorfx/nn'
import { detInit, detInput } from './common.ts'
import type { Sample } from './common.ts'

class MyModule extends Module {
  param: Parameter = new Parameter(torch.rand([3, 4]))
  linear: Linear = new Linear(4, 5)

  override forward(x: Tensor): readonly [Tensor, Tensor] {
    return torch.topk(torch.sum(this.linear.call(x.add(this.linear.weight)).relu(), { dim: -1 }), 3) as readonly [Tensor, Tensor]
  }
}

export const samples: readonly Sample[] = [{ golden: 'mymodule', make: () => detInit(new MyModule()).eval(), inputs: () => [detInput([5, 4], 101)] }]

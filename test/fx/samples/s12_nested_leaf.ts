// s12: nested modules; what a tracer looks into is a matter of isLeafModule.
import { torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { Tracer } from 'tensorfx/fx'
import { Identity, Linear, Module, ModuleList, ReLU, Sequential } from 'tensorfx/nn'
import { detInit, detInput } from './common.ts'
import type { Sample, Variant } from './common.ts'

class MySpecialSubmodule extends Module {
  override forward(x: Tensor): Tensor {
    return torch.neg(x)
  }
}

class Inner extends Module {
  linear: Linear = new Linear(3, 4)
  submod: MySpecialSubmodule = new MySpecialSubmodule()
  seq: Sequential = new Sequential(new Linear(4, 4), new Sequential(new ReLU(), new Linear(4, 2)))

  override forward(x: Tensor): Tensor {
    return this.seq.call(this.submod.call(this.linear.call(x)))
  }
}

class Outer extends Module {
  a: Inner = new Inner()
  layers: ModuleList<Linear | Identity> = new ModuleList<Linear | Identity>([new Linear(2, 2), new Identity()])

  override forward(x: Tensor): Tensor {
    x = this.a.call(x)
    for (const layer of this.layers) x = layer.call(x)
    return x
  }
}

class LeafTracer extends Tracer {
  override isLeafModule(module: Module, path: string): boolean {
    return module instanceof MySpecialSubmodule || super.isLeafModule(module, path)
  }
}

class NoLeafTracer extends Tracer {
  override isLeafModule(): boolean {
    return false
  }
}

const make = (): Module => detInit(new Outer()).eval()
const inputs = (): readonly Tensor[] => [detInput([5, 3], 116)]

export const samples: readonly Sample[] = [
  { golden: 'nested_leaf', make, inputs },
  { golden: 'nested_leaf.no_leaf', make, inputs, trace: () => ({ tracer: new NoLeafTracer() }) },
]

export const variants: readonly Variant[] = [{ name: 'nested_leaf.leaf_custom', make, inputs, trace: () => ({ tracer: new LeafTracer() }) }]

// s03: convolutions with batch norm, one activation layer used twice.
import { torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { AdaptiveAvgPool2d, BatchNorm2d, Conv2d, Linear, Module, ReLU } from 'tensorfx/nn'
import { detInit, detInput } from './common.ts'
import type { Sample } from './common.ts'

class CNN extends Module {
  conv1: Conv2d = new Conv2d(3, 8, 3, { stride: 1, padding: 1, bias: false })
  bn1: BatchNorm2d = new BatchNorm2d(8)
  relu: ReLU = new ReLU({ inplace: true })
  conv2: Conv2d = new Conv2d(8, 16, 3, { stride: 2, padding: 1 })
  bn2: BatchNorm2d = new BatchNorm2d(16)
  pool: AdaptiveAvgPool2d = new AdaptiveAvgPool2d([1, 1])
  fc: Linear = new Linear(16, 10)

  override forward(x: Tensor): Tensor {
    x = this.relu.call(this.bn1.call(this.conv1.call(x)))
    x = this.relu.call(this.bn2.call(this.conv2.call(x)))
    x = this.pool.call(x)
    x = torch.flatten(x, 1)
    return this.fc.call(x)
  }
}

export const samples: readonly Sample[] = [{ golden: 'cnn', make: () => detInit(new CNN()).eval(), inputs: () => [detInput([2, 3, 8, 8], 103)] }]

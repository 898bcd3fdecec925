// A model as a graph.
// Press Run, then look at the tabs graph and code. Compile, Explain and
// Compare use `model` and `inputs`.
import { fx, nn, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'

class Block extends nn.Module {
  conv = new nn.Conv2d(8, 8, 3, { padding: 1 })
  bn = new nn.BatchNorm2d(8)

  override forward(x: Tensor): Tensor {
    return torch.relu(this.bn(this.conv(x)).add(x))
  }
}

class Net extends nn.Module {
  stem = new nn.Conv2d(3, 8, 3, { padding: 1 })
  block = new Block()
  fc = new nn.Linear(8, 10)

  override forward(x: Tensor): Tensor {
    return this.fc(this.block(this.stem(x)).mean([2, 3]))
  }
}

export const model = new Net().eval()
export const inputs = [torch.randn([1, 3, 32, 32])]

const gm = fx.symbolicTrace(model)
console.log(gm(...inputs))

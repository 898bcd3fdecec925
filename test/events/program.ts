// The program of the goldens: a nested module, a graph break, a helper function, a training step and a call of other shapes. Its lines are in the goldens.
import { compile, nn, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'

class Block extends nn.Module {
  fc: nn.Linear = new nn.Linear(4, 4)
  override forward(x: Tensor): Tensor {
    return doubled(this.fc(x))
  }
}

class Net extends nn.Module {
  block: Block = new Block()
  override forward(x: Tensor): Tensor {
    const h = this.block(x)
    const limit = h.sum().item() > 1e9 ? 1 : 2
    return doubled(h).cumsum(0).mul(limit).sum()
  }
}

function doubled(x: Tensor): Tensor {
  return wave(torch.relu(x)).mul(2)
}

function wave(x: Tensor): Tensor {
  return x.sin()
}

/** Compiles the model anew and runs it: a training step, the same call again, and one of other shapes. */
export function runProgram(): void {
  const net = compile(new Net())
  net(torch.ones([2, 4])).backward()
  net(torch.ones([2, 4]))
  net(torch.ones([3, 4]))
}

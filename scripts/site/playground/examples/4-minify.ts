// A wrong backend.
// Press Minify. The backend computes relu wrongly; the graph is reduced
// to the operator that is wrong.
import { nn, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'

class Net extends nn.Module {
  fc1 = new nn.Linear(4, 8)
  fc2 = new nn.Linear(8, 3)

  override forward(x: Tensor): Tensor {
    const hidden = torch.sigmoid(this.fc1(x)).mul(2).sub(0.5)
    return torch.tanh(this.fc2(torch.relu(hidden)).add(1))
  }
}

export const model = new Net()
export const inputs = [torch.randn([2, 4])]
export const backend = 'relu_accuracy_error_TESTING_ONLY'

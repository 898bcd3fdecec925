// A graph break.
// Press Explain. Reading a value ends the graph at that line, and
// another begins.
import { torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'

export function model(x: Tensor): Tensor {
  const y = torch.relu(x).add(1)
  if (y.sum().item() > 10) return y.mul(2)
  return torch.exp(y)
}
export const inputs = [torch.ones([4, 4])]

console.log(model(...(inputs as [Tensor])))

// Find and replace in a graph.
// The tab code shows what the pattern has become.
import { fx, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'

export const model = fx.symbolicTrace((x: Tensor) => torch.relu(x.mul(2)).add(torch.relu(x)))
export const inputs = [torch.tensor([-1, 2])]

console.log(model.code)
const matches = fx.replacePattern(
  model,
  (x: Tensor) => torch.relu(x),
  (x: Tensor) => x.clamp({ min: 0, max: 6 }),
)
console.log(`${matches.length} matches`)
console.log(model(...(inputs as [Tensor])))

// The gradients of a small network.
import { nn, torch } from 'tensorfx'

const model = new nn.Sequential(new nn.Linear(4, 8), new nn.ReLU(), new nn.Linear(8, 1))
model(torch.randn([2, 4]))
  .sum()
  .backward()

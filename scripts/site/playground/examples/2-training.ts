// A training step, compiled.
// Forward, backward and optimizer in one graph. The tab report shows
// its stages, kernels the loops.
import { compile, nn, optim, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'

const net = new nn.Sequential(new nn.Linear(2, 16), new nn.Tanh(), new nn.Linear(16, 1))
const optimizer = new optim.Adam(net.parameters(), { lr: 0.05 })

const step = compile((x: Tensor, y: Tensor) => {
  optimizer.zeroGrad()
  const loss = nn.functional.mseLoss(net(x), y)
  loss.backward()
  optimizer.step()
  return loss
})

const x = torch.rand([64, 2]).mul(2).sub(1)
const y = x.prod(1).unsqueeze(1)
for (let i = 0; i <= 200; i++) {
  const loss = step(x, y)
  if (i % 50 === 0) console.log(`step ${i}: loss ${loss.item().toFixed(5)}`)
}

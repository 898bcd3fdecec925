// node examples/families/check.mjs: loads the weights that PyTorch saved of each family, and prints how far the outputs are from PyTorch's.
import { readFileSync } from 'node:fs'
import { noGrad, torch } from 'tensorfx'
import { loadTorchFile } from 'tensorfx/interop'
import { families } from './index.mjs'

const recorded = new URL('../../test/goldens/families/', import.meta.url)
const tensorOf = ({ data, dtype, shape }) => torch.tensor(data, { dtype }).view(shape)

for (const [name, make] of Object.entries(families)) {
  const { inputs, outputs } = JSON.parse(readFileSync(new URL(`${name}.json`, recorded), 'utf8'))
  const model = make().eval()
  model.loadStateDict(await loadTorchFile(new URL(`${name}.pt`, recorded)))
  const results = [noGrad(() => model(...inputs.map(tensorOf)))].flat()
  const difference = Math.max(...results.map((out, k) => out.sub(tensorOf(outputs[k])).abs().max().item()))
  const parameters = [...model.parameters()].reduce((sum, p) => sum + p.numel, 0)
  console.log(`${name.padEnd(14)} ${String(parameters).padStart(6)} parameters  difference ${difference.toExponential(1)}`)
}

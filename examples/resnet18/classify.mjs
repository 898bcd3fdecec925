// node examples/resnet18/classify.mjs [weights [image.ppm]]: what a ResNet-18 with weights from PyTorch sees in an image.
// Without arguments: a network an eighth as wide, from the tests, and an image of rings.
import { fileURLToPath } from 'node:url'
import { compile, noGrad, torch } from 'tensorfx'
import { fuse } from 'tensorfx/fx/experimental'
import { readPpm, rings } from './image.mjs'
import { loadResNet18 } from './load.mjs'

const SMALL = fileURLToPath(new URL('../../test/goldens/weights/resnet18_w8.pt', import.meta.url))
const [file = SMALL, image] = process.argv.slice(2)
const model = await loadResNet18(file)
const x = image === undefined ? rings(224) : await readPpm(image)
console.log(`${[...model.parameters()].reduce((n, p) => n + p.numel, 0)} parameters, image ${x.shape.join('x')}`)

// Batch norms are folded into the convolutions before them, and the rest is compiled.
const fast = compile(fuse(model))

function report(name, call) {
  const scores = noGrad(() => call(x))
  const start = performance.now()
  for (let i = 0; i < 10; i++) noGrad(() => call(x))
  const ms = (performance.now() - start) / 10
  const [values, indices] = torch.topk(scores.softmax(1).view(-1), 3)
  const found = indices.toArray().map((label, i) => `${label} (${(100 * values.toArray()[i]).toFixed(1)}%)`)
  console.log(`${name}: ${ms.toFixed(1)} ms, classes ${found.join(', ')}`)
  return scores
}
const [eager, compiled] = [report('eager', model), report('compiled', fast)]
console.log(`largest difference of a score: ${eager.sub(compiled).abs().max().item().toExponential(1)}`)

// What a profile costs the program that it measures: each program runs plain and profiled in turns, in one process. The table of docs/guide/profiling.md.
//
//   npm run bench:profiler [-- a part of the program's name]
import './oneThread.mjs'
import { compile, nn, optim, torch } from 'tensorfx'
import { profile } from 'tensorfx/debug'
import { GPT } from '../examples/gpt/model.mjs'
import { ResNet18 } from '../examples/resnet18/model.mjs'

const F = nn.functional
/** How long each program is measured, in milliseconds. The least time of many rounds counts: others had interruptions. */
const MEASURED = 8000
/** How long a measurement takes at least, in milliseconds: shorter programs run several times. */
const LEAST = 0.5
/** How long a program runs before, so that its hot functions are compiled. */
const WARM = 2000

const trainingOf = (model, lossOf) => {
  const optimizer = new optim.SGD(model.parameters(), { lr: 0.001 })
  return () => {
    optimizer.zeroGrad()
    lossOf().backward()
    optimizer.step()
  }
}

function programs() {
  torch.manualSeed(1)
  const resnet = new ResNet18({ classes: 10 })
  const [images, classes] = [torch.randn([4, 3, 64, 64]), torch.randint(0, 10, [4])]
  const gpt = new GPT({ vocabulary: 65, context: 64, width: 64, heads: 4, layers: 3 })
  const [tokens, next] = [torch.randint(0, 65, [16, 64]), torch.randint(0, 65, [16, 64])]
  const tiny = new nn.Sequential(new nn.Linear(8, 16), new nn.ReLU(), new nn.Linear(16, 16), new nn.ReLU(), new nn.Linear(16, 4))
  const x = torch.randn([4, 8])
  const compiled = compile((a) => tiny(a).square().mean())
  const a = torch.ones([16])
  return {
    'ResNet-18, training step': trainingOf(resnet, () => F.crossEntropy(resnet(images), classes)),
    'GPT, training step': trainingOf(gpt, () => F.crossEntropy(gpt(tokens).flatten(0, 1), next.flatten())),
    'GPT, inference': () => torch.noGrad(() => gpt(tokens)),
    'MLP of tiny operators, training step': trainingOf(tiny, () => tiny(x).square().mean()),
    'MLP of tiny operators, inference': () => torch.noGrad(() => tiny(x)),
    'the same compiled, forward and backward': () => compiled(x).backward(),
    'add of 16 floats': () => torch.noGrad(() => a.add(a)),
  }
}

const only = process.argv[2]
for (const [name, fn] of Object.entries(programs())) {
  if (only !== undefined && !name.includes(only)) continue
  const begun = performance.now()
  while (performance.now() - begun < WARM) fn()
  const { length } = profile(fn).events
  const count = Math.max(1, Math.ceil(LEAST / Math.max(0.001, timeOf(fn, 5) / 5)))
  let [plain, during] = [Infinity, Infinity]
  const end = performance.now() + MEASURED
  for (let round = 0; performance.now() < end || round < 10; round++) {
    plain = Math.min(plain, timeOf(fn, count))
    during = Math.min(during, profile(fn, { warmup: 1, runs: count }).totalTime)
    if (round % 20 === 0) await new Promise((resolve) => setTimeout(resolve, 0))
  }
  const each = ((during - plain) / count / length) * 1e6
  console.log(
    `${name.padEnd(40)} ${(plain / count).toFixed(4).padStart(9)} ms, ${String(length).padStart(4)} events   ${(during / plain).toFixed(3)} times as long, ${each.toFixed(0).padStart(5)} ns per event`,
  )
}

function timeOf(fn, times) {
  const start = performance.now()
  for (let i = 0; i < times; i++) fn()
  return performance.now() - start
}

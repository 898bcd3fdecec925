// A program that is traced: a small ResNet is trained, with two graph breaks, a recompile and a backend that fails; then what situations.mjs has. Run with TENSORFX_TRACE.
import { compile, config, nn, optim, torch } from 'tensorfx'
import { ResNet } from './graphs.mjs'
import { runSituations } from './situations.mjs'

// How long compiling takes must not matter here.
config.compileBudget = 1e9
const model = new ResNet(4)
const loss = new nn.CrossEntropyLoss()
const optimizer = new optim.SGD(model.parameters(), { lr: 0.01 })
const step = compile((images, labels) => {
  const scores = model(images)
  const error = loss(scores, labels)
  if (error.item() > 100) return error.mul(0.5)
  const confidence = torch.softmax(scores, 1).max()
  return confidence.item() > 2 ? error.mul(0.1) : error
})

function train(batch, steps) {
  const [images, labels] = [torch.randn([batch, 3, 32, 32]), torch.zeros([batch], { dtype: 'int64' })]
  for (let i = 0; i < steps; i++) {
    optimizer.zeroGrad()
    step(images, labels).backward()
    optimizer.step()
  }
}

train(2, 12)
train(3, 4)

// A graph with its backward.
const layers = new nn.Sequential(new nn.Linear(8, 16), new nn.ReLU(), new nn.Linear(16, 1))
const fit = compile((x) => layers(x).pow(2).mean())
for (let i = 0; i < 3; i++) fit(torch.randn([4, 8])).backward()

const { suppressErrors } = config
config.suppressErrors = true
const { warn } = console
console.warn = () => {}
compile(model, {
  backend: () => {
    throw new Error('this backend knows no convolutions')
  },
})(torch.randn([2, 3, 32, 32]))
console.warn = warn
config.suppressErrors = suppressErrors

runSituations(process.argv[2])

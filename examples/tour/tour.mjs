// A tour of tensorfx as a project that installed it: a model is trained, captured, rewritten, compiled, and a failing compile is shrunk.
import assert from 'node:assert/strict'
import { compile, fx, nn, optim, torch } from 'tensorfx'
import { BackendCompilerFailed } from 'tensorfx/compile'
import { minifyBackendFailure } from 'tensorfx/debug'
import { fuse } from 'tensorfx/fx/experimental'

// Tensors and gradients.
torch.manualSeed(0)
const x = torch.randn([16, 1, 8, 8])
const y = torch.tensor(Int32Array.from({ length: 16 }, (_, i) => i % 4))

// a. A model, trained by one compiled step.
const model = new nn.Sequential(
  new nn.Conv2d(1, 4, 3, { padding: 1 }),
  new nn.BatchNorm2d(4),
  new nn.ReLU(),
  new nn.MaxPool2d(2),
  new nn.Flatten(),
  new nn.Linear(64, 4),
)
const optimizer = new optim.AdamW(model.parameters(), { lr: 0.01 })
const step = compile((images, labels) => {
  optimizer.zeroGrad()
  const loss = torch.nn.functional.crossEntropy(model(images), labels)
  loss.backward()
  optimizer.step()
  return loss.detach()
})
const first = step(x, y).item()
let last = first
for (let i = 0; i < 30; i++) last = step(x, y).item()
assert(last < first / 2)
console.log(`a. trained: loss ${first.toFixed(3)} -> ${last.toFixed(3)}`)

// b. The model as a graph, rewritten.
model.eval()
const traced = fx.symbolicTrace(model)
const folded = fuse(model)
assert(folded.graph.nodes.length < traced.graph.nodes.length)
assert(torch.allclose(folded(x), model(x), { atol: 1e-4 }))
console.log(`b. batch norm folded: ${traced.graph.nodes.length} -> ${folded.graph.nodes.length} nodes\n${folded.code}`)

// c. Compiled to fused kernels.
const fast = compile(folded)
assert(
  torch.allclose(
    torch.noGrad(() => fast(x)),
    folded(x),
    { atol: 1e-4 },
  ),
)
console.log(
  `c. kernels: ${fast
    .kernels()
    .map((k) => k.ops.join('+'))
    .join(' | ')}`,
)

// d. A backend that fails on relu, and what remains of the graph.
let graph = null
const broken = compile(folded, { backend: 'relu_compile_error_TESTING_ONLY', onGraph: (gm, inputs) => (graph = { gm, inputs: [...inputs] }) })
assert.throws(() => torch.noGrad(() => broken(x)), BackendCompilerFailed)
const small = await minifyBackendFailure(graph.gm, graph.inputs, { backend: 'relu_compile_error_TESTING_ONLY', print: () => {} })
assert.equal(small.gm.graph.nodes.length, 3)
console.log(`d. the failure in ${small.gm.graph.nodes.length} nodes, found in ${small.queries} queries:\n${small.gm.graph}`)

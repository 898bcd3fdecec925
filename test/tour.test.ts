// A tour of tensorfx: train with a compiled step, trace and rewrite, compile to kernels, shrink a failing compile.
import { expect, it } from 'vitest'
import { compile, fx, nn, optim, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { BackendCompilerFailed, withConfig } from 'tensorfx/compile'
import { AccuracyError, MemoryFileStore, minifyBackendFailure, setFileStore, setLogSink } from 'tensorfx/debug'
import type { GraphModule } from 'tensorfx/fx'
import { fuse } from 'tensorfx/fx/experimental'

torch.manualSeed(0)
const images = torch.randn([16, 1, 8, 8])
const labels = torch.tensor(Int32Array.from({ length: 16 }, (_, i) => i % 4))
const model = new nn.Sequential(
  new nn.Conv2d(1, 4, 3, { padding: 1 }),
  new nn.BatchNorm2d(4),
  new nn.ReLU(),
  new nn.MaxPool2d(2),
  new nn.Flatten(),
  new nn.Linear(64, 4),
)
const run = (x: Tensor): Tensor => model.call(x) as Tensor

it('a. a whole training step is one compiled function, and learns', () => {
  const optimizer = new optim.AdamW(model.parameters(), { lr: 0.01 })
  const step = compile((x: Tensor, y: Tensor) => {
    optimizer.zeroGrad()
    const loss = torch.nn.functional.crossEntropy(run(x), y)
    loss.backward()
    optimizer.step()
    return loss.detach()
  })
  const first = step(images, labels).item() as number
  let last = first
  for (let i = 0; i < 40; i++) last = step(images, labels).item() as number
  expect(last).toBeLessThan(first / 2)
  expect(step.graphs().length).toBeLessThanOrEqual(2)
})

it('b. the model is a graph that reads like code, and batch norm folds into the convolution', () => {
  model.eval()
  const traced = fx.symbolicTrace(model)
  expect([...traced.graph.nodes].map((n) => n.op)).toEqual(['placeholder', ...Array.from({ length: 6 }, () => 'call_module'), 'output'])
  const folded = fuse(model)
  expect(folded.graph.nodes.length).toBe(traced.graph.nodes.length - 1)
  expect(torch.allclose(folded.forward(images) as Tensor, run(images), { atol: 1e-4 })).toBe(true)
})

it('c. compiled, it runs as fused kernels with the same result', () => {
  const folded = fuse(model)
  const fast = compile((x: Tensor) => folded.forward(x) as Tensor)
  expect(
    torch.allclose(
      torch.noGrad(() => fast(images)),
      run(images),
      { atol: 1e-4 },
    ),
  ).toBe(true)
  expect(fast.kernels().some((k) => k.ops.includes('convolution') && k.ops.includes('relu'))).toBe(true)
})

it('d. a backend that is wrong on relu is caught, and shrunk to that relu', async () => {
  const folded = fuse(model)
  const f = (x: Tensor): Tensor => folded.forward(x) as Tensor
  const files = setFileStore(new MemoryFileStore())
  const sink = setLogSink(() => {})
  try {
    const checked = compile(f, { backend: 'relu_accuracy_error_TESTING_ONLY' })
    expect(() => withConfig({ reproAfter: 'dynamo', reproLevel: 4 }, () => torch.noGrad(() => checked(images)))).toThrow(AccuracyError)

    let graph: { gm: GraphModule; inputs: readonly unknown[] } | null = null
    const failing = compile(f, { backend: 'relu_compile_error_TESTING_ONLY', onGraph: (gm, inputs) => (graph = { gm, inputs: [...inputs] }) })
    expect(() => torch.noGrad(() => failing(images))).toThrow(BackendCompilerFailed)
    const { gm, inputs } = graph as unknown as { gm: GraphModule; inputs: readonly unknown[] }
    const small = await minifyBackendFailure(gm, inputs, { backend: 'relu_compile_error_TESTING_ONLY', isolate: false, print: () => {} })
    expect(String(small.gm.graph)).toMatch(
      /^graph\(\):\n {4}%\w+ : \[num_users=1\] = placeholder\[target=\w+\]\n {4}%relu : \[num_users=1\] = call_function\[target=torch\.relu\]/,
    )
    expect(small.gm.graph.nodes.length).toBe(3)
  } finally {
    setFileStore(files)
    setLogSink(sink)
  }
})

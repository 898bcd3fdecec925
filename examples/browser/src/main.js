// The parts of the demo, small, in a page.
import { compile, fx, nn, optim, torch } from 'tensorfx'
import { withConfig } from 'tensorfx/compile'
import { AccuracyError, compareBackends, minifyBackendFailure, setLogSink, workerHelper } from 'tensorfx/debug'
import { fuse } from 'tensorfx/fx/experimental'
import { init } from 'tensorfx/webgpu'
import digits from 'virtual:digits'
import { parseDigits } from '../../data/digits.mjs'

const results = {}
globalThis.results = results

/** Fills a section; a part that throws is shown as failed. */
async function part(id, run) {
  const section = document.getElementById(id)
  try {
    const { summary, details } = await run()
    section.querySelector('p').textContent = summary
    if (details !== undefined) section.append(Object.assign(document.createElement('pre'), { textContent: details }))
    section.classList.add('ok')
    results[id] = { ok: true, summary }
  } catch (error) {
    section.querySelector('p').textContent = String(error?.stack ?? error)
    section.classList.add('failed')
    results[id] = { ok: false, summary: String(error?.stack ?? error) }
  }
  // Let the page paint between parts.
  await new Promise((resolve) => setTimeout(resolve))
}

/**
 * Median milliseconds of one call without gradients. Both functions are warm, and take turns; a round has 100 calls, because a page's clock ticks in tenths
 * of a millisecond. Between rounds the page gets a turn: measured in one synchronous loop, eager was some ten times slower here until the page had
 * had its first turn, which says nothing about the kernels.
 */
async function sideBySide(functions) {
  const calls = 100
  const times = functions.map(() => [])
  for (let round = 0; round < 31; round++) {
    for (const [f, fn] of functions.entries()) {
      await new Promise((resolve) => setTimeout(resolve, 5))
      const start = performance.now()
      torch.noGrad(() => {
        for (let i = 0; i < calls; i++) fn()
      })
      if (round >= 10) times[f].push((performance.now() - start) / calls)
    }
  }
  return times.map((list) => list.sort((a, b) => a - b)[10])
}

const model = new nn.Sequential(
  new nn.Conv2d(1, 8, 3, { padding: 1 }),
  new nn.BatchNorm2d(8),
  new nn.ReLU(),
  new nn.MaxPool2d(2),
  new nn.Flatten(),
  new nn.Linear(128, 10),
)
let test
let fused

await part('a', async () => {
  const { train, test: held } = parseDigits(digits)
  test = [torch.tensor(held.images).reshape([held.count, 1, 8, 8]), torch.tensor(held.labels)]
  const optimizer = new optim.AdamW(model.parameters(), { lr: 4e-3 })
  const step = compile((x, y) => {
    optimizer.zeroGrad()
    const loss = torch.nn.functional.crossEntropy(model(x), y)
    loss.backward()
    optimizer.step()
    return loss.detach()
  })
  const start = performance.now()
  let loss = 0
  let steps = 0
  for (let epoch = 0; epoch < 4; epoch++) {
    for (let at = 0; at + 32 <= train.count; at += 32) {
      const x = torch.tensor(train.images.subarray(at * 64, (at + 32) * 64)).reshape([32, 1, 8, 8])
      loss = step(x, torch.tensor(train.labels.subarray(at, at + 32))).item()
      steps++
    }
    await new Promise((resolve) => setTimeout(resolve))
  }
  model.eval()
  const accuracy = torch.noGrad(() => model(test[0]).argmax(1).eq(test[1]).to('float32').mean().item())
  if (!(accuracy > 0.9)) throw new Error(`accuracy is only ${accuracy}`)
  return {
    summary: `${steps} steps in ${((performance.now() - start) / 1000).toFixed(1)} s, loss ${loss.toFixed(3)}, test accuracy ${(100 * accuracy).toFixed(1)}%`,
  }
})

await part('b', async () => {
  const traced = fx.symbolicTrace(model)
  fused = fuse(model)
  const difference = torch.noGrad(() => model(test[0]).sub(fused(test[0])).abs().max().item())
  if (difference > 1e-3) throw new Error(`the fused model differs by ${difference}`)
  return {
    summary: `${traced.graph.nodes.length} nodes -> ${fused.graph.nodes.length}; largest difference on the test set ${difference.toExponential(1)}`,
    details: `${traced.graph.printTabular({ print: false })}\n\n${fused.code}`,
  }
})

await part('c', async () => {
  const images = test[0].narrow(0, 0, 32).contiguous()
  const fast = compile(fused)
  const difference = torch.noGrad(() => fast(images).sub(fused(images)).abs().max().item())
  if (difference > 1e-3) throw new Error(`the compiled model differs by ${difference}`)
  const [eager, compiled] = await sideBySide([() => fused(images), () => fast(images)])
  return {
    summary: `batch of 32: eager ${eager.toFixed(3)} ms, compiled ${compiled.toFixed(3)} ms: ${(eager / compiled).toFixed(1)}x`,
    details: fast
      .kernels()
      .map((k, i) => `kernel ${i}: ${k.ops.join(' + ')}`)
      .join('\n'),
  }
})

await part('d', async () => {
  const backend = 'relu_accuracy_error_TESTING_ONLY'
  const images = test[0].narrow(0, 0, 4).contiguous()
  const sink = setLogSink(() => {})
  let captured = null
  try {
    withConfig({ reproAfter: 'dynamo', reproLevel: 4 }, () => {
      const wrong = compile(fused, { backend, onGraph: (gm, inputs) => (captured = { gm: gm.deepCopy(), inputs: [...inputs] }) })
      torch.noGrad(() => wrong(images))
    })
    throw new Error('the accuracy check did not catch the wrong backend')
  } catch (error) {
    if (!(error instanceof AccuracyError)) throw error
  }
  const startHelper = workerHelper(() => new Worker(new URL('./worker.js', import.meta.url), { type: 'module' }))
  const small = await minifyBackendFailure(captured.gm, captured.inputs, {
    backend,
    accuracy: 'accuracy',
    onlyFwd: true,
    startHelper,
    print: () => {},
  })
  setLogSink(sink)
  if (!small.isolated) throw new Error(`not isolated: ${small.whyNotIsolated}`)
  if (small.gm.graph.nodes.length > 5) throw new Error(`the minimal graph has ${small.gm.graph.nodes.length} nodes`)
  return {
    summary: `AccuracyError caught; ${small.steps[0].nodes} nodes -> ${small.gm.graph.nodes.length} in ${small.queries} queries, judged in ${small.processes} workers, one after the other`,
    details: String(small.gm.graph),
  }
})

await part('e', async () => {
  const images = test[0].narrow(0, 0, 4).contiguous()
  const adapter = (await globalThis.navigator?.gpu?.requestAdapter()) ?? null
  // Max pooling has no shader: WebAssembly computes it.
  if (adapter !== null) await init({ fallback: 'wasm' })
  const backends = ['eager', 'inductor', 'onnxruntime', ...(adapter === null ? [] : ['webgpu', 'onnxruntime:webgpu'])]
  const result = await compareBackends(fused, [images], { backends })
  for (const row of result.rows)
    for (const name of backends)
      if (row.alone.get(name)?.status !== 'ok')
        throw new Error(`${row.node.name} on ${name}: ${row.alone.get(name)?.reason ?? 'differs'}\n${String(result)}`)
  if (result.first !== null || result.notes.length > 0) throw new Error(String(result))
  const errors = result.rows.flatMap((row) => [...row.alone.values()].map(({ error }) => error))
  const gpu =
    adapter === null ? 'there is no WebGPU here' : `WebGPU is ${[adapter.info?.vendor, adapter.info?.architecture].filter(Boolean).join(' ')}`
  return {
    summary: `${result.rows.length} nodes on ${backends.join(', ')}: no node differs from float64, largest error ${Math.max(...errors).toExponential(1)}; ${gpu}`,
    details: String(result),
  }
})

results.done = true

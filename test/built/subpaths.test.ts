// Each subpath of the built package, imported alone in a fresh process, does its main job. Every other one, the others on the next day, since each loads hundreds of modules.
import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { half } from '../helpers/rotation.ts'
import { node, root } from './node.ts'

/** A program that imports one subpath only, and what it prints. */
const programs: Readonly<Record<string, readonly [code: string, printed: string]>> = {
  '.': [
    `import { torch } from 'tensorfx'
     const x = torch.tensor([1, -2], { requiresGrad: true })
     torch.relu(x).sum().backward()
     console.log(JSON.stringify(x.grad.toArray()))`,
    '[1,0]',
  ],
  './nn': [
    `import { Linear } from 'tensorfx/nn'
     const layer = new Linear(2, 3)
     console.log(JSON.stringify(layer.call(layer.weight).shape), layer.weight.requiresGrad)`,
    '[3,3] true',
  ],
  './optim': [
    `import { SGD } from 'tensorfx/optim'
     const { parameter } = await import('./test/built/parts.mjs')
     const weight = parameter([1, 2])
     weight.mul(weight).sum().backward()
     new SGD([weight], { lr: 0.25 }).step()
     console.log(JSON.stringify(weight.toArray()))`,
    '[0.5,1]',
  ],
  './webgpu': [
    `import { DeviceError, DeviceReadError, compileGraph, stats } from 'tensorfx/webgpu'
     console.log(typeof compileGraph, stats(), DeviceReadError.prototype instanceof Error, DeviceError.name)`,
    'function null true DeviceError',
  ],
  './native': [
    `import { ready, stats } from 'tensorfx/native'
     await ready()
     console.log(JSON.stringify(stats()))`,
    '{"compiler":null,"compiled":0,"found":0,"modules":{"made":0,"found":0},"graphs":{"made":0,"found":0},"pending":0,"kernels":[]}',
  ],
  './native/register': [
    `import 'tensorfx/native/register'
     import { torch } from 'tensorfx'
     console.log(torch.ones([2]).add(1).toArray().join())`,
    '2,2',
  ],
  './func': [
    `import { grad, jacrev, vmap } from 'tensorfx/func'
     const { tensor } = await import('./test/built/parts.mjs')
     const cube = (x) => x.mul(x).mul(x).sum()
     console.log(JSON.stringify([grad(cube)(tensor([1, 2])).toArray(), vmap(grad(cube))(tensor([1, 2])).toArray(), jacrev((x) => x.mul(x))(tensor([3])).toArray()]))`,
    '[[3,12],[3,12],[[6]]]',
  ],
  './autograd': [
    `import { checkpoint, functional, gradcheck } from 'tensorfx/autograd'
     const { tensor } = await import('./test/built/parts.mjs')
     const x = tensor([1, 2], { dtype: 'float64', requiresGrad: true })
     checkpoint((a) => a.sin().mul(a), x).sum().backward()
     console.log(gradcheck((a) => a.sin(), [x]), JSON.stringify(functional.vjp((a) => a.mul(a), tensor([3]), tensor([1]))[1].toArray()), x.grad.shape.length)`,
    'true [6] 1',
  ],
  './ops': [
    `import { allOps, opByName } from 'tensorfx/ops'
     const { tensor } = await import('./test/built/parts.mjs')
     console.log(allOps().length > 150, JSON.stringify(opByName('torch.relu').fn(tensor([-1, 1])).toArray()))`,
    'true [0,1]',
  ],
  './core': [
    `import { tensor } from 'tensorfx/core'
     console.log(JSON.stringify(tensor([[1, -2]]).relu().matmul(tensor([[3], [4]])).toArray()), 'det' in tensor([[1]]))`,
    '[[3]] false',
  ],
  ...Object.fromEntries(
    Object.entries({
      linalg: 'tensor([[2, 1], [1, 2]]).det().item()',
      special: 'tensor([1]).lgamma().item()',
      image: "lookup('torch.nn.functional.pixel_shuffle')(tensor([[[[1]], [[2]], [[3]], [[0]]]]), 2).shape[3] - 2",
      losses: "lookup('torch.nn.functional.mse_loss')(tensor([1]), tensor([1])).item()",
      complex: 'tensor([{ re: 1, im: 2 }]).mul(tensor({ re: 0, im: 1 })).real().item() + 2',
      fft: "lookup('torch.fft.rfft')(tensor([1, -1])).real().getitem([0]).item()",
      random: 'tensor([1, 1]).bernoulli().sum().item() - 2',
      statistics: 'tensor([3, 1, 2]).median().item() - 2',
      indexing: "tensor([1, 2]).getitem([tensor([0], { dtype: 'int64' })]).item() - 1",
      others: 'tensor([1]).newZeros([1]).item()',
      aliases: 'tensor([-1]).absolute().item() - 1',
    }).map(([group, value]) => [
      `./ops/${group}`,
      [
        `import { tensor } from 'tensorfx/core'
         import 'tensorfx/ops/${group}'
         import { opByName } from './dist/ops/define/table.js'
         const lookup = (name) => opByName(name).fn
         console.log(${value})`,
        group === 'linalg' ? '3' : '0',
      ] as const,
    ]),
  ),
  './dispatch': [
    `import { RecordMode, withMode } from 'tensorfx/dispatch'
     const { tensor } = await import('./test/built/parts.mjs')
     const mode = new RecordMode()
     withMode(mode, () => tensor([-1, 1]).relu())
     console.log(mode.calls.map((call) => call.op.name).join(' '))`,
    'relu',
  ],
  './fx': [
    `import { symbolicTrace } from 'tensorfx/fx'
     const gm = symbolicTrace((x) => x.add(1))
     console.log(gm.call({ add: (n) => 41 + n }), gm.graph.nodes.length, gm.code.includes('x.add(1)'), String(gm.graph).includes('%x'))`,
    '42 3 true true',
  ],
  './fx/passes': [
    `import { ShapeProp } from 'tensorfx/fx/passes'
     const { addable, graphModule } = await import('./test/built/parts.mjs')
     const gm = graphModule()
     console.log(new ShapeProp(gm).propagate(addable(3)), gm.graph.outputNode().meta.type)`,
    '4 number',
  ],
  './fx/experimental/unification': [
    `import { Var, unify } from 'tensorfx/fx/experimental/unification'
     console.log(String(unify([1, Var('x')], [Var('y'), 2])))`,
    '{~y: 1, ~x: 2}',
  ],
  './fx/experimental/migrateGradualTypes': [
    `import { Int, sameInt, solve } from 'tensorfx/fx/experimental/migrateGradualTypes'
     const { status, solver, model } = await solve(sameInt(Int('a'), 3))
     console.log(status, solver, model.int(Int('a')))`,
    'sat z3 3',
  ],
  './checkpoint': [
    `import { Linear } from 'tensorfx/nn'
     import { checkpointBlob, loadCheckpoint } from 'tensorfx/checkpoint'
     const blob = checkpointBlob({ model: new Linear(2, 3), extra: { step: 4 } })
     console.log(JSON.stringify((await loadCheckpoint(blob, { model: new Linear(2, 3) })).extra))`,
    '{"step":4}',
  ],
  './distributions': [
    `import { Normal, klDivergence } from 'tensorfx/distributions'
     console.log(klDivergence(new Normal(0, 1), new Normal(1, 1)).item())`,
    '0.5',
  ],
  './train': [
    `import { Linear } from 'tensorfx/nn'
     import { SGD } from 'tensorfx/optim'
     import { fit } from 'tensorfx/train'
     const { tensor } = await import('./test/built/parts.mjs')
     const model = new Linear(2, 1)
     const step = (model, x) => ({ loss: model(x).square().sum() })
     const { history } = await fit({ model, optimizer: new SGD(model.parameters(), { lr: 0.1 }), data: [tensor([[1, 1]])], step, epochs: 2, log: false })
     console.log(history.length, history[1].values.loss < history[0].values.loss)`,
    '2 true',
  ],
  './models': [
    `import { GPT2, generate, loadPretrained, pretrainedBlob } from 'tensorfx/models'
     const { tensor } = await import('./test/built/parts.mjs')
     const model = new GPT2({ vocabSize: 8, nPositions: 8, nEmbd: 8, nLayer: 1, nHead: 2 })
     const tokens = tensor([[1, 2]], { dtype: 'int64' })
     const [once, again] = [model, await loadPretrained(pretrainedBlob(model))].map((one) => JSON.stringify(generate(one, tokens, { maxNewTokens: 3 }).toArray().map((row) => row.map(Number))))
     console.log(once.length > 8, once === again)`,
    'true true',
  ],
  './vision': [
    `import { Resize, toImage } from 'tensorfx/vision'
     console.log(new Resize(2)(toImage({ width: 4, height: 4, data: new Uint8Array(64).fill(7) })).shape.join())`,
    '3,2,2',
  ],
  './data': [
    `import { DataLoader, TensorDataset } from 'tensorfx/data'
     const { tensor } = await import('./test/built/parts.mjs')
     for await (const [x] of new DataLoader(new TensorDataset(tensor([[1], [2], [3]])), { batchSize: 2, numWorkers: 1 })) console.log(JSON.stringify(x.toArray()))`,
    '[[1],[2]]\n[[3]]',
  ],
  './distributed/fsdp': [
    `import { Linear } from 'tensorfx/nn'
     import { initProcessGroup } from 'tensorfx/distributed'
     import { FullyShardedDataParallel, describeUnits } from 'tensorfx/distributed/fsdp'
     await initProcessGroup({ backend: 'fake', worldSize: 2, rank: 1 })
     const model = new FullyShardedDataParallel(new Linear(2, 3))
     console.log(JSON.stringify(describeUnits(model)[0].layout.names), describeUnits(model)[0].localShard.shape[0])`,
    '["weight","bias"] 5',
  ],
  './distributed': [
    `import { allReduce, destroyProcessGroup, getWorldSize, initProcessGroup } from 'tensorfx/distributed'
     import { torch } from 'tensorfx'
     await initProcessGroup({ backend: 'single' })
     const x = torch.ones([2])
     allReduce(x)
     console.log(getWorldSize(), x.toArray().join(' '))
     destroyProcessGroup()`,
    '1 1 1',
  ],
  './fx/json': [
    `import { graphFromJson, graphToJson } from 'tensorfx/fx/json'
     const { graphModule } = await import('./test/built/parts.mjs')
     console.log(String(graphFromJson(graphToJson(graphModule().graph), { trust: 'code' })).includes('call_method[target=add]'))`,
    'true',
  ],
  './fx/viewer': [
    `import { graphPage } from 'tensorfx/fx/viewer'
     const { graphModule } = await import('./test/built/parts.mjs')
     const head = graphPage(graphModule()).split('<script')[0]
     console.log(head.split('\\n').filter((line) => /^<(!doctype|title)/.test(line)).join(' '))`,
    '<!doctype html> <title>GraphModule</title>',
  ],
  './fx/experimental': [
    `import { splitConstSubgraphs } from 'tensorfx/fx/experimental'
     const { addable, graphModule } = await import('./test/built/parts.mjs')
     console.log(splitConstSubgraphs(graphModule()).call(addable(41)))`,
    '42',
  ],
  './compile': [
    `import { compile } from 'tensorfx/compile'
     const { tensor } = await import('./test/built/parts.mjs')
     const f = compile((x) => x.relu().add(1))
     console.log(JSON.stringify(f(tensor([-1, 1])).toArray()), f.kernels().length)`,
    '[1,2] 1',
  ],
  './library': [
    `import { customOp, opcheck } from 'tensorfx/library'
     const { tensor } = await import('./test/built/parts.mjs')
     const forward = (x) => tensor(x.toArray().map((v) => v * 2))
     const twice = customOp('subpaths::twice', { schema: '(Tensor x) -> Tensor', forward, fake: (x) => x.clone(), backward: (ctx, g) => ({ x: g.mul(2) }) })
     console.log(Object.values(opcheck(twice, [[tensor([1, 2]).requiresGrad_()]])).join(' '))`,
    'SUCCESS SUCCESS SUCCESS SUCCESS SUCCESS SUCCESS',
  ],
  './aot': [
    `import { makeFx } from 'tensorfx/aot'
     const { tensor } = await import('./test/built/parts.mjs')
     const gm = makeFx((x) => x.mul(2).relu())(tensor([-1, 1]))
     console.log(gm.graph.nodes.length, JSON.stringify(gm.call(tensor([-1, 2])).toArray()))`,
    '4 [0,4]',
  ],
  './inductor': [
    `import { compileFx } from 'tensorfx/inductor'
     const { makeFx, tensor } = await import('./test/built/parts.mjs')
     const x = tensor([-1, 1])
     const run = compileFx(makeFx((x) => [x.mul(2).relu()])(x), [x])
     console.log(JSON.stringify(run(tensor([-1, 3]))[0].toArray()))`,
    '[0,6]',
  ],
  './interop': [
    `import { readSafetensors, writeSafetensors } from 'tensorfx/interop'
     const { tensor } = await import('./test/built/parts.mjs')
     const { tensors } = readSafetensors(writeSafetensors([['w', tensor([1, 2])]]))
     console.log(JSON.stringify(tensors.get('w').mul(2).toArray()))`,
    '[2,4]',
  ],
  './interop/onnx': [
    `import { toOnnx } from 'tensorfx/interop/onnx'
     const { graphModule, tensor } = await import('./test/built/parts.mjs')
     console.log(JSON.stringify([...toOnnx(graphModule(), { inputs: [tensor([1, 2])] }).operators]))`,
    '[["Add",1],["Identity",1]]',
  ],
  './debug': [
    `import { minifyBackendFailure, setLogSink } from 'tensorfx/debug'
     const { makeFx, tensor } = await import('./test/built/parts.mjs')
     setLogSink(() => {})
     const x = tensor([-1, 1])
     const gm = makeFx((x) => [x.mul(2).relu().add(1).neg()])(x)
     const small = await minifyBackendFailure(gm, [x], { backend: 'relu_compile_error_TESTING_ONLY', print: () => {} })
     console.log(small.gm.graph.nodes.length, small.isolated)
     process.exit()`,
    '3 true',
  ],
  // A thread of Node with the two names that the worker of a page has.
  './debug/worker': [
    `import { Worker } from 'node:worker_threads'
     import { minifyBackendFailure, workerHelper } from 'tensorfx/debug'
     const { makeFx, tensor } = await import('./test/built/parts.mjs')
     const script = \`import { parentPort } from 'node:worker_threads'
       globalThis.postMessage = (message) => parentPort.postMessage(message)
       await import('\${import.meta.resolve('tensorfx/debug/worker')}')
       parentPort.on('message', (data) => globalThis.onmessage({ data }))\`
     const startHelper = workerHelper(() => {
       const thread = new Worker(new URL('data:text/javascript,' + encodeURIComponent(script)))
       const worker = { postMessage: (message) => thread.postMessage(message), terminate: () => thread.terminate(), onmessage: null, onerror: null }
       thread.on('message', (data) => worker.onmessage({ data }))
       thread.on('error', (error) => worker.onerror(error))
       return worker
     })
     const x = tensor([-1, 1])
     const gm = makeFx((x) => [x.mul(2).relu().add(1).neg()])(x)
     const small = await minifyBackendFailure(gm, [x], { backend: 'relu_compile_error_TESTING_ONLY', startHelper, print: () => {} })
     console.log(small.gm.graph.nodes.length, small.isolated, small.processes)
     process.exit()`,
    '3 true 2',
  ],
  './debug/trace': [
    `import { torch } from 'tensorfx'
     import { compile } from 'tensorfx/compile'
     import { reportPage, trace } from 'tensorfx/debug/trace'
     const running = trace()
     compile((x) => x.mul(2).relu(), { trace: running })(torch.ones([2]))
     running.end()
     console.log(running.records().some(({ kind }) => kind === 'kernel'), reportPage(running).startsWith('<!doctype html>'))`,
    'true true',
  ],
  './kernels': [
    `import { ModuleBuilder } from 'tensorfx/kernels'
     const module = new ModuleBuilder()
     const f = module.function(['i32', 'i32'], ['i32'], 'add')
     f.get(0)
     f.get(1)
     f.op('i32.add')
     console.log(new WebAssembly.Instance(new WebAssembly.Module(module.finish())).exports.add(40, 2))`,
    '42',
  ],
  './rewriter': [
    `import { RewritingTracer } from 'tensorfx/rewriter'
     try {
       new RewritingTracer().trace((x) => (x.gt(0) ? x : x.neg()))
     } catch (error) {
       console.log(error.name)
     }`,
    'TraceError',
  ],
  './rewriter/runtime': [
    `import { runtime } from 'tensorfx/rewriter/runtime'
     console.log(runtime.same(1, 1), runtime.bool(''))`,
    'true false',
  ],
  './register': [
    `import 'tensorfx/register'
     const { first } = await import('data:text/javascript,export const first = (a, b) => a || b')
     console.log(first(0, 2))`,
    '2',
  ],
  './lint-rules': [
    `import plugin from 'tensorfx/lint-rules'
     console.log(plugin.meta.name, Object.keys(plugin.rules).length === Object.keys(plugin.configs.recommended.rules).length)`,
    'tensorfx true',
  ],
  './pytree': [
    `import { treeFlatten, treeUnflatten } from 'tensorfx/pytree'
     const { leaves, spec } = treeFlatten({ a: [1, 2], b: 3 })
     console.log(leaves.length, JSON.stringify(treeUnflatten(leaves, spec)))`,
    '3 {"a":[1,2],"b":3}',
  ],
}

it('each subpath has a program here', () => {
  const { exports } = JSON.parse(readFileSync(`${root}package.json`, 'utf8')) as { readonly exports: Readonly<Record<string, unknown>> }
  expect(Object.keys(programs).sort()).toEqual(
    Object.keys(exports)
      .filter((name) => name !== './package.json')
      .sort(),
  )
})

it.each(half(Object.entries(programs)))('%s', (_, [code, printed]) => {
  expect(node(code)).toBe(printed)
})

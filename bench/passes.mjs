// node bench/passes.mjs: how the time of every pass grows with the graph. Run `npm run build` first; test/fx/passes/longGraphs.test.ts runs each pass once.
import { fileURLToPath } from 'node:url'
import { fx, nn, torch } from 'tensorfx'
import { DecompositionInterpreter, FakeTensorProp, decomposeGraph, makeFx, reinplace } from 'tensorfx/aot'
import * as experimental from 'tensorfx/fx/experimental'
import * as passes from 'tensorfx/fx/passes'

const { operator } = fx
const x = torch.ones([2, 4]).div(8)

/** n calls of operators and layers, which read the last value and earlier ones; every value has the shape [2, 4]. */
export function model(n) {
  const graph = new fx.Graph()
  const values = [graph.placeholder('x')]
  for (let i = 0; i < n; i++) {
    const [last, earlier] = [values[i], values[Math.max(0, i - ((i * 7919) % 40))]]
    const make = [
      () => graph.callFunction(torch.relu, [last]),
      () => graph.callFunction(operator.add, [last, earlier]),
      () => graph.callModule('lin', [last]),
      () => graph.callModule('norm', [last]),
      () => graph.callMethod('mul', [last, 0.5]),
      () => graph.callModule('drop', [last]),
      () => graph.callFunction(torch.sin, [earlier]),
      () => graph.callFunction(torch.sin, [earlier]),
    ]
    values.push(make[i % make.length]())
  }
  graph.output(values.at(-1))
  return new fx.GraphModule({ lin: new nn.Linear(4, 4), norm: new nn.BatchNorm1d(4), drop: new nn.Dropout() }, graph, 'Long').eval()
}

/** n products of an input with one of two others, added up. */
function products(n) {
  const graph = new fx.Graph()
  const [left, ...right] = ['x', 'a', 'b'].map((name) => graph.placeholder(name))
  let sum = left
  for (const product of Array.from({ length: n }, (_, i) => graph.callFunction(torch.matmul, [left, right[i % 2]])))
    sum = graph.callFunction(operator.add, [sum, product])
  graph.output(sum)
  return new fx.GraphModule({}, graph)
}

const calls = (gm) => [...gm.graph.nodes].filter((node) => node.op.startsWith('call_'))

/** Every eighth node is not supported. */
const support = passes.createOpSupport((_, node) => node.op !== 'call_method')

function tagged(gm) {
  for (const [i, node] of calls(gm).entries()) node.meta.tag = `part${Math.floor(i / 100)}`
  return gm
}

function shaped(gm) {
  new passes.ShapeProp(gm).propagate(x)
  return gm
}

function sized(gm) {
  passes.getSizeOfAllNodes(gm, [x])
  return gm
}

const functional = (n) =>
  makeFx((v) => {
    let y = v
    for (let i = 0; i < n; i++) y = i % 2 === 0 ? y.sin() : y.add(1)
    return y
  })(x)

const devices = (gm, count) => {
  const total = [...passes.getSizeOfAllNodes(gm, [x]).values()].reduce((sum, { totalSize }) => sum + totalSize, 0)
  return Array.from({ length: count }, (_, logicalId) => ({ name: `d${logicalId}`, availableMemBytes: Math.ceil((total * 1.2) / count), logicalId }))
}

const layout = {
  enter: (v) => v.contiguous(),
  leave: (v) => v.contiguous(),
  supports: (node) => node.op === 'call_module',
  follows: (node) => node.target === operator.add,
  heuristic: (region) => region.nodes.length % 2 === 0,
}

function withoutDeadCode(n) {
  const gm = model(n)
  gm.graph.eliminateDeadCode()
  gm.recompile()
  return gm
}

/** Only layers of the book that says what a backend needs of them. */
function replaced(gm) {
  for (const name of ['norm', 'drop']) gm.addSubmodule(name, new nn.ReLU())
  return gm
}

const quiet = { print: () => {} }

/** A pass by name: what makes its input, and the pass. */
export const cases = [
  ['annotateGetitemNodes', model, (gm) => passes.annotateGetitemNodes(gm.graph)],
  [
    'partitionByDevice',
    (n) => shaped(model(n)),
    (gm) => passes.partitionByDevice(gm, 'gpu', { deviceOf: (node) => (node.name.length % 3 === 0 ? 'cpu' : 'gpu') }),
  ],
  ['CSEPass', model, (gm) => new passes.CSEPass().run(gm)],
  ['FakeTensorProp', model, (gm) => new FakeTensorProp(gm).propagate(x)],
  ['ShapeProp', model, shaped],
  ['FxGraphDrawer', (n) => shaped(model(n)), (gm) => String(new passes.FxGraphDrawer(gm, 'long').getDotGraph())],
  ['getSizeOfAllNodes', model, (gm) => passes.getSizeOfAllNodes(gm, [x])],
  ['replaceTargetNodesWith', model, (gm) => passes.replaceTargetNodesWith(gm, 'call_function', torch.sin, 'call_function', torch.cos)],
  ['CapabilityBasedPartitioner', model, (gm) => new passes.CapabilityBasedPartitioner(gm, support).partitionAndFuse()],
  ['fuseByPartitions', model, (gm) => passes.fuseByPartitions(gm, [calls(gm).slice(0, -10)])],
  ['validatePartition', model, (gm) => passes.validatePartition(calls(gm))],
  ['topoSort', model, (gm) => passes.topoSort(calls(gm).reverse())],
  ['legalizeGraph', model, passes.legalizeGraph],
  ['stableTopologicalSort', model, passes.stableTopologicalSort],
  [
    'MinimizerBase, binary',
    model,
    (gm) =>
      new passes.MinimizerBase(gm, [x], () => [0, true], {
        runA: (part, args) => part.call(...args),
        runB: (part, args) => part.call(...args),
        settings: { traverseMethod: 'binary' },
        ...quiet,
      }).minimize(),
  ],
  ['FxNetAccFusionsFinder', (n) => shaped(model(n)), (gm) => new passes.FxNetAccFusionsFinder(gm, new Set(calls(gm))).run()],
  ['liftLoweringAttrsToNodes', (n) => replaced(model(n)), passes.liftLoweringAttrsToNodes],
  [
    'splitModule',
    model,
    (gm) => {
      const part = new Map(calls(gm).map((node, i) => [node, Math.floor(i / 100)]))
      return passes.splitModule(gm, (node) => part.get(node) ?? 0)
    },
  ],
  ['splitByTags', (n) => tagged(model(n)), (gm) => passes.splitByTags(gm, [...new Set(calls(gm).map((node) => node.meta.tag))])],
  ['SplitterBase', model, (gm) => new passes.SplitterBase(gm, [x], support, quiet).run()],
  ['liftSubgraphAsModule', model, (gm) => passes.liftSubgraphAsModule(gm, gm.graph.deepCopy())],
  ['areIsomorphic', withoutDeadCode, (gm) => passes.areIsomorphic(gm.graph, gm.graph.deepCopy())],
  ['getSourcePartitions', functional, (gm) => passes.getSourcePartitions(gm.graph, [torch.sin, torch.add])],
  [
    'runPasses',
    model,
    (gm) => passes.runPasses([passes.cse, passes.deadCode, passes.legalize, passes.mergeAttributeReads, passes.unusedSubmodules], gm),
  ],
  [
    'Partitioner, sizeBased',
    (n) => sized(model(n)),
    (gm) => new experimental.Partitioner().partitionGraph(gm, { devices: devices(gm, 4), mode: 'sizeBased' }),
  ],
  ['splitConstSubgraphs', model, (gm) => experimental.splitConstSubgraphs(gm)],
  ['mergeMatmul', products, experimental.mergeMatmul],
  ['NormalizeArgs', model, (gm) => new experimental.NormalizeArgs(gm).transform()],
  ['NormalizeOperators', model, (gm) => new experimental.NormalizeOperators(gm).transform()],
  ['AnnotateTypesWithSchema', model, (gm) => new experimental.AnnotateTypesWithSchema(gm).transform()],
  ['fuse', model, (gm) => experimental.fuse(gm)],
  ['removeDropout', model, experimental.removeDropout],
  ['extractSubgraph', model, (gm) => experimental.extractSubgraph(gm, calls(gm), gm.graph.findNodes({ op: 'placeholder' }), calls(gm).slice(-2))],
  ['applyLayout', model, (gm) => experimental.applyLayout(gm, layout)],
  ['decomposeGraph', functional, decomposeGraph],
  ['DecompositionInterpreter', model, (gm) => new DecompositionInterpreter(gm, new fx.Graph()).run(x)],
  ['reinplace', functional, (gm) => reinplace(gm, x)],
  ['makeFx', model, (gm) => makeFx(gm)(x)],
]

/** Milliseconds for a graph of n calls, the better of two runs. */
function time([, make, run], n) {
  let best = Infinity
  for (let i = 0; i < 2; i++) {
    const input = make(n)
    const start = performance.now()
    run(input)
    best = Math.min(best, performance.now() - start)
  }
  return Math.round(best)
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  console.log('| nodes | 1,000 | 10,000 | 20,000 |\n| --- | --- | --- | --- |')
  for (const item of cases) console.log(`| \`${item[0]}\` | ${[1000, 10_000, 20_000].map((n) => time(item, n)).join(' | ')} |`)
}

// The layers of src/, from bottom to top: the one list that the linter (plugin.mjs), the tests and CONTRIBUTING's table follow.
// A place is a folder of src (a room, or a wing of fx or debug) or a file that stands in src itself. It may import itself and the places that its row names;
// a name includes the folders below it, so 'fx' stands for all its wings, and '*' is all that stands before the row. Imports only go down.

const base = ['errors', 'protocol', 'provenance']
const tensors = [...base, 'pytree', 'kernels', 'tensor', 'dispatch', 'ops']
const capture = [...tensors, 'autograd', 'module', 'events', 'pipeline', 'fx']
const aot = [...capture, 'guards', 'symbols']
const kernels = (...names) => [...base, ...names.map((name) => `kernels/${name}`)]
const dynamo = (...names) => [...aot, 'nn', 'aot', 'config', ...names.map((name) => `dynamo/${name}`)]
const wings = (...names) => [...base, 'pytree', 'module', ...names.map((name) => `fx/${name}`)]
const fxCore = ['graph', 'text', 'values', 'run', 'trace']

export const layers = [
  { place: 'version', holds: 'the version of the package', imports: [] },
  { place: 'errors', holds: 'the error classes', imports: [] },
  { place: 'protocol', holds: 'override, target names, schemas, spelling of names', imports: ['errors'] },
  { place: 'provenance', holds: 'stacks and code frames', imports: ['errors', 'protocol'] },
  { place: 'symbols', holds: 'sizes as symbols: expressions, ranges, guards, `ShapeEnv`', imports: ['errors', 'protocol'] },
  { place: 'pytree', holds: 'flatten and unflatten nested values', imports: base },
  { place: 'events', holds: 'what compile does as a stream of events; its logs and counters', imports: base },
  { place: 'pipeline', holds: 'Pass and `runPasses`: order, observers, verification', imports: [...base, 'events'] },
  { place: 'kernels/numbers', holds: 'dtypes, their arithmetic and their elements as JavaScript numbers; special functions', imports: base },
  { place: 'kernels/engine', holds: 'how kernels may compute: relaxed SIMD, strict code, accuracy', imports: base },
  { place: 'kernels/wasm', holds: 'WebAssembly: an assembler, vector code, functions in SIMD; no loop IR', imports: kernels('numbers', 'engine') },
  { place: 'kernels/scalars', holds: 'the table of scalar operations: one record for each', imports: kernels('numbers', 'wasm') },
  { place: 'kernels/ir', holds: 'the loop IR: building, printing, verifying, interpreting kernels', imports: kernels('numbers', 'scalars') },
  { place: 'kernels/memory', holds: 'the heap, its budget and blocks, and what a full heap says', imports: kernels('numbers', 'engine', 'ir') },
  {
    place: 'kernels/schedules',
    holds: 'loop IR for products, convolutions, attention, resampling; no emitter',
    imports: kernels('numbers', 'engine', 'ir'),
  },
  { place: 'kernels/emit', holds: 'loop IR as WebAssembly', imports: kernels('numbers', 'engine', 'wasm', 'scalars', 'ir') },
  {
    place: 'kernels/threads',
    holds: 'kernels in parts that threads share, and the pool of workers',
    imports: kernels('numbers', 'engine', 'scalars', 'ir', 'memory', 'schedules', 'emit'),
  },
  { place: 'kernels/wgsl', holds: 'loop IR as shader text for WebGPU; no device', imports: kernels('numbers', 'wasm', 'scalars', 'ir') },
  {
    place: 'kernels/c',
    holds: 'loop IR as C, with the bits of WebAssembly; no compiler',
    imports: kernels('numbers', 'wasm', 'scalars', 'ir', 'emit'),
  },
  { place: 'kernels/run', holds: 'kernels compiled, cached and called', imports: [...base, 'kernels'] },
  { place: 'kernels', holds: 'the names that other rooms import', imports: [...base, 'kernels'] },
  {
    place: 'native',
    holds: 'kernels as machine code, by the C compiler of the machine; results kept for later processes; Node only',
    imports: [...base, 'version', 'kernels'],
  },
  { place: 'config', holds: 'settings of compile, the debugger and memory', imports: [...base, 'kernels'] },
  { place: 'formats', holds: 'files of tensors as bytes: safetensors, torch.save; no tensors', imports: [...base, 'kernels'] },
  { place: 'tensor', holds: 'Tensor, storage, printing, random generator', imports: [...base, 'pytree', 'kernels'] },
  { place: 'dispatch', holds: 'the dispatcher and its modes', imports: [...base, 'kernels', 'tensor'] },
  { place: 'ops/shared', holds: 'shapes and memory formats, as operators read them', imports: tensors.slice(0, -1) },
  { place: 'ops/eager', holds: 'eager kernels: pointwise, reductions, order; types and promotion', imports: [...tensors.slice(0, -1), 'ops/shared'] },
  {
    place: 'ops/define',
    holds: '`defineOp`: from a declaration to a function, its types, its argument checks and the operator table',
    imports: [...tensors.slice(0, -1), 'ops/shared', 'ops/eager'],
  },
  { place: 'ops', holds: 'the operators, by family: one declaration each', imports: tensors },
  { place: 'autograd', holds: 'tape, engine, grad modes', imports: tensors },
  { place: 'module', holds: 'Module: parameters, buffers, children, state dict; no operators', imports: [...base, 'pytree'] },
  { place: 'fx/graph', holds: 'Node and Graph, and what they need', imports: wings() },
  { place: 'fx/text', holds: 'printing, generated code, JSON', imports: wings('graph') },
  { place: 'fx/values', holds: 'Proxy and the other values of a trace', imports: wings('graph', 'text') },
  { place: 'fx/run', holds: 'GraphModule and Interpreter', imports: wings('graph', 'text', 'values') },
  { place: 'fx/trace', holds: 'Tracer, `symbolicTrace`, Transformer', imports: wings('graph', 'text', 'values', 'run') },
  { place: 'fx/rewrite', holds: 'patterns: matching and replacing', imports: wings(...fxCore) },
  { place: 'fx/passes/nodes', holds: 'what passes ask about nodes: calls, notes, sizes, order', imports: wings(...fxCore, 'rewrite') },
  { place: 'fx/passes/dot', holds: "graphs in Graphviz's language", imports: wings(...fxCore, 'passes/nodes') },
  {
    place: 'fx/passes/run',
    holds: 'what a pass is, and managers and observers of passes',
    imports: [...wings(...fxCore, 'passes/nodes', 'passes/dot'), 'pipeline'],
  },
  { place: 'fx/passes/each', holds: 'one file for each pass', imports: [...wings(...fxCore, 'rewrite', 'passes/nodes', 'passes/run'), 'pipeline'] },
  {
    place: 'fx/passes/split',
    holds: 'a graph in parts: by function, tags, or what a backend supports',
    imports: [...wings(...fxCore, 'rewrite', 'passes/nodes', 'passes/run', 'passes/each'), 'pipeline'],
  },
  {
    place: 'fx/passes/minimize',
    holds: 'the nodes that a backend computes wrongly',
    imports: wings(...fxCore, 'passes/nodes', 'passes/each', 'passes/split'),
  },
  { place: 'fx/passes', holds: '`tensorfx/fx/passes`: the names that users import', imports: [...wings(...fxCore, 'rewrite', 'passes'), 'pipeline'] },
  { place: 'fx/experimental', holds: "PyTorch's `fx.experimental`", imports: [...wings(...fxCore, 'rewrite', 'passes'), 'pipeline', 'symbols'] },
  {
    place: 'fx/viewer',
    holds: 'a graph or a file of weights as an HTML page',
    imports: [...wings(...fxCore, 'rewrite', 'passes'), 'kernels', 'formats'],
  },
  { place: 'fx', holds: '`tensorfx/fx`: the names that users import; no tensors in any wing', imports: wings(...fxCore, 'rewrite') },
  { place: 'controlFlow', holds: '`cond`, `whileLoop`, `scan`, `map`', imports: capture },
  { place: 'nn', holds: 'layers, losses, initialisation', imports: [...tensors, 'autograd', 'module'] },
  { place: 'optim', holds: 'optimizers and schedules', imports: [...tensors, 'autograd', 'module', 'nn'] },
  { place: 'func', holds: '`torch.func`: derivatives and vmap as functions', imports: [...tensors, 'autograd', 'module'] },
  { place: 'distributions', holds: '`torch.distributions`: samples, densities, divergences', imports: [...tensors, 'autograd'] },
  { place: 'rewriter', holds: 'rewriting of sources, so that tracers see conditions', imports: [...wings(), 'fx', 'nn'] },
  {
    place: 'guards',
    holds: 'what a recorded call relies on: one list of kinds of state',
    imports: [...base, 'pytree', 'kernels', 'tensor', 'dispatch', 'autograd', 'module'],
  },
  { place: 'aot/meta', holds: 'what captured graphs say of their values; compiled code as a function', imports: aot },
  { place: 'aot/trace', holds: 'ProxyTensorMode: operators as nodes, writes as new values, random draws, sizes', imports: [...aot, 'aot/meta'] },
  { place: 'aot/makeFx', holds: '`makeFx`: a function as a graph, and what the trace relied on', imports: [...aot, 'aot/meta', 'aot/trace'] },
  {
    place: 'aot/run',
    holds: 'graphs run on other terms: without data, in primitive operators, in place',
    imports: [...aot, 'aot/meta', 'aot/trace', 'aot/makeFx'],
  },
  { place: 'aot/joint', holds: 'a forward and its gradient in one graph, and how it is split', imports: [...aot, 'aot/meta'] },
  {
    place: 'aot/function',
    holds: '`aotFunction`: a function with its backward, traced, compiled and called',
    imports: [...aot, 'aot/meta', 'aot/trace', 'aot/joint'],
  },
  { place: 'aot', holds: 'the names that other rooms import', imports: [...aot, 'aot'] },
  { place: 'interop', holds: 'safetensors, GraphModules as files and as folders of code', imports: [...capture, 'formats', 'nn'] },
  { place: 'interop/onnx', holds: 'GraphModules as ONNX models', imports: [...capture, 'aot', 'interop', 'version'] },
  { place: 'checkpoint', holds: 'the state of a training in files', imports: [...capture, 'formats', 'nn', 'interop', 'version'] },
  { place: 'vision', holds: 'files of images as tensors, and transforms of images', imports: [...capture, 'formats', 'nn', 'interop'] },
  { place: 'data', holds: 'datasets, samplers, DataLoader, files as datasets', imports: [...capture, 'formats', 'nn', 'interop', 'vision'] },
  {
    place: 'models',
    holds: 'published families of networks, their checkpoints, generation of text',
    imports: [...capture, 'formats', 'nn', 'interop'],
  },
  { place: 'inductor', holds: 'lowering, fusion, memory plan, compiled programs', imports: [...capture, 'aot'] },
  { place: 'gpu', holds: "WebGPU's device: requests as data, pipelines, error scopes, its thread; no graphs", imports: [...base, 'kernels'] },
  { place: 'inductor/webgpu', holds: 'graphs on the GPU: the stages of inductor, each group as a shader', imports: [...capture, 'gpu', 'inductor'] },
  { place: 'dynamo/reports', holds: 'what compile says: graph breaks, recompilations, failures, errors', imports: dynamo() },
  { place: 'dynamo/backends', holds: 'backends by name, what wraps them, who watches graphs run', imports: dynamo('reports') },
  { place: 'dynamo/tree', holds: 'the trace tree: steps, sizes, what a call must agree in, the budget', imports: dynamo('reports') },
  {
    place: 'dynamo/run',
    holds: 'recorded steps on eager kernels, kernels for any sizes in their place, rows of launches',
    imports: dynamo('backends', 'tree'),
  },
  { place: 'dynamo/segment', holds: 'the part of a call between two graph breaks: its values, views, writes, tape', imports: dynamo('tree', 'run') },
  {
    place: 'dynamo/compile',
    holds: "a segment's graph, and the code that a backend makes of it",
    imports: dynamo('reports', 'backends', 'tree', 'run', 'segment'),
  },
  {
    place: 'dynamo/end',
    holds: 'the end of a segment: computing what is needed, and what is asked for later',
    imports: dynamo('reports', 'tree', 'run', 'segment', 'compile'),
  },
  { place: 'dynamo/call', holds: 'one call of a compiled function, from its arguments to its results', imports: [...dynamo(), 'dynamo'] },
  { place: 'dynamo/api', holds: '`compile`, `disable`, `explain` and related functions', imports: [...dynamo(), 'dynamo'] },
  { place: 'dynamo', holds: 'the names that other rooms import', imports: [...dynamo(), 'dynamo'] },
  { place: 'library', holds: '`torch.library`: operators that programs define, `opcheck`', imports: [...capture, 'aot', 'dynamo'] },
  { place: 'distributed', holds: 'process groups, collectives, DDP, FSDP', imports: [...capture, 'nn', 'optim', 'library', 'interop', 'checkpoint'] },
  {
    place: 'train',
    holds: 'a training loop of parts: metrics, early stopping, writers',
    imports: [...aot, 'nn', 'optim', 'interop', 'formats', 'version', 'checkpoint', 'data', 'aot', 'dynamo', 'library', 'distributed'],
  },
  { place: 'debug/common', holds: "Node's modules, warnings, tables, errors as text", imports: ['*'] },
  { place: 'debug/files', holds: 'data of repros: as text, on disk by content', imports: ['*'] },
  { place: 'debug/closeness', holds: 'when two results count as equal', imports: ['*'] },
  { place: 'debug/runs', holds: 'one run that leaves no trace, and what can be seen of it', imports: ['*'] },
  { place: 'debug/judge', holds: 'whether a call or a graph fails, and in which way', imports: ['*'] },
  { place: 'debug/script', holds: 'repro scripts: what they say, their command line', imports: ['*'] },
  { place: 'debug/isolate', holds: 'candidates in another process or worker', imports: ['*'] },
  { place: 'debug/minify', holds: 'from a failure to its smallest form', imports: ['*'] },
  { place: 'debug/repro', holds: 'watched backends, dumps, and what a repro script runs', imports: ['*'] },
  { place: 'debug/flight', holds: 'the flight recorder: the last steps of a training', imports: ['*'] },
  { place: 'debug/numerics', holds: 'where numbers first go wrong in a run', imports: ['*'] },
  { place: 'debug/compare', holds: 'two backends or models, operator by operator', imports: ['*'] },
  { place: 'debug/trace', holds: 'what compile does, recorded', imports: ['*'] },
  { place: 'debug/report', holds: 'a recorded run as a page', imports: ['*'] },
  { place: 'debug/profile', holds: 'where time and memory go', imports: ['*'] },
  { place: 'debug', holds: '`tensorfx/debug`: the names that users import', imports: ['*'] },
  {
    place: 'docs',
    holds: 'models of programs and pages about them, from sources; Node only',
    imports: [...base, 'fx', 'debug', 'version'],
  },
  { place: 'install', holds: 'the composition root: what works only after it was put together', imports: ['*'] },
  { place: 'torch', holds: 'the `torch` object', imports: ['*'] },
  { place: 'entries', holds: 'what `package.json` exports; each calls `install`', imports: ['*'] },
  { place: 'index', holds: 'the front door, `tensorfx`', imports: ['*'] },
  { place: 'cli', holds: 'the `tensorfx` command', imports: ['*'] },
]

/** The place of a file, by its path from src (`fx/graph/node.ts`); undefined if no row has it. */
export function placeOf(path) {
  const name = path.replace(/\.ts$/, '')
  return layers
    .map((layer) => layer.place)
    .filter((place) => name === place || name.startsWith(`${place}/`))
    .toSorted((a, b) => b.length - a.length)[0]
}

/** Whether a file of one place may import one of another. */
export function mayImport(from, to) {
  if (from === to) return true
  const at = layers.findIndex((layer) => layer.place === from)
  const below = layers.slice(0, Math.max(at, 0)).some((layer) => layer.place === to)
  return below && layers[at].imports.some((name) => name === '*' || to === name || to.startsWith(`${name}/`))
}

const code = (name) => `\`${name}\``

/** The table of CONTRIBUTING.md, from top to bottom. */
export function layerTable() {
  const rows = layers.toReversed().map(({ place, holds, imports }) => {
    const names = imports.filter((name) => !base.includes(name) || imports.length < base.length)
    return `| ${code(place)} | ${holds} | ${imports.includes('*') ? 'everything below' : names.map(code).join(', ')} |`
  })
  return ['| place | holds | may import |', '| --- | --- | --- |', ...rows]
}

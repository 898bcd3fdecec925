// Another thing than the one that belongs: a graph for a GraphModule, a result for a function, arguments that changed places, options of PyTorch. Each message says what to write.
import { expect, it } from 'vitest'
import { compile, fx, nn, noGrad, optim, torch } from 'tensorfx'
import { makeFx } from 'tensorfx/aot'
import { disable, registerBackend } from 'tensorfx/compile'
import { analyze, compareBackends } from 'tensorfx/debug'
import { DistributedDataParallel } from 'tensorfx/distributed'
import { fullyShard } from 'tensorfx/distributed/fsdp'
import { functionalCall, vmap } from 'tensorfx/func'
import { legalizeGraph } from 'tensorfx/fx/passes'
import { compileFx } from 'tensorfx/inductor'
import { writeSafetensors } from 'tensorfx/interop'
import { toOnnx } from 'tensorfx/interop/onnx'
import { treeMap } from 'tensorfx/pytree'

const x = torch.ones([2, 3])
const layer = new nn.Linear(3, 4)
const gm = fx.symbolicTrace((a) => torch.relu(a).add(1))
const F = nn.functional

/** Calls with arguments of any kind, as a program in JavaScript would. */
const call = (fn: unknown, ...args: readonly unknown[]): unknown => Reflect.apply(fn as () => unknown, undefined, args)
const make = (type: unknown, ...args: readonly unknown[]): unknown => Reflect.construct(type as new () => unknown, args)

const WANT_GRAPH_MODULES: readonly (readonly [string, (given: unknown) => unknown])[] = [
  ['Interpreter', (given) => make(fx.Interpreter, given)],
  ['replacePattern', (given) => call(fx.replacePattern, given, torch.relu, torch.sin)],
  ['compileFx', (given) => call(compileFx, given, [x])],
  ['compareBackends', (given) => call(compareBackends, given)],
  ['analyze', (given) => call(analyze, given, [x])],
  ['legalizeGraph', (given) => call(legalizeGraph, given)],
  ['toOnnx', (given) => call(toOnnx, given)],
]

it.each(WANT_GRAPH_MODULES)('%s of anything but a GraphModule says how to make one', async (name, run) => {
  // Some of them are async.
  const said = async (given: unknown): Promise<string> => {
    try {
      await run(given)
    } catch (error) {
      return String(error)
    }
    return 'accepted'
  }
  expect(await said(gm.graph)).toMatch(new RegExp(`${name}.* must be a GraphModule, got a Graph. Pass .* new GraphModule\\(root, graph\\)\\.$`))
  expect(await said(layer)).toMatch(/got a Linear. Trace it first: symbolicTrace\(model\)\.$/)
  expect(await said(nn.Linear)).toMatch(/got the class Linear. Make a module and trace it: symbolicTrace\(new Model\(\)\)\.$/)
  expect(await said(3)).toMatch(/must be a GraphModule, got 3\.$/)
})

const RESULTS: readonly (readonly [string, () => unknown, string])[] = [
  [
    'noGrad',
    () => call(noGrad, layer(x)),
    "noGrad: argument 'fn' must be a function, such as () => model(x), got a Tensor of shape [2, 4]. Pass the function itself",
  ],
  ['vmap', () => call(vmap, x), 'got a Tensor of shape [2, 3]. Pass the function itself, not its result.'],
  ['disable', () => call(disable, x), 'Pass the function itself, not its result.'],
  ['symbolicTrace', () => call(fx.symbolicTrace, layer(x)), 'Pass the function itself, not its result.'],
  [
    'registerForwardHook',
    () => call(layer.registerForwardHook.bind(layer), 'print'),
    "registerForwardHook: argument 'hook' must be a function, got 'print'.",
  ],
  [
    'registerForwardPreHook',
    () => call(layer.registerForwardPreHook.bind(layer), x),
    "registerForwardPreHook: argument 'hook' must be a function, got a Tensor",
  ],
  ['registerFullBackwardHook', () => call(layer.registerFullBackwardHook.bind(layer), 1), "registerFullBackwardHook: argument 'hook' must be"],
  ['registerStateDictPostHook', () => call(layer.registerStateDictPostHook.bind(layer), 1), "registerStateDictPostHook: argument 'hook' must be"],
  [
    'registerLoadStateDictPreHook',
    () => call(layer.registerLoadStateDictPreHook.bind(layer), 1),
    "registerLoadStateDictPreHook: argument 'hook' must be",
  ],
  [
    'registerHook',
    () => call(layer.weight.registerHook.bind(layer.weight), 'print'),
    "registerHook: argument 'hook' must be a function, got 'print'.",
  ],
  [
    'makeFx',
    () => makeFx((a: typeof x) => a.sin())(),
    'makeFx: the function takes 1 argument but got 0. Call what makeFx returns with example inputs: makeFx(fn)(x).',
  ],
  [
    'replacePattern',
    () => call(fx.replacePattern, gm, (a: typeof x) => torch.relu(a)),
    "replacePattern: argument 'replacement' must be a function, a Module or a Graph, got undefined.",
  ],
  [
    'replacePattern',
    () => call(fx.replacePattern, gm, 'relu', torch.sin),
    "replacePattern: argument 'pattern' must be a function, a Module or a Graph, got 'relu'.",
  ],
  [
    'DistributedDataParallel',
    () => make(DistributedDataParallel, layer.parameters()),
    "'module' must be a Module, got an iterator. Pass the model itself, not its parameters.",
  ],
  ['fullyShard', () => call(fullyShard, layer.parameters()), 'Pass the model itself, not its parameters.'],
  ['loadStateDict', () => call(layer.loadStateDict.bind(layer), layer), 'got a Linear. Write model.stateDict().'],
  ['writeSafetensors', () => call(writeSafetensors, layer), 'got a Linear. Write model.stateDict().'],
  [
    'functionalCall',
    () => call(functionalCall, layer, {}, x),
    "argument 'args' must be an array of arguments, got a Tensor of shape [2, 3]. Put a single argument into an array: [x].",
  ],
  ['LayerNorm', () => make(nn.LayerNorm, 3, { eps: 'float32' }), "nn.LayerNorm: option 'eps' must be a number, got 'float32'."],
  ['full', () => call(torch.full, 0.5, 1), "torch.full: argument 'size' must hold integers of at least 0, got [0.5]."],
  ['batchNorm', () => call(torch.batchNorm, x, null, null, null), "torch.batch_norm: missing argument 'runningVar'"],
]

it.each(RESULTS)('%s: the message says what belongs there', (_name, run, said) => {
  expect(run).toThrow(said)
})

it('arguments that changed places are named', () => {
  expect(() => F.crossEntropy(torch.tensor([0, 1]), x)).toThrow("Swap 'input' and 'target': the order is input, target.")
  expect(() => F.crossEntropy(torch.tensor([0, 1]).long(), x)).toThrow("Swap 'input' and 'target'")
  expect(() => F.nllLoss(torch.tensor([0, 1]), x)).toThrow("Swap 'self' and 'target'")
  // Of other shapes it is not clear what is meant.
  expect(() => F.crossEntropy(torch.ones([5]), x)).toThrow(/probabilities of shape \[5\]\.$/)
  expect(() => call(treeMap, (a: number) => a, [1, 2])).toThrow(
    "treeMap: argument 'fn' must be a function, got [1, 2]. Swap 'value' and 'fn': the order is value, fn.",
  )
  expect(() => call(treeMap, [1], [2])).toThrow(/got \[2\]\.$/)
  expect(() => call(functionalCall, {}, layer, [x])).toThrow("Swap 'module' and 'state': the order is module, state, args.")
  expect(() => call(registerBackend, () => null, 'mine')).toThrow("got a function and 'mine'. Swap 'name' and 'backend'")
})

it('options of torch.compile that are none here say what to write', () => {
  for (const name of ['mode', 'disable'])
    expect(() => call(compile, layer, { [name]: 'x' })).toThrow(
      new RegExp(
        `^compile: there is no option '${name}'; leave it out.*\\. Known are backend, fullgraph, dynamic, skipReplay, onGraph, trace, options\\.$`,
      ),
    )
  expect(() => call(compile, layer, { options: { max_autotune: true } })).toThrow(
    "compile: options: unknown option 'max_autotune'; known are strict, convolution, emitter.",
  )
  expect(() => call(compile, layer, { backnd: 'x' })).toThrow("compile: unknown option 'backnd'; did you mean 'backend'?")
})

it('graphs and shapes say how to mend a call', () => {
  const [a] = gm.graph.nodes
  expect(() => gm.graph.eraseNode(a ?? gm.graph.outputNode())).toThrow('Give them another value first: node.replaceAllUsesWith(other).')
  expect(() => call(gm.graph.insertingBefore.bind(gm.graph), 'relu')).toThrow("Graph.insertingBefore: argument 'node' must be a Node, got 'relu'.")
  expect(() => call(gm.graph.insertingAfter.bind(gm.graph), 'relu')).toThrow("Graph.insertingAfter: argument 'node' must be a Node, got 'relu'.")
  expect(() => call(gm.graph.callFunction.bind(gm.graph), torch.relu, a)).toThrow('Put a single argument into an array: [x].')
  expect(() => x.permute(0, 0)).toThrow('torch.permute: dims [0, 0] must name each of the 2 dimensions of self once. Such an order is [1, 0].')
  expect(() => x.view(-1, -1)).toThrow('torch.Tensor.view: the shape [-1, -1] has more than one -1; only one size can be left to the others.')
  expect(() => Reflect.get(new nn.ModuleList([layer]), 'push')).toThrow('modules.push does not exist here: write modules.append(module).')
  expect(() => Reflect.get(new nn.Sequential(layer), 'map')).toThrow('spread it: [...modules].map(…)')
  // Modules that are no containers can have such names, and containers explain what other modules do.
  expect(Reflect.get(layer, 'push')).toBe(undefined)
  expect(() => Reflect.get(new nn.ModuleList([layer]), 'summary')).toThrow('module.summary does not exist here')
})

it('methods that were taken off their objects say so', () => {
  const { step, zeroGrad } = new optim.SGD(layer.parameters(), { lr: 0.1 })
  const { forward } = layer
  expect(() => call(step)).toThrow(
    'step: called without its object, as after const { step } = object. Write object.step(…), or (...args) => object.step(...args) where a function belongs.',
  )
  expect(() => call(zeroGrad)).toThrow('zeroGrad: called without its object')
  expect(() => call(forward, x)).toThrow('forward: called without its object')
})

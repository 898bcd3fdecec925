// What fuzz:arguments has found: public functions that threw raw errors, or computed something, for arguments that do not fit.
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { ArgumentError, TensorfxError, fx, nn, operator, optim, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { getIsolatedGraphModule, makeFx } from 'tensorfx/aot'
import { functional, gradcheck, gradgradcheck } from 'tensorfx/autograd'
import * as debug from 'tensorfx/debug'
import * as dist from 'tensorfx/distributed'
import * as fsdp from 'tensorfx/distributed/fsdp'
import {
  SizeExpression,
  UnionFind,
  checkShapes,
  expandToTensorDim,
  getGreatestUpperBound,
  trackDynamismAcrossExamples,
} from 'tensorfx/fx/experimental'
import {
  OperatorSupport,
  cse,
  deadCode,
  extractTensorMetadata,
  legalize,
  mergeAttributeReads,
  partitionByDevice,
  replaceTargetNodesWith,
  unusedSubmodules,
} from 'tensorfx/fx/passes'
import { renderSvg } from 'tensorfx/fx/viewer'
import { frozen } from 'tensorfx/interop'
import { rewriteFunction, rewriteSource } from 'tensorfx/rewriter'

beforeAll(() => dist.initProcessGroup({ backend: 'single' }))
afterAll(() => {
  dist.destroyProcessGroup()
})

/** Calls a function as JavaScript may. */
const call =
  (fn: object, ...args: readonly unknown[]) =>
  (): unknown =>
    typeof fn === 'function' ? Reflect.apply(fn, undefined, args) : undefined
const make =
  (type: object, ...args: readonly unknown[]) =>
  (): unknown =>
    typeof type === 'function' ? Reflect.construct(type, args) : undefined

const parameters = (): nn.ParameterList => new nn.ParameterList([torch.ones([1])])

/** A value that no caller in TypeScript could pass. */
const hostile = (value: unknown): never => value as never
const traced = (): fx.GraphModule => fx.symbolicTrace((a: Tensor) => torch.relu(a))

const cyclic: unknown[] = []
cyclic.push(cyclic)
const x = (): Tensor => torch.ones([2, 3])
const shards = (...offsets: readonly (readonly number[])[]): unknown => offsets.map((at) => ({ tensor: torch.ones([2]), offsets: at }))
const load = (state: unknown) => (): unknown => {
  const model = new fsdp.FSDP(new nn.Linear(3, 2))
  return fsdp.optimStateDictToLoad(model, new optim.SGD(model.parameters()), hostile(state))
}
const store = new debug.MemoryFileStore()
const scaler = new fsdp.ShardedGradScaler()

describe('an argument that does not fit is named', () => {
  it.each<readonly [message: string, run: () => unknown]>([
    ["init.eye_: argument 'tensor' must be a Tensor, got 1.", call(nn.init.eye_, 1)],
    ["init.calculateFanInAndFanOut: argument 'tensor' must be a Tensor, got", call(nn.init.calculateFanInAndFanOut, {})],
    ["init.calculateGain: argument 'param' must be a number, got 'x'.", call(nn.init.calculateGain, 'leaky_relu', 'x')],
    ["init.kaimingUniform_: argument 'tensor' must be a Tensor, got undefined.", call(nn.init.kaimingUniform_)],
    ["init.kaimingNormal_: argument 'tensor' must be a Tensor, got", call(nn.init.kaimingNormal_, [])],
    ["init.xavierUniform_: argument 'tensor' must be a Tensor, got null.", call(nn.init.xavierUniform_, null)],
    ["init.xavierNormal_: argument 'gain' must be a number, got 'x'.", call(nn.init.xavierNormal_, x(), 'x')],
    ["init.dirac_: argument 'tensor' must be a Tensor, got 2.", call(nn.init.dirac_, 2)],
    ["init.sparse_: argument 'tensor' must be a Tensor, got 2.", call(nn.init.sparse_, 2)],
    ['init.sparse_: sparsity must be a number from 0 to 1, got 2.', call(nn.init.sparse_, x(), 2)],
    ["init.orthogonal_: argument 'tensor' must be a Tensor, got 'x'.", call(nn.init.orthogonal_, 'x')],
    ['nn.utils.clipGradNorm_: maxNorm must be a number, got 1n.', call(nn.utils.clipGradNorm_, [], 1n)],
    ["vectorToParameters: argument 'vector' must be a Tensor, got 1.", call(nn.utils.vectorToParameters, 1, [])],
    ["weightNorm: argument 'module' must be a Module, got 1.", call(nn.utils.weightNorm, 1)],
    ["parametrization: argument 'module' must be a Module, got 1.", call(nn.utils.parametrize.removeParametrizations, 1, 'weight')],
    ["parametrization: argument 'name' must be a string, got 1.", call(nn.utils.parametrize.removeParametrizations, new nn.ReLU(), 1)],
    ["ParametrizationList: argument 'parametrization' must be a Module, got 1.", make(nn.utils.parametrize.ParametrizationList, 1, x())],
    ["nn.LSTM: argument 'states' must be an array, got 1.", () => Reflect.apply(new nn.LSTM(3, 2).forward, new nn.LSTM(3, 2), [x(), 1])],
    ["nn.GRU: argument 'input' must be a Tensor, got 1.", () => Reflect.apply(new nn.GRU(3, 2).forward, new nn.GRU(3, 2), [1])],
    ['nn.GRUCell: the states must have shape [4, 2], got [2].', () => new nn.GRUCell(3, 2).forward(torch.ones([4, 3]), torch.ones([2]))],
    [
      "nn.MultiheadAttention: argument 'query' must be a Tensor, got 1.",
      () => Reflect.apply(new nn.MultiheadAttention(4, 2).forward, new nn.MultiheadAttention(4, 2), [1]),
    ],
    [
      'ShardedGradScaler.loadStateDict: growthTracker must be an integer from 0 on, got',
      () => Reflect.apply(scaler.loadStateDict, scaler, [{ ...scaler.stateDict(), growthTracker: '5' }]),
    ],
    [
      "loadStateDict: 'weight' must be a Tensor, got 1.",
      () => Reflect.apply(new nn.ReLU().loadStateDict, new nn.LayerNorm([2]), [{ weight: 1, bias: 1 }]),
    ],
    [
      "loadStateDict: argument 'state' must be a Map or an object from string to Tensor, as stateDict() returns it, got a Map.",
      () => Reflect.apply(new nn.ReLU().loadStateDict, new nn.ReLU(), [new Map([[1, 2]])]),
    ],
    ["nn.ModuleDict: argument 'modules' must be an object or a Map of Modules by name, got null.", make(nn.ModuleDict, null)],
    ["nn.ParameterDict: argument 'parameters' must be an object or a Map of Tensors by name, got null.", make(nn.ParameterDict, null)],
    ['nn.TransformerEncoder: numLayers must be at most 1000000', make(nn.TransformerEncoder, new nn.ReLU(), 2 ** 53 - 1)],
    ["nn.TransformerDecoder: argument 'decoderLayer' must be a Module, got 1.", make(nn.TransformerDecoder, 1, 1)],
    ["optim.MultiStepLR: argument 'milestones' must be an array, got 1.", make(optim.MultiStepLR, new optim.SGD([x()]), 1)],
    ["isParametrized: argument 'module' must be a Module, got undefined.", call(nn.utils.parametrize.isParametrized)],
    ["summonFullParams: argument 'module' must be a Module, got 1.", call(fsdp.summonFullParams, 1, () => 1)],
    ['an argument is nested more than 500 deep; does it contain itself?', call(extractTensorMetadata, cyclic)],
    ['nn.ModuleDict.get: there is no module Symbol(s).', () => Reflect.apply(new nn.ModuleDict({}).get, new nn.ModuleDict({}), [Symbol('s')])],
    ["optim.ChainedScheduler: argument 'schedulers' must be an array, got undefined.", make(optim.ChainedScheduler)],
    ["jacobian: argument 'fn' must be a function, got 1.", call(functional.jacobian, 1, x())],
    ["hessian: argument 'inputs' must be an array, got 2.", call(functional.hessian, () => x(), 2)],
    ["vhp: argument 'v' must be an array, got", call(functional.vhp, () => x(), x(), {})],
    ["gradcheck: argument 'inputs' must be an array, got 2.", call(gradcheck, () => x(), 2)],
    ["gradgradcheck: argument 'inputs' must be an array, got 2.", call(gradgradcheck, () => x(), 2)],
    ["rewriteFunction: argument 'fn' must be a function, got", call(rewriteFunction, x())],
    ["rewriteSource: argument 'code' must be a string, got 1.", call(rewriteSource, 1)],
    ['group must be a ProcessGroup, as newGroup returns it, got', call(dist.allReduce, x(), { group: {} })],
    ["ShardedTensor.chunk: argument 'whole' must be a Tensor, got 1.", call(dist.ShardedTensor.chunk, 1)],
    ["ShardedTensor.fromLocalShards: argument 'shards' must be an array, got 'x'.", call(dist.ShardedTensor.fromLocalShards, 'x', [4], 'float32')],
    ['a part of shape [2] at [3] is outside of the tensor of shape [4].', call(dist.ShardedTensor.fromLocalShards, shards([3]), [4], 'float32')],
    ['the parts at [0] and [1] overlap.', call(dist.ShardedTensor.fromLocalShards, shards([0], [1]), [4], 'float32')],
    ["assignBuckets: argument 'items[0]' must be an object { bytes, dtype }, got null.", call(dist.assignBuckets, [null], [1])],
    ['assignBuckets: limits must be one or more numbers of bytes, got 1.', call(dist.assignBuckets, [], 1)],
    ["reduceScatterTensor: argument 'tensor' must be a Tensor, got 1.", call(dist.functional.reduceScatterTensor, 1)],
    ["allToAllSingle: argument 'tensor' must be a Tensor, got 1.", call(dist.functional.allToAllSingle, 1)],
    ["recordCollectives: argument 'fn' must be a function, got 1.", call(dist.recordCollectives, 1)],
    ["SimpleProfiler.profile: argument 'fn' must be a function, got 1.", call(fsdp.SimpleProfiler.profile, 'all', 1)],
    ["cleanName: argument 'name' must be a string, got 1.", call(fsdp.cleanName, 1)],
    ["flatLayout: argument 'shards' must be an integer of at least 1, got 0.", call(fsdp.flatLayout, [], { shards: 0 })],
    ["flatLayout: argument 'entries[0]' must be an object { name, modulePath, shape }, got 1.", call(fsdp.flatLayout, [1], { shards: 1 })],
    ["shardPadding: argument 'layout' must be what flatLayout returns, got undefined.", call(fsdp.shardPadding)],
    ["argument 'layout' must be what flatLayout returns, got 1.", call(fsdp.shardMetadata, 1)],
    ["fullOptimStateDict: argument 'model' must be a Module, got 1.", call(fsdp.fullOptimStateDict, 1)],
    ["optimStateDict: argument 'model' must be a Module, got 1.", call(fsdp.optimStateDict, 1)],
    ["fullOptimStateDict: argument 'optimizer' must be an Optimizer, got 1.", call(fsdp.fullOptimStateDict, new nn.ReLU(), 1)],
    ["wrapTargets: argument 'root' must be a Module, got 1.", call(fsdp.wrapTargets, 1, fsdp.alwaysWrapPolicy)],
    ["ShardedGradScaler.scale: argument 'outputs' must be a Tensor or an array of Tensors, got 1.", () => Reflect.apply(scaler.scale, scaler, [1])],
    ["ShardedGradScaler.step: argument 'optimizer' must be an Optimizer, got 1.", () => Reflect.apply(scaler.step, scaler, [1])],
    ["operator.getitem: argument 'index' must be a string or a number, got an object.", call(operator.getitem, {}, Object.create(null))],
    ["operator.setitem: argument 'index' must be a string or a number, got an object.", call(operator.setitem, {}, Object.create(null), 1)],
    ["proxyable: argument 'options.name' must be a string, got 1.", call(fx.proxyable, class {}, { name: 1 })],
    ["proxyable: argument 'cls' must be a class, got a function.", call(fx.proxyable, () => 1, { name: 'a' })],
    ["symbolicTrace: argument 'options.tracer' must be a Tracer, got an object.", call(fx.symbolicTrace, (a: Tensor) => a, { tracer: {} })],
    ["Graph.printTabular: argument 'extra' must be an array of [title, cell], got 1.", () => traced().graph.printTabular(hostile({ extra: 1 }))],
    ["Graph.printTabular: argument 'title' must be a string, got 1.", () => traced().graph.printTabular(hostile({ extra: [[1, String]] }))],
    ["Graph.printTabular: argument 'cell' must be a string, got 2.", () => traced().graph.printTabular(hostile({ extra: [['a', () => 2]] }))],
    [
      "Node.updateKwarg: argument 'key' must be a string, got Symbol(s).",
      () =>
        traced()
          .graph.outputNode()
          .updateKwarg(hostile(Symbol('s')), 1),
    ],
    [
      'insertArg: index must be between 0 and 1, the number of args; got Symbol(s).',
      () =>
        traced()
          .graph.outputNode()
          .insertArg(hostile(Symbol('s')), 1),
    ],
    [
      "Interpreter.runWith: argument 'options.initialEnv' must be a Map from Node to value, got 1.",
      () => new fx.Interpreter(traced()).runWith([x()], hostile({ initialEnv: 1 })),
    ],
    [
      "Interpreter.runWith: argument 'options.keep' must be an array (or another iterable), got 1.",
      () => new fx.Interpreter(traced()).runWith([x()], hostile({ keep: 1 })),
    ],
    ['Cannot match the type an object', call(expandToTensorDim, Object.create(null), 1)],
    ['Inconsistent types an object, an object', call(getGreatestUpperBound, Object.create(null), Object.create(null))],
    ["makeFx: argument 'fn' must be a function or a Module, got 1.", call(getIsolatedGraphModule, 1, [])],
    ["makeFx: argument 'fn' must be a function or a Module, got the class A.", call(makeFx, class A {})],
    ['torch.diff: n must be at least 0, got -1.', () => x().diff(-1)],
    ["UnionFind: argument 'n' must be a number of elements from 0 to 16777216, got 2147483648.", () => new UnionFind(2 ** 31)],
    ["DeviceSupport: argument 'options.never' must be an array, got 1.", call(partitionByDevice, traced(), 'cpu', { never: 1 })],
    ["nn.ModuleDict: argument 'name' must be a string, got Symbol(s).", () => new nn.ModuleDict({}).has(hostile(Symbol('s')))],
    ["PassBase.run: argument 'gm' must be a GraphModule, got an object.", () => cse.run(hostile({}))],
    ["deadCode: argument 'gm' must be a GraphModule, got undefined.", () => deadCode.run(hostile(undefined))],
    ["legalize: argument 'gm' must be a GraphModule, got null.", () => legalize.run(hostile(null))],
    ["mergeAttributeReads: argument 'gm' must be a GraphModule, got 1.", () => mergeAttributeReads.run(hostile(1))],
    ["unusedSubmodules: argument 'gm' must be a GraphModule, got 'x'.", () => unusedSubmodules.run(hostile('x'))],
    ['nn.ParameterList.at: index an object is out of range for 1 parameter(s).', () => parameters().at(hostile(Object.create(null)))],
    ['nn.ParameterList.at: index 0n is out of range for 1 parameter(s).', () => parameters().at(hostile(0n))],
    ['nn.ParameterList.at: index 0.5 is out of range for 1 parameter(s).', () => parameters().at(0.5)],
    [
      "SizeExpression.of: argument 'size' must be an integer, a variable or an expression, got an object.",
      () => SizeExpression.of(Object.create(null)),
    ],
    ["SizeExpression.of: argument 'size' must be an integer, a variable or an expression, got NaN.", () => SizeExpression.of(NaN)],
    ["SizeExpression.plus: argument 'value' must be an integer, got NaN.", () => SizeExpression.of(1).plus(NaN)],
    ["SizeExpression.floorDivide: argument 'by' must be a positive integer, got 0.", () => SizeExpression.of(1).floorDivide(0)],
    ["setLogSink: argument 'next' must be a function, got 1.", call(debug.setLogSink, 1)],
    [
      "setFileStore: argument 'store' must be a FileStore, which has the methods read and write, got an object.",
      call(debug.setFileStore, { read: 1 }),
    ],
    ["MemoryFileStore.write: argument 'content' must be a string or a Uint8Array, got 1.", () => store.write('a', hostile(1))],
    ["InputWriter: argument 'store' must be a FileStore", make(debug.InputWriter, { write: () => {} }, 'dir')],
    ["InputWriter: argument 'dir' must be a string, got 1.", make(debug.InputWriter, store, 1)],
    ["InputWriter: argument 'name' must be a string, got Symbol(s).", () => new debug.InputWriter(store, 'dir').add(hostile(Symbol('s')), 1)],
    ["InputReader: argument 'store' must be a FileStore", make(debug.InputReader, 1, 'dir')],
    ["InputReader.storage: argument 'hash' must be a string, got 1.", () => new debug.InputReader(store, 'dir').storage(hostile(1), 4)],
    ["InputReader.storage: argument 'nbytes' must be a number of bytes, got -1.", () => new debug.InputReader(store, 'dir').storage('a', -1)],
    [
      "InputReader.tensor: argument 'storage' must be what storage() returns, got 1.",
      () => new debug.InputReader(store, 'dir').load(hostile(1), [1]),
    ],
    ['an argument is nested more than 500 deep; does it contain itself?', call(trackDynamismAcrossExamples, [cyclic])],
    [
      "optimStateDictToLoad: argument 'state.state['a']' must be an object of tensors and numbers, got null.",
      load({ state: { a: null }, paramGroups: [] }),
    ],
    ["optimStateDictToLoad: argument 'state.paramGroups[0]' must be an object of options, got null.", load({ state: {}, paramGroups: [null] })],
    [
      "optimStateDictToLoad: state 'momentumBuffer' of 'weight' has shape [2, 4] but the parameter has shape [2, 3].",
      load({ state: { weight: { momentumBuffer: torch.ones([2, 4]) } }, paramGroups: [{}] }),
    ],
    ["optim.ReduceLROnPlateau: argument 'optimizer' must be an optimizer, got 1.", make(optim.ReduceLROnPlateau, 1)],
    ["optim.ChainedScheduler: argument 'schedulers[0]' must be a schedule, got null.", make(optim.ChainedScheduler, [null])],
    ["optim.Rprop: option 'etas' must be an array of numbers, got [an object, 2].", make(optim.Rprop, [], { etas: [{ toString: null }, 2] })],
    ["optim.LBFGS: option 'maxEval' must be a positive integer, got an object.", make(optim.LBFGS, [], { maxEval: { toString: null } })],
    ["init.truncNormal_: argument 'mean' must be a number, got an object.", call(nn.init.truncNormal_, x(), Object.create(null), 1)],
    ["replaceTargetNodesWith: argument 'newOp' must be one of placeholder,", call(replaceTargetNodesWith, traced(), 'output', 'a', null, 'b')],
    ["replaceTargetNodesWith: argument 'gm' must be a GraphModule, got 1.", call(replaceTargetNodesWith, 1, 'output', 'a', 'output', 'b')],
    ["OperatorSupport: argument 'table' must be an object of dtypes by target, got null.", make(OperatorSupport, null)],
    ["checkShapes: argument 'inputs' must be an object of shapes by input, got undefined.", call(checkShapes, (a: Tensor) => a)],
    ['torch.vander: x must be a vector, got shape [].', () => torch.vander(torch.ones([]))],
    ["frozen: argument 'paths' must be an array, got undefined.", call(frozen, new nn.ReLU())],
  ])('%s', (message, run) => {
    expect(run).toThrow(message)
    try {
      run()
    } catch (error) {
      expect(error).toBeInstanceOf(TensorfxError)
    }
  })
})

it('an engine that Graphviz lacks, and text that is not DOT, are refused', async () => {
  await expect(renderSvg('digraph { a -> b }', hostile('draw'))).rejects.toThrow(
    "renderSvg: argument 'engine' must be one of dot, neato, fdp, circo, twopi, got 'draw'.",
  )
  await expect(renderSvg('digraph { a -> ')).rejects.toThrow(/^renderSvg: Graphviz cannot draw the text of argument 'dot': .*syntax error/)
  await expect(renderSvg('digraph { a -> ')).rejects.toBeInstanceOf(ArgumentError)
})

it('differences of more orders than there are elements are none, at once', () => {
  for (const n of [3, 4, 2 ** 31]) expect(x().diff(n).shape).toEqual([2, 0])
  expect(torch.tensor([true, false]).diff(2 ** 31).dtype).toBe('bool')
  expect(torch.tensor([1, 4, 9, 16]).diff(3).toArray()).toEqual([0])
})

it('a wrapper of FSDP has no tensor or module of its own where the wrapped module has one of that name, but other values', () => {
  const wrapper = new fsdp.FSDP(new nn.Linear(3, 2))
  const exists = "FullyShardedDataParallel: attribute 'weight' already exists in the wrapped module, got"
  for (const set of [
    () => wrapper.registerBuffer('weight', x()),
    () => wrapper.registerBuffer('weight', null),
    () => wrapper.registerParameter('weight', new nn.Parameter(x())),
    () => wrapper.addModule('weight', new nn.ReLU()),
  ])
    expect(set).toThrow(exists)
  expect([...wrapper.ownBuffers()]).toEqual([])
  expect(wrapper.hasBuffer('weight')).toBe(false)
  Object.assign(wrapper, { inFeatures: 7 })
  expect([Reflect.get(wrapper, 'inFeatures'), wrapper.module.inFeatures]).toEqual([7, 3])
})

it('shapes that are none, positions without end and groups of nothing are errors of tensorfx', () => {
  for (const shape of [-7, 0.5, false, 'ab', {}, [-1], [0.5], [NaN]])
    expect(call(torch.broadcastShapes, shape)).toThrow("argument 'shapes' must be lists of sizes")
  expect(torch.broadcastShapes([2, 1], [3], [])).toEqual([2, 3])
  expect(torch.broadcastShapes([2, 1], 3)).toEqual([2, 3])
  expect(() => x().nonzeroStatic({ size: 2 ** 31 })).toThrow(TensorfxError)
  expect(() => x().nonzeroStatic({ size: -1 })).toThrow('size must be at least 0, got -1')
  for (const groups of [-7, 0, 2]) expect(() => torch.channelShuffle(x(), groups)).toThrow('torch.channel_shuffle')
  expect(() => torch.channelShuffle(torch.ones([1, 4, 2]), -2)).toThrow('[N, C, ..] with C a multiple of -2 groups')
  expect(call(torch.isFloatingPoint, { dtype: 'float32' })).toThrow("argument 'x' must be a Tensor")
  const { fuseConvBnEval, fuseConvBnWeights } = nn.utils.fusion
  expect(call(fuseConvBnEval)).toThrow('nn.utils.fusion')
  expect(call(fuseConvBnWeights, 'constructor')).toThrow("argument 'convW' must be a Tensor")
})

describe('a message', () => {
  it('shows a short part of large values, and does not read all of an array', () => {
    let reads = 0
    const counted = new Proxy(new Array(1000).fill(0), { get: (target, key) => (reads++, Reflect.get(target, key)) })
    expect(call(rewriteSource, counted)).toThrow('got an array of length 1000.')
    expect(reads).toBeLessThan(20)
    expect(call(rewriteSource, 10n ** 100n)).toThrow(`got 1${'0'.repeat(39)}…n.`)
  })
})

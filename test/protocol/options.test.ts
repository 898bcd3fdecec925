// Options objects: every function that takes one refuses names that it does not know.
import { describe, expect, it } from 'vitest'
import { ArgumentError, compile, config, fx, nn, optim, torch } from 'tensorfx'
import { aotFunction, makeFx } from 'tensorfx/aot'
import { registerBackend, withConfig } from 'tensorfx/compile'
import { Isolator, minifier, minifyBackendFailure, runFwdMaybeBwd, same, sameTwoModels } from 'tensorfx/debug'
import { MetaTracer, NormalizeArgs } from 'tensorfx/fx/experimental'
import {
  CapabilityBasedPartitioner,
  FxGraphDrawer,
  GraphTransformObserver,
  PassManager,
  runPasses,
  splitByTags,
  splitModule,
} from 'tensorfx/fx/passes'
import { graphPage, mermaid } from 'tensorfx/fx/viewer'
import { checkOptions } from '../../src/protocol/index.ts'

describe('checkOptions', () => {
  const check = (options: unknown): void =>
    checkOptions<{ dim?: number; keepdim?: boolean }>('f', Object(options), { dim: 'number', keepdim: 'boolean' })
  it('accepts known names, and none', () => {
    check({ dim: 1 })
    check({})
  })
  it.each([
    [{ keep_dim: true }, "f: unknown option 'keep_dim'; did you mean 'keepdim'? Known are dim, keepdim."],
    [{ dims: 1 }, "f: unknown option 'dims'; did you mean 'dim'? Known are dim, keepdim."],
    [{ axis: 1 }, "f: unknown option 'axis'; did you mean 'dim'? Known are dim, keepdim."],
    [{ device: 'cpu' }, "f: unknown option 'device'; operators run where their tensors are, leave it out. Known are dim, keepdim."],
    [{ color: 1 }, "f: unknown option 'color'; known are dim, keepdim."],
    [[1], 'f: options must be an object such as { dim: … }, got [1].'],
  ])('%j', (options, message) => {
    expect(() => check(options)).toThrow(ArgumentError)
    expect(() => check(options)).toThrow(message)
  })
})

const x = torch.ones([2])
const model = new nn.Linear(2, 2)
const gm = fx.symbolicTrace((a: typeof x) => a.relu())
const [relu] = gm.graph.findNodes({ op: 'call_method' })
const run = (a: typeof x): unknown => a
const interpreter = new fx.Interpreter(gm)
const sgd = new optim.SGD(model.parameters())
// As a caller in JavaScript writes it: of no type.
const bad = JSON.parse('{ "unknownName": 1 }') as never
const badSplit = JSON.parse('{ "metaArgs": { "a": 1 }, "unknownName": 1 }') as never
const badFind = JSON.parse('{ "op": "output", "unknownName": 1 }') as never

describe('every function with options refuses an unknown name', () => {
  it.each<[string, () => unknown]>([
    ['torch.tensor', () => torch.tensor([1], bad)],
    ['torch.ones', () => torch.ones([1], bad)],
    ['torch.randn', () => torch.randn([1], bad)],
    ['torch.allclose', () => torch.allclose(x, x, bad)],
    ['a method', () => x.sum(bad)],
    ['backward', () => x.sum().requiresGrad_().backward(bad)],
    ['autograd.grad', () => torch.autograd.grad(x, x, bad)],
    ['scan', () => torch.scan((a, b) => [a, b], x, x, bad)],
    ['nn.Linear', () => new nn.Linear(1, 2, bad)],
    ['nn.Conv2d', () => new nn.Conv2d(1, 1, 1, bad)],
    ['nn.MSELoss', () => new nn.MSELoss(bad)],
    ['nn.Parameter', () => new nn.Parameter(x, bad)],
    ['nn.init', () => nn.init.uniform_(x, 0, 1, bad)],
    ['nn.init.kaimingUniform_', () => nn.init.kaimingUniform_(torch.ones([2, 2]), bad)],
    ['clipGradNorm_', () => nn.utils.clipGradNorm_(model.parameters(), 1, bad)],
    ['registerBuffer', () => model.registerBuffer('b', null, bad)],
    ['loadStateDict', () => model.loadStateDict(model.stateDict(), bad)],
    ['functionalCall', () => nn.functionalCall(model, {}, [x], bad)],
    ['optim.SGD', () => new optim.SGD(model.parameters(), bad)],
    ['a parameter group', () => new optim.SGD([{ params: [model.weight], ...Object(bad) }])],
    ['zeroGrad', () => sgd.zeroGrad(bad)],
    ['optim.StepLR', () => new optim.StepLR(sgd, 1, bad)],
    ['symbolicTrace', () => fx.symbolicTrace(run, bad)],
    ['Tracer', () => new fx.Tracer(bad)],
    ['MetaTracer', () => new MetaTracer(badSplit)],
    ['wrap', () => fx.wrap(() => 1, bad)],
    ['proxyable', () => fx.proxyable(class A {}, bad)],
    ['Interpreter', () => new fx.Interpreter(gm, bad)],
    ['runWith', () => interpreter.runWith([x], bad)],
    ['SubgraphMatcher', () => new fx.SubgraphMatcher(gm.graph, bad)],
    ['replacePatternWithFilters', () => fx.replacePatternWithFilters(gm, run, run, bad)],
    ['normalizeFunction', () => fx.normalizeFunction(torch.relu, [x], {}, bad)],
    ['replaceAllUsesWith', () => relu?.replaceAllUsesWith(relu, undefined, bad)],
    ['findNodes', () => gm.graph.findNodes(badFind)],
    ['generateCode', () => gm.graph.generateCode(bad)],
    ['printReadable', () => gm.printReadable(bad)],
    ['printTabular', () => gm.graph.printTabular(bad)],
    ['deepCopy', () => gm.deepCopy(bad)],
    ['runPasses', () => runPasses([], gm, bad)],
    ['PassManager', () => new PassManager(bad)],
    ['splitModule', () => splitModule(gm, () => 0, bad)],
    ['splitByTags', () => splitByTags(gm, [], bad)],
    ['CapabilityBasedPartitioner', () => new CapabilityBasedPartitioner(gm, { isNodeSupported: () => true }, bad)],
    ['FxGraphDrawer', () => new FxGraphDrawer(gm, 'g', bad)],
    ['GraphTransformObserver', () => new GraphTransformObserver(gm, 'p', bad)],
    ['NormalizeArgs', () => new NormalizeArgs(gm, bad)],
    ['graphPage', () => graphPage(gm, bad)],
    ['mermaid', () => mermaid(gm, bad)],
    ['makeFx', () => makeFx(run, bad)],
    ['aotFunction', () => aotFunction(run, bad)],
    ['compile', () => compile(run, bad)],
    ['registerBackend', () => registerBackend('b', () => run, bad)],
    ['config', () => Object.assign(config, { unknownName: 1 })],
    ['withConfig', () => withConfig(bad, () => 1)],
    ['same', () => same(x, x, null, bad)],
    ['runFwdMaybeBwd', () => runFwdMaybeBwd(run, [x], bad)],
    ['sameTwoModels', () => sameTwoModels(gm, run, [x], bad)],
    ['Isolator', () => new Isolator(() => Object(null), bad)],
  ])('%s', (_, call) => {
    expect(call).toThrow(ArgumentError)
    expect(call).toThrow(/unknown option 'unknownName'; known are /)
  })

  it('and those that return promises', async () => {
    await expect(async () => interpreter.runAsync([x], bad)).rejects.toThrow(/unknown option 'unknownName'/)
    await expect(async () => minifier(gm, [x], () => true, bad)).rejects.toThrow(/unknown option 'unknownName'/)
    await expect(async () => minifyBackendFailure(gm, [x], bad)).rejects.toThrow(/unknown option 'unknownName'/)
  })
})

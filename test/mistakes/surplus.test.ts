// An argument more than a function takes is refused, by name: JavaScript would ignore it. Every public function, class and method is called with one more than it has parameters; what is
// left out has a reason. Operators and layers with options are in draw.ts ("an argument too many").
import { expect, it } from 'vitest'
import { ArgumentError, nn } from 'tensorfx'
import { surfaceOf } from '../../scripts/fuzz/arguments.mjs'
import { loadSurface } from '../../scripts/fuzz/surface.mjs'
import { entries } from '../fuzz/entries.ts'

/** What JavaScript's convention counts for, by reason: names, or starts of names. */
const IGNORES: Readonly<Record<string, string>> = {
  'conditions and readers of one value, which programs give to map, filter and every':
    'tensorfx.fx.isProxy tensorfx.fx.nodeOf tensorfx.fx.originOf tensorfx.fx.tracerOf tensorfx.fx.hasSideEffect tensorfx.fx.bool tensorfx.fx.getattr tensorfx.fx.capturedConstants tensorfx.torch.isTensor tensorfx.torch.isFloatingPoint tensorfx.torch.isComplex fx_passes.isNodeOutputTensor fx_passes.getTensorMeta fx_passes.getAccOpsName fx_passes.extractTensorMetadata fx_experimental.isConsistent fx_experimental.isMorePrecise fx_experimental.isTensorType fx_experimental.parseTensorType fx_experimental.normalizeSourceName fx_experimental.cloneAndConvertToMeta fx_experimental.typesEqual fx_experimental.typeMatches fx_experimental.checkForMutableOperation debug.describe debug.signatureOf distributed_fsdp.cleanName distributed_fsdp.alwaysWrapPolicy distributed.getRank distributed.getWorldSize distributed.getProcessGroupRanks',
  'reads a setting or a figure, and has no parameters':
    'tensorfx.isGradEnabled tensorfx.torch.getDefaultDtype tensorfx.torch.memory.max tensorfx.torch.memory.memoryAllocated tensorfx.torch.memory.memoryReserved tensorfx.torch.memory.resetPeakMemoryStats tensorfx.fx.getCurrentMeta tensorfx.fx.hasPreservedNodeMeta tensorfx.fx.isFxTracing tensorfx.fx.formatStack compile.isCompiling aot.getProxyMode debug.fileStore debug.minifierDir debug.counters.clear distributed.getBackend distributed.isInitialized distributed.getDebugLevel distributed.collectiveStats distributed.restartCount distributed_fsdp.fullParameterStats compiled. fullySharded. ',
  'for tools, backends and subclasses':
    'ops. dispatch. inductor. pytree. rewriter. aot.AotModule aot.ProxyTensorMode aot.compile aot.decomposeGraph aot.defaultPartition aot.disableProxyModesTracing aot.getIsolatedGraphModule aot.giveTape aot.isApart aot.minCutPartition aot.readableArguments aot.spell aot.traceBackward aot.traceJoint interop.Attributes interop.frozen interop.loadState interop.readState interop.registered library.opcheck distributed.allreduceHook distributed.bf16CompressHook distributed.fp16CompressHook distributed.powerSGDHook distributed.batchedPowerSGDHook distributed.assignBuckets distributed.recordCollectives distributed.functional distributed_fsdp.describeUnits distributed_fsdp.flatLayout distributed_fsdp.shard distributed_fsdp.wrapTargets distributed_fsdp.SimpleProfiler tensorfx.fx.Node tensorfx.fx.NodeSource tensorfx.fx.Proxy tensorfx.fx.Slice tensorfx.fx.PH tensorfx.fx.PyTreeCodeGen tensorfx.fx.makeProxy tensorfx.fx.makeGraphModule tensorfx.fx.mapArg tensorfx.fx.mapAggregate tensorfx.fx.setCurrentMeta tensorfx.fx.setStackTrace tensorfx.fx.preserveNodeMeta tensorfx.fx.useLazyGraphModule tensorfx.nn.Buffer tensorfx.nn.Uninitialized fx_passes.OpSupports fx_passes.PassResult fx_passes.asPass fx_passes.createOpSupport fx_passes.defaultMatching fx_passes.getCSEBannedOps fx_passes.partitionByDevice fx_passes.getattrRecursive fx_passes.theseBeforeThosePassConstraint fx_passes.thisBeforeThatPassConstraint fx_experimental.Equality fx_experimental.MetaTracer fx_experimental.ShapeReport fx_experimental.SizeExpression fx_experimental.TypeList fx_experimental.UnionFind fx_experimental.immutable fx_experimental.register fx_experimental.splitResultTensors fx_experimental.unifyEq compile.ExplainOutput debug.Drift debug.KeyAverages debug.NumericsLog debug.Profile debug.Summary debug.TrainingComparison',
  'methods that the library calls, or that subclasses override':
    'x.realize x.asParameter x.copyFrom x.getitem x.newTensor x.transfer x.valueOf graph.willChange graph.isListed graph.numberNodes graph.generateCode graph.processOutputs node.rename node.copyMeta graphModule.beforeEdit graphModule.forgetCode graphModule.attribute graphModule.assignAttribute graphModule.fire graphModule.shallowCopy graphModule.makeLike graphModule.makeEmpty tracer. conv.moreRepr lstm.recurrence attention.project group. generator.draw memoryFileStore. inputWriter.takeBack inputReader.',
  'operators under another name, which count their arguments themselves': 'x.allclose x.equal x.where tensorfx.torch.promoteTypes',
}
/** Members of any sample, with the same reasons. */
const MEMBERS = new Set([
  'toString',
  'extraRepr',
  'getName',
  'forward',
  'resetParameters',
  'resetRunningStats',
  'ownParameters',
  'ownBuffers',
  'readOptions',
  'apply',
  'mapNodesToValues',
  'keys',
  'values',
  'entries',
  'run',
])

const isLeftOut = (name: string): boolean =>
  MEMBERS.has(name.slice(name.lastIndexOf('.') + 1)) ||
  Object.values(IGNORES).some((names) => names.split(' ').some((start) => start !== '' && name.startsWith(start)))

/** How many parameters a function has; null if it takes any number, or counts them itself. */
function parametersOf(fn: object): number | null {
  const text = Function.prototype.toString.call(fn)
  const from = text.startsWith('class') ? text.search(/\n\s*constructor\(/) : 0
  const open = text.indexOf('(', from < 0 ? text.length : from)
  if (open < 0) return null
  let [depth, count, hasSome] = [0, 0, false]
  for (let i = open; i < text.length; i++) {
    const character = text[i] ?? ''
    if ('([{'.includes(character)) depth++
    else if (')]}'.includes(character)) depth--
    else if (character === ',' && depth === 1) {
      count++
      hasSome = false
      continue
    }
    if (text.startsWith('...', i) && depth === 1) return null
    if (depth === 0) return count + Number(hasSome)
    if (i > open && character.trim() !== '') hasSome = true
  }
  return null
}

/** What is wrong with the answer to a surplus argument; null if it is named. */
async function answer(call: (args: readonly unknown[]) => unknown, count: number): Promise<string | null> {
  try {
    const result: unknown = await call([...Array.from({ length: count }, () => undefined), 'the surplus'])
    if (typeof result === 'object' && result !== null && 'next' in result && typeof result.next === 'function') result.next()
  } catch (error) {
    if (error instanceof ArgumentError && error.message.includes(`takes ${count === 0 ? 'none' : count}; 'the surplus' is one too many`)) return null
    return String(error).slice(0, 120)
  }
  return 'accepted'
}

it('every public function refuses an argument more than it takes (difference: surplus-arguments)', async () => {
  const { library, reset } = await loadSurface((entry) => entries[entry]?.() ?? Promise.reject(new Error(entry)))
  const { found } = surfaceOf(library.entries, library.samples)
  const findings: string[] = []
  let judged = 0
  for (const [name, call] of found) {
    if (isLeftOut(name) || 'op' in call.of) continue
    const count = parametersOf(call.of)
    if (count === null) continue
    judged++
    const wrong = await answer(call, count)
    if (wrong !== null) findings.push(`${name}: ${wrong}`)
    await reset()
  }
  expect(findings).toEqual([])
  expect(judged).toBeGreaterThan(500)
})

it('every layer refuses an input more than its forward takes', () => {
  const findings: string[] = []
  let judged = 0
  for (const [name, type] of Object.entries(nn)) {
    const prototype: unknown = typeof type === 'function' ? type.prototype : null
    if (!(prototype instanceof nn.Module) && !(typeof prototype === 'object' && prototype !== null && 'forward' in prototype)) continue
    const forward: unknown = Reflect.get(prototype, 'forward')
    const count = typeof forward === 'function' ? parametersOf(forward) : null
    if (typeof forward !== 'function' || count === null || /^forward\(\) \{\s*throw/.test(String(forward))) continue
    judged++
    try {
      Reflect.apply(forward, Object.create(prototype), [...Array.from({ length: count }, () => undefined), 'the surplus'])
      findings.push(`${name}: accepted`)
    } catch (error) {
      if (!String(error).includes(`${name}.forward: ${count + 1} argument`) || !String(error).includes("'the surplus' is one too many"))
        findings.push(`${name}: ${String(error)}`)
    }
  }
  expect(findings).toEqual([])
  expect(judged).toBeGreaterThan(120)
})

// Lazy GraphModules: code is generated when somebody needs it. PyTorch's test_lazy_graph_module.
import { describe, expect, it } from 'vitest'
import { compile, nn, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { makeFx } from 'tensorfx/aot'
import { Graph, GraphModule, LazyGraphModule, Transformer, makeGraphModule, symbolicTrace, useLazyGraphModule } from 'tensorfx/fx'
import { setTrace } from 'tensorfx/fx/experimental'
import { loadGraphModule, saveGraphModule } from 'tensorfx/interop'

const x = torch.tensor([0.5, -1, 2])
const f = (t: Tensor): Tensor => t.sin()
const values = (t: unknown): unknown => (t as Tensor).toArray()

/** A lazy module that nobody has run or read. */
function lazily(program: (t: Tensor) => Tensor = f): LazyGraphModule {
  const gm = useLazyGraphModule(true, () => symbolicTrace(program))
  expect(gm).toBeInstanceOf(LazyGraphModule)
  expect((gm as LazyGraphModule).needsRecompile).toBe(true)
  return gm as LazyGraphModule
}

function sinToCos(gm: GraphModule): void {
  for (const node of gm.graph.findNodes({ op: 'call_method', target: 'sin' })) node.target = 'cos'
}

describe('a lazy GraphModule', () => {
  it('test_replace_sin_with_cos: an edit shows after recompile', () => {
    const gm = lazily()
    sinToCos(gm)
    gm.recompile()
    expect(gm.code).toContain('.cos()')
    expect(values(gm.call(x))).toEqual(values(torch.cos(x)))
  })

  it('test_call_forward_directly: forward generates the code', () => {
    const gm = lazily()
    expect(values(gm.forward(x))).toEqual(values(torch.sin(x)))
    expect(gm.needsRecompile).toBe(false)
  })

  it('test_needs_recompile: until the module ran, and again after recompile', () => {
    const gm = lazily()
    gm.call(x)
    expect(gm.needsRecompile).toBe(false)
    gm.recompile()
    expect(gm.needsRecompile).toBe(true)
    LazyGraphModule.forceRecompile(gm)
    expect(gm.needsRecompile).toBe(false)
    LazyGraphModule.forceRecompile(symbolicTrace(f))
  })

  it('test_multi_recompile: each recompile after an edit counts, at the next use', () => {
    const gm = lazily()
    expect(values(gm.call(x))).toEqual(values(torch.sin(x)))
    sinToCos(gm)
    // As with any GraphModule, the edit alone is not seen.
    expect(gm.needsRecompile).toBe(false)
    expect(values(gm.call(x))).toEqual(values(torch.sin(x)))
    gm.recompile()
    gm.recompile()
    expect(gm.needsRecompile).toBe(true)
    expect(values(gm.call(x))).toEqual(values(torch.cos(x)))
    expect(gm.needsRecompile).toBe(false)
  })

  it('test_accessing_code_cause_recompiling: reading the code generates it, also through what recompile returned', () => {
    const gm = lazily()
    expect(gm.code).toContain('.sin()')
    expect(gm.needsRecompile).toBe(false)
    sinToCos(gm)
    const code = gm.recompile()
    expect(gm.needsRecompile).toBe(true)
    expect([code.source, code.lineCount, code.nodeAt(2)?.target, code.lineMap.size, [...code.globals.keys()]]).toEqual([gm.code, 4, 'cos', 2, []])
    expect(gm.needsRecompile).toBe(false)
  })

  it('test_graph_module_str: printing generates it', () => {
    const gm = lazily()
    expect(String(gm)).toContain('.sin()')
    expect(gm.needsRecompile).toBe(false)
  })

  it('test_recapture_with_make_fx: makeFx runs it, and gives a lazy module', () => {
    const gm = lazily()
    const again = useLazyGraphModule(true, () => makeFx((t: Tensor) => gm.call(t))(x))
    expect([gm.needsRecompile, (again as LazyGraphModule).needsRecompile]).toEqual([false, true])
    expect(values(again.call(x))).toEqual(values(torch.sin(x)))
  })

  it('test_recapture_with_symbolic_trace: a trace runs it, and gives a lazy module', () => {
    const gm = lazily()
    const again = useLazyGraphModule(true, () => symbolicTrace(gm)) as LazyGraphModule
    expect([gm.needsRecompile, again.needsRecompile]).toEqual([false, true])
    expect(String(again.graph)).toBe(String(gm.graph))
    const transformed = useLazyGraphModule(true, () => new Transformer(again).transform()) as LazyGraphModule
    expect([again.needsRecompile, transformed.needsRecompile]).toEqual([true, true])
  })

  it('test_recapture_with_dynamo: compile runs it', () => {
    const gm = lazily()
    expect(values(compile((t: Tensor) => gm.call(t) as Tensor)(x))).toEqual(values(torch.sin(x)))
    expect(gm.needsRecompile).toBe(false)
  })

  it('test_save_lazy_foward: a forward that was kept stays valid', () => {
    const gm = lazily()
    const kept = gm.forward.bind(gm)
    expect(values(kept(x))).toEqual(values(torch.sin(x)))
    sinToCos(gm)
    gm.recompile()
    expect(values(kept(x))).toEqual(values(torch.cos(x)))
  })

  it('test_pickle: saved and loaded, it computes the same', () => {
    const gm = lazily()
    sinToCos(gm)
    gm.recompile()
    const loaded = loadGraphModule(saveGraphModule(gm))
    expect(values(loaded.call(x))).toEqual(values(torch.cos(x)))
    expect(String(loaded.graph)).toBe(String(gm.graph))
  })

  it('test_make_graph_module: scopes say which class is made, nest, and end', () => {
    const make = (): boolean => makeGraphModule({}, new Graph()) instanceof LazyGraphModule
    const seen = [make()]
    {
      using _outer = useLazyGraphModule(true)
      seen.push(make())
      seen.push(useLazyGraphModule(false, make))
      expect(() => useLazyGraphModule(false, () => expect.fail('out'))).toThrow('out')
      seen.push(make(), symbolicTrace(f) instanceof LazyGraphModule)
    }
    seen.push(make(), symbolicTrace(f) instanceof LazyGraphModule)
    expect(seen).toEqual([false, true, false, true, true, false, false])
    expect(makeGraphModule({}, new Graph(), 'Name').className).toBe('Name')
  })

  it('setTrace reaches it', () => {
    const gm = lazily()
    expect(setTrace(gm).code).toContain('  debugger\n')
    gm.recompile()
    expect(gm.code).not.toContain('debugger')
  })

  it('is made of a plain one, and copies are lazy as well', () => {
    const plain = symbolicTrace(new nn.Sequential(new nn.Linear(3, 2)))
    const gm = LazyGraphModule.fromGraphModule(plain)
    expect(LazyGraphModule.fromGraphModule(gm)).toBe(gm)
    expect([gm.graph === plain.graph, gm.graph.owningModule === gm]).toEqual([true, true])
    for (const copy of [gm.deepCopy(), gm.shallowCopy()]) {
      expect((copy as LazyGraphModule).needsRecompile).toBe(true)
      expect(values(copy.call(x))).toEqual(values(plain.call(x)))
    }
  })
})

// Passes of all kinds, run over modules.
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { nn, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { GraphModule, Transformer, symbolicTrace } from 'tensorfx/fx'
import type { Node } from 'tensorfx/fx'
import { NormalizeArgs, foldBatchNorms, foldConstants, fuse } from 'tensorfx/fx/experimental'
import {
  CSEPass,
  PassBase,
  PassError,
  PassManager,
  PassResult,
  ShapeProp,
  asPass,
  createOpSupport,
  cse,
  deadCode,
  fuseSupported,
  interpreterPass,
  legalize,
  observeTransforms,
  passResultWrapper,
  propagateShapes,
  runPasses,
  setVerification,
  splitInto,
  splitTags,
  unusedSubmodules,
} from 'tensorfx/fx/passes'
import type { Pass, PassRecord } from 'tensorfx/fx/passes'

let before = false
beforeAll(() => void (before = setVerification(true)))
afterAll(() => void setVerification(before))

const names = (gm: GraphModule): string[] => [...gm.graph.nodes].map((node) => node.name)
const value = (gm: GraphModule, ...inputs: readonly Tensor[]): number[] => (gm.call(...inputs) as Tensor).flatten().toArray() as number[]
const twice = (): GraphModule => symbolicTrace((x: Tensor) => torch.cos(x).add(torch.cos(x)))

/** `x -> relu(x)` becomes `x -> neg(x)`, in place. */
function negate(gm: GraphModule): void {
  for (const node of gm.graph.findNodes({ op: 'call_function', target: torch.relu })) node.target = torch.neg
}

describe('runPasses', () => {
  it('runs a list of passes, and says what each of them did', () => {
    const gm = symbolicTrace((x: Tensor) => {
      torch.sin(x)
      return torch.cos(x).add(torch.cos(x))
    })
    const { value: result, changed, runs } = runPasses([deadCode, cse, deadCode], gm)
    expect(names(result)).toEqual(['x', 'cos', 'add', 'output'])
    expect(changed).toBe(true)
    expect(runs.map((run) => [run.name, run.changed])).toEqual([
      ['deadCode', true],
      ['cse', true],
      ['deadCode', false],
    ])
    expect(value(result, torch.zeros([1]))).toEqual([2])
  })

  it('takes functions, Transformers and PyTorch’s classes for passes', () => {
    class NegToRelu extends Transformer {
      override callFunction(target: Node['target'], args: readonly unknown[], kwargs: Readonly<Record<string, unknown>>): unknown {
        return super.callFunction(target === torch.neg ? torch.relu : target, args, kwargs)
      }
    }
    const gm = symbolicTrace((x: Tensor) => torch.relu(x))
    const { value: result, runs } = runPasses([negate, NegToRelu, passResultWrapper(negate), new CSEPass(), (m) => m.graph.size > 9, (m) => m], gm)
    expect(runs.map((run) => [run.name, run.changed])).toEqual([
      ['negate', true],
      ['NegToRelu', true],
      ['negate', true],
      ['CSEPass', false],
      ['', false],
      ['', true],
    ])
    expect(value(result, torch.ones([1]))).toEqual([-1])
  })

  it('recompiles after each pass that changed something', () => {
    const gm = symbolicTrace((x: Tensor) => torch.relu(x))
    const seen: number[][] = []
    runPasses([negate, (m) => void seen.push(value(m, torch.ones([1])))], gm)
    expect(seen).toEqual([[-1]])
    const recompile = vi.spyOn(gm, 'recompile')
    runPasses([deadCode], gm)
    expect(recompile).not.toHaveBeenCalled()
  })

  it('lints between passes where verification is on, and names the pass that broke the graph', () => {
    const broken = (gm: GraphModule): void => {
      const [x, relu] = [...gm.graph.nodes] as [Node, Node]
      relu.append(x)
    }
    const trace = (): GraphModule => symbolicTrace((x: Tensor) => torch.relu(x))
    expect(() => runPasses([broken], trace())).toThrow(PassError)
    expect(() => runPasses([broken], trace())).toThrow(
      "pass 'broken' left a value that is not well formed: Argument 'x' of Node 'relu' was used before",
    )
    expect(() => runPasses([broken], trace(), { verify: false })).not.toThrow()
    setVerification(false)
    expect(() => runPasses([broken], trace())).not.toThrow()
    setVerification(true)
    const check = vi.fn<(gm: GraphModule) => void>()
    runPasses([broken, legalize], trace(), { verify: check })
    expect(check).toHaveBeenCalledTimes(2)
  })

  it('observers see each pass before and after it; a pass that needs another one says so', () => {
    const log: string[] = []
    const observer = {
      before: (pass: Pass<GraphModule>, gm: GraphModule) => void log.push(`${pass.name} ${gm.graph.size}`),
      after: (pass: Pass<GraphModule>, gm: GraphModule) => void log.push(`${pass.name} ${gm.graph.size}`),
    }
    runPasses([cse], twice(), { observers: [observer] })
    expect(log).toEqual(['cse 5', 'cse 4'])
    const late: Pass<GraphModule> = { name: 'late', requires: ['cse'], run: () => false }
    expect(() => runPasses([late], twice())).toThrow("pass 'late' needs 'cse' to run before it")
    expect(runPasses([cse, late], twice()).runs.length).toBe(2)
  })

  it('observeTransforms reports what each pass changed, also one that fails', () => {
    const records: PassRecord[] = []
    const observers = [observeTransforms({ onChange: (record) => void records.push(record) })]
    const half = (gm: GraphModule): never => {
      gm.graph.insertingBefore(gm.graph.outputNode(), () => gm.graph.callFunction(torch.sin, [gm.graph.first]))
      throw new Error('half way')
    }
    expect(() => runPasses([deadCode, cse, half], twice(), { observers })).toThrow('half way')
    expect(records.map((r) => [r.passName, [...r.createdNodes], [...r.erasedNodes]])).toEqual([
      ['cse', [], ['cos_1']],
      ['half', ['sin'], []],
    ])
  })

  it('rejects anything but a GraphModule, and classes that are not passes', () => {
    expect(() => runPasses([cse], {} as GraphModule)).toThrow("runPasses: argument 'gm' must be a GraphModule")
    expect(() => runPasses([CSEPass as never], twice())).toThrow('the class CSEPass is not a pass; pass an instance of it')
  })

  it('asPass gives other names, and leaves a Pass as it is', () => {
    expect(asPass(cse)).toBe(cse)
    expect(asPass(negate).name).toBe('negate')
    expect(asPass(new CSEPass(), 'again').name).toBe('again')
    class Ensures extends PassBase {
      override call(gm: GraphModule): PassResult {
        return new PassResult(gm, false)
      }
      override ensures(): void {
        throw new Error('not done')
      }
    }
    expect(() => asPass(new Ensures()).run(twice())).toThrow('not done')
  })
})

describe('the passes of the library', () => {
  it.each([
    ['deadCode', deadCode],
    ['cse', cse],
    ['legalize', legalize],
    ['unusedSubmodules', unusedSubmodules],
    ['foldConstants', foldConstants],
    ['foldBatchNorms', foldBatchNorms],
  ])('%s changes nothing where there is nothing to do', (name, pass) => {
    const gm = symbolicTrace(new nn.Linear(2, 2)).eval()
    const { value: result, changed } = runPasses([pass], gm)
    expect(pass.name).toBe(name)
    expect(changed).toBe(false)
    expect(names(result)).toEqual(names(gm))
  })

  it('unusedSubmodules removes what no node refers to', () => {
    const gm = symbolicTrace(new nn.Sequential(new nn.Linear(2, 2)))
    gm.addSubmodule('other.deep', new nn.ReLU())
    expect(runPasses([unusedSubmodules], gm).changed).toBe(true)
    expect(gm.attribute('other')).toBeUndefined()
    expect(gm.attribute('0')).toBeInstanceOf(nn.Linear)
  })

  it('legalize puts nodes in order', () => {
    const gm = symbolicTrace((x: Tensor) => torch.relu(x))
    const [first, second] = [...gm.graph.nodes] as [Node, Node]
    second.append(first)
    expect(runPasses([legalize], gm).changed).toBe(true)
    expect(names(gm)).toEqual(['x', 'relu', 'output'])
  })

  it('propagateShapes records shapes and changes nothing', () => {
    const gm = symbolicTrace((x: Tensor) => x.sum(0))
    expect(runPasses([propagateShapes(torch.ones([2, 3]))], gm).changed).toBe(false)
    expect([...gm.graph.nodes].map((node) => node.meta['tensor_meta'])).toMatchObject([{ shape: [2, 3] }, { shape: [3] }, { shape: [3] }])
    expect(interpreterPass(NormalizeArgs, []).name).toBe('NormalizeArgs')
  })

  it('splitInto, splitTags and fuseSupported make submodules', () => {
    const calls = (gm: GraphModule): string[] => gm.graph.findNodes({ op: 'call_module' }).map((node) => node.target)
    const split = runPasses([splitInto((node) => (node.name === 'add' ? 1 : 0))], twice())
    expect(calls(split.value)).toEqual(['submod_0', 'submod_1'])
    const tag = (gm: GraphModule): boolean => {
      for (const node of gm.graph.nodes) node.meta['tag'] = node.name === 'add' ? 'late' : 'early'
      return false
    }
    expect(calls(runPasses([tag, splitTags(['early', 'late'])], twice()).value)).toEqual(['early', 'late'])
    const fused = runPasses([fuseSupported(createOpSupport((_gm, node) => node.target === torch.cos))], twice())
    expect([calls(fused.value), fused.changed]).toEqual([['fused_0'], true])
    expect(runPasses([fuseSupported(createOpSupport(() => false))], twice()).changed).toBe(false)
    for (const { value: result } of [split, fused]) expect(value(result, torch.zeros([1]))).toEqual([2])
  })

  it('foldConstants, foldBatchNorms and fuse give another module', () => {
    const net = new nn.Sequential(new nn.Linear(2, 2), new nn.BatchNorm1d(2)).eval()
    const gm = symbolicTrace(net)
    const x = torch.ones([1, 2])
    // A linear layer and a norm are one only for matrices.
    new ShapeProp(gm).propagate(x)
    for (const pass of [foldBatchNorms, fuse]) {
      const { value: result, changed } = runPasses([pass], gm)
      expect(changed).toBe(true)
      expect(names(result)).toEqual(['input_1', '_0', 'output'])
      expect(torch.allclose(result.call(x) as Tensor, net.call(x) as Tensor)).toBe(true)
    }
    class Scaled extends nn.Module {
      scale = new nn.Parameter(torch.ones([1]))
      override forward(input: Tensor): Tensor {
        return input.mul(this.scale.add(1))
      }
    }
    const folded = runPasses([foldConstants], symbolicTrace(new Scaled()))
    expect(folded.changed).toBe(true)
    expect(value(folded.value, torch.ones([1]))).toEqual([2])
  })

  it('a PassManager runs them, too, and shows them to observers', () => {
    const log: string[] = []
    const manager = new PassManager({
      passes: [deadCode, cse],
      steps: 3,
      observers: [{ after: (pass, _gm, run) => void log.push(`${pass.name} ${run.changed}`) }],
    })
    expect(manager.run(twice()).modified).toBe(true)
    expect(log).toEqual(['deadCode false', 'cse true', 'deadCode false', 'cse false'])
  })
})

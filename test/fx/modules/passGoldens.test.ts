// Constant folding, common subexpressions, the pass manager, patterns with names and breakpoints; PyTorch's experimental.const_fold, passes.dialect.common.cse_pass,
// passes.infra.pass_manager, matcher_with_name_node_map_utils and experimental.debug.
import { expect } from 'vitest'
import { torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { makeFx } from 'tensorfx/aot'
import { Graph, GraphModule, _assert, operator, symbolicTrace } from 'tensorfx/fx'
import type { Node } from 'tensorfx/fx'
import { FoldedGraphModule, setTrace, splitConstSubgraphs } from 'tensorfx/fx/experimental'
import { Linear, Module, Parameter, ReLU, Sequential } from 'tensorfx/nn'
import {
  CSEPass,
  PassBase,
  PassManager,
  PassResult,
  SubgraphMatcherWithNameNodeMap,
  getCSEBannedOps,
  passResultWrapper,
  thisBeforeThatPassConstraint,
} from 'tensorfx/fx/passes'
import type { ManagedPass } from 'tensorfx/fx/passes'
import { detInit, detInput } from '../../helpers/deterministic.ts'
import { checkOutput } from '../samples/harness.ts'
import type { GoldenOutput } from '../samples/golden.ts'
import { X, Y, chain, describeGolden, expectText, messageOf, resultOf } from './golden.ts'

const { add, sub, mul } = operator as unknown as Record<'add' | 'sub' | 'mul', (a: unknown, b: unknown) => Tensor>

/** A model with two parameters of one element. */
abstract class Two extends Module {
  a: Parameter = new Parameter(detInput([1], 1))
  b: Parameter = new Parameter(detInput([1], 2))
}

interface Folded {
  readonly graph: string
  readonly const: string | null
  readonly name: string | null
  readonly 'run before': boolean
  readonly 'run after': boolean
  readonly value: unknown
  readonly folded?: number[] | number[][]
}

/** The values are those of a golden. */
function expectValues(ours: unknown, theirs: unknown): void {
  if (Array.isArray(theirs)) for (const [i, value] of theirs.entries()) expectValues((ours as unknown[])[i], value)
  else if (typeof theirs === 'object' && theirs !== null && !('dtype' in theirs))
    for (const [key, value] of Object.entries(theirs)) expectValues(Reflect.get(ours as object, key), value)
  else checkOutput(ours, theirs as GoldenOutput)
}

/** Folding gives PyTorch's graphs and values. */
function folds(
  model: Module,
  x: Tensor,
  golden: Folded,
  options: { skip?: (node: Node) => boolean; strings?: readonly string[] } = {},
): FoldedGraphModule {
  const folded = splitConstSubgraphs(model, options.skip)
  expectText(folded, golden.graph, options.strings)
  expect(folded.constSubgraphModule === null).toBe(golden.const === null)
  // The users of a node may be in another order.
  if (folded.constSubgraphModule !== null) expect(String(folded.constSubgraphModule.graph)).toBe(golden.const)
  expect(folded.fxConstFoldedAttrsName).toBe(golden.name)
  expect(folded.hasFoldingBeenRun).toBe(golden['run before'])
  expectValues(folded.call(x), golden.value)
  expect(folded.hasFoldingBeenRun).toBe(golden['run after'])
  return folded
}

const five = detInput([1], 5)

describeGolden('const_fold', {
  one_attribute: (golden) => {
    class A extends Two {
      override forward(x: Tensor): Tensor {
        return sub(add(this.a, this.b), mul(x, this.a))
      }
    }
    folds(new A(), five, resultOf(golden))
  },
  several_attributes: (golden) => {
    class A extends Two {
      override forward(x: Tensor): Tensor {
        const s = add(this.a, this.b)
        const d = sub(this.a, this.b)
        return add(operator.truediv(add(mul(s, 2), x), d), s)
      }
    }
    const folded = folds(new A(), five, resultOf(golden))
    expect([...folded.parameters()].map((p) => p.shape).slice(-3)).toEqual(resultOf<Folded>(golden).folded)
  },
  nothing_to_fold: (golden) => {
    class A extends Two {
      override forward(x: Tensor): Tensor {
        return add(x, this.a)
      }
    }
    folds(new A(), five, resultOf(golden))
  },
  skip_function: (golden) => {
    class A extends Two {
      override forward(x: Tensor): Tensor {
        return add(add(torch.sin(this.a), torch.cos(this.b)), x)
      }
    }
    folds(new A(), five, resultOf(golden), { skip: (node) => node.target === torch.sin })
  },
  impure_is_not_folded: (golden) => {
    class A extends Two {
      override forward(x: Tensor): Tensor {
        _assert(operator.gt(this.a, -5), 'm')
        return add(torch.sin(this.a), x)
      }
    }
    folds(new A(), five, resultOf(golden), { strings: ['m'] })
  },
  module_of_constants: (golden) => {
    class A extends Module {
      l: Linear = new Linear(2, 2)
      w: Parameter = new Parameter(detInput([1, 2], 4))
      override forward(x: Tensor): Tensor {
        return add(this.l.call(this.w), this.l.call(x))
      }
    }
    folds(detInit(new A()), detInput([1, 2], 5), resultOf(golden))
  },
  name_collision: (golden) => {
    class A extends Two {
      _FX_CONST_FOLDED_ATTRS: Parameter = new Parameter(detInput([1], 9))
      override forward(x: Tensor): Tensor {
        return add(add(add(this.a, this.b), this._FX_CONST_FOLDED_ATTRS), x)
      }
    }
    folds(new A(), five, resultOf(golden))
  },
  dictionary_and_tuple_outputs: (golden) => {
    class A extends Two {
      override forward(x: Tensor): unknown {
        return { s: add(this.a, this.b), t: [add(x, 1), mul(this.a, 2)] }
      }
    }
    folds(new A(), five, resultOf(golden))
  },
  run_folding_twice: (golden) => {
    const [error, , requiresGrad] = resultOf<[{ error: string }, string, boolean]>(golden)
    expect(error.error).toBe('Folding has already been run')
    class A extends Two {
      override forward(x: Tensor): Tensor {
        return add(add(this.a, this.b), x)
      }
    }
    const folded = splitConstSubgraphs(new A())
    folded.runFolding()
    expect(messageOf(() => folded.runFolding())).toContain('the constants of this module have already been computed')
    const value = folded.getParameter(folded.fxConstFoldedAttrsName ?? '')
    expect([value instanceof Parameter, value.requiresGrad]).toEqual([true, requiresGrad])
  },
})

interface Cse {
  readonly before: string
  readonly after: string
  readonly modified: boolean
  readonly 'same object': boolean
  readonly again: boolean
}

/** The names of the operators in a graph of PyTorch's primitive operators, by those that are used here. */
const opsOf = (text: string): string[] => [...text.matchAll(/aten\.(\w+)/g)].map(([, name = '']) => (name === 'slice' ? 'getitem' : name))

/** The pass merges as PyTorch's. */
function merges(program: (...args: Tensor[]) => unknown, inputs: readonly Tensor[], golden: Cse, pass: CSEPass = new CSEPass()): void {
  const gm = makeFx(program as (...args: never[]) => unknown)(...inputs)
  const functions = (g: GraphModule): number => [...g.graph.nodes].filter((node) => node.op === 'call_function').length
  const removed = functions(gm)
  const result = pass.run(gm)
  result.graphModule.graph.lint()
  expect(removed - functions(result.graphModule)).toBe(opsOf(golden.before).length - opsOf(golden.after).length)
  expect([result.modified, result.graphModule === gm]).toEqual([golden.modified, golden['same object']])
  expect(pass.run(result.graphModule).modified).toBe(golden.again)
  if (!golden.before.includes('rand')) expect(torch.allclose(result.graphModule.call(...inputs), gm.call(...inputs))).toBe(true)
}

describeGolden('dialect.common.cse_pass', {
  duplicate: (golden) => {
    merges((x) => torch.sin(x as Tensor).mul(torch.sin(x as Tensor)), [X], resultOf(golden))
  },
  nested: (golden) => {
    merges((x) => x?.cos().add(1).sin().add(x.cos().add(1).sin()), [X], resultOf(golden))
  },
  nothing: (golden) => {
    merges((x) => x?.sin().add(x.cos()), [X], resultOf(golden))
  },
  argument_order_matters: (golden) => {
    const program = (x: Tensor, y: Tensor): Tensor => x.sub(y).mul(y.sub(x)).add(x.sub(y)).add(x.add(y)).add(y.add(x))
    merges(program as (...args: Tensor[]) => Tensor, [X, Y], resultOf(golden))
  },
  banned: (golden) => {
    const [result] = resultOf<[Cse]>(golden)
    merges((x) => x?.sin().add(x.sin()).add(x.cos()).add(x.cos()), [X], result, new CSEPass([torch.sin]))
  },
  'random_is_banned_only_if_asked (difference: random-stays)': (golden) => {
    const [merged, banned] = resultOf<[boolean, Cse]>(golden)
    expect(merged).toBe(true)
    for (const pass of [new CSEPass(), new CSEPass(getCSEBannedOps())])
      merges((x) => torch.randLike(x as Tensor).add(torch.randLike(x as Tensor)), [X], banned, pass)
  },
  'banned_list (difference: own-schemas)': (golden) => {
    const ours = [...getCSEBannedOps()].map((op) => `aten.${(typeof op === 'string' ? op : op.name).replace(/[A-Z]/g, (c) => `_${c.toLowerCase()}`)}`)
    const theirs = new Set(resultOf<string[]>(golden))
    const inPlace = [...theirs].filter((name) => /[^_]_$/.test(name))
    expect(inPlace.filter((name) => name.slice(5) in torch && !ours.includes(name))).toEqual([])
    expect(
      ['aten.rand', 'aten.rand_like', 'aten.randn', 'aten.randint', 'aten.randperm', 'aten.dropout', 'aten.bernoulli'].filter(
        (name) => !ours.includes(name),
      ),
    ).toEqual([])
  },
  'same_hash_different_value (difference: values-by-type)': (golden) => {
    const { before, after } = resultOf<Cse>(golden)
    expect(opsOf(before).filter((op) => op === 'mul').length - opsOf(after).filter((op) => op === 'mul').length).toBe(2)
    const program = symbolicTrace((x: Tensor) => [
      operator.mul(x, 1),
      operator.mul(x, true),
      operator.mul(x, '1'),
      operator.mul(x, 1n),
    ]) as GraphModule
    expect(new CSEPass().run(program).modified).toBe(false)
  },
})

const swapped = (from: unknown, to: (x: Tensor) => Tensor) => (gm: GraphModule) => {
  let modified = false
  for (const node of gm.graph.nodes) {
    if (node.target !== from) continue
    node.target = to
    modified = true
  }
  return new PassResult(gm, modified)
}
const reluToSigmoid = Object.defineProperty(swapped(torch.relu, torch.sigmoid), 'name', { value: 'reluToSigmoid' })
const sinToCos = Object.defineProperty(swapped(torch.sin, torch.cos), 'name', { value: 'sinToCos' })
const flip = (gm: GraphModule): PassResult => new PassResult(gm, false)
const alwaysChanged = (gm: GraphModule): PassResult => new PassResult(gm, true)
const passNames = (manager: PassManager): string[] => manager.passes.map((pass) => (pass as { name: string }).name)

describeGolden('infra.pass_manager', {
  until_nothing_changes: (golden) => {
    const [order, modified, text] = resultOf<[string[], boolean, string]>(golden)
    const log: string[] = []
    const logged = (name: string, pass: (gm: GraphModule) => PassResult) => (gm: GraphModule) => {
      log.push(name)
      return pass(gm)
    }
    const result = new PassManager({ passes: [logged('a', reluToSigmoid), logged('b', sinToCos)], steps: 5 }).run(chain())
    expect([log, result.modified]).toEqual([order, modified])
    expectText(result.graphModule, text)
  },
  steps_limit: (golden) => {
    let runs = 0
    const counted = (gm: GraphModule): PassResult => {
      runs++
      return alwaysChanged(gm)
    }
    expect([
      new PassManager({ passes: [reluToSigmoid, counted], steps: 3 }).run(chain()).modified,
      runs,
      new PassManager({ passes: [reluToSigmoid] }).run(chain()).modified,
      new PassManager({ passes: [flip] }).run(chain()).modified,
    ]).toEqual(golden.result)
  },
  'constraints_are_solved (difference: camel-case)': (golden) => {
    const constraints = [thisBeforeThatPassConstraint(reluToSigmoid, flip), thisBeforeThatPassConstraint(flip, sinToCos)]
    const manager = new PassManager({ passes: [sinToCos, flip, reluToSigmoid], constraints })
    manager.solveConstraints()
    expect(passNames(manager)).toEqual(resultOf<string[]>(golden).map(camel))
  },
  circular: (golden) => {
    const constraints = [thisBeforeThatPassConstraint(flip, sinToCos), thisBeforeThatPassConstraint(sinToCos, flip)]
    const message = messageOf(() => new PassManager({ passes: [sinToCos, flip], constraints }).run(chain()))
    expect(message).toBe(
      camel(
        resultOf<{ error: string }>(golden)
          .error.replaceAll('<function ', '')
          .replaceAll(/ at 0x…>/g, ''),
      ),
    )
  },
  'wrapper (difference: wrapped-passes)': (golden) => {
    class P extends PassBase {
      override call(gm: GraphModule): PassResult {
        return new PassResult(gm, false)
      }
    }
    const lint = (gm: GraphModule): void => gm.graph.lint()
    const same = (gm: GraphModule): GraphModule => gm
    const gm = symbolicTrace((x: Tensor) => add(x, 1)) as GraphModule
    const theirs = resultOf<[string, boolean][]>(golden).slice(0, 4)
    const ours = [lint, same, reluToSigmoid].map((pass) => passResultWrapper(pass)(gm).modified)
    expect([...ours, new P().run(gm).modified]).toEqual(theirs.map(([, modified]) => modified))
    expect(() => passResultWrapper((() => 5) as unknown as ManagedPass & (() => PassResult))(gm)).toThrow()
  },
  wrong_result: (golden) => {
    const [error] = resultOf<[{ error: string }]>(golden)
    const bad = ((gm: GraphModule) => gm.code) as unknown as (gm: GraphModule) => PassResult
    const manager = new PassManager({ passes: [reluToSigmoid, Object.defineProperty(bad, 'name', { value: 'bad' })] })
    const message = messageOf(() => manager.run(chain()))
    expect(message).toContain(camel(error.error).replaceAll(/\['(\w+)'\]/g, '[$1]'))
    expect(message).toContain('The result of the pass bad should be type PassResult')
  },
  failing_pass_names_earlier_ones: (golden) => {
    class Boom extends PassBase {
      override call(): PassResult {
        throw new Error('boom')
      }
    }
    const message = messageOf(() => new PassManager({ passes: [reluToSigmoid, sinToCos, new Boom()] }).run(chain()))
    expect(message).toContain(camel(resultOf<{ error: string }>(golden).error).replace("['reluToSigmoid', 'sinToCos']", '[reluToSigmoid, sinToCos]'))
  },
  check_fails: (golden) => {
    const manager = new PassManager({ passes: [reluToSigmoid], runChecksAfterEachPass: true })
    manager.addChecks((gm) => {
      if ([...gm.graph.nodes].some((node) => node.target === torch.sigmoid)) throw new Error('has sigmoid')
    })
    expect(messageOf(() => manager.run(chain()))).toBe(`${camel(resultOf<{ error: string }>(golden).error)}: has sigmoid`)
  },
  pass_base_requires_and_ensures: (golden) => {
    const [order, modified] = resultOf<[string[], boolean]>(golden)
    const log: string[] = []
    class P extends PassBase {
      override requires(): void {
        log.push('requires')
      }
      override call(gm: GraphModule): PassResult {
        log.push('call')
        return new PassResult(gm, true)
      }
      override ensures(): void {
        log.push('ensures')
      }
    }
    expect(new P().run(chain()).modified).toBe(modified)
    expect(log).toEqual(order)
  },
  'sort_is_stable_without_constraints (difference: camel-case)': (golden) => {
    const sorted = (...constraints: ReturnType<typeof thisBeforeThatPassConstraint>[]): string[] => {
      const manager = new PassManager({ passes: [sinToCos, flip, reluToSigmoid], constraints })
      manager.solveConstraints()
      return passNames(manager)
    }
    expect([sorted(), sorted(thisBeforeThatPassConstraint(reluToSigmoid, sinToCos))]).toEqual(
      resultOf<string[][]>(golden).map((order) => order.map(camel)),
    )
  },
})

function camel(text: string): string {
  return text.replaceAll('relu_to_sigmoid', 'reluToSigmoid').replaceAll('sin_to_cos', 'sinToCos')
}

interface Named {
  readonly 'pattern graph after': string[]
  readonly matches: Record<string, string>[]
}

type Program = (x: Tensor, y: Tensor) => unknown

/** The names of the nodes that a pattern with names finds in a program. */
function namesFound(pattern: Program, program: Program, options: { ignoreLiterals?: boolean } = {}): Record<string, string>[] {
  const target = symbolicTrace(program) as GraphModule
  return new SubgraphMatcherWithNameNodeMap(symbolicTrace(pattern) as GraphModule, options)
    .match(target.graph)
    .map(({ nameNodeMap }) => Object.fromEntries(Array.from(nameNodeMap, ([name, node]) => [name, String(node)])))
}

describeGolden('matcher_with_name_node_map_utils', {
  one_match: (golden) => {
    const [found, error] = resultOf<[Named, { error: string }]>(golden)
    const pattern: Program = (x) => {
      const s = torch.sin(x)
      return [torch.relu(s), { sin: s }]
    }
    const program: Program = (x) => add(torch.relu(torch.sin(x)), 1)
    expect(namesFound(pattern, program)).toEqual(found.matches)
    const dead: Program = (x) => [torch.relu(torch.sin(x)), { sin: torch.sin(x) }]
    expect(messageOf(() => namesFound(dead, program))).toContain(error.error)
  },
  shared_node_named: (golden) => {
    const pattern: Program = (x) => {
      const s = torch.sin(x)
      const r = torch.relu(s)
      return [r, { s, r }]
    }
    expect(namesFound(pattern, (x) => torch.relu(torch.sin(torch.relu(torch.sin(x)))))).toEqual(resultOf<Named>(golden).matches)
  },
  input_may_be_named: (golden) => {
    const pattern: Program = (x, y) => {
      const a = add(x, y)
      return [torch.cos(a), { x, sum: a }]
    }
    expect(namesFound(pattern, (x, y) => torch.cos(add(mul(x, 2), y)))).toEqual(resultOf<Named>(golden).matches)
  },
  overlapping_and_literals: (golden) => {
    const pattern: Program = (x) => {
      const s = add(x, 1)
      return [torch.relu(s), { s }]
    }
    const program: Program = (x) => torch.relu(add(x, 2))
    expect([namesFound(pattern, program), namesFound(pattern, program, { ignoreLiterals: true })]).toEqual(
      resultOf<Named[]>(golden).map(({ matches }) => matches),
    )
  },
  pattern_must_return_tuple: (golden) => {
    expect(
      messageOf(() =>
        namesFound(
          (x) => torch.relu(x),
          (x) => torch.relu(x),
        ),
      ),
    ).toContain(resultOf<{ error: string }>(golden).error)
  },
  pattern_needs_two_outputs: (golden) => {
    expect(
      messageOf(() =>
        namesFound(
          (x) => [torch.relu(x)],
          (x) => torch.relu(x),
        ),
      ),
    ).toContain(resultOf<{ error: string }>(golden).error)
  },
  last_must_be_dict: (golden) => {
    const message = messageOf(() =>
      namesFound(
        (x) => [torch.relu(x), torch.sin(x)],
        (x) => torch.relu(x),
      ),
    )
    expect(message).toContain(resultOf<{ error: string }>(golden).error.replace('input graph', 'pattern graph'))
  },
})

/** PyTorch's code without what differs in all code. */
const debuggers = (code: string): number => [...code.matchAll(/debugger|pdb\.set_trace/g)].length

describeGolden('debug', {
  inserted_line: (golden) => {
    const [same, code] = resultOf<[boolean, string]>(golden)
    const gm = symbolicTrace((x: Tensor) => add(torch.relu(x), 1)) as GraphModule
    expect([setTrace(gm) === gm, debuggers(gm.code)]).toEqual([same, debuggers(code)])
    const body = gm.code.slice(gm.code.indexOf('{') + 1).trim()
    expect(body.startsWith('debugger')).toBe(true)
  },
  twice_and_with_a_transformer: (golden) => {
    const [twice, mixed] = resultOf<[string, string]>(golden)
    const gm = setTrace(setTrace(symbolicTrace((x: Tensor) => torch.relu(x)) as GraphModule))
    expect(debuggers(gm.code)).toBe(debuggers(twice))
    const other = symbolicTrace((x: Tensor) => torch.relu(x)) as GraphModule
    const scope = other.graph.onGenerateCode((current) => (body) => ['// mine', ...(current === null ? body : current(body))])
    setTrace(other)
    scope[Symbol.dispose]()
    expect(mixed.indexOf('set_trace')).toBeLessThan(mixed.indexOf('# mine'))
    expect(other.code.indexOf('debugger')).toBeLessThan(other.code.indexOf('// mine'))
  },
  stops_when_run: (golden) => {
    const [, value] = resultOf<[number, GoldenOutput]>(golden)
    const gm = setTrace(symbolicTrace((x: Tensor) => torch.relu(x)) as GraphModule)
    checkOutput(gm.call(X), value)
    checkOutput(gm.call(X), value)
  },
  graph_and_nodes_unchanged: (golden) => {
    const gm = symbolicTrace((x: Tensor) => torch.relu(x)) as GraphModule
    const before = String(gm.graph)
    expect(String(setTrace(gm).graph) === before).toBe(golden.result)
  },
  empty_graph_and_several_outputs: (golden) => {
    const programs = [symbolicTrace(() => null), symbolicTrace((x: Tensor, y: Tensor) => [x, y])] as GraphModule[]
    expect(programs.map((gm) => debuggers(setTrace(gm).code))).toEqual(resultOf<string[]>(golden).map(debuggers))
  },
  child_graph_modules_are_not_touched: (golden) => {
    const inner = symbolicTrace(new Sequential(new ReLU()))
    const graph = new Graph()
    graph.output(graph.callModule('inner', [graph.placeholder('x')]))
    const gm = setTrace(new GraphModule({ inner }, graph))
    expect([gm.code.includes('debugger'), inner.code.includes('debugger')]).toEqual(golden.result)
  },
  copy_keeps_nothing: (golden) => {
    const gm = setTrace(symbolicTrace((x: Tensor) => torch.relu(x)) as GraphModule)
    expect([gm.deepCopy().code.includes('debugger')]).toEqual(golden.result)
  },
})

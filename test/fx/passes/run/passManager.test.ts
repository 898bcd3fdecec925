// PassManager: PyTorch's test_pass_infra.
import { describe, expect, it } from 'vitest'
import { torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { symbolicTrace } from 'tensorfx/fx'
import type { GraphModule } from 'tensorfx/fx'
import { PassBase, PassManager, PassResult, passResultWrapper, thisBeforeThatPassConstraint } from 'tensorfx/fx/passes'

type Pass = (gm: GraphModule) => PassResult

const program = (x: Tensor): Tensor => torch.add(torch.add(x, x), x)

/** Replaces one function by another; says whether there was one. */
const swap = (from: unknown, to: (...args: never[]) => unknown, name: string): Pass =>
  Object.defineProperty(
    (gm: GraphModule) => {
      let modified = false
      for (const node of gm.graph.nodes) {
        if (node.target !== from) continue
        node.target = to as typeof torch.add
        modified = true
      }
      return new PassResult(gm, modified)
    },
    'name',
    { value: name },
  )
const addToMul = swap(torch.add, torch.mul, 'addToMul')
const mulToDiv = swap(torch.mul, torch.div, 'mulToDiv')

describe('PassManager', () => {
  it('test_pass_manager: runs the passes, and again until nothing changes', () => {
    const gm = symbolicTrace(program)
    const result = new PassManager({ passes: [mulToDiv, addToMul], steps: 5 }).run(gm)
    expect(result.modified).toBe(true)
    expect([...result.graphModule.graph.nodes].filter((n) => n.op === 'call_function').every((n) => n.target === torch.div)).toBe(true)
    expect(new PassManager({ passes: [mulToDiv, addToMul], steps: 5 }).run(gm).modified).toBe(false)
  })

  it('recompiles after each pass', () => {
    const { graphModule } = new PassManager({ passes: [addToMul] }).run(symbolicTrace(program))
    expect((graphModule.call(torch.tensor([2])) as Tensor).toArray()).toEqual([8])
  })

  it('test_this_before_that_pass_constraint: an order that breaks a constraint is an error', () => {
    const manager = new PassManager({ passes: [addToMul, mulToDiv], constraints: [thisBeforeThatPassConstraint(mulToDiv, addToMul)] })
    expect(() => manager.validateConstraints()).toThrow(
      'pass schedule constraint violated. Expected mulToDiv before addToMul but found addToMul at index 0 and mulToDiv at index 1 in pass list.',
    )
    manager.solveConstraints()
    expect(manager.passes).toEqual([mulToDiv, addToMul])
  })

  it('test_pass_manager_checks: checks run first, and after each pass if asked', () => {
    const noDiv = (gm: GraphModule): void => {
      for (const node of gm.graph.nodes) if (node.target === torch.div) throw new Error('no div allowed')
    }
    const manager = new PassManager({ passes: [addToMul, mulToDiv], runChecksAfterEachPass: true })
    manager.addChecks(noDiv)
    expect(() => manager.run(symbolicTrace(program))).toThrow('no div allowed')
  })

  it('test_pass_manager_bad_checks: a check takes the module and nothing else', () => {
    expect(() => new PassManager().addChecks(((_gm: GraphModule, _more: number) => {}) as never)).toThrow(
      'PassManager check function should only take in one variable, a module',
    )
  })

  it('test_topological_sort: passes are ordered by all constraints; a circle is an error', () => {
    const named = ['a', 'b', 'c', 'd', 'e', 'f'].map((name) => swap(null, torch.add, name))
    const [a, b, c, d, e, f] = named as [Pass, Pass, Pass, Pass, Pass, Pass]
    const before = thisBeforeThatPassConstraint
    const order = (passes: Pass[], ...constraints: ReturnType<typeof before>[]): string[] => {
      const manager = new PassManager({ passes, constraints })
      manager.solveConstraints()
      return manager.passes.map((p) => (p as Pass).name)
    }
    expect(order([a, b, c, d, e, f])).toEqual(['a', 'b', 'c', 'd', 'e', 'f'])
    expect(order([a, b, c, d, e, f], before(f, a), before(e, b), before(d, c))).toEqual(['d', 'e', 'f', 'c', 'b', 'a'])
    expect(() => order([a, b, c], before(a, b), before(b, c), before(c, a))).toThrow(
      'Circular dependency detected within the following passes: [a, b, c]',
    )
  })

  it('test_pass_manager_error: the message names the pass and those before it', () => {
    const bad = Object.defineProperty(
      () => {
        throw new Error('bad')
      },
      'name',
      { value: 'passFail' },
    ) as Pass
    expect(() => new PassManager({ passes: [addToMul, mulToDiv, bad] }).run(symbolicTrace(program))).toThrow(
      "An error occurred when running the 'passFail' pass after the following passes: [addToMul, mulToDiv]",
    )
  })

  it('wants a PassResult of each pass', () => {
    expect(() => new PassManager({ passes: [(() => undefined) as unknown as Pass] }).run(symbolicTrace(program))).toThrow(
      'Please wrap it with passResultWrapper()',
    )
    const manager = new PassManager({ passes: [passResultWrapper((gm) => void gm.graph.eliminateDeadCode())] })
    expect(manager.run(symbolicTrace(program)).modified).toBe(true)
  })

  it('runs the checks of a pass that is a class', () => {
    class NeedsAdd extends PassBase {
      override requires(gm: GraphModule): void {
        if (gm.graph.findNodes({ op: 'call_function', target: torch.add }).length === 0) throw new Error('nothing to do')
      }
      override call(gm: GraphModule): PassResult {
        return addToMul(gm)
      }
    }
    const gm = symbolicTrace(program)
    expect(new PassManager({ passes: [new NeedsAdd()] }).run(gm).modified).toBe(true)
    expect(() => new PassManager({ passes: [new NeedsAdd()] }).run(gm)).toThrow("'NeedsAdd' pass after the following passes: []: nothing to do")
  })
})

// PassListManager and its wrappers; PyTorch's passes.pass_manager and passes.tests.test_pass_manager.
import { describe, expect, it } from 'vitest'
import { PassListManager, inplaceWrapper, logHook, loopPass, theseBeforeThosePassConstraint, thisBeforeThatPassConstraint } from 'tensorfx/fx/passes'
import { describeGolden, messageOf, resultOf } from './golden.ts'

const dbl = (v: number): number => v * 2
const inc = (v: number): number => v + 1
const sub = (v: number): number => v - 3

const violated = 'pass schedule constraint violated. Expected dbl before inc but found inc at index 0 and dbl at index 1 in pass list.'

describeGolden('pass_manager', {
  runs_in_order: (golden) => {
    expect([
      new PassListManager([dbl, inc]).run(5),
      new PassListManager([inc, dbl]).run(5),
      new PassListManager<number>().run(5),
      PassListManager.buildFromPasslist([dbl, dbl]).run(1),
    ]).toEqual(golden.result)
  },
  'this_before_that (difference: order-of-names)': (golden) => {
    const [error, ok] = resultOf<[{ error: string }, number]>(golden)
    // PyTorch names the pair the wrong way round, counts the second index from the first pass, and lacks a space.
    expect(error.error).toContain('Expected <function inc at 0x…> before <function dbl at 0x…> but found')
    expect(error.error).toContain('at index0 in pass list.')
    const manager = new PassListManager([inc, dbl])
    manager.addConstraint(thisBeforeThatPassConstraint(dbl, inc))
    expect(messageOf(() => manager.validate())).toBe(violated)
    expect(new PassListManager([dbl, inc], [thisBeforeThatPassConstraint(dbl, inc)]).run(1)).toBe(ok)
  },
  these_before_those_unwraps: (golden) => {
    const [, , value] = resultOf<[unknown, null, number]>(golden)
    const constraint = theseBeforeThosePassConstraint(dbl, inc)
    const wrapped = [loopPass(inc, { nIter: 3 }), loopPass(dbl, { nIter: 5 })]
    expect(messageOf(() => new PassListManager(wrapped, [constraint]).validate())).toBe(violated)
    expect(() => new PassListManager(wrapped, [thisBeforeThatPassConstraint(dbl, inc)]).validate()).not.toThrow()
    expect(new PassListManager([loopPass(dbl, { nIter: 2 }), inc], [constraint]).run(1)).toBe(value)
  },
  add_remove_replace: (golden) => {
    const manager = new PassListManager([dbl])
    manager.addPass(inc)
    manager.addPass(dbl)
    const results: unknown[] = [manager.run(1)]
    manager.removePass(['dbl'])
    results.push(manager.run(1))
    manager.replacePass(inc, sub)
    results.push(manager.run(1))
    manager.removePass(null)
    expect([...results, manager.passes.map((pass) => pass.name)]).toEqual(golden.result)
  },
  inplace_wrapper: (golden) => {
    const push = (list: number[], k = 1): string => {
      list.push(k)
      return 'ignored'
    }
    const pass = inplaceWrapper(push)
    expect([pass([0]), pass([0], 5), pass.name]).toEqual(golden.result)
  },
  log_hook: (golden) => {
    const [value, , logged, name] = resultOf<[number, number, [string, string][], string]>(golden)
    const lines: string[] = []
    const hooked = logHook(dbl, (line) => void lines.push(line))
    expect(hooked(4)).toBe(value)
    expect(lines).toEqual([logged[0]?.[1].replace('<function dbl at 0x…>', 'dbl').replace(' TAB ', '\t')])
    expect(hooked.name).toBe(name)
  },
  validates_once: (golden) => {
    const [first, all] = resultOf<[string[][], number]>(golden)
    const calls: string[][] = []
    const note = (a: { name: string }, b: { name: string }): boolean => calls.push([a.name, b.name]) > 0
    const manager = new PassListManager([dbl, inc, sub], [note])
    manager.run(1)
    manager.run(1)
    expect(calls).toEqual(first)
    manager.addPass(dbl)
    manager.run(1)
    expect(calls.length).toBe(all)
  },
  the_shipped_tests: (golden) => {
    const { tests } = resultOf<{ tests: string[] }>(golden)
    // They are ported below, under their names.
    expect(tests).toEqual(Object.keys(shipped).toSorted())
  },
})

const shipped: Readonly<Record<string, () => void>> = {
  test_pass_manager_builder: () => {
    const passes = Array.from({ length: 10 }, () => (x: number) => 2 * x)
    const manager = new PassListManager(passes)
    manager.validate()
    expect(manager.run(1)).toBe(1024)
  },
  test_this_before_that_pass_constraint: () => {
    const passes = Array.from({ length: 10 }, () => (x: number) => 2 * x)
    const manager = new PassListManager(passes)
    // It cannot be satisfied.
    manager.addConstraint(thisBeforeThatPassConstraint(passes[9] as object, passes[0] as object))
    expect(() => manager.validate()).toThrow('pass schedule constraint violated')
  },
  test_these_before_those_pass_constraint: () => {
    const constraint = theseBeforeThosePassConstraint(dbl, inc)
    const manager = new PassListManager([loopPass(inc, { nIter: 3 }), loopPass(dbl, { nIter: 5 })], [constraint])
    expect(() => manager.validate()).toThrow('pass schedule constraint violated')
  },
  test_two_pass_managers: () => {
    const [one, other] = [new PassListManager<number>(), new PassListManager<number>()]
    one.addPass(dbl)
    one.addConstraint(thisBeforeThatPassConstraint(dbl, inc))
    expect([other.passes.length, other.constraints.length, one.passes.length]).toEqual([0, 0, 1])
  },
}

describe('passes.tests.test_pass_manager', () => {
  for (const [name, body] of Object.entries(shipped)) it(name, body)
})

describe('loopPass', () => {
  it('runs as long as the predicate is true', () => {
    expect(loopPass(dbl, { predicate: (v) => v < 100 })(1)).toBe(128)
  })

  it('needs exactly one of nIter and predicate, and a number above 0 when it runs', () => {
    expect(() => loopPass(dbl, {})).toThrow('exactly one of the options nIter and predicate must be given')
    expect(() => loopPass(dbl, { nIter: 1, predicate: () => false })).toThrow('exactly one of the options')
    const never = loopPass(dbl, { nIter: 0 })
    expect(() => never(1)).toThrow('loop_pass must be given positive int n_iter (given 0) xor predicate (given None)')
  })
})

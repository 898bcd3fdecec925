// compile spends no more time on graphs that are used once than the calls themselves take, plus a constant. Time is counted by a clock of the test.
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { compile, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import type { Backend } from 'tensorfx/compile'
import { isCompiling, reset, withConfig } from 'tensorfx/compile'
import { clock } from '../../../src/dynamo/tree/budget.ts'

const { now } = clock
let time = 0
let compiling = 0
const warn = vi.spyOn(console, 'warn').mockImplementation(() => {})

beforeEach(() => {
  time = 0
  compiling = 0
  clock.now = () => time
})
afterEach(() => {
  clock.now = now
  warn.mockClear()
  reset()
})

/** A backend that takes so many milliseconds for a graph. */
const taking =
  (milliseconds: number): Backend =>
  (gm) => {
    time += milliseconds
    compiling += milliseconds
    return (...inputs) => gm.forward(...inputs) as readonly Tensor[]
  }

/** Calls `f` and compares its results with those of `eager`; how many of the calls ran under a capture. */
function callsOf<A extends unknown[]>(f: (...args: A) => Tensor, eager: (...args: A) => Tensor, calls: readonly A[], seen: () => boolean): number {
  let captured = 0
  for (const args of calls) {
    expect(f(...args).toArray()).toEqual(eager(...args).toArray())
    if (seen()) captured++
  }
  return captured
}

/** A program of one millisecond, which notes whether it is captured. */
function program<A extends unknown[]>(fn: (...args: A) => Tensor): { readonly fn: (...args: A) => Tensor; readonly wasCaptured: () => boolean } {
  let captured = false
  return {
    fn: (...args) => {
      time++
      captured = isCompiling()
      return fn(...args)
    },
    wasCaptured: () => captured,
  }
}

const numbers = (from: number, to: number): [Tensor, number][] => Array.from({ length: to - from }, (_, i) => [torch.ones([2]), from + i])

/** Each count of repetitions is another path. */
const repeated = (x: Tensor, n: number): Tensor => {
  let y = x
  for (let i = 0; i < n; i++) y = y.mul(2)
  return y.neg()
}

describe('a function whose graphs never repeat', () => {
  it('compiles for at most as long as its calls took, plus the budget and one graph (difference: compile-budget)', () => {
    withConfig({ compileBudget: 300, recompileLimit: 10_000 }, () => {
      const { fn } = program(repeated)
      const f = compile(fn, { backend: taking(100) })
      let calls = 0
      for (const [x, n] of numbers(0, 200)) {
        const before = time - compiling
        f(x, n % 60)
        calls += time - compiling - before
        expect(compiling).toBeLessThanOrEqual(300 + calls + 100)
      }
      expect(compiling).toBeGreaterThanOrEqual(300)
    })
  })

  it('says so once, with what changes and what to do', () => {
    withConfig({ compileBudget: 250, recompileLimit: 10_000 }, () => {
      const f = compile((x: Tensor, n: number) => x.reshape([n, -1]).sum(0), { backend: taking(100), dynamic: false })
      for (const n of [1, 2, 3, 4, 6, 12]) f(torch.ones([12]), n)
      expect(warn.mock.calls.map(([text]) => String(text))).toEqual([
        "compile: 'anonymous' has taken paths that have not come again so far: graphs that were used once took 300 ms, more than its calls and config.compileBudget (250 ms). Calls on new paths run eagerly for " +
          "now; when calls repeat they are compiled again. Last change: argument 'size' of torch.Tensor.view was [3,4], is now [4,3]. " +
          'Compile only the part that repeats, pad what changes to a few fixed sizes, or raise config.compileBudget.',
      ])
      expect(f.recompileReasons()).toHaveLength(2)
    })
  })

  it('is bounded also where only the wanted values differ, or the paths part after graph breaks', () => {
    withConfig({ compileBudget: 300 }, () => {
      const wanted = (x: Tensor, n: number): Tensor => Array.from({ length: 20 }, (_, i) => x.mul(i))[n] ?? x
      const breaking = (x: Tensor, n: number): Tensor => {
        let y = repeated(x, n + 1)
        for (let i = 0; i < 4; i++) y = y.sum().item() > -1 ? y.mul(0.5) : y.neg()
        return y
      }
      for (const eager of [wanted, breaking]) {
        const { fn, wasCaptured } = program(eager)
        compiling = 0
        callsOf(compile(fn, { backend: taking(100) }), eager, numbers(0, 16), wasCaptured)
        expect(compiling).toBeLessThanOrEqual(300 + 16 + 100)
      }
    })
  })

  it('is compiled again when its calls repeat', () => {
    withConfig({ compileBudget: 250, recompileLimit: 10_000 }, () => {
      const { fn, wasCaptured } = program(repeated)
      const f = compile(fn, { backend: taking(100) })
      callsOf(f, repeated, numbers(0, 40), wasCaptured)
      const before = f.graphs().length
      // One more path is compiled when its calls have taken long enough, and is then used by each call.
      const same = Array.from({ length: 400 }, (): [Tensor, number] => [torch.ones([2]), 50])
      callsOf(f, repeated, same, wasCaptured)
      expect(f.graphs().length).toBe(before + 1)
      expect(callsOf(f, repeated, same.slice(0, 20), wasCaptured)).toBe(20)
    })
  })
})

it('graphs that are used again cost nothing', () => {
  withConfig({ compileBudget: 100, recompileLimit: 10_000 }, () => {
    const { fn, wasCaptured } = program(repeated)
    const f = compile(fn, { backend: taking(100) })
    const twice = numbers(0, 30).flatMap((call) => [call, call])
    expect(callsOf(f, repeated, twice, wasCaptured)).toBe(60)
    expect(f.graphs()).toHaveLength(30)
    expect(warn).not.toHaveBeenCalled()
  })
})

it('a call whose graphs take longer than the budget is finished by the next calls', () => {
  const four = (x: Tensor): Tensor => {
    let y = x
    for (let i = 0; i < 4; i++) y = y.sum().item() > -1 ? y.mul(2) : y
    return y
  }
  withConfig({ compileBudget: 150 }, () => {
    const { fn, wasCaptured } = program(four)
    const f = compile(fn, { backend: taking(100) })
    const calls = (count: number): [Tensor][] => Array.from({ length: count }, () => [torch.ones([2])])
    expect(callsOf(f, four, calls(1), wasCaptured)).toBe(1)
    expect(f.graphs()).toHaveLength(2)
    callsOf(f, four, calls(600), wasCaptured)
    expect(callsOf(f, four, calls(20), wasCaptured)).toBe(20)
    const { length } = f.graphs()
    callsOf(f, four, calls(20), wasCaptured)
    expect(f.graphs()).toHaveLength(length)
  })
})

describe('after config.recompileLimit', () => {
  it('captures that leave the recorded paths are tried ever more seldom', () => {
    withConfig({ recompileLimit: 2 }, () => {
      const { fn, wasCaptured } = program(repeated)
      const f = compile(fn, { backend: 'eager' })
      callsOf(f, repeated, numbers(0, 4), wasCaptured)
      const captured = callsOf(f, repeated, numbers(4, 260), wasCaptured)
      expect(captured).toBeGreaterThanOrEqual(5)
      expect(captured).toBeLessThanOrEqual(9)
      expect(f.recompileReasons()).toHaveLength(2)
    })
  })

  it('paths that were recorded are used at every call again when they repeat', () => {
    withConfig({ recompileLimit: 2 }, () => {
      const { fn, wasCaptured } = program(repeated)
      const f = compile(fn, { backend: 'eager' })
      callsOf(f, repeated, numbers(0, 40), wasCaptured)
      const known = Array.from({ length: 100 }, (): [Tensor, number] => [torch.ones([2]), 1])
      callsOf(f, repeated, known, wasCaptured)
      expect(callsOf(f, repeated, known, wasCaptured)).toBe(100)
    })
  })
})

it('a graph of skipReplay that answers calls is paid', () => {
  withConfig({ compileBudget: 150, recompileLimit: 10_000 }, () => {
    const f = compile(repeated, { backend: taking(100), skipReplay: true })
    for (const [x, n] of numbers(0, 10)) for (let i = 0; i < 2; i++) expect(f(x, n).toArray()).toEqual(repeated(x, n).toArray())
    expect(f.graphs()).toHaveLength(10)
  })
})

it('gradients of calls beyond the budget are those of eager mode', () => {
  const w = torch.tensor([2, 3]).requiresGrad_()
  const eager = (x: Tensor, n: number): Tensor => repeated(x.mul(w), n).sin().sum()
  const gradient = (f: typeof eager, n: number): unknown => {
    w.grad = null
    f(torch.ones([2]), n).backward()
    const grad: Tensor | null = w.grad
    return grad === null ? null : (grad as Tensor).toArray()
  }
  withConfig({ compileBudget: 150, recompileLimit: 10_000 }, () => {
    const f = compile(eager, { backend: taking(100) })
    for (let n = 0; n < 12; n++) expect(gradient(f, n)).toEqual(gradient(eager, n))
    expect(f.graphs().length).toBeLessThan(6)
  })
})

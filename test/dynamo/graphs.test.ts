// What comparing values does not show: which values a graph returns and writes, where and why graphs end, what is computed how often, and what is said about it.
import { afterEach, describe, expect, it, vi } from 'vitest'
import { compile, noGrad, optim, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { config, disable, explain, isCompiling, reset, withConfig } from 'tensorfx/compile'
import type { GraphModule } from 'tensorfx/fx'
import { attempt } from './against.ts'

afterEach(() => {
  reset()
  vi.restoreAllMocks()
})

const backend = 'eager'
const t = torch.tensor

/** The names of the values that a graph returns, and to which inputs it writes the first ones. */
function returned(gm: GraphModule | undefined): readonly string[] {
  const names = gm?.graph.outputNode().allInputNodes.map((node) => node.name) ?? []
  const inputs = gm?.graph.findNodes({ op: 'placeholder' }).map((node) => node.name) ?? []
  const writes: unknown = gm?.meta['writeBacks']
  return names.map((name, i) => (writes instanceof Map && writes.has(i) ? `${name} to ${inputs[Number(writes.get(i))]}` : name))
}

const gradOf = (x: Tensor): Tensor | null => x.grad

/** What each graph of a call returns. */
const graphsOf = (fn: (...args: Tensor[]) => unknown, ...args: Tensor[]): readonly (readonly string[])[] => {
  const f = compile(fn, { backend })
  f(...args)
  return f.graphs().map(returned)
}
/** Why the graphs of a call end. */
const reasonsOf = <A extends unknown[]>(fn: (...args: A) => unknown, ...args: A): readonly string[] =>
  explain(fn)(...args).breakReasons.map(({ reason }) => reason)

describe('a graph returns', () => {
  const x = (): Tensor => t([1, 2])
  const large = (): Tensor => torch.ones([20])

  it('what the function returns, and what no later operator uses', () => {
    expect(graphsOf((a) => a.mul(2).add(1), x())).toEqual([['add']])
    expect(graphsOf((a) => (a.neg(), a.mul(2).add(1)), x())).toEqual([['add', 'neg']])
    expect(graphsOf((a) => [a.mul(2), a, 3], x())).toEqual([['mul']])
    expect(graphsOf((a) => [a.mul(2)].flatMap((b) => [b, b.add(1), b]), x())).toEqual([['mul', 'add']])
  })

  it('what it has written, before other values', () => {
    expect(graphsOf((a) => a.add_(1).mul(2), large())).toEqual([['add to l_a_', 'mul']])
    expect(graphsOf((a, b) => (a.add_(b), b.mul_(a), a.sub(b)), large(), large())).toEqual([['add to l_a_', 'mul to l_b_', 'sub']])
    expect(graphsOf((a) => a.add_(1).mul_(2), large())).toEqual([['mul to l_a_']])
  })

  it('small values of a call that changes state, which the program may keep, but no large ones', () => {
    const step = (a: Tensor, b: Tensor): void => {
      const loss = a.mul(b).sum()
      a.sub_(loss)
    }
    expect(graphsOf(step, large(), large())).toEqual([['sub to l_a_', 'sum_1']])
    expect(graphsOf((a, b) => a.mul(b).sum().add(1), large(), large())).toEqual([['add']])
    const weight = large().requiresGrad_()
    expect(graphsOf((a) => a.mul(weight).sum().add(1), large())).toEqual([['add', 'sum_1']])
    expect(graphsOf((a) => (a.add_(1), torch.zeros([2]).add(a.sum())), large())[0]).not.toContain('zeros')
  })

  it('values that the next graph turned out to need, from the second call on', () => {
    const f = (a: Tensor): Tensor => {
      const b = a.mul(2)
      const c = a.add(5)
      return b.sum().item() > 0 ? b.sub(1) : c
    }
    const fast = compile(f, { backend })
    for (let i = 0; i < 4; i++) expect(fast(large()).toArray()).toEqual(torch.ones([20]).toArray())
    const names = fast.graphs().map(returned)
    expect(names).toEqual([['sum_1', 'add'], ['sub'], ['sum_1', 'add', 'mul']])
  })

  it('what each call of one path returns: a graph for each choice, compiled once', () => {
    let which = 0
    const f = compile(
      (a: Tensor) => {
        const b = a.mul(2)
        const c = b.add(1)
        return [[c], [b, c], [c, b], [b.detach(), c]][which]
      },
      { backend },
    )
    for (which of [0, 1, 2, 3, 0, 1, 2, 3]) {
      const expected = [[3], [2, 3], [3, 2], [2, 3]][which]
      expect(f(large())?.map((value) => value.max().item())).toEqual(expected)
    }
    // The first one returns what the detached tensor, which nothing uses, lies on.
    expect(f.graphs().map(returned)).toEqual([
      ['add', 'mul'],
      ['mul', 'add'],
    ])
  })

  it('values from which a backward starts, for each choice of them', () => {
    const w = large().requiresGrad_()
    let both = false
    const f = compile(
      () => {
        const b = w.mul(2)
        const c = b.mul(b)
        return both ? [b, c] : [c]
      },
      { backend },
    )
    for (both of [false, true, false, true]) {
      w.grad = null
      const results = f()
      for (const value of results) value.sum().backward({ retainGraph: true })
      expect(gradOf(w)?.max().item()).toBe(both ? 10 : 8)
    }
    expect(f.graphs()).toHaveLength(2)
  })

  it('a gradient of its own backward, and parameters that an optimizer writes', () => {
    const w = t([1, 2]).requiresGrad_()
    const sgd = new optim.SGD([w], { lr: 0.5 })
    const f = compile(
      (a: Tensor) => {
        sgd.zeroGrad()
        const loss = w.mul(a).sum()
        loss.backward()
        sgd.step()
        return loss
      },
      { backend },
    )
    for (let i = 0; i < 3; i++) f(t([1, 1]))
    expect(f.graphs()).toHaveLength(1)
    expect(returned(f.graphs()[0])[0]).toMatch(/ to /)
    expect(w.toArray()).toEqual([-0.5, 0.5])
  })

  it('no write where an operator may still reject its indices, since writes before the error are those of eager code', () => {
    const [table, i] = [large(), t([0, 1], { dtype: 'int64' })]
    const graphs = (fn: (a: Tensor, indices: Tensor) => unknown): readonly (readonly string[])[] => {
      const f = compile(fn, { backend, fullgraph: true })
      f(large(), i)
      return f.graphs().map(returned)
    }
    expect(graphs((a, indices) => (a.add_(1), table.indexSelect(0, indices)))).toEqual([['add to l_a_', 'gather']])
    // Indices that take long to compute are checked when the graph runs.
    const late = (a: Tensor, indices: Tensor): unknown => (a.add_(1), table.indexSelect(0, indices.add(1).sub(1).mul(2).add(1).sub(1)))
    expect(graphs(late).map((names) => names.slice(0, 2))).toEqual([['add', 'gather']])
  })

  it('no write where a value of before it may still be needed', () => {
    const kept: Tensor[] = []
    const write = (keep: boolean): readonly (readonly string[])[] => {
      const [a, b] = [large(), large()]
      const f = compile(
        () => {
          if (keep) kept.push(a.mul(3))
          b.mul(2).sum().item()
          a.add_(1)
        },
        { backend },
      )
      f()
      return f.graphs().map(returned)
    }
    expect(write(false).at(-1)).toEqual(['add to t0'])
    expect(write(true).at(-1)).toEqual(['add'])
    expect(kept.map((value) => value.toArray())).toEqual([torch.full([20], 3).toArray()])
  })
})

describe('a graph ends', () => {
  it('for each reason that there is, and says so', () => {
    const x = t([1, 2, 3])
    expect(reasonsOf((a: Tensor) => a.add(Number(a.sum().item())), x)).toEqual(['the value of a tensor is read (item(), toArray(), printing)'])
    expect(reasonsOf((a: Tensor) => disable((b: Tensor) => b.mul(2))(a.add(1)), x)).toEqual(['call of a disabled function (anonymous)'])
    expect(
      reasonsOf(
        (a: Tensor) =>
          disable(function named(b: Tensor) {
            return b.mul(2)
          })(a.add(1)),
        x,
      ),
    ).toEqual(['call of a disabled function (named)'])
    const wide = torch.arange(2 ** 17).float()
    const rows = (a: Tensor): Tensor => wide.indexSelect(0, a.mul(1).to('int64'))
    expect(reasonsOf(rows, wide)).toEqual(['indices that the graph computes are checked'])
    // Small ones are computed beside the graph.
    expect(reasonsOf(rows, x)).toEqual([])
  })

  it('where several tensors from outside share the memory that is written', () => {
    const base = torch.ones([2, 2])
    expect(reasonsOf((a: Tensor, b: Tensor) => [a.mul(1), b.mul(1), a.add_(1), b.mul(2)], base.select(0, 0), base.view(-1))).toEqual([
      'an in-place operator on memory that several tensors share',
    ])
  })

  it('not, with fullgraph: then each is an error, and the writes before it are done', () => {
    for (const fn of [(a: Tensor) => (a.add_(1), a.sum().item()), (a: Tensor) => (a.add_(1), disable(() => 1)())]) {
      const x = t([1])
      expect(attempt(() => compile(fn, { backend, fullgraph: true })(x))).toMatchObject({ name: 'FullGraphError' })
      expect(x.toArray()).toEqual([2])
    }
    const x = t([1, 2])
    const large = torch.arange(2 ** 17).float()
    // Indices are then checked by the kernel.
    const select = compile((a: Tensor, i: Tensor) => a.indexSelect(0, i.mul(1).to('int64')), { backend, fullgraph: true })
    expect(select(large, large).equal(large)).toBe(true)
    expect(select(x, t([1])).toArray()).toEqual([2])
  })

  it('with a report of each: explain prints operators with their names, and counts', () => {
    const report = explain((a: Tensor) => (a.add(1).sum().item() > 0 ? a.mul(2) : a))(t([1]))
    expect([report.graphCount, report.graphBreakCount, report.opCount, report.opsPerGraph, report.compileTimes.length]).toEqual([
      2,
      1,
      3,
      [['torch.add', 'torch.sum'], ['torch.mul']],
      2,
    ])
    expect(report.breakReasons[0]?.userStack.toString()).toContain('graphs.test.ts')
    const none = explain((a: Tensor) => a)(t([1]))
    expect([none.graphCount, none.graphBreakCount, none.opCount]).toEqual([0, 0, 0])
  })
})

describe('a list of tensors', () => {
  it('of another length is another path', () => {
    let count = 2
    const f = compile(
      (x: Tensor) => {
        const parts = [x.sin(), x.cos(), x.neg()]
        return torch.cat(parts.slice(0, count))
      },
      { backend },
    )
    const x = t([0])
    const seen = [2, 3, 2, 1, 3].map((n) => {
      count = n
      return f(x).shape[0]
    })
    expect(seen).toEqual([2, 3, 2, 1, 3])
  })

  it('with another tensor in it is another path', () => {
    let swapped = false
    const f = compile((x: Tensor, y: Tensor) => torch.cat(swapped ? [y, x] : [x, y]), { backend })
    const seen = [false, true, false].map((value) => {
      swapped = value
      return f(t([1]), t([2])).toArray()
    })
    expect(seen).toEqual([
      [1, 2],
      [2, 1],
      [1, 2],
    ])
  })
})

describe('numbers', () => {
  const graphsFor = (fn: (x: Tensor, k: number) => Tensor, numbers: readonly number[], x = t([0.25, 2])): number => {
    const f = compile(fn, { backend })
    for (const k of numbers) expect(f(x, k).toArray()).toEqual(fn(x, k).toArray())
    return f.graphs().length
  }

  it('that change are inputs from the second value on', () => {
    expect(graphsFor((x, k) => x.mul(k), [2, 3, 4, 5.5])).toBe(2)
    expect(graphsFor((x, k) => torch.clamp(x, { min: k }), [0.5, 1, 1.5])).toBe(2)
    expect(graphsFor((x, k) => torch.add(x, x, { alpha: k }), [2, 3, 4])).toBe(2)
  })

  it('that a kernel is generated for are constants: an exponent, a number of decimals', () => {
    expect(graphsFor((x, k) => torch.pow(x, k), [2, 3, 4])).toBe(3)
    expect(graphsFor((x, k) => torch.round(x, { decimals: k }), [0, 1, 2])).toBe(3)
  })

  it('that are sizes and positions are constants', () => {
    expect(graphsFor((x, k) => x.sum(k), [0, 1], torch.ones([2, 2]))).toBe(2)
    expect(graphsFor((x, k) => x.narrow(0, k, 1).clone(), [0, 1, 2], t([1, 2, 3]))).toBe(3)
  })

  it('beside integers are constants unless they are whole and of 32 bits', () => {
    const ints = t([1, 2], { dtype: 'int32' })
    expect(graphsFor((x, k) => x.mul(k), [2, 3, 4, -5], ints)).toBe(2)
    expect(graphsFor((x, k) => x.mul(k), [2, 3, 4.5, 5.5], ints)).toBe(4)
    expect(graphsFor((x, k) => x.mul(k), [2, 3, 4], t([1, 2], { dtype: 'int64' }))).toBe(3)
    expect(graphsFor((x, k) => x.add(k), [2, -0, 0, 3], ints)).toBeGreaterThan(1)
  })
})

describe('the limit of recorded paths', () => {
  it('names the function in its warning, once, and counts arguments as well as paths', () => {
    const warn = vi.spyOn(console, 'warn').mockImplementation(() => {})
    withConfig({ recompileLimit: 2 }, () => {
      const named = compile(
        function scaled(x: Tensor) {
          return x.mul(2)
        },
        { backend, dynamic: false },
      )
      for (let n = 1; n < 7; n++) expect(named(torch.ones([n])).shape).toEqual([n])
      expect(named.graphs()).toHaveLength(3)
      const branches = ['sin', 'cos', 'neg', 'abs', 'exp'] as const
      let which: (typeof branches)[number] = 'sin'
      const anonymous = compile((x: Tensor) => torch[which](x), { backend })
      for (which of branches) expect(anonymous(t([1])).toArray()).toEqual(torch[which](t([1])).toArray())
      expect([anonymous.graphs().length, anonymous.recompileReasons().length]).toEqual([3, 2])
      for (which of branches) anonymous(t([1]))
    })
    const messages = warn.mock.calls.map(([message]) => String(message))
    expect(messages.map((message) => message.slice(0, 62))).toEqual([
      "compile: config.recompileLimit (2) reached for 'scaled'. Calls",
      "compile: config.recompileLimit (2) reached for 'anonymous'. Ca",
    ])
    expect(messages[0]).toContain('Last reason: arguments of other shapes, dtypes or structure. ')
    expect(messages[1]).toContain('Last reason: expected torch.neg, got torch.abs. ')
  })

  it('is also that of answers that skipReplay remembers', () => {
    withConfig({ recompileLimit: 2 }, () => {
      let runs = 0
      const f = compile((x: Tensor, k: number) => (runs++, x.mul(k)), { backend, skipReplay: true })
      for (const k of [1, 2, 3, 1, 2, 3]) f(t([1]), k)
      const before = runs
      for (const k of [1, 2, 3]) expect(f(t([1]), k).toArray()).toEqual([k])
      expect(before).toBe(6)
      // The second number has made an input of it: the answers with a constant are remembered.
      expect(runs).toBeLessThan(9)
    })
  })
})

describe('skipReplay', () => {
  const counted = <A extends unknown[]>(fn: (...args: A) => unknown) => {
    let runs = 0
    const f = compile((...args: A) => (runs++, fn(...args)), { backend, skipReplay: true })
    return { f, runs: () => runs }
  }

  it('runs a function again that breaks its graph, sets a gradient, or has a view among its results', () => {
    const w = t([1, 2]).requiresGrad_()
    for (const fn of [(x: Tensor) => x.mul(Number(x.sum().item())), (x: Tensor) => w.mul(x).sum().backward(), (x: Tensor) => x.add_(1).view(-1)]) {
      const { f, runs } = counted(fn)
      for (let i = 0; i < 3; i++) f(t([1, 2]))
      expect(runs()).toBe(3)
    }
    expect(w.grad?.toArray()).toEqual([3, 6])
  })

  it('answers with the arguments of the call, constants, and structures', () => {
    const { f, runs } = counted((x: Tensor, y: Tensor) => ({ sum: x.add(y), both: [y, x], n: 3, none: null }))
    for (let i = 0; i < 3; i++) {
      const [x, y] = [t([i]), t([2 * i])]
      const result = f(x, y) as { sum: Tensor; both: Tensor[]; n: number; none: null }
      expect([result.sum.toArray(), result.both[0] === y, result.both[1] === x, result.n, result.none]).toEqual([[3 * i], true, true, 3, null])
    }
    expect(runs()).toBe(2)
  })

  it('tells a call with one tensor twice from one with two', () => {
    const { f, runs } = counted((x: Tensor, y: Tensor) => x.sub(y))
    const [a, b] = [t([1]), t([5])]
    for (const [x, y, expected] of [
      [a, b, -4],
      [a, a, 0],
      [b, a, 4],
      [b, b, 0],
      [a, b, -4],
      [a, a, 0],
    ] as const)
      expect((f(x, y) as Tensor).item()).toBe(expected)
    expect(runs()).toBe(4)
  })
})

describe('gradients', () => {
  it('under noGrad are none, also of a function that was compiled with them', () => {
    const w = t([1, 2]).requiresGrad_()
    const f = compile((x: Tensor) => w.mul(x), { backend })
    expect(f(t([1, 1])).requiresGrad).toBe(true)
    expect(noGrad(() => f(t([1, 1]))).requiresGrad).toBe(false)
    expect(f(t([1, 1])).requiresGrad).toBe(true)
    expect(f.graphs()).toHaveLength(2)
  })
})

it('isCompiling says whether this code is captured, and withConfig takes its settings back', () => {
  const seen: boolean[] = []
  const f = compile((x: Tensor) => (seen.push(isCompiling()), disable(() => seen.push(isCompiling()))(), x.mul(2)), { backend })
  f(t([1]))
  seen.push(isCompiling())
  expect([seen[0], seen.at(-1)]).toEqual([true, false])
  const before = config.recompileLimit
  expect(() =>
    withConfig({ recompileLimit: 3 }, () => {
      throw new RangeError(String(config.recompileLimit))
    }),
  ).toThrow('3')
  expect(config.recompileLimit).toBe(before)
  expect(() => withConfig({ recompileLimit: -1 }, () => 1)).toThrow('config.recompileLimit must be a number that is at least 0, got -1.')
  expect(() => withConfig({ suppressErrors: 1 as never }, () => 1)).toThrow('config.suppressErrors must be true or false, got 1.')
  expect(() => withConfig({ reproLevel: 7 }, () => 1)).toThrow('config.reproLevel must be 1, 2, 3 or 4, got 7.')
  expect(() => withConfig({ limit: 7 } as never, () => 1)).toThrow(/limit/)
  expect(() => withConfig({}, 3 as never)).toThrow(/fn/)
})

// Sizes that change: one recorded path for calls whose tensors have other sizes. compile's option dynamic, markDynamic and markStatic.
import { describe, expect, it, vi } from 'vitest'
import { ShapeError, compile, nn, noGrad, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { markDynamic, markStatic, markUnbacked, maybeMarkDynamic, withConfig } from 'tensorfx/compile'
import type { Backend } from 'tensorfx/compile'
import { times } from './against.ts'
import { present } from '../../src/errors/index.ts'
import { Sizes } from '../../src/dynamo/tree/sizes.ts'

const ones = (...shape: readonly number[]): Tensor => torch.ones(shape)
const ramp = (...shape: readonly number[]): Tensor =>
  torch
    .arange(shape.reduce((a, b) => a * b, 1))
    .view(shape)
    .mul(0.1)
const rows = (x: Tensor): number => x.shape[0] ?? 0

/** A backend that notes what it gets. */
function noting(): { readonly backend: Backend; readonly inputs: (readonly unknown[])[] } {
  const inputs: (readonly unknown[])[] = []
  const backend: Backend = (gm, examples) => {
    inputs.push(examples.map((example) => (example instanceof torch.Tensor ? [...example.shape] : example)))
    return (...values) => gm.forward(...values)
  }
  return { backend, inputs }
}

describe.each(['eager', 'inductor'])('dynamic: true on the backend %s', (backend) => {
  it('one graph is for all sizes of at least 2; 0 and 1 have graphs of their own', () => {
    const f = compile((x: Tensor) => x.mul(2).sum(0), { backend, dynamic: true })
    for (const n of [3, 1, 0, 4, 7, 3, 5]) expect(f(ones(n, 2)).toArray()).toEqual([2 * n, 2 * n])
    expect(f.graphs()).toHaveLength(3)
  })

  it('a generation of 256 tokens with a cache that grows has at most 3 graphs and the tokens of eager', () => {
    torch.manualSeed(1)
    const random = (n: number, m: number): Tensor => torch.randn([n, m])
    const [embedding, query, key, value, head] = [random(11, 8), random(8, 8), random(8, 8), random(8, 8), random(8, 11)]
    interface Cache {
      keys: Tensor | null
      values: Tensor | null
    }
    const append = (past: Tensor | null, x: Tensor): Tensor => (past === null ? x : torch.cat([past, x]))
    const next = (token: Tensor, cache: Cache): Tensor => {
      const x = torch.nn.functional.embedding(token, embedding)
      const keys = append(cache.keys, x.matmul(key).view([1, 2, 4]))
      const values = append(cache.values, x.matmul(value).view([1, 2, 4]))
      Object.assign(cache, { keys, values })
      const n = rows(keys)
      const scores = x
        .matmul(query)
        .view([2, 1, 4])
        .matmul(keys.permute([1, 2, 0]))
        .div(2)
      const weights = scores.maskedFill(torch.arange(n).lt(n - 100), -Infinity).softmax(-1)
      return weights.matmul(values.transpose(0, 1)).view([1, 8]).add(torch.arange(8).mul(n).sin()).matmul(head).argmax(-1)
    }
    const generate = (step: typeof next): number[] => {
      const cache: Cache = { keys: null, values: null }
      let token = torch.tensor([3], { dtype: 'int64' })
      return times(256, () => {
        token = noGrad(() => step(token, cache))
        return Number(token.item())
      })
    }
    const compiled = compile(next, { backend, dynamic: true })
    const tokens = generate(compiled)
    expect(tokens).toEqual(generate(next))
    expect(new Set(tokens).size).toBeGreaterThan(1)
    expect(compiled.graphs().length).toBeLessThanOrEqual(3)
  })

  it('a backward inside that divides by a count of elements has one graph for all counts', () => {
    const w = torch.randn([3, 5])
    const program = (x: Tensor): Tensor => {
      const leaf = w.detach().requiresGrad_()
      x.matmul(leaf).square().mean().backward()
      return present(leaf.grad, 'the gradient')
    }
    const f = compile(program, { backend, dynamic: true })
    for (const n of [4, 7, 2, 9, 4]) {
      const x = torch.randn([n, 3])
      expect(f(x).allclose(program(x), { rtol: 1e-5, atol: 1e-6 })).toBe(true)
    }
    expect(f.graphs()).toHaveLength(1)
  })

  it('a write that does not fit is refused with the sizes of the call, and the calls after it are right', () => {
    const f = compile(
      (x: Tensor, y: Tensor) => {
        const z = x.clone()
        try {
          z.add_(y)
        } catch (error) {
          if (!(error instanceof ShapeError)) throw error
          return z.sub(1)
        }
        return z.mul(2)
      },
      { backend, dynamic: true },
    )
    const shapes = [
      [3, 3],
      [4, 4],
      [5, 4],
      [4, 4],
      [2, 6],
      [7, 7],
    ] as const
    for (const [n, m] of shapes) expect(f(ones(n), ones(m)).toArray()).toEqual(times(n, () => (n === m ? 4 : 0)))
  })

  it.each([
    ['a row', (x: Tensor) => x.select(0, rows(x) - 1).fill_(7)],
    ['half of the rows', (x: Tensor) => x.narrow(0, rows(x) >> 1, rows(x) - (rows(x) >> 1)).mul_(rows(x))],
    ['every second column', (x: Tensor) => x.slice(1, 0, null, 2).add_(x.sum(1, true).mul(2))],
    ['a view of all', (x: Tensor) => x.view([-1]).zero_()],
    ['the diagonal', (x: Tensor) => x.diagonal().copy_(torch.arange(Math.min(rows(x), 4)))],
  ])('a write to %s', (_, write) => {
    const program = (x: Tensor): Tensor => {
      const y = x.mul(2)
      write(y)
      return y.add(y.t().sum())
    }
    const f = compile(program, { backend, dynamic: true })
    for (const n of [2, 5, 3, 8, 5]) expect(f(ramp(n, 4)).toArray()).toEqual(program(ramp(n, 4)).toArray())
  })

  it('a view of an argument at another place of its memory, and a write through it', () => {
    const f = compile((x: Tensor) => (x.slice(0, 1).mul_(10), x.slice(1, 1, 3)), { backend, dynamic: true })
    for (const [rowsBefore, n] of [
      [0, 3],
      [2, 3],
      [1, 4],
      [5, 2],
      [1, 4],
    ] as const) {
      const [whole, same] = [ramp(9, 3), ramp(9, 3)]
      const eager = same.narrow(0, rowsBefore, n)
      eager.slice(0, 1).mul_(10)
      expect(f(whole.narrow(0, rowsBefore, n)).toArray()).toEqual(eager.slice(1, 1, 3).toArray())
      expect(whole.toArray()).toEqual(same.toArray())
    }
    expect(f.graphs().length).toBeLessThanOrEqual(2)
  })

  it.each(['inside', 'outside'])('gradients of ragged batches, with the backward %s of the function', (where) => {
    const train = (wrap: <F extends (...args: never[]) => unknown>(step: F) => F): unknown => {
      const w = ramp(4, 3).requiresGrad_()
      const step = wrap((x: Tensor) => {
        const loss = x.matmul(w).tanh().div(rows(x)).sum()
        if (where === 'inside') loss.backward()
        return loss
      })
      return [8, 8, 5, 8, 1, 3, 8, 5].map((n) => {
        const loss = step(ramp(n, 4))
        if (where === 'outside') loss.backward()
        return [loss.item(), w.grad?.toArray()]
      })
    }
    const eager = train((step) => step)
    let compiled: { graphs(): readonly unknown[] } | null = null
    const seen = train(<F extends (...args: never[]) => unknown>(step: F) => (compiled = compile(step, { backend, dynamic: true })) as unknown as F)
    expect(seen).toEqual(eager)
    expect((compiled as { graphs(): readonly unknown[] } | null)?.graphs().length).toBeLessThanOrEqual(5)
  })

  it('sizes that come often have a graph of their own on a compiler (difference: dynamic-sizes)', () => {
    const f = compile((x: Tensor) => x.mul(2).sum(0), { backend, dynamic: true })
    for (let i = 0; i < 60; i++) for (const n of [3, 4]) expect(f(ones(n, 2)).toArray()).toEqual([2 * n, 2 * n])
    expect(f.graphs()).toHaveLength(backend === 'inductor' ? 3 : 1)
    expect(f(ones(5, 2)).toArray()).toEqual([10, 10])
    expect(f.kernels().length > 0).toBe(backend === 'inductor')
  })

  it('with skipReplay, a call with sizes that were seen does not run the function, and one with others does', () => {
    let runs = 0
    const f = compile((x: Tensor) => (runs++, x.mul(2).sum(0)), { backend, dynamic: true, skipReplay: true })
    const calls = [3, 3, 4, 3, 4, 5, 4, 3]
    for (const n of calls) expect(f(ones(n, 2)).toArray()).toEqual([2 * n, 2 * n])
    expect(runs).toBeLessThan(calls.length)
    const x = ones(6, 2)
    for (let i = 0; i < 4; i++) f(x)
    const before = runs
    expect(f(x).toArray()).toEqual([12, 12])
    expect(runs).toBe(before)
  })
})

describe('which sizes are inputs of a graph', () => {
  it('they come last, as numbers, and only those that had a second value', () => {
    const { backend, inputs } = noting()
    const f = compile((x: Tensor) => x.view([rows(x) * 2, 2]).mul(2), { backend })
    for (const n of [3, 4, 5]) f(ones(n, 4))
    expect(inputs).toEqual([[[3, 4]], [[4, 4], 8]])
  })

  it('none with dynamic: false, nor on a compiler that needs all shapes', () => {
    const { backend, inputs } = noting()
    const program = (x: Tensor): Tensor => x.view([rows(x) * 2, 2]).mul(2)
    const f = compile(program, { backend, dynamic: false })
    const g = compile(program, { backend: Object.assign((...args: Parameters<Backend>) => backend(...args), { staticShapes: true }) })
    for (const n of [3, 4]) f(ones(n, 4))
    for (const n of [3, 4]) g(ones(n, 4))
    expect(inputs).toEqual([[[3, 4]], [[4, 4]], [[3, 4]], [[4, 4]]])
  })

  it('those of tensors from outside, but of no parameters, with dynamic: true', () => {
    const graphsFor = (made: (n: number) => Tensor): number => {
      let w = made(4)
      const f = compile((x: Tensor) => noGrad(() => x.mul(w).sum()), { backend: 'eager', dynamic: true })
      for (const n of [4, 5, 6]) {
        w = made(n)
        expect(f(ones(n)).item()).toBe(n)
      }
      return f.graphs().length
    }
    expect(graphsFor((n) => ones(n))).toBe(1)
    expect(graphsFor((n) => new nn.Parameter(ones(n)))).toBe(2)
  })

  it('a backend whose results have the shapes of its examples is told to declare that', () => {
    const wrong: Backend = (gm, examples) => {
      const known = gm.forward(...examples)
      return () => known
    }
    const f = compile((x: Tensor) => x.add(1), { backend: wrong, dynamic: true })
    f(ones(3))
    expect(() => f(ones(4))).toThrow(
      "compile: the backend 'wrong' returned a tensor of shape [3] where the program has one of shape [4]. If its code is for the shapes of its example inputs only, say so: set staticShapes to true on the function, or register it with { staticShapes: true }.",
    )
  })
})

describe('markDynamic and markStatic', () => {
  const program = (x: Tensor): Tensor => x.mul(2).sum()

  it('a marked dimension is a size from the first call on, also on a compiler', () => {
    const f = compile(program)
    const marked = (n: number, m: number): Tensor => {
      const x = ones(n, m)
      markDynamic(x, -2)
      return x
    }
    for (const n of [2, 3, 4]) expect(f(marked(n, 4)).item()).toBe(8 * n)
    expect(f.graphs()).toHaveLength(1)
    for (const n of [2, 3, 4]) expect(f(marked(n, 5)).item()).toBe(10 * n)
    expect(f.graphs()).toHaveLength(2)
  })

  it('a marked size may be 1, and may be compared with a number (difference: mark-dynamic-01)', () => {
    const f = compile((x: Tensor) => (rows(x) === 3 ? x.mul(2) : x.mul(3)).sum(), { backend: 'eager' })
    for (const n of [1, 3, 4, 3, 5]) {
      const x = ones(n)
      markDynamic(x, 0)
      expect(f(x).item()).toBe(n * (n === 3 ? 2 : 3))
    }
  })

  it('a dimension that is marked as static has a graph for each size', () => {
    const f = compile(program, { backend: 'eager' })
    for (const n of [2, 3, 4]) {
      const x = ones(n, n + 1)
      markStatic(x, 0)
      expect(f(x).item()).toBe(2 * n * (n + 1))
    }
    expect(f.graphs()).toHaveLength(3)
    const g = compile(program, { backend: 'eager', dynamic: true })
    for (const n of [2, 3, 4]) {
      const x = ones(n, n + 1)
      markStatic(x)
      g(x)
    }
    expect(g.graphs()).toHaveLength(3)
  })

  it('with a range, the graph is for sizes from min to max, and another size has a path of its own', () => {
    const f = compile(program, { backend: 'eager' })
    const first = ones(4, 3)
    markDynamic(first, 0, { min: 3, max: 6 })
    for (const x of [first, ones(3, 3), ones(6, 3)]) expect(f(x).item()).toBe(6 * rows(x))
    expect(f.graphs()).toHaveLength(1)
    for (const n of [7, 2, 1]) expect(f(ones(n, 3)).item()).toBe(6 * n)
    expect(f.graphs().length).toBeGreaterThan(1)
  })

  it('a range that cannot be is refused, and so is one that the present size is outside of', () => {
    const x = ones(4, 1)
    expect(() => markDynamic(x, 0, { min: 5, max: 4 })).toThrow(
      "markDynamic: option 'max' must be at least 5, got 4: a size of a graph is at least 2 and at least 'min'.",
    )
    expect(() => markDynamic(x, 0, { max: 1 })).toThrow("markDynamic: option 'max' must be at least 2, got 1")
    expect(() => markDynamic(x, 0, { min: 2.5 })).toThrow("markDynamic: option 'min' must be an integer of at least 0, got 2.5.")
    expect(() => markDynamic(x, [1, 0], { min: 8 })).toThrow('markDynamic: size 4 of dim 0 is not from 8 to Infinity')
    // A size of 1 is a constant in any case.
    markDynamic(x, 1, { min: 8 })
  })

  it('maybeMarkDynamic is markDynamic without a range; markUnbacked is refused', () => {
    const f = compile(program)
    for (const n of [2, 3, 4]) {
      const x = ones(n, 4)
      maybeMarkDynamic(x, 0)
      expect(f(x).item()).toBe(8 * n)
    }
    expect(f.graphs()).toHaveLength(1)
    expect(() => maybeMarkDynamic(ones(2), 1)).toThrow('maybeMarkDynamic: dim 1 is out of range')
    expect(() => markUnbacked(ones(2), 0)).toThrow('there are no unbacked sizes. Use markDynamic')
  })

  it('config.assumeStaticByDefault = false is dynamic: true for functions that do not say', () => {
    withConfig({ assumeStaticByDefault: false }, () => {
      const [f, g] = [compile(program), compile(program, { dynamic: false })]
      for (const n of [2, 3, 4]) for (const run of [f, g]) expect(run(ones(n, n + 1)).item()).toBe(2 * n * (n + 1))
      expect([f, g].map((run) => run.graphs().length)).toEqual([1, 3])
    })
  })

  it('refuse what is no dimension', () => {
    expect(() => markDynamic(ones(2, 3), 2)).toThrow('markDynamic: dim 2 is out of range for a tensor of shape [2, 3]; give one from -2 to 1.')
    expect(() => markStatic(ones(2), 0.5)).toThrow("markStatic: argument 'dim' must be an integer or a list of them, got 0.5.")
    // @ts-expect-error no tensor
    expect(() => markDynamic([2, 3], 0)).toThrow("markDynamic: argument 'tensor' must be a Tensor, got ")
  })
})

describe('the reasons of recompiles', () => {
  it('name the argument and its sizes that became inputs, and how they stay constants', () => {
    const f = compile((cache: Tensor, x: Tensor) => torch.cat([cache, x]).mul(2), { backend: 'eager' })
    for (const n of [3, 4, 1]) f(ones(n, 2), ones(1, 2))
    expect(f.recompileReasons()).toEqual([
      "argument 'tensors' of torch.cat (l_cache_) had shape [3, 2], now has [4, 2]: size 0 is an input of the graph from now on (markStatic keeps it a constant)",
      "argument 'tensors' of torch.cat (l_cache_) had shape [4, 2], now has [1, 2]: 0 and 1 are constants of a graph",
    ])
  })

  it('name the argument of an operator whose numbers became inputs', () => {
    const f = compile((x: Tensor, n: number) => x.view([n, -1]).sum(1), { backend: 'eager' })
    for (const n of [2, 3, 4, 6]) f(ones(12), n)
    expect(f.recompileReasons()).toEqual([
      "argument 'size' of torch.Tensor.view was [2,-1], is now [3,-1]: those of at least 2 that have changed are inputs of the graph from now on",
    ])
  })
})

describe('skipReplay with sizes', () => {
  it.each(['eager', 'inductor'])('a list of sizes that came twice is answered without the program, a new one never (%s)', (backend) => {
    let runs = 0
    const program = (x: Tensor, y: Tensor): Tensor => {
      runs++
      return x
        .narrow(0, 1, rows(x) - 1)
        .mul(2)
        .matmul(y)
    }
    const f = compile(program, { backend, dynamic: true, skipReplay: true })
    const check = (n: number): number => {
      const [x, y] = [ramp(n, 3), ramp(3, n)]
      const before = runs
      const found = f(x, y).toArray()
      const took = runs - before
      expect(found).toEqual(program(x, y).toArray())
      return took
    }
    // More lists of sizes than there are shortcuts of one list.
    const lengths = times(20, (i) => i + 2)
    for (const n of [...lengths, ...lengths]) expect(check(n)).toBe(1)
    for (const n of lengths) expect(check(n)).toBe(0)
    expect(check(40)).toBe(1)
  })
})

describe('shapes of a path that depend on no size', () => {
  const [w, v] = [ramp(4, 4), ramp(4)]

  it('are known for a new list of sizes as well: shape rules run for what depends on its sizes', () => {
    const f = compile(
      (x: Tensor) => {
        let y = x.transpose(0, 1).matmul(x)
        for (let i = 0; i < 10; i++) y = y.matmul(w).add(v).transpose(0, 1).relu()
        return y
      },
      { dynamic: true },
    )
    const note = vi.spyOn(Sizes.prototype, 'note')
    const noted = (n: number): number => {
      note.mockClear()
      f(ramp(n, 4))
      return note.mock.calls.length
    }
    try {
      expect(noted(3)).toBeGreaterThan(40)
      for (const n of [5, 6, 7]) expect(noted(n)).toBe(2)
      expect(noted(5)).toBe(0)
    } finally {
      note.mockRestore()
    }
  })

  it('are not taken from a step that was recorded in a call of other sizes', () => {
    const program = (x: Tensor, goesOn: boolean): Tensor => {
      const y = x.mul(2)
      return goesOn ? torch.cat([y, y.relu()]).sub(y.sum()) : y
    }
    const f = compile(program, { dynamic: true })
    for (const [n, goesOn] of [
      [3, false],
      [5, false],
      [5, true],
      [3, true],
      [7, true],
      [5, true],
      [3, true],
    ] as const)
      noGrad(() => expect(f(ramp(n, 4), goesOn).toArray()).toEqual(program(ramp(n, 4), goesOn).toArray()))
  })

  it('are those of the view that a window of the memory is', () => {
    const program = (x: Tensor): Tensor => x.transpose(0, 1).matmul(x).select(0, 1).mul(2)
    const f = compile(program, { dynamic: true })
    for (const [start, n] of [
      [0, 3],
      [2, 3],
      [1, 5],
      [0, 3],
      [4, 5],
    ] as const) {
      const x = (): Tensor => ramp(9, 4).narrow(0, start, n)
      expect(f(x()).toArray()).toEqual(program(x()).toArray())
    }
  })
})

// compile(): capture on a trace tree, replay, branches, breaks, mutations, gradients; every behaviour on an eager backend and on inductor.
import { afterEach, describe, expect, it, vi } from 'vitest'
import { Tensor, compile, nn, optim, torch } from 'tensorfx'
import {
  BackendCompilerFailed,
  FullGraphError,
  InvalidBackend,
  config,
  disable,
  explain,
  listBackends,
  registerBackend,
  reset,
  withConfig,
} from 'tensorfx/compile'

const close = (a: Tensor, b: Tensor, tol = 1e-5): void => expect(torch.allclose(a, b, { rtol: tol, atol: tol })).toBe(true)

afterEach(() => reset())

describe.each(['eager', 'inductor'])('on the backend %s', (backend) => {
  it('a compiled function gives what the function gives, at the first call and later', () => {
    const w = torch.randn([8, 4])
    const f = (x: Tensor): Tensor => torch.nn.functional.linear(x, w).relu().mul(2).softmax(1)
    const fast = compile(f, { backend })
    const x = torch.randn([16, 4])
    for (let i = 0; i < 3; i++) close(fast(x), f(x))
    expect(fast.graphs()).toHaveLength(1)
  })

  it('closures are not frozen: a changed variable is seen', () => {
    let scale = torch.ones([3])
    const fast = compile((x: Tensor) => x.mul(scale), { backend })
    expect(fast(torch.ones([3])).toArray()).toEqual([1, 1, 1])
    scale = torch.tensor([1, 2, 3])
    expect(fast(torch.ones([3])).toArray()).toEqual([1, 2, 3])
    expect(fast.graphs()).toHaveLength(1)
  })

  it('a value that is read breaks the graph, and each path after it is compiled once', () => {
    const fast = compile((x: Tensor) => (x.sum().gt(0).item() ? x.mul(2) : x.sub(1)), { backend })
    const plus = torch.ones([3])
    for (let i = 0; i < 3; i++) {
      expect(fast(plus).toArray()).toEqual([2, 2, 2])
      expect(fast(plus.neg()).toArray()).toEqual([-2, -2, -2])
    }
    expect(fast.graphs().length).toBeLessThanOrEqual(4)
  })

  it('loops whose length depends on values', () => {
    const f = (x: Tensor): Tensor => {
      let y = x
      while ((y.sum().item() as number) < 100) y = y.mul(2)
      return y
    }
    const fast = compile(f, { backend })
    expect(fast(torch.ones([4])).toArray()).toEqual(f(torch.ones([4])).toArray())
    expect(fast(torch.full([4], 20)).toArray()).toEqual(f(torch.full([4], 20)).toArray())
  })

  it('a number that changes becomes an input, after one recompilation', () => {
    let lr = 1
    const p = torch.zeros([4])
    const fast = compile((g: Tensor) => p.sub_(g, { alpha: lr }).sum(), { backend })
    let expected = 0
    for (lr = 1; lr < 20; lr++) {
      expected -= 4 * lr
      expect(fast(torch.ones([4])).item()).toBeCloseTo(expected, 3)
    }
    expect(fast.graphs()).toHaveLength(2)
    expect(fast.recompileReasons()[0]).toMatch(/'alpha' of torch.sub was 1, is now 2/)
  })

  it('in-place operators write to the tensor itself, and later reads see it', () => {
    const buffer = torch.zeros([3])
    const fast = compile(
      (x: Tensor) => {
        buffer.add_(x)
        const seen = buffer.mul(1)
        buffer.mul_(2)
        return seen
      },
      { backend },
    )
    expect(fast(torch.ones([3])).toArray()).toEqual([1, 1, 1])
    expect(buffer.toArray()).toEqual([2, 2, 2])
    expect(fast(torch.ones([3])).toArray()).toEqual([3, 3, 3])
    expect(buffer.toArray()).toEqual([6, 6, 6])
  })

  it('an in-place operator on a view reaches the base', () => {
    const f = (base: Tensor): Tensor => {
      base.select(0, 1).add_(10)
      return base.mul(1)
    }
    const fast = compile(f, { backend })
    expect(fast(torch.zeros([2, 2])).toArray()).toEqual([
      [0, 0],
      [10, 10],
    ])
    expect(fast(torch.zeros([2, 2])).toArray()).toEqual([
      [0, 0],
      [10, 10],
    ])
  })

  it('a written tensor that is read in the same call shows the new value', () => {
    const counter = torch.zeros([1])
    const fast = compile(
      (x: Tensor) => {
        counter.add_(1)
        return x.mul(counter.item() as number)
      },
      { backend },
    )
    expect(fast(torch.ones([2])).toArray()).toEqual([1, 1])
    expect(fast(torch.ones([2])).toArray()).toEqual([2, 2])
  })

  it('gradients that are computed outside of the function', () => {
    const w = torch.randn([4, 3]).requiresGrad_()
    const f = (x: Tensor): Tensor => x.matmul(w).tanh().pow(2).sum()
    const x = torch.randn([5, 4])
    f(x).backward()
    const expected = w.grad as Tensor
    const fast = compile(f, { backend })
    for (let i = 0; i < 2; i++) {
      w.grad = null
      const loss = fast(x)
      close(loss, f(x))
      loss.backward()
      close(w.grad as unknown as Tensor, expected)
    }
  })

  it('gradients through a graph break', () => {
    const w = torch.randn([3]).requiresGrad_()
    const f = (x: Tensor): Tensor => {
      const y = x.mul(w).sin()
      return y.sum().item() === Infinity ? y : y.mul(3).sum()
    }
    const x = torch.randn([3])
    f(x).backward()
    const expected = w.grad as Tensor
    w.grad = null
    compile(f, { backend })(x).backward()
    close(w.grad as unknown as Tensor, expected)
  })

  it('a whole training step is one graph and trains as eager does', () => {
    const make = (): { model: nn.Sequential; step: (x: Tensor, y: Tensor) => Tensor } => {
      torch.manualSeed(3)
      const model = new nn.Sequential(new nn.Linear(6, 8), new nn.ReLU(), new nn.Linear(8, 3))
      const optimizer = new optim.AdamW(model.parameters(), { lr: 0.01 })
      const step = (x: Tensor, y: Tensor): Tensor => {
        optimizer.zeroGrad()
        const loss = torch.nn.functional.crossEntropy(model.call(x) as Tensor, y)
        loss.backward()
        optimizer.step()
        return loss.detach()
      }
      return { model, step }
    }
    const a = make()
    const b = make()
    const fast = compile(b.step, { backend })
    const x = torch.randn([10, 6])
    const y = torch.tensor(Int32Array.from({ length: 10 }, (_, i) => i % 3))
    for (let i = 0; i < 8; i++) close(fast(x, y), a.step(x, y), 1e-4)
    for (const [name, p] of a.model.stateDict()) close(p as unknown as Tensor, b.model.stateDict().get(name) as unknown as Tensor, 1e-3)
    expect(fast.graphs().at(-1)?.graph.findNodes({ op: 'placeholder' }).length).toBeGreaterThan(10)
    expect(fast.graphs().length).toBeLessThanOrEqual(3)
  })

  it('batch norm updates its running statistics', () => {
    const make = (): nn.BatchNorm2d => new nn.BatchNorm2d(3)
    const [a, b] = [make(), make()]
    const fast = compile(b, { backend })
    const x = torch.randn([4, 3, 5, 5])
    for (let i = 0; i < 3; i++) close(fast(x), a.call(x), 1e-4)
    close(b.runningMean as Tensor, a.runningMean as Tensor)
    close(b.runningVar as Tensor, a.runningVar as Tensor)
  })

  it('random numbers are the same as in eager', () => {
    const f = (x: Tensor): Tensor => torch.nn.functional.dropout(x, { p: 0.5 }).add(torch.rand([4]))
    const fast = compile(f, { backend })
    for (let i = 0; i < 3; i++) {
      torch.manualSeed(i)
      const expected = f(torch.ones([4]))
      torch.manualSeed(i)
      close(fast(torch.ones([4])), expected)
    }
    expect(fast.graphs().length).toBe(1)
  })

  it('tensors that leave a function without being returned', () => {
    const kept: Tensor[] = []
    const fast = compile(
      (x: Tensor) => {
        const y = x.mul(2)
        kept.push(y)
        return y.add(1)
      },
      { backend },
    )
    for (let i = 0; i < 2; i++) fast(torch.full([2], i + 1))
    expect(kept.map((t) => t.toArray())).toEqual([
      [2, 2],
      [4, 4],
    ])
  })

  it('an exception leaves no state behind', () => {
    let fail = true
    const buffer = torch.zeros([2])
    const fast = compile(
      (x: Tensor) => {
        buffer.add_(1)
        if (fail) throw new Error('user error')
        return x.add(buffer)
      },
      { backend },
    )
    expect(() => fast(torch.ones([2]))).toThrow('user error')
    expect(buffer.toArray()).toEqual([1, 1])
    fail = false
    expect(fast(torch.ones([2])).toArray()).toEqual([3, 3])
    expect(torch.ones([1]).add(1).item()).toBe(2)
  })

  it('nested structures in and out, views and inputs returned', () => {
    const fast = compile(
      (args: { a: Tensor; list: Tensor[] }) => ({ sum: args.a.add(args.list[0] as Tensor), same: args.a, view: (args.list[0] as Tensor).t() }),
      { backend },
    )
    const a = torch.tensor([
      [1, 2],
      [3, 4],
    ])
    const b = torch.tensor([
      [5, 6],
      [7, 8],
    ])
    const out = fast({ a, list: [b] })
    expect(out.sum.toArray()).toEqual([
      [6, 8],
      [10, 12],
    ])
    expect(out.same).toBe(a)
    expect(out.view.toArray()).toEqual([
      [5, 7],
      [6, 8],
    ])
  })

  it('a compiled function inside a compiled function is part of its graph', () => {
    const inner = compile((x: Tensor) => x.mul(2), { backend })
    const outer = compile((x: Tensor) => inner(x).add(1), { backend })
    expect(outer(torch.ones([2])).toArray()).toEqual([3, 3])
    expect(outer.graphs()).toHaveLength(1)
  })
})

describe('errors and limits', () => {
  it('a fake tensor has no data to compute with', () =>
    expect(() => compile((x: Tensor) => x.add(1))(Tensor.fake({ shape: [2], dtype: 'float32' }))).toThrow(/this tensor is fake/))

  it('unknown options and backends', () => {
    expect(() => compile((x: Tensor) => x, { fast: true } as never)).toThrow(/^compile: unknown option 'fast'/)
    expect(() => compile((x: Tensor) => x, { backend: 'nope' })).toThrow(InvalidBackend)
    expect(() => compile(torch.ones([1]) as never)).toThrow(
      /^compile: argument 'fn' must be a function or a Module, got .*\. Pass the model itself, not its result\.$/s,
    )
    expect(() => Object.assign(config, { reproLevle: 3 })).toThrow(/unknown option 'reproLevle'; did you mean 'reproLevel'\? Known are reproAfter/)
    expect(() => withConfig({ reproLevel: 9 }, () => 0)).toThrow(/reproLevel must be/)
  })

  it('a backend that throws gives BackendCompilerFailed with its cause; suppressErrors falls back to eager', () => {
    const fast = compile((x: Tensor) => torch.relu(x), { backend: 'relu_compile_error_TESTING_ONLY' })
    let error: unknown
    try {
      fast(torch.ones([2]))
    } catch (e) {
      error = e
    }
    expect(error).toBeInstanceOf(BackendCompilerFailed)
    expect((error as Error).message).toMatch(/backend='relu_compile_error_TESTING_ONLY' raised:\nReluCompileError: relu found in graph/)
    expect((error as Error).message).toContain(
      'Set TENSORFX_REPRO_AFTER=dynamo (or aot) to get a script that reproduces this error.\nTo fall back to eager instead, set config.suppressErrors = true.',
    )
    expect((error as BackendCompilerFailed).minifierPath).toBe(null)
    expect((error as Error).cause).toBeInstanceOf(Error)
    expect((error as BackendCompilerFailed).code).toBe('TFX_BACKEND_COMPILER_FAILED')
    const warn = vi.spyOn(console, 'warn').mockImplementation(() => {})
    withConfig({ suppressErrors: true }, () =>
      expect(compile((x: Tensor) => torch.relu(x), { backend: 'relu_compile_error_TESTING_ONLY' })(torch.ones([2])).toArray()).toEqual([1, 1]),
    )
    expect(warn).toHaveBeenCalled()
    warn.mockRestore()
  })

  it('fullgraph makes a break an error that shows the line', () => {
    const fast = compile((x: Tensor) => x.mul(x.sum().item() as number), { fullgraph: true })
    expect(() => fast(torch.ones([2]))).toThrow(FullGraphError)
    expect(() => fast(torch.ones([2]))).toThrow(/compile\.test\.ts/)
  })

  it('beyond the recompile limit the function runs eagerly, with one warning', () => {
    const warn = vi.spyOn(console, 'warn').mockImplementation(() => {})
    const fast = compile((x: Tensor, n: number) => x.reshape([n, -1]).sum(0), { backend: 'eager', dynamic: false })
    withConfig({ recompileLimit: 2 }, () => {
      for (const n of [1, 2, 3, 4, 6, 12])
        expect(
          fast(torch.ones([12]), n)
            .sum()
            .item(),
        ).toBe(12)
    })
    expect(warn).toHaveBeenCalledTimes(1)
    expect(warn.mock.calls[0]?.[0]).toMatch(/recompileLimit \(2\) reached/)
    warn.mockRestore()
  })

  it('backends of your own', () => {
    const seen: string[] = []
    registerBackend('spy', (gm) => {
      seen.push(gm.code)
      return (...inputs) => gm.forward(...inputs)
    })
    expect(compile((x: Tensor) => x.sin().cos(), { backend: 'spy' })(torch.zeros([1])).item()).toBe(1)
    expect(seen[0]).toContain('torch.sin(')
    expect(listBackends()).toContain('inductor')
    expect(listBackends()).not.toContain('relu_compile_error_TESTING_ONLY')
  })
})

describe('explain', () => {
  it('counts graphs, breaks and operators, and shows where', () => {
    const report = explain((x: Tensor) => (x.sum().item() === 0 ? x : x.mul(2).add(1)))(torch.ones([2]))
    expect(report.graphCount).toBe(2)
    expect(report.graphBreakCount).toBe(1)
    expect(report.opCount).toBe(3)
    const text = String(report)
    expect(text).toMatch(
      /^Graph Count: 2\nGraph Break Count: 1\nOp Count: 3\nBreak Reasons:\n {2}Break Reason 1:\n {4}Reason: the value of a tensor is read/,
    )
    expect(text).toMatch(/compile\.test\.ts", line \d+/)
    expect(text).toMatch(/\nCompile Times \(ms\):/)
  })

  it('disable runs a part eagerly', () => {
    const part = disable((x: Tensor) => x.mul(2))
    const fast = compile((x: Tensor) => part(x.add(1)).add(1), { backend: 'eager' })
    expect(fast(torch.ones([2])).toArray()).toEqual([5, 5])
  })
})

// Paths of the trace tree: what makes a call take a new one, and what is said about it; what the graph of a path computes, and which values it returns.
import { afterEach, describe, expect, it, vi } from 'vitest'
import { compile, nn, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { explain, reset, withConfig } from 'tensorfx/compile'
import { agree, attempt, times } from './against.ts'

afterEach(() => reset())

const leaf = (...values: number[]): Tensor => torch.tensor(values).requiresGrad_()

describe('why a new path is recorded', () => {
  const box: { w: Tensor } = { w: torch.ones([2, 3]) }
  /** The reason after a change of an outside tensor from `before` to `after`. */
  const reasonFor = (before: Tensor, after: Tensor): string | undefined => {
    const f = compile(() => box.w.mul(2), { backend: 'eager' })
    for (box.w of [before, after]) expect(f().toArray()).toEqual(box.w.mul(2).toArray())
    expect(f.recompileReasons()).toHaveLength(1)
    return f.recompileReasons()[0]
  }

  it('another shape, dtype, layout or requiresGrad of a tensor', () => {
    expect(reasonFor(torch.ones([2, 3]), torch.ones([3, 2]))).toBe(
      "argument 'self' of torch.mul had shape [2, 3], now has [3, 2]: sizes 0, 1 are inputs of the graph from now on (markStatic keeps them constants)",
    )
    expect(reasonFor(torch.ones([2]), torch.ones([2], { dtype: 'float64' }))).toBe("argument 'self' of torch.mul had dtype float32, now has float64")
    expect(reasonFor(torch.ones([2, 2]), torch.ones([2, 2]).t())).toBe("argument 'self' of torch.mul had strides [2, 1], now has [1, 2]")
    const plain = torch.ones([2])
    expect(reasonFor(plain, torch.ones([2]).requiresGrad_())).toBe('torch.mul was called without gradients, is now called with')
    expect(reasonFor(torch.ones([2]).requiresGrad_(), plain)).toBe('torch.mul was called with gradients, is now called without')
  })

  it('another operator, another text, other operands', () => {
    const [x, y] = [torch.tensor([7, 8]), torch.tensor([2, 3])]
    const f = compile(
      (how: string) => {
        if (how === 'none') return x.neg()
        if (how === 'same') return x.add(x)
        return how === 'add' ? x.add(y) : x.sub(y)
      },
      { backend: 'eager' },
    )
    const seen = ['add', 'sub', 'same', 'none', 'add', 'sub', 'same', 'none'].map((how) => f(how).toArray())
    expect(seen.slice(0, 4)).toEqual([
      [9, 11],
      [5, 5],
      [14, 16],
      [-7, -8],
    ])
    expect(seen.slice(4)).toEqual(seen.slice(0, 4))
    expect(f.recompileReasons()).toEqual([
      'expected torch.add, got torch.sub',
      'expected torch.sub, got torch.add',
      'expected torch.add, got torch.neg',
    ])
  })

  it('arguments of other kinds', () => {
    const warn = vi.spyOn(console, 'warn').mockImplementation(() => {})
    const f = compile((x: Tensor) => x.sum(), { backend: 'eager', dynamic: false })
    withConfig({ recompileLimit: 2 }, () => {
      for (let n = 1; n < 6; n++) expect(f(torch.ones([n, 2])).item()).toBe(2 * n)
    })
    expect(f.recompileReasons()).toEqual([2, 3].map((n) => `arguments of other shapes, dtypes or structure: float32[${n}, 2]`))
    expect(f.graphs()).toHaveLength(3)
    expect(warn).toHaveBeenCalledTimes(1)
    warn.mockRestore()
    const g = compile((x: Tensor) => x.add(1), { backend: 'eager', dynamic: false })
    g(torch.ones([2, 2]))
    g(torch.ones([2, 2]).t())
    expect(g.recompileReasons()).toEqual(['argument 0 had strides [2, 1], now has [1, 2]'])
  })
})

describe.each(['eager', 'inductor'])('on the backend %s', (backend) => {
  it('integers that change beside int32 are one input', () => {
    const x = torch.tensor([5, 6], { dtype: 'int32' })
    const f = compile((k: number) => x.mul(k), { backend })
    for (const k of [2, 3, 4, 5, -1]) expect(f(k).toArray()).toEqual([5 * k, 6 * k])
    expect(f.graphs()).toHaveLength(2)
  })

  it('numbers that change before and after a list of tensors become inputs together', () => {
    const [x, y] = [torch.ones([2]), torch.ones([3])]
    const f = compile((k: number) => torch.cat([x.mul(k), y]).add(k), { backend })
    for (const k of [1, 2, 3, 4.5]) expect(f(k).toArray()).toEqual([2 * k, 2 * k, 1 + k, 1 + k, 1 + k])
    expect(f.graphs()).toHaveLength(2)
  })

  it('a value of before a break is read after a write through another tensor', () => {
    agree(backend, (c) => {
      const x = torch.ones([40])
      const alias = x.view(4, 10)
      const f = c((i: number) => {
        const y = x.mul(i + 1)
        const before = y.add(1).sum().item()
        alias.select(0, 0).add_(1)
        // Only few calls need the old value: it is not computed in the others.
        return [before, i % 9 === 8 ? y : x]
      })
      return times(20, f)
    })
  })

  it('reset drops what was compiled', () => {
    const f = compile((x: Tensor) => x.add(1), { backend })
    f(torch.ones([1]))
    f(torch.ones([2]))
    expect([f.graphs().length, f.recompileReasons().length]).toEqual([2, 1])
    reset()
    expect([f.graphs().length, f.recompileReasons().length]).toEqual([0, 0])
    expect(f(torch.ones([2])).toArray()).toEqual([2, 2])
    expect(f.graphs()).toHaveLength(1)
  })

  it('an in-place operator keeps the dtype of its tensor', () => {
    agree(backend, (c) => {
      const f = c(() => {
        const i = torch.tensor([1, 2], { dtype: 'int32' })
        const h = torch.tensor([1, 2], { dtype: 'float16' })
        i.add_(torch.tensor([1, 2], { dtype: 'int64' }))
        h.mul_(torch.tensor([0.5, 3]))
        return [i, h, i.mul(2), h.add(1)]
      })
      return times(3, f)
    })
  })

  it('a window on memory beyond an argument sees that memory', () => {
    agree(backend, (c) => {
      const whole = torch.arange(6).float()
      const f = c((part: Tensor) => torch.asStrided(part.mul_(2), [2, 2], [2, 1]).add(1))
      return times(2, () => [f(whole.narrow(0, 0, 2)), whole])
    })
    const { breakReasons } = explain((x: Tensor) => torch.asStrided(x, [3], [1]).add(1))(torch.arange(6).narrow(0, 0, 2))
    expect(breakReasons.map(({ reason }) => reason)).toContain('as_strided sees memory beyond its argument')
  })

  it('an operator whose result has a shape that depends on data runs on its own', () => {
    const rows = (x: Tensor): Tensor => torch.ops.tensorfx.nonzeroRows(x.mul(2)).add(1)
    agree(backend, (c) => times(2, () => c(rows)(torch.tensor([0, 3, 0, 4]))))
    const { breakReasons } = explain(rows)(torch.tensor([0, 3, 0, 4]))
    expect(breakReasons.map(({ reason }) => reason)).toEqual(['the shape of a result depends on data'])
    expect(() => compile(rows, { fullgraph: true })(torch.ones([2]))).toThrow('the shape of a result depends on data')
  })

  it('indices that take many steps to compute are checked where the program uses them', () => {
    agree(backend, (c) => {
      const table = torch.arange(4).float()
      const count = torch.zeros([1])
      const f = c((x: Tensor) => {
        count.add_(1)
        const indices = x.mul(2).add(1).sub(1).div(2).abs().add(0).to('int64')
        const rows = attempt(() => table.indexSelect(0, indices))
        count.add_(10)
        return [rows, indices]
      })
      return [
        [1, 2],
        [9, 0],
        [3, 3],
      ].map((list) => [f(torch.tensor(list)), count.toArray()])
    })
  })

  it('what arguments and modules hold is a result of the graph from the second call on, in any structure', () => {
    class Keeper extends nn.Module {
      kept: Tensor | null = null
      override forward(x: Tensor, boxes: { map: Map<string, Tensor>; set: Set<Tensor>; list: unknown[] }): Tensor {
        const [a, b, c, d] = [x.mul(2), x.mul(3), x.mul(4), x.mul(5)] as const
        this.kept = a
        boxes.map.set('b', b)
        boxes.set.add(c)
        boxes.list.push([{ deep: d }])
        return a.add(b).add(c).add(d).sum()
      }
    }
    const keeper = new Keeper()
    const f = compile(keeper, { backend })
    for (let i = 1; i < 5; i++) {
      const boxes = { map: new Map<string, Tensor>(), set: new Set<Tensor>(), list: [] as { deep: Tensor }[][] }
      const x = torch.full([30], i)
      expect(f.call(x, boxes).item()).toBe(30 * i * 14)
      x.zero_()
      const found = [keeper.kept ?? x, boxes.map.get('b') ?? x, [...boxes.set][0] ?? x, boxes.list[0]?.[0]?.deep ?? x]
      expect(found.map((t) => t.max().item())).toEqual([2 * i, 3 * i, 4 * i, 5 * i])
    }
    expect(f.graphs()).toHaveLength(1)
  })

  it('both results of an operator with two are kept', () => {
    const kept: Tensor[] = []
    const f = compile(
      (x: Tensor) => {
        kept.push(...x.max(1))
      },
      { backend },
    )
    for (let i = 1; i < 4; i++) f(torch.arange(60).reshape([20, 3]).float().mul(i))
    expect(kept.map((t) => Number(t.toTypedArray()[19]))).toEqual([59, 2, 118, 2, 177, 2])
    expect(f.graphs()).toHaveLength(1)
  })

  it('a value computed with a number of the call is read when its input has changed', () => {
    agree(backend, (c) => {
      const x = torch.ones([40])
      const kept: Tensor[] = []
      const f = c((k: number) => {
        const y = x.mul(k)
        kept.push(y)
        const out = y.add(1).sum()
        x.add_(1)
        return out
      })
      const results = times(4, (i) => f(i + 1.5))
      return [results, kept]
    })
  })

  it('a hook on an intermediate is run by a backward outside', () => {
    agree(backend, (c) => {
      const seen: number[] = []
      const w = leaf(1, 2)
      const f = c((x: Tensor) => {
        const h = w.mul(x)
        h.registerHook((g) => {
          seen.push(g.sum().item())
          return g.mul(2)
        })
        return h.pow(2).sum()
      })
      return times(3, (i) => {
        w.grad = null
        f(torch.full([2], i)).backward()
        return [w.grad, seen.slice()]
      })
    })
  })

  it('a gradient that is impossible is an error of the backward, not of the call', () => {
    agree(backend, (c) => {
      const w = leaf(1, 2)
      const f = c((x: Tensor) => {
        const e = w.mul(x).exp()
        e.add_(1)
        return e.sum()
      })
      return times(2, () => {
        const out = f(torch.ones([2]))
        const error = attempt(() => out.backward())
        return [out, error instanceof Error && error.name]
      })
    })
  })

  it('a function whose results are those of an inference has no others', () => {
    const f = compile((x: Tensor) => x.sum().exp().neg().mul(x), { backend })
    f(torch.ones([3]))
    expect(f.graphs()[0]?.graph.outputNode().allInputNodes).toHaveLength(1)
  })
})

it('nodes of a captured graph know the shape, dtype and strides of their values', () => {
  const f = compile((x: Tensor) => x.t().add(1), { backend: 'eager' })
  f(torch.ones([2, 3]))
  const vals = [...(f.graphs()[0]?.graph.nodes ?? [])].map((node) => node.meta['val'])
  expect(vals.slice(0, 3)).toMatchObject([
    { shape: [2, 3], dtype: 'float32', strides: [3, 1] },
    { shape: [3, 2], dtype: 'float32', strides: [1, 3] },
    { shape: [3, 2], dtype: 'float32' },
  ])
})

it('a backend may return inputs as the new values of others', () => {
  const [a, b] = [torch.tensor([1, 2]), torch.tensor([3, 4])]
  const swap = compile(
    () => {
      const t = a.clone()
      a.copy_(b)
      b.copy_(t)
    },
    {
      // A backend that sees through the copies.
      backend: (gm) => {
        const names = gm.graph.findNodes({ op: 'placeholder' }).map((node) => node.name)
        return (...inputs) => (names.length === 2 ? [inputs[1], inputs[0]] : gm.forward(...inputs))
      },
    },
  )
  swap()
  expect([a.toArray(), b.toArray()]).toEqual([
    [3, 4],
    [1, 2],
  ])
})

it('suppressErrors keeps the gradients of a function whose backend fails', () => {
  const warn = vi.spyOn(console, 'warn').mockImplementation(() => {})
  const w = leaf(-1, 2)
  const f = compile((x: Tensor) => torch.relu(w.mul(x)).sum(), { backend: 'relu_compile_error_TESTING_ONLY' })
  withConfig({ suppressErrors: true }, () => f(torch.full([2], 3)).backward())
  expect((w.grad as unknown as Tensor).toArray()).toEqual([0, 3])
  expect(warn).toHaveBeenCalled()
  warn.mockRestore()
})

it('placeholders have the names of arguments, their parts, and parameters', () => {
  class Model extends nn.Module {
    lin: nn.Linear = new nn.Linear(2, 2)
    override forward(x: Tensor, more: { mask: Tensor; list: Tensor[] }): Tensor {
      return this.lin
        .call(x)
        .mul(more.mask)
        .add(more.list[0] ?? x)
    }
  }
  const f = compile(new Model(), { backend: 'eager' })
  f.call(torch.ones([1, 2]), { mask: torch.ones([2]), list: [torch.ones([2])] })
  const names = f
    .graphs()[0]
    ?.graph.findNodes({ op: 'placeholder' })
    .map((node) => node.name)
  expect(names).toEqual(['l_x_', 'p_lin_weight', 'p_lin_bias', 'l_more_mask_', 'l_more_list_0_'])
  const namesOf = (fn: (...args: never[]) => unknown, ...args: readonly unknown[]): readonly string[] => {
    const g = compile(fn, { backend: 'eager' })
    Reflect.apply(g, undefined, args)
    return g.graphs().flatMap((gm) => gm.graph.findNodes({ op: 'placeholder' }).map((node) => node.name))
  }
  const one = torch.ones([2])
  expect(namesOf((map: Map<string, Tensor>) => map.get('key')?.mul(2), new Map([['key', one]]))).toEqual(['l_map_key_'])
  expect(namesOf((...parts: Tensor[]) => parts.map((part) => part.mul(2)), one, torch.ones([3]))).toEqual(['l_parts_', 'l_args_1_'])
  expect(namesOf((a: Tensor, b: Tensor) => a.mul(b), one, one)).toEqual(['l_a_'])
  expect(namesOf(() => one.mul(2))).toEqual(['t0'])
  class Nested extends nn.Module {
    readonly layers = new nn.Sequential(new nn.BatchNorm1d(2))
    override forward(x: Tensor): Tensor {
      return this.layers.call(x) as Tensor
    }
  }
  const nested = compile(new Nested().eval(), { backend: 'eager' })
  nested.call(torch.ones([3, 2]))
  const nestedNames = nested
    .graphs()[0]
    ?.graph.findNodes({ op: 'placeholder' })
    .map((node) => node.name)
  expect(nestedNames?.toSorted()).toEqual(['b_layers_0_running_mean', 'b_layers_0_running_var', 'l_x_', 'p_layers_0_bias', 'p_layers_0_weight'])
})

describe('settings in the environment', () => {
  afterEach(() => {
    vi.unstubAllEnvs()
    vi.resetModules()
  })
  const configWith = async (variables: Readonly<Record<string, string>>): Promise<Record<string, unknown>> => {
    for (const [name, value] of Object.entries(variables)) vi.stubEnv(name, value)
    vi.resetModules()
    const { config: fresh } = await import('../../src/config.ts')
    return { ...fresh }
  }

  it('are read with the type of each setting', async () => {
    expect(
      await configWith({
        TENSORFX_RECOMPILE_LIMIT: '16',
        TENSORFX_SUPPRESS_ERRORS: '1',
        TENSORFX_REPRO_AFTER: 'aot',
        TENSORFX_SAME_TWO_MODELS_USE_FP64: '0',
      }),
    ).toMatchObject({ recompileLimit: 16, suppressErrors: true, reproAfter: 'aot', sameTwoModelsUseFp64: false })
    expect(await configWith({ TENSORFX_SUPPRESS_ERRORS: 'false', TENSORFX_SAME_TWO_MODELS_USE_FP64: '', TENSORFX_REPRO_AFTER: '' })).toMatchObject({
      suppressErrors: false,
      sameTwoModelsUseFp64: false,
      reproAfter: null,
    })
  })

  it('are refused where they make no sense, with the name of the variable', async () => {
    await expect(configWith({ TENSORFX_REPRO_AFTER: 'later' })).rejects.toThrow(/TENSORFX_REPRO_AFTER=later/)
    await expect(configWith({ TENSORFX_REPRO_AFTER: 'dynamo', TENSORFX_RECOMPILE_LIMIT: ' ' })).rejects.toThrow(
      /TENSORFX_RECOMPILE_LIMIT= : .*at least 0/,
    )
  })
})

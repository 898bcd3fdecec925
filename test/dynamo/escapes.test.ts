// Tensors that leave a compiled function without being returned are values: they have the data of their call, whatever happens to its inputs afterwards.
import { describe, expect, it } from 'vitest'
import { compile, nn, optim, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { explain } from 'tensorfx/compile'
import type { Backend } from 'tensorfx/compile'
import { agree, attempt, times } from './against.ts'

describe.each(['eager', 'inductor'])('on the backend %s', (backend) => {
  it('losses are kept and read at the end', () => {
    agree(backend, (c) => {
      const w = new nn.Parameter(torch.tensor([1, 2]))
      const optimizer = new optim.SGD([w], { lr: 0.1 })
      const losses: Tensor[] = []
      const step = c((x: Tensor) => {
        optimizer.zeroGrad()
        const loss = w.mul(x).pow(2).sum()
        losses.push(loss.detach())
        loss.div(2).backward()
        optimizer.step()
      })
      times(10, (i) => step(torch.full([2], i)))
      return losses
    })
  })

  it('something is read between backward and step', () => {
    agree(backend, (c) => {
      const w = new nn.Parameter(torch.tensor([1, 2]))
      const optimizer = new optim.Adam([w], { lr: 0.1 })
      const norms: number[] = []
      const step = c((x: Tensor) => {
        optimizer.zeroGrad()
        const h = w.mul(x)
        const loss = h.pow(2).sum()
        loss.backward()
        norms.push((w.grad as unknown as Tensor).norm().item())
        optimizer.step()
        return [loss, h] as const
      })
      return times(4, (i) => [step(torch.full([2], i)), norms.slice()])
    })
  })

  it('a branch overwrites an input that an earlier value still needs', () => {
    agree(backend, (c) => {
      const f = c((x: Tensor, path: number) => {
        const y = x.mul(2)
        const z = y.add(1)
        const s = z.sum().item()
        if (path > 0) x.zero_()
        const t = x.sum().item()
        return path === 2 ? [s, t, y] : [s, t]
      })
      return [0, 1, 0, 1, 2, 1, 2, 0].map((path) => f(torch.ones([4]), path))
    })
  })

  it.each<[string, (x: Tensor) => Tensor]>([
    ['a whole tensor', (x) => x],
    ['a transposed one', (x) => x.t()],
    ['a row', (x) => x.select(0, 1)],
    ['a column', (x) => x.select(1, 1)],
    ['the start of a dimension', (x) => x.narrow(0, 0, 2)],
    ['the end of a dimension', (x) => x.narrow(0, 1, 2)],
  ])('a value of before a break, and then %s that it was computed from is overwritten', (_what, view) => {
    for (const isWhole of [true, false])
      agree(backend, (c) => {
        const whole = torch.arange(12).float().reshape([3, 4])
        const part = view(whole)
        const kept: Tensor[] = []
        const f = c((x: Tensor) => {
          kept.push(x.mul(3), x.add(1))
          const s = x.sum().item()
          if (isWhole) x.copy_(x.mul(2))
          else x.add_(1)
          return s
        })
        return times(3, () => [f(part), whole.clone(), kept.map((t) => t.clone())])
      })
  })

  it('two tensors that are written with each other, and values of before', () => {
    agree(backend, (c) => {
      const [a, b] = [torch.tensor([1, 2, 3]), torch.tensor([4, 5, 6])]
      const kept: Tensor[] = []
      const f = c(() => {
        kept.push(a.mul(2), b.mul(2))
        const s = a.sum().item()
        const old = a.clone()
        a.copy_(b)
        b.copy_(old)
        return s
      })
      return times(3, () => [f(), a.clone(), b.clone(), kept.map((t) => t.clone())])
    })
  })

  it('a value of before a break, and then a tensor is overwritten that is its input in some calls only', () => {
    agree(backend, (c) => {
      const kept: Tensor[] = []
      const f = c((x: Tensor, y: Tensor) => {
        const h = x.mul(3)
        kept.push(h)
        const s = h.add(1).sum().item()
        y.mul_(2)
        return s
      })
      const results = times(4, (i) => {
        const [x, y] = [torch.full([40], i), torch.ones([40])]
        return [f(x, i % 2 === 0 ? y : x), x, y]
      })
      return [results, kept]
    })
  })

  it('a value is read while a write to its input is only recorded', () => {
    agree(backend, (c) => {
      const f = c((x: Tensor) => {
        const y = x.mul(2)
        const z = y.add(1)
        const s = z.sum().item()
        x.add_(1)
        const old = y.toArray()
        x.add_(1)
        return [s, old, x.sum().item(), z]
      })
      return times(4, (i) => {
        const x = torch.full([40], i)
        return [f(x), x]
      })
    })
  })

  it('a tensor kept in a closure, an argument and an attribute', () => {
    agree(backend, (c) => {
      class Keeper extends nn.Module {
        kept: Tensor | null = null
        override forward(x: Tensor, box: { value?: Tensor }): Tensor {
          const y = x.exp()
          this.kept = y
          box.value = y.mul(2)
          return box.value.add(y)
        }
      }
      const keeper = new Keeper()
      const f = c((x: Tensor, box: { value?: Tensor }) => keeper.call(x, box))
      return times(3, (i) => {
        const x = torch.full([40], i)
        const box: { value?: Tensor } = {}
        const out = f(x, box)
        x.zero_()
        return [out, box.value, keeper.kept?.toArray()]
      })
    })
  })

  it('a hook on a leaf that reads its gradient', () => {
    agree(backend, (c) => {
      const w = new nn.Parameter(torch.tensor([1, 2]))
      const optimizer = new optim.SGD([w], { lr: 0.1 })
      w.registerHook((g) => ((g as Tensor).sum().item() > 0.3 ? (g as Tensor).mul(2) : g))
      const step = c((x: Tensor) => {
        w.mul(x).pow(2).sum().backward()
        optimizer.step()
      })
      return times(3, (i) => {
        w.grad = null
        step(torch.full([2], 0.1 * i))
        return [w.grad, w.detach().clone()]
      })
    })
  })

  it('a gradient that a hook has read, beside a decay of the weights', () => {
    agree(backend, (c) => {
      const w = new nn.Parameter(torch.tensor([1, 2]))
      const optimizer = new optim.AdamW([w], { lr: 0.1, weightDecay: 0.1 })
      w.registerHook((g) => ((g as Tensor).sum().item() > 1000 ? (g as Tensor).mul(2) : g))
      const step = c((x: Tensor) => {
        w.grad = null
        w.mul(x).pow(2).sum().backward()
        optimizer.step()
      })
      return times(3, (i) => {
        step(torch.full([2], i + 1))
        return [w.grad, w.detach().clone()]
      })
    })
  })

  it('states that are kept in a list, and written back', () => {
    agree(backend, (c) => {
      const w = torch.tensor([1, 2])
      const kept: Tensor[] = []
      const f = c(() => {
        const next = w.lerp(w.mul(2), 0.25)
        kept.push(next)
        w.copy_(next)
      })
      times(4, f)
      return kept
    })
  })

  it('a growing cache compiles once for each size, unless the backend takes sizes', () => {
    class Cache extends nn.Module {
      keys: Tensor | null = null
      override forward(x: Tensor): Tensor {
        this.keys = this.keys === null ? x.mul(2) : torch.cat([this.keys, x.mul(2)])
        return this.keys.mul(3).sum()
      }
    }
    const cache = new Cache()
    const step = compile(cache, { backend })
    for (let i = 1; i <= 4; i++) expect(step(torch.ones([1, 20])).item()).toBe(120 * i)
    expect(step.graphs()).toHaveLength(backend === 'eager' ? 3 : 4)
  })

  it('a large value of one call is read several calls later, when its inputs have changed', () => {
    agree(backend, (c) => {
      const x = torch.ones([40])
      let kept = x
      let calls = 0
      const f = c(() => {
        const y = x.mul(2)
        if (calls++ % 4 === 1) kept = y
        const out = y.add(1).sum()
        x.add_(1)
        return out
      })
      times(8, f)
      const last = kept.clone()
      return [last, times(8, () => [f(), kept])]
    })
  })

  it('a value that another one is made of is read when a later call has overwritten its input', () => {
    agree(backend, (c) => {
      const w = torch.tensor([1, 2, 3])
      const alias = w.detach()
      const kept: (() => Tensor)[] = []
      const f = c(() => {
        w.mul_(2)
        const y = alias.mul(3)
        y.add(w)
        kept.push(() => y.add(1))
      })
      return [times(3, () => f()), kept.map((read) => read())]
    })
  })

  it('a hidden state of a training step is read at the end', () => {
    agree(backend, (c) => {
      const w = new nn.Parameter(torch.ones([30]))
      const optimizer = new optim.SGD([w], { lr: 0.1 })
      let hidden: Tensor = w
      const step = c((x: Tensor) => {
        optimizer.zeroGrad()
        hidden = w.mul(x).tanh()
        const loss = hidden.pow(2).sum()
        loss.backward()
        optimizer.step()
        return loss
      })
      times(5, (i) => step(torch.full([30], i)))
      return hidden.detach()
    })
  })

  it('values of before an exception', () => {
    agree(backend, (c) => {
      const kept: Tensor[] = []
      const f = c((x: Tensor) => {
        kept.push(x.mul(2))
        throw new Error('stop')
      })
      return times(3, (i) => {
        const x = torch.full([30], i)
        expect(() => f(x)).toThrow('stop')
        x.zero_()
        return kept.slice()
      })
    })
  })
})

it.each<[string, (value: Tensor) => Tensor]>([
  ['transposed memory', (value) => value.t().clone().t()],
  ['a part of larger memory', (value) => torch.cat([value, value]).narrow(0, 0, 3)],
  ['the end of larger memory', (value) => torch.cat([value, value]).narrow(0, 3, 3)],
])('a backend may give the new value of a tensor, whose old one is still needed, in %s', (_what, moved) => {
  const backend: Backend =
    (gm) =>
    (...inputs) =>
      [gm.forward(...inputs)].flat().map((value) => (value instanceof torch.Tensor && value.ndim === 2 ? moved(value) : value))
  agree(backend, (c) => {
    const x = torch.arange(12).float().reshape([3, 4])
    const kept: Tensor[] = []
    const f = c(() => {
      const h = x.mul(3)
      kept.push(h)
      const s = h.add(1).sum().item()
      x.add_(1)
      return s
    })
    return times(3, () => [f(), x.clone(), x.view(-1).clone(), kept.map((t) => t.clone())])
  })
})

it('a backend may give an input as the new value of a tensor whose old one is still needed', () => {
  const backend: Backend =
    (gm) =>
    (...inputs) =>
      inputs.length === 2 ? [inputs[1]] : gm.forward(...inputs)
  agree(backend, (c) => {
    const [x, y] = [torch.ones([40]), torch.full([40], 5)]
    const kept: Tensor[] = []
    const f = c(() => {
      const h = x.mul(3)
      kept.push(h)
      const s = h.add(1).sum().item()
      x.copy_(y)
      return s
    })
    return times(3, (i) => {
      const s = f()
      x.add_(i)
      return [s, x.clone(), y, kept.map((t) => t.clone())]
    })
  })
})

describe('a value that no graph returns', () => {
  it('can be read after the call without a graph break, and is returned from then on', () => {
    const kept: Tensor[] = []
    const program = (x: Tensor): Tensor => {
      const y = x.mul(2)
      kept.push(y)
      return y.add(1)
    }
    const report = explain(program)(torch.ones([40]))
    expect(kept[0]?.toArray()).toEqual(torch.full([40], 2).toArray())
    expect(report.breakReasons).toEqual([])
    const f = compile(program, { backend: 'eager' })
    for (let i = 1; i < 4; i++) {
      f(torch.full([40], i))
      expect(kept.at(-1)?.max().item()).toBe(2 * i)
    }
    // The second graph returns it.
    expect(f.graphs()).toHaveLength(2)
  })

  it('is an error that says so if its input was large and has been overwritten, once', () => {
    const x = torch.ones([2 ** 19])
    let kept = x
    const f = compile(
      () => {
        kept = x.mul(2)
        return kept.add(1).sum()
      },
      { backend: 'eager' },
    )
    const run = (): void => {
      f()
      x.add_(1)
    }
    run()
    run()
    expect(attempt(() => kept.max())).toMatchObject({
      name: 'EscapedTensorError',
      message:
        'a tensor of shape [524288] was made inside a compiled function and kept outside of it, and the tensors that it was computed from have been modified since. ' +
        'Return it from the function. (From the next call on its value is kept.)',
    })
    run()
    expect(kept.max().item()).toBe(6)
  })
})

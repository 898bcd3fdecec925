// The tape is state too: what a backward outside of the function does is what the function recorded in this call.
import { describe, expect, it } from 'vitest'
import { compile, noGrad, torch } from 'tensorfx'
import type { FunctionContext, Tensor } from 'tensorfx'
import { agree, attempt, times } from '../against.ts'

const leaf = (...values: number[]): Tensor => torch.tensor(values).requiresGrad_()
/** The gradient of `w` after a backward of `loss`. */
function gradOf(w: Tensor, loss: Tensor): Tensor | null {
  w.grad = null
  loss.backward()
  return w.grad
}

describe.each(['eager', 'inductor'])('on the backend %s', (backend) => {
  it('a custom Function whose backward reads a variable', () => {
    agree(backend, (c) => {
      let lam = 1
      class Scale extends torch.autograd.Function {
        static override forward(_ctx: FunctionContext, x: Tensor): Tensor {
          return x.mul(1)
        }
        static override backward(_ctx: FunctionContext, g: Tensor): Tensor {
          return g.mul(lam)
        }
      }
      const w = leaf(1, 2)
      const f = c((x: Tensor) => Scale.apply(w.mul(x)).pow(2).sum())
      return times(4, (i) => {
        lam = i + 1
        return gradOf(w, f(torch.ones([2])))
      })
    })
  })

  it('flags on ctx', () => {
    agree(backend, (c) => {
      class Flag extends torch.autograd.Function {
        static override forward(ctx: FunctionContext, x: Tensor, flag: boolean): Tensor {
          ctx['flag'] = flag
          return x.mul(2)
        }
        static override backward(ctx: FunctionContext, g: Tensor): (Tensor | null)[] {
          return [ctx['flag'] === true ? g.mul(2) : g.neg(), null]
        }
      }
      const w = leaf(1, 2)
      const f = c((flag: boolean) => Flag.apply(w, flag).sum())
      return times(4, (i) => gradOf(w, f(i % 2 === 0)))
    })
  })

  it('two Functions with equal forwards', () => {
    agree(backend, (c) => {
      class Up extends torch.autograd.Function {
        static override forward(_ctx: FunctionContext, x: Tensor): Tensor {
          return x.mul(2)
        }
        static override backward(_ctx: FunctionContext, g: Tensor): Tensor {
          return g.mul(10)
        }
      }
      class Down extends Up {
        static override backward(_ctx: FunctionContext, g: Tensor): Tensor {
          return g.mul(-10)
        }
      }
      const w = leaf(1, 2)
      const f = c((up: boolean) => (up ? Up : Down).apply(w).sum())
      return times(4, (i) => gradOf(w, f(i % 2 === 0)))
    })
  })

  it('item() inside the backward of a Function', () => {
    agree(backend, (c) => {
      class Norm extends torch.autograd.Function {
        static override forward(ctx: FunctionContext, x: Tensor): Tensor {
          ctx.saveForBackward(x)
          return x.mul(2)
        }
        static override backward(ctx: FunctionContext, g: Tensor): Tensor {
          const [x] = ctx.savedTensors
          return g.mul((x as Tensor).sum().item() > 2 ? 3 : 5)
        }
      }
      const w = leaf(1, 2)
      const f = c((x: Tensor) => Norm.apply(w.mul(x)).sum())
      return times(3, (i) => gradOf(w, f(torch.full([2], i))))
    })
  })

  it('detach_ on a condition', () => {
    agree(backend, (c) => {
      const w = leaf(1, 2)
      const f = c((cut: boolean) => {
        const h = w.mul(3)
        if (cut) h.detach_()
        return w.add(h).sum()
      })
      return times(4, (i) => gradOf(w, f(i % 2 === 1)))
    })
  })

  it('requiresGrad_ on an intermediate makes it a leaf of this call', () => {
    agree(backend, (c) => {
      const f = c((x: Tensor, on: boolean) => {
        const h = x.mul(3)
        if (on) h.requiresGrad_()
        return [h, h.pow(2).sum()] as const
      })
      return times(4, (i) => {
        const [h, loss] = f(torch.tensor([1, 2]), i % 2 === 0)
        return [loss.requiresGrad, attempt(() => gradOf(h, loss))]
      })
    })
  })

  it('backward of one output at a time', () => {
    agree(backend, (c) => {
      const [a, b] = [leaf(1, 2), leaf(3, 4)]
      const f = c(() => [a.pow(2).sum(), b.pow(3).sum()] as const)
      return times(3, () => {
        const [one, two] = f()
        a.grad = b.grad = null
        one.backward()
        const first = [a.grad, b.grad]
        two.backward()
        return [...first, a.grad, b.grad]
      })
    })
  })

  it('unused gradients are null, not zero', () => {
    agree(backend, (c) => {
      const [a, b] = [leaf(1, 2), leaf(3, 4)]
      const f = c(() => ({ loss: a.mul(2).sum(), other: b.mul(a).exp() }))
      return times(3, () => {
        a.grad = b.grad = null
        f().loss.backward()
        return [a.grad, b.grad]
      })
    })
  })

  it('an output that is not differentiated adds no NaN', () => {
    agree(backend, (c) => {
      const w = leaf(0, 1)
      const f = c(() => [w.mul(2).sum(), w.sqrt()] as const)
      return times(3, () => gradOf(w, f()[0]))
    })
  })

  it('the second result of an operator, also twice and with a graph', () => {
    agree(backend, (c) => {
      const x = torch
        .tensor([
          [3, 1],
          [1, 2],
        ])
        .requiresGrad_()
      const f = c(() => torch.linalg.qr(x.mul(2))[1])
      const g = c(() => torch.split(x.mul(x), 1)[1])
      return times(2, () => {
        x.grad = null
        f().sum().backward()
        g()?.sum().backward({ retainGraph: true, createGraph: true })
        const first = (x.grad as Tensor | null)?.clone()
        x.grad = null
        return [first?.detach(), f().detach()]
      })
    })
  })

  it('retainGraph, and a second backward without it', () => {
    agree(backend, (c) => {
      const w = leaf(1, 2)
      const f = c(() => w.exp().sum())
      return times(3, () => {
        const loss = f()
        w.grad = null
        loss.backward(null, { retainGraph: true })
        loss.backward()
        const error = attempt(() => loss.backward())
        return [w.grad, error instanceof Error && error.name]
      })
    })
  })

  it('shared parts of two outputs are freed by the first backward', () => {
    agree(backend, (c) => {
      const w = leaf(1, 2)
      const f = c(() => {
        const h = w.exp()
        return [h.sum(), h.pow(2).sum()] as const
      })
      return times(3, () => {
        const [one, two] = f()
        w.grad = null
        one.backward()
        const error = attempt(() => two.backward())
        return [w.grad, error instanceof Error && error.name]
      })
    })
  })

  it('a write to a value that the backward of another output needs', () => {
    agree(backend, (c) => {
      const f = c((a: Tensor, b: Tensor) => [a.exp().sum(), b.pow(2).sum()] as const)
      return times(3, () => {
        const [a, b] = [leaf(1, 2), leaf(3, 4)]
        const [one, two] = f(a, b)
        noGrad(() => b.add_(1))
        one.backward()
        const error = attempt(() => two.backward())
        return [a.grad, b.grad, error instanceof Error && error.name]
      })
    })
  })

  it.each([
    ['the result of relu, which its gradient needs', (a: Tensor) => torch.relu(a), 'result'],
    ['the argument of relu, which its gradient does not need', (a: Tensor) => torch.relu(a), 'argument'],
    ['an argument whose mask its gradient needs', (a: Tensor) => a.maskedFill(a.gt(2), 0.5).mul(3), 'argument'],
    ['the argument of a difference whose sign its gradient needs', (a: Tensor) => a.sub(a.mul(2)).abs(), 'argument'],
    ['a result of which a later result was computed', (a: Tensor) => torch.relu(a.add(1).mul(2)), 'result'],
  ])('a write before the backward to %s', (_what, forward, written) => {
    agree(backend, (c) => {
      const f = c((a: Tensor) => {
        const y = forward(a)
        return [y, y.mul(2).sum()] as const
      })
      return times(3, () => {
        const a = leaf(1, -2, 3)
        const [y, loss] = f(a)
        noGrad(() => (written === 'result' ? y : a).detach().add_(1))
        const error = attempt(() => loss.backward())
        return [a.grad, error instanceof Error && error.name]
      })
    })
  })

  it('a write to a result that a compiled backward could compute again, but eager saved', () => {
    agree(backend, (c) => {
      const f = c((a: Tensor, b: Tensor) => {
        const p = a.mul(b)
        return [p, p.square().sum()] as const
      })
      return times(3, () => {
        const [a, b] = [leaf(1, 2), leaf(3, 4)]
        const [p, loss] = f(a, b)
        noGrad(() => p.detach().add_(1))
        const error = attempt(() => loss.backward())
        return [a.grad, b.grad, error instanceof Error && error.name]
      })
    })
  })

  it('a gradient that was taken in the function with a graph, after a write to what it was taken for', () => {
    agree(backend, (c) => {
      const f = c((a: Tensor) => {
        const [g] = torch.autograd.grad(a.square().sum(), [a], { createGraph: true })
        return [g, a.mul(3)] as const
      })
      return times(3, () => {
        const a = leaf(1, 2)
        const [g] = f(a)
        noGrad(() => a.detach().add_(1))
        g?.sum().backward()
        return [a.grad, g]
      })
    })
  })

  it('a part that the function itself has walked, and to which no gradient leads', () => {
    agree(backend, (c) => {
      const f = c((a: Tensor) => {
        const none = a.slice(0, 1, 1)
        none.backward(torch.zeros([0]))
        return [a, torch.cat([none.flatten(), torch.ones([1])])] as const
      })
      return times(3, () => {
        const a = leaf(1, 2)
        const [, joined] = f(a)
        const error = attempt(() => joined.sum().backward())
        return [a.grad, error instanceof Error && error.name]
      })
    })
  })

  it('a backward in the function needs only the shape of what was overwritten', () => {
    agree(backend, (c) => {
      const f = c(() => {
        const w = leaf(1, 2, 3, 4)
        const pooled = torch.nn.functional.avgPool2d(w.reshape([1, 1, 2, 2]), 2)
        noGrad(() => w.mul_(2))
        pooled.sum().backward()
        return [w, w.grad]
      })
      return times(3, f)
    })
  })

  it('a view of an input that is freed by another backward', () => {
    agree(backend, (c) => {
      const f = c((x: Tensor) => {
        const v = x.view(2, 2)
        return [v, v.clamp(-1, 0.5)] as const
      })
      return times(3, () => {
        const x = leaf(1, 2, 3, 4)
        const [v, clamped] = f(x)
        v.sum().backward()
        const error = attempt(() => clamped.sum().backward())
        return [x.grad, error instanceof Error && error.name]
      })
    })
  })

  it('an output and a view of an input in one backward', () => {
    agree(backend, (c) => {
      const f = c((x: Tensor) => {
        const v = x.view(2, 2)
        return [v, v.clamp(-1, 0.5)] as const
      })
      return times(3, () => {
        const x = leaf(1, 2, 3, 4)
        const [v, clamped] = f(x)
        v.sum().add(clamped.sum()).backward()
        return x.grad
      })
    })
  })

  it('a view of an output that is kept in a closure', () => {
    agree(backend, (c) => {
      const kept: Tensor[] = []
      const f = c((x: Tensor) => {
        const y = x.mul(2)
        kept.push(y.expand([2, 3]).t())
        return y
      })
      return times(3, () => {
        const x = leaf(1, 2, 3)
        f(x)
        return gradOf(x, (kept.at(-1) as Tensor).mul(2).sum())
      })
    })
  })

  it('double backward outside', () => {
    agree(backend, (c) => {
      const w = leaf(1, 2)
      const f = c((x: Tensor) => w.pow(3).mul(x).exp().sum())
      return times(3, (i) => {
        const loss = f(torch.full([2], 0.1 * (i + 1)))
        const [g] = torch.autograd.grad(loss, [w], { createGraph: true })
        return [g, ...torch.autograd.grad((g as Tensor).pow(2).sum(), [w])]
      })
    })
  })

  it('a backward that starts at a view of an output', () => {
    agree(backend, (c) => {
      const w = leaf(1, 2, 3, 4)
      const f = c(() => {
        const y = w.mul(w)
        return [y, y.view(2, 2).t()] as const
      })
      return times(3, () => gradOf(w, f()[1].select(0, 1).sum()))
    })
  })

  it('a result of a Function that returns its argument runs the backward of that Function', () => {
    agree(backend, (c) => {
      class Twice extends torch.autograd.Function {
        static override forward(_ctx: FunctionContext, x: Tensor): Tensor {
          return x
        }
        static override backward(_ctx: FunctionContext, g: Tensor): Tensor {
          return g.mul(2)
        }
      }
      const w = leaf(1, 2)
      const last = c((x: Tensor) => Twice.apply(w.mul(x)))
      const inner = c((x: Tensor) => {
        const y = w.mul(x)
        return [y, Twice.apply(y)] as const
      })
      return times(2, () => {
        const [y, z] = inner(torch.ones([2]))
        return [gradOf(w, last(torch.ones([2])).sum())?.clone(), gradOf(w, y.add(z).sum())]
      })
    })
  })

  it('a view of a result, made before that was written to', () => {
    agree(backend, (c) => {
      const w = leaf(1, 2)
      const f = c((x: Tensor) => {
        const y = w.mul(x)
        const view = y.view([2, 1])
        y.mul_(3)
        return view
      })
      return times(2, () => gradOf(w, f(torch.ones([2])).sum())?.clone())
    })
  })

  it('a number that changes, with a backward outside', () => {
    agree(backend, (c) => {
      const w = leaf(1, 2)
      const f = c((k: number) => w.mul(k).pow(2).sum())
      return times(4, (i) => gradOf(w, f(i + 0.5)))
    })
  })
})

it('the backward of one output alone is a graph of its own, compiled once', () => {
  const compiled: string[] = []
  const w = leaf(1, 2)
  const f = compile(() => [w.pow(2).sum(), w.exp().sum()] as const, {
    backend: (gm) => {
      compiled.push(gm.className)
      return gm
    },
  })
  for (let i = 0; i < 3; i++) expect(gradOf(w, f()[0])?.toArray()).toEqual([2, 4])
  expect(compiled.map((name) => name.replace(/^__compiled_fn_\d+/, ''))).toEqual(['_forward', '_backward_0'])
})

it('a tape that is kept has the values that its derivatives read, and no others', () => {
  class Twice extends torch.autograd.Function {
    static override forward(_ctx: FunctionContext, x: Tensor): Tensor {
      return x.mul(2)
    }
    static override backward(_ctx: FunctionContext, g: Tensor): Tensor {
      return g.mul(2)
    }
  }
  const w = leaf(...times(40, (i) => i / 40))
  const f = compile((x: Tensor) => {
    // Gradients of sums and of products with numbers read nothing, tanh reads its result.
    const h = w.add(x).mul(3).sub(1).div(2)
    return (Twice.apply(h.tanh().neg()) as Tensor).add(1).view(4, 10).sum()
  })
  const outputs = (): number | undefined => f.graphs()[0]?.graph.outputNode().allInputNodes.length
  const x = torch.zeros([40])
  const gradient = gradOf(w, f(x))?.toArray()
  const h = w.mul(1.5).sub(0.5).tanh()
  expect(torch.allclose(torch.tensor(gradient as number[]), h.mul(h).sub(1).mul(3).detach())).toBe(true)
  // The tanh and the sum.
  expect(outputs()).toBe(2)
})

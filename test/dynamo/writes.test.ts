// Writes belong to the memory: every tensor on it sees them, whether it was made before, inside or after the write.
import { describe, it } from 'vitest'
import { nn, noGrad, optim, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { agree, attempt, times } from './against.ts'

describe.each(['eager', 'inductor'])('on the backend %s', (backend) => {
  it('a detached tensor is read inside the call after the write', () => {
    agree(backend, (c) => {
      const w = torch.tensor([1, 2]).requiresGrad_()
      const d = w.detach()
      const f = c(() => {
        noGrad(() => w.add_(1))
        return d.toArray()
      })
      return times(3, f)
    })
  })

  it.each([
    ['a view', (w: Tensor) => w.view(-1)],
    ['a part', (w: Tensor) => w.narrow(0, 1, 1)],
    ['a transposed one', (w: Tensor) => w.t()],
    ['a parameter', (w: Tensor) => new nn.Parameter(w)],
  ])('%s is printed and read after the write', (_name, alias) => {
    agree(backend, (c) => {
      const w = torch.tensor([
        [1, 2],
        [3, 4],
      ])
      const other = alias(w)
      const f = c(() => {
        w.mul_(2)
        return [String(other), other.toArray(), other.sum().add(1)]
      })
      return times(3, f)
    })
  })

  it('an alias that is written shows in the tensor itself', () => {
    agree(backend, (c) => {
      const w = torch.zeros([2, 2])
      const row = w.select(0, 1)
      const f = c(() => {
        row.add_(1)
        return [w.toArray(), w.mul(2)]
      })
      return times(3, f)
    })
  })

  it('an alias of a parameter is read after the optimizer step', () => {
    agree(backend, (c) => {
      const w = new nn.Parameter(torch.tensor([1, 2]))
      const seen = w.detach()
      const optimizer = new optim.SGD([w], { lr: 0.5 })
      const f = c(() => {
        optimizer.zeroGrad()
        w.pow(2).sum().backward()
        optimizer.step()
        return seen.toArray()
      })
      return times(3, f)
    })
  })

  it('two arguments on the same memory', () => {
    agree(backend, (c) => {
      const f = c((x: Tensor, v: Tensor) => {
        x.add_(v)
        return v.mul(2)
      })
      return times(3, () => {
        const x = torch.ones([2])
        return [f(x, x.view(2)), x]
      })
    })
  })

  it('aliasing arguments after others that were not', () => {
    agree(backend, (c) => {
      const f = c((x: Tensor, v: Tensor) => {
        x.add_(v)
        return v.mul(2)
      })
      const x = torch.ones([2])
      return [f(torch.ones([2]), torch.ones([2])), f(x, x.view(2)), f(torch.ones([2]), torch.ones([2])), f(x, x.view(2)), x]
    })
  })

  it('views made before a write, whose gradients are taken', () => {
    agree(backend, (c) => {
      const w = torch.tensor([1, 2]).requiresGrad_()
      const buffer = torch.zeros([2])
      const f = c(() => {
        const v = buffer.view(2)
        buffer.add_(1)
        w.grad = null
        w.mul(v).sum().backward()
        return w.grad
      })
      return times(3, f)
    })
  })

  it('relu_ after a break', () => {
    agree(backend, (c) => {
      const w = torch.tensor([1, -2]).requiresGrad_()
      const f = c(() => {
        const h = w.mul(2)
        if (h.sum().item() > 100) return h
        const y = h.add(1)
        y.relu_()
        return y.sum()
      })
      return times(3, () => {
        w.grad = null
        f().backward()
        return w.grad
      })
    })
  })

  it('several AdamW steps with one read between them', () => {
    agree(backend, (c) => {
      const w = new nn.Parameter(torch.tensor([1, 2]))
      const optimizer = new optim.AdamW([w], { lr: 0.1 })
      const f = c((x: Tensor) => {
        let last = 0
        for (let i = 0; i < 3; i++) {
          optimizer.zeroGrad()
          const loss = w.mul(x).pow(2).sum()
          if (i === 1) last = loss.item()
          loss.backward()
          optimizer.step()
        }
        return [last, w.detach().clone()]
      })
      return times(3, (i) => f(torch.full([2], i + 1)))
    })
  })

  it('an exception keeps the writes before it, and no others', () => {
    agree(backend, (c) => {
      const seen = torch.zeros([2])
      const f = c((fail: boolean) => {
        seen.add_(1)
        if (fail) throw new RangeError('stop')
        seen.mul_(2)
        return seen.clone()
      })
      return times(4, (i) => [attempt(() => f(i % 2 === 0)), seen.toArray()])
    })
  })

  it('writes of several dtypes and sizes, and into an empty tensor', () => {
    agree(backend, (c) => {
      const a = torch.zeros([3], { dtype: 'int32' })
      const b = torch.zeros([0, 2])
      const f = c((k: number) => {
        a.add_(k)
        b.add_(1)
        return [a.clone(), b.mul(2), b.sum()]
      })
      return times(3, (i) => f(i))
    })
  })

  it('a tensor that is swapped with another one by copies', () => {
    agree(backend, (c) => {
      const [a, b] = [torch.tensor([1, 2]), torch.tensor([3, 4])]
      const f = c(() => {
        const t = a.clone()
        a.copy_(b)
        b.copy_(t)
      })
      return times(3, () => {
        f()
        return [a.toArray(), b.toArray()]
      })
    })
  })
})

// Hooks of leaves run as soon as the leaf's gradient is complete, while backward goes on: data-parallel training sends gradients meanwhile.
import { afterEach, describe, expect, it } from 'vitest'
import { torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'

const leaf = (...data: number[]): Tensor => torch.tensor(data).requiresGrad_()

const handles: { remove(): void }[] = []
afterEach(() => {
  for (const handle of handles.splice(0)) handle.remove()
})

/** A chain of layers, newest first in backward: y = ((x·a)·b)·c. */
function chain(): { readonly leaves: Record<'a' | 'b' | 'c', Tensor>; readonly loss: Tensor; readonly ran: string[] } {
  const leaves = { a: leaf(2), b: leaf(3), c: leaf(5) }
  const ran: string[] = []
  const h1 = torch.tensor([7]).mul(leaves.a)
  const h2 = h1.mul(leaves.b)
  const loss = h2.mul(leaves.c).sum()
  h1.registerHook(() => void ran.push('h1'))
  h2.registerHook(() => void ran.push('h2'))
  return { leaves, loss, ran }
}

describe('hooks of leaves', () => {
  it("run between the nodes, as soon as the leaf's gradient is there", () => {
    const { leaves, loss, ran } = chain()
    for (const [name, tensor] of Object.entries(leaves)) handles.push(tensor.registerHook(() => void ran.push(name)))
    loss.backward()
    expect(ran.toSorted()).toEqual(['a', 'b', 'c', 'h1', 'h2'])
    expect(ran.indexOf('c')).toBeLessThan(ran.indexOf('h1'))
    expect(ran.indexOf('b')).toBeLessThan(ran.indexOf('a'))
    expect(ran.indexOf('h1')).toBeLessThan(ran.indexOf('a'))
  })

  it('wait for all uses of the leaf, and see the sum once', () => {
    const w = leaf(3)
    const seen: number[][] = []
    handles.push(w.registerHook((grad) => void seen.push(grad.toArray() as number[])))
    w.mul(w).mul(w).sum().backward()
    expect(seen).toEqual([[27]])
    expect(w.grad?.toArray()).toEqual([27])
  })

  it('run although another use of the leaf gets no gradient', () => {
    const w = leaf(3)
    const seen: number[][] = []
    class Silent extends torch.autograd.Function {
      static override forward(_: unknown, x: Tensor): Tensor {
        return x.mul(2)
      }
      static override backward(): null {
        return null
      }
    }
    handles.push(w.registerHook((grad) => void seen.push(grad.toArray() as number[])))
    const silent = Silent.apply(w)
    silent.add(w.mul(4)).sum().backward()
    expect(seen).toEqual([[4]])
  })

  it('replace the gradient', () => {
    const w = leaf(3)
    handles.push(w.registerHook((grad) => grad.mul(10)))
    w.mul(2).sum().backward()
    expect(w.grad?.toArray()).toEqual([20])
  })

  it('run once in grad() too, which leaves .grad alone', () => {
    const w = leaf(3)
    let calls = 0
    handles.push(
      w.registerHook((grad) => {
        calls++
        return grad.mul(10)
      }),
    )
    const [grad] = torch.autograd.grad(w.mul(w).sum(), w)
    expect([grad?.toArray(), calls, w.grad]).toEqual([[60], 1, null])
  })
})

describe('registerPostAccumulateGradHook', () => {
  it('sees .grad with the new gradient added, while backward goes on', () => {
    const { leaves, loss, ran } = chain()
    leaves.c.grad = torch.tensor([100])
    const seen: unknown[] = []
    handles.push(
      leaves.c.registerPostAccumulateGradHook((tensor) => {
        seen.push(tensor === leaves.c, tensor.grad?.toArray())
        ran.push('c')
      }),
    )
    loss.backward()
    expect(seen).toEqual([true, [142]])
    expect(ran.indexOf('c')).toBeLessThan(ran.indexOf('h1'))
  })

  it('may drop the gradient, so that gradients need not be kept all at once', () => {
    const w = leaf(3)
    handles.push(
      w.registerPostAccumulateGradHook((tensor) => {
        tensor.grad = null
      }),
    )
    w.mul(2).sum().backward()
    expect(w.grad).toBeNull()
  })

  it('is not called by grad(), nor after remove()', () => {
    const w = leaf(3)
    let calls = 0
    const handle = w.registerPostAccumulateGradHook(() => void calls++)
    torch.autograd.grad(w.mul(2).sum(), w)
    expect(calls).toBe(0)
    w.mul(2).sum().backward()
    handle.remove()
    handle.remove()
    w.mul(2).sum().backward()
    expect(calls).toBe(1)
  })

  it('refuses what is not a leaf', () => {
    expect(() =>
      leaf(1)
        .mul(2)
        .registerPostAccumulateGradHook(() => undefined),
    ).toThrow(/only a leaf that requires grad/)
    expect(() => torch.tensor([1]).registerPostAccumulateGradHook(() => undefined)).toThrow(/only a leaf that requires grad/)
  })
})

describe('queueBackwardCallback', () => {
  it('runs when all gradients are there, in order, once', () => {
    const { leaves, loss } = chain()
    const seen: unknown[] = []
    handles.push(
      leaves.c.registerHook(() => {
        torch.autograd.queueBackwardCallback(() => {
          seen.push('first', leaves.a.grad?.toArray())
          torch.autograd.queueBackwardCallback(() => seen.push('queued by a callback'))
        })
        torch.autograd.queueBackwardCallback(() => seen.push('second'))
      }),
    )
    loss.backward()
    expect(seen).toEqual(['first', [105], 'second', 'queued by a callback'])
  })

  it('belongs to the innermost backward', () => {
    const outer = leaf(1)
    const inner = leaf(1)
    const seen: string[] = []
    handles.push(inner.registerHook(() => torch.autograd.queueBackwardCallback(() => seen.push('inner'))))
    handles.push(
      outer.registerHook(() => {
        torch.autograd.queueBackwardCallback(() => seen.push('outer'))
        torch.enableGrad(() => inner.mul(2).sum()).backward()
        seen.push('hook of outer ends')
      }),
    )
    outer.mul(2).sum().backward()
    expect(seen).toEqual(['inner', 'hook of outer ends', 'outer'])
  })

  it('throws outside of a backward pass', () => {
    expect(() => torch.autograd.queueBackwardCallback(() => undefined)).toThrow(/no backward pass is under way/)
  })
})

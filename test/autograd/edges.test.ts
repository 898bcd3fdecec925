// Autograd where it refuses, and where gradients are shared, kept or left alone.
import { describe, expect, test } from 'vitest'
import { ArgumentError, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { AutogradError, attachGradNode, gradBetween } from '../../src/autograd/index.ts'
import { ShapeError } from '../../src/errors/index.ts'

const { tensor, zeros } = torch
const { backward, grad } = torch.autograd
const leaf = (...data: number[]): Tensor => tensor(data, { requiresGrad: true })
const list = (value: Tensor | null | undefined): unknown => value?.toArray() ?? null
const errorOf = (run: () => unknown): unknown => {
  try {
    run()
  } catch (error) {
    return error
  }
  return null
}

describe('grad', () => {
  test('says which input does not require grad', () => {
    const x = leaf(1, 2)
    const error = errorOf(() => grad(x.sum(), [x, zeros([2, 3])]))
    expect(error).toBeInstanceOf(AutogradError)
    expect(error).toMatchObject({
      code: 'TFX_AUTOGRAD',
      message: 'grad: input 1 (shape [2, 3], dtype float32) does not require grad; call requiresGrad_() on it before the computation.',
    })
  })

  test('says which input was not used, or gives null for it', () => {
    const [x, y] = [leaf(1, 2), leaf(3)]
    const loss = x.mul(2).sum()
    expect(() => grad(loss, [x, y], { retainGraph: true })).toThrow(
      new AutogradError('grad: input 1 (shape [1]) was not used to compute the outputs. Pass { allowUnused: true } to get null for it.'),
    )
    expect(grad(loss, [x, y], { allowUnused: true }).map(list)).toEqual([[2, 2], null])
  })

  test('leaves .grad alone, with one tensor or several', () => {
    const [x, y] = [leaf(1, 2), leaf(3, 4)]
    const product = x.mul(y)
    expect(grad(product, x, { gradOutputs: tensor([1, 10]), retainGraph: true }).map(list)).toEqual([[3, 40]])
    expect(grad([product, x.mul(5)], [x, y], { gradOutputs: [tensor([1, 1]), tensor([2, 2])] }).map(list)).toEqual([
      [13, 14],
      [1, 2],
    ])
    expect([x.grad, y.grad]).toEqual([null, null])
  })

  test('frees the graph, unless it is to be kept or differentiated', () => {
    const x = leaf(3)
    const once = x.mul(x)
    grad(once, x)
    expect(() => grad(once, x)).toThrow(AutogradError)
    const kept = x.mul(x)
    grad(kept, x, { retainGraph: true })
    expect(list(grad(kept, x)[0])).toEqual([6])
    const twice = x.mul(x).mul(x)
    const [first] = grad(twice, x, { createGraph: true })
    expect([list(first), first?.requiresGrad]).toEqual([[27], true])
    expect(list(grad(first as Tensor, x)[0])).toEqual([18])
    const [plain] = grad(x.mul(x), x)
    expect(plain?.requiresGrad).toBe(false)
  })

  test('of a tensor in the middle, and of one that is output and input', () => {
    const x = leaf(2)
    const middle = x.mul(3)
    const out = middle.mul(middle)
    expect(grad(out, [middle, x], { retainGraph: true }).map(list)).toEqual([[12], [36]])
    expect(list(grad(middle, middle, { gradOutputs: tensor([7]) })[0])).toEqual([7])
  })

  test('refuses unknown options', () => {
    const x = leaf(1)
    expect(() => grad(x.sum(), x, { retain: true } as never)).toThrow(ArgumentError)
    expect(() => backward(x.sum(), null, { allowUnused: true } as never)).toThrow(ArgumentError)
  })
})

describe('backward', () => {
  test('of several roots adds up, each with its gradient', () => {
    const [x, y] = [leaf(1, 2), leaf(3)]
    backward([x.mul(2), y.mul(x.sum())], [tensor([1, 10]), null])
    expect([list(x.grad), list(y.grad)]).toEqual([[5, 23], [3]])
  })

  test('reaches only the inputs asked for', () => {
    const [x, y] = [leaf(1), leaf(2)]
    backward(x.mul(y), null, { inputs: y, retainGraph: true })
    expect([x.grad, list(y.grad)]).toEqual([null, [1]])
    backward(x.mul(y), null, { inputs: [x] })
    expect([list(x.grad), list(y.grad)]).toEqual([[2], [1]])
  })

  test('adds to a gradient in place if it can', () => {
    const x = leaf(1, 2)
    x.mul(2).sum().backward()
    const first = x.grad
    x.mul(3).sum().backward()
    expect(x.grad).toBe(first)
    expect(list(first)).toEqual([5, 5])
  })

  test('replaces a gradient that is a view, is not contiguous or requires grad', () => {
    const base = zeros([4])
    const views: readonly Tensor[] = [base.narrow(0, 0, 2), zeros([2, 2]).t().select(0, 0), leaf(0, 0)]
    for (const given of views) {
      const x = leaf(1, 2)
      x.grad = given
      x.mul(2).sum().backward()
      expect(x.grad).not.toBe(given)
      expect([list(x.grad), list(given)]).toEqual([
        [2, 2],
        [0, 0],
      ])
    }
    expect(list(base)).toEqual([0, 0, 0, 0])
  })

  test('a gradient that others hold is copied', () => {
    const [x, y] = [leaf(1, 2), leaf(3, 4)]
    const seed = tensor([1, 1])
    backward(x.add(y), seed)
    x.grad?.add_(1)
    expect([list(x.grad), list(y.grad), list(seed)]).toEqual([
      [2, 2],
      [1, 1],
      [1, 1],
    ])
    const z = leaf(1, 2, 3)
    z.sum().backward()
    expect([z.grad?.viewBase, z.grad?.contiguousLayout]).toEqual([null, true])
  })

  test('with createGraph the gradient can be differentiated', () => {
    const x = leaf(3)
    x.mul(x).backward({ createGraph: true })
    expect([list(x.grad), x.grad?.requiresGrad]).toEqual([[6], true])
    const y = leaf(3)
    y.mul(y).backward()
    expect(y.grad?.requiresGrad).toBe(false)
  })

  test('a second walk is an error if the graph was not kept', () => {
    const x = leaf(2)
    const out = x.mul(x)
    out.backward({ retainGraph: true })
    out.backward()
    expect(list(x.grad)).toEqual([8])
    expect(() => out.backward()).toThrow(AutogradError)
  })

  test('nodes are visited once all their users are, whatever the order of the program', () => {
    const x = leaf(2)
    const a = x.mul(3)
    const b = a.mul(a)
    const c = b.add(a)
    const d = c.mul(b).add(a)
    d.backward()
    // d = (9x² + 3x)·9x² + 3x, so d' = 324x³ + 81x² + 3.
    expect(list(x.grad)).toEqual([324 * 8 + 81 * 4 + 3])
  })
})

describe('gradBetween', () => {
  test('ends at the inputs, keeps the tape and gives null for what was not used', () => {
    const x = leaf(2)
    const middle = x.mul(3)
    const out = middle.mul(middle)
    const other = leaf(1)
    const between = (): unknown => gradBetween([out], [middle, other], [tensor([1])]).map(list)
    expect(between()).toEqual([[12], null])
    expect(between()).toEqual([[12], null])
    expect([x.grad, middle.grad]).toEqual([null, null])
    out.backward()
    expect(list(x.grad)).toEqual([36])
  })

  test('the gradients do not require grad', () => {
    const x = leaf(2)
    const [value] = gradBetween([x.mul(x)], [x], [tensor([1])])
    expect([list(value), value?.requiresGrad]).toEqual([[4], false])
  })
})

describe('marks of tensors', () => {
  test('only floating-point and complex tensors can require gradients', () => {
    const whole = tensor([1, 2], { dtype: 'int32' })
    expect(() => whole.requiresGrad_()).toThrow(AutogradError)
    expect(() => whole.requiresGrad_()).toThrow('requiresGrad_: only floating-point and complex tensors can require gradients, this one is int32.')
    expect(whole.requiresGrad_(false)).toBe(whole)
    expect(tensor([1]).requiresGrad_().requiresGrad).toBe(true)
  })

  test('retainGrad wants a tensor that gets a gradient', () => {
    expect(() => tensor([1]).retainGrad()).toThrow(
      new AutogradError('retainGrad: this tensor does not require grad, so no gradient will ever reach it. Call requiresGrad_() on a leaf first.'),
    )
    const x = leaf(1)
    expect(() => x.retainGrad()).not.toThrow()
    const y = x.mul(2)
    y.retainGrad()
    y.mul(5).backward()
    expect([list(y.grad), list(x.grad)]).toEqual([[5], [10]])
  })

  test('what is created, drawn or compared has no history', () => {
    const x = leaf(1, 2)
    expect([x.gt(0), torch.zerosLike(x), torch.randLike(x), x.argmax()].every((t) => !t.requiresGrad && t.gradFn === null)).toBe(true)
    expect([torch.cat([tensor([1]), x]), torch.stack([x, x])].map((t) => t.requiresGrad)).toEqual([true, true])
    expect(torch.cat([tensor([1]), tensor([2])]).requiresGrad).toBe(false)
  })
})

describe('what backward refuses', () => {
  test('a root without history, or without a gradient for its shape, by the name of the function', () => {
    const hint = 'Call requiresGrad_() on a leaf before the computation, and check that it was not inside noGrad.'
    const nothing = (name: string): AutogradError =>
      new AutogradError(`${name}: output 0 does not require grad and has no gradFn, so there is nothing to differentiate. ${hint}`)
    expect(() => grad(tensor([1]), leaf(1))).toThrow(nothing('grad'))
    expect(() => backward(tensor([1]))).toThrow(nothing('backward'))
    const x = leaf(1, 2)
    expect(() => grad(x.mul(2), x)).toThrow(/^grad: the gradient of a tensor of shape \[2\] must be given/)
    expect(() => backward(x.mul(2))).toThrow(/^backward: the gradient of a tensor of shape \[2\] must be given/)
  })

  test('a gradient of another shape from a function of the user', () => {
    const x = leaf(1, 2)
    const y = torch.noGrad(() => x.mul(2))
    attachGradNode([y], [x], () => [tensor([1, 2, 3])], { name: 'Own' })
    expect(() => y.sum().backward()).toThrow(new ShapeError('Own: its backward returned a gradient of shape [3] for input 0 of shape [2].'))
  })

  test('a second walk through a function of the user, which is told when it is freed', () => {
    const x = leaf(1, 2)
    const y = torch.noGrad(() => x.mul(2))
    let freed = 0
    attachGradNode([y], [x], ([g]) => [g?.mul(2) ?? null], { name: 'Own', onRelease: () => freed++ })
    y.backward(tensor([1, 1]), { retainGraph: true })
    expect(freed).toBe(0)
    y.backward(tensor([1, 1]))
    expect([freed, list(x.grad)]).toEqual([1, [4, 4]])
    expect(() => y.backward(tensor([1, 1]))).toThrow(
      new AutogradError(
        'backward: the graph through Own has been walked before, and what it saved was freed. Pass { retainGraph: true } to the first backward, or compute the forward pass again.',
      ),
    )
  })

  test('a walk that fails at a freed node, and frees nothing itself', () => {
    const x = leaf(1, 2)
    const first = x.mul(2)
    const second = x.mul(3)
    const both = first.mul(second)
    first.sum().backward()
    expect(() => both.sum().backward()).toThrow(AutogradError)
    expect(list(x.grad)).toEqual([2, 2])
    // The walk came past the node of `second` before it failed.
    second.sum().backward()
    expect(list(x.grad)).toEqual([5, 5])
    expect(() => second.sum().backward()).toThrow(AutogradError)
  })

  test('a walk beside a freed node that gets no gradient: it succeeds and frees what it walked', () => {
    const x = leaf(1, 2)
    const first = x.mul(2)
    const y = torch.noGrad(() => x.mul(2))
    attachGradNode([y], [first, x], ([g]) => [null, g?.mul(2) ?? null], { name: 'Own' })
    first.sum().backward()
    y.sum().backward()
    expect(list(x.grad)).toEqual([4, 4])
    expect(() => y.sum().backward()).toThrow(AutogradError)
  })

  test('a tensor of a list that was overwritten since', () => {
    const [x, w] = [leaf(1, 2), leaf(3, 4)]
    const part = w.mul(2)
    const out = torch.einsum('i,i->', [x, part])
    part.add_(1)
    expect(() => out.backward()).toThrow(/modified in place/)
  })
})

// Functionalization: writes to tensors and views inside a traced function, as scatters in the graph.
import { describe, expect, it } from 'vitest'
import { UnsupportedError, noGrad, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { aotFunction, decomposeGraph, makeFx } from 'tensorfx/aot'
import { snapshotOf } from './snapshot.ts'

const asList = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : [value])

type Program = (...xs: Tensor[]) => unknown

/** Operators of the graph of a function, which computes and writes what the function does; so does its decomposition. */
function traced(fn: Program, make: () => Tensor[]): string[] {
  const [eager, shown] = [make(), make()]
  const want = snapshotOf([fn(...eager), eager])
  const gm = makeFx(fn)(...shown)
  expect(snapshotOf(shown)).toEqual(snapshotOf(make()))
  for (const graph of [gm, decomposeGraph(gm)]) {
    graph.graph.lint()
    for (let run = 0; run < 2; run++) {
      const inputs = make()
      expect(snapshotOf([graph.forward(...inputs), inputs])).toEqual(want)
    }
  }
  return [...gm.graph.nodes].filter((node) => node.op === 'call_function').map((node) => node.name.replace(/_\d+$/, ''))
}

const cube = (): Tensor[] => [torch.arange(24).reshape([2, 3, 4])]
const square = (): Tensor[] => [torch.arange(9).reshape([3, 3])]

describe('a write to a view', () => {
  const views: readonly (readonly [string, (x: Tensor) => Tensor, string])[] = [
    ['select', (x) => x.select(1, -1), 'select_scatter'],
    ['slice', (x) => x.slice(0, 0, 3, 2), 'slice_scatter'],
    ['diagonal', (x) => x.diagonal(1), 'diagonal_scatter'],
    ['asStrided', (x) => torch.asStrided(x, [2, 2], [3, 1], 1), 'as_strided_scatter'],
    ['transpose', (x) => x.transpose(0, 1), 'transpose'],
    ['permute', (x) => x.permute([1, 0]), 'permute'],
    ['view', (x) => x.view([-1]), 'view'],
    ['unsqueeze', (x) => x.unsqueeze(1), 'squeeze'],
    ['squeeze', (x) => x.unsqueeze(0).squeeze(), 'unsqueeze'],
    ['detach', (x) => x.detach(), 'add'],
    ['expand without growth', (x) => x.expand([3, 3]), 'expand'],
    ['a row of an expanded view', (x) => x.select(0, 0).expand([2, 3]).select(0, 1), 'as_strided_scatter'],
    ['split', (x) => x.split(2)[1] ?? x, 'slice_scatter'],
    ['views of views', (x) => x.t().slice(0, 1).select(1, 0).view([2, 1]), 'select_scatter'],
  ]
  it.each(views)('%s becomes a scatter into what it is a view of', (_, view, operator) => {
    const local = traced((x) => {
      const y = x.mul(2)
      view(y).add_(1)
      return y
    }, square)
    expect(local).toContain(operator)
    expect(local).not.toContain('add_')
    // Written inputs are written when the graph runs.
    expect(traced((x) => view(x).mul_(3).sum(), square).at(-1)).toBe('copy_')
  })

  it('is seen by other views, by views that are made later, and by the tensor', () => {
    traced((x) => {
      const y = x.clone()
      const [row, flat] = [y.select(0, 1), y.view([-1])]
      y.select(2, 0).add_(10)
      const before = row.mul(1)
      flat.mul_(2)
      y.transpose(0, 1).select(0, 0).zero_()
      return [before, row, flat, y, y.view([3, 8]), flat.slice(0, 2, 5)]
    }, cube)
  })

  it('keeps a view that lives while its base is written', () => {
    const ran = (fn: (x: Tensor) => Tensor): unknown => fn(torch.zeros([2, 2])).toArray()
    const program = (x: Tensor): Tensor => {
      const a = x.clone()
      const v = a.view([-1])
      a.add_(1)
      return v
    }
    traced(program, square)
    expect(
      ran(
        aotFunction(program, {
          fwCompiler:
            (gm) =>
            (...inputs) =>
              asList(gm.forward(...inputs)),
        }),
      ),
    ).toEqual([1, 1, 1, 1])
  })

  it('of an input that is returned: what the graph returns is the input, or a view of it', () => {
    const gm = makeFx((x: Tensor) => {
      x.select(0, 0).add_(1)
      return [x, x.view([-1])]
    })(torch.zeros([2, 2]))
    const x = torch.zeros([2, 2])
    const results = gm.forward(x)
    noGrad(() => x.add_(10))
    expect(snapshotOf(results)).toEqual(snapshotOf([x, x.view([-1])]))
    expect(x.toArray()).toEqual([
      [11, 11],
      [10, 10],
    ])
  })

  it('keeps the dtype of what is written', () => {
    traced((x) => {
      const y = x.to('float16')
      y.select(0, 0).copy_(x.select(0, 1))
      y.add_(x.double())
      return y
    }, square)
  })

  it('keeps layouts, so that the same views are possible afterwards', () => {
    traced((x) => {
      const t = x.t()
      t.copy_(x.mul(2))
      return [t.t().view([-1]), torch.asStrided(x, [3], [4])]
    }, square)
    traced(
      (x) => {
        x.add_(torch.arange(9).reshape([3, 3]))
        return x.t().view([-1])
      },
      () => square().map((x) => x.t()),
    )
  })

  it('does not leave views in the graph that nothing uses', () => {
    const names = traced((x) => {
      const y = x.clone()
      y.view([-1]).select(0, 3).add_(1)
      return y
    }, square)
    expect(names).toEqual(['clone', 'view', 'select', 'add', 'view', 'select_scatter', 'view'])
  })

  it('under noGrad, of a leaf that requires grad, happens in the graph too', () => {
    const w = torch.ones([2, 2]).requiresGrad_()
    const gm = makeFx((x: Tensor) => noGrad(() => w.select(0, 0).add_(x).sum()))(torch.ones([2]))
    gm.forward(torch.ones([2]))
    gm.forward(torch.ones([2]))
    expect(w.toArray()).toEqual([
      [3, 3],
      [1, 1],
    ])
    expect(w.requiresGrad && w.gradFn === null).toBe(true)
  })

  it('leaves tensors from outside without a history of the trace', () => {
    const w = torch.ones([2])
    const program = (x: Tensor): Tensor => w.add_(x.mul(2))
    const inputs = [torch.ones([2]).requiresGrad_()] as const
    makeFx(program)(...inputs)
    expect([w.requiresGrad, w.gradFn, w.toArray()]).toEqual([false, null, [1, 1]])
    aotFunction(program, {
      fwCompiler:
        (gm) =>
        (...given) =>
          asList(gm.forward(...given)),
    })(...inputs)
    expect([w.requiresGrad, w.gradFn?.name, w.detach().toArray()]).toEqual([true, 'CopyBackward0', [3, 3]])
    w.sum().backward()
    expect(snapshotOf(inputs[0].grad)).toBe('float32 [2] [2,2]')
  })

  it('is refused where two tensors from outside share memory in different ways', () => {
    const base = torch.zeros([4])
    const part = base.slice(0, 1, 3)
    const program = (order: boolean) => (x: Tensor) => {
      if (order) part.add(x)
      base.add_(1)
      return part.add(x)
    }
    for (const order of [true, false]) expect(() => makeFx(program(order))(torch.ones([2]))).toThrow(UnsupportedError)
    const twin = base.detach()
    const gm = makeFx((x: Tensor) => {
      base.add_(x)
      return twin.mul(2)
    })(torch.ones([4]))
    expect(snapshotOf(gm.forward(torch.ones([4])))).toBe('float32 [4] [2,2,2,2]')
  })

  it('throws what the write itself would throw', () => {
    expect(() => makeFx((x: Tensor) => x.unsqueeze(0).expand([2, 3, 3]).add_(1))(...square())).toThrow(/expanded view/)
    expect(() => makeFx((x: Tensor) => x.select(0, 0).add_(torch.ones([2, 3])))(...square())).toThrow(/does not fit into self/)
    expect(() => makeFx((x: Tensor) => x.long().select(0, 0).add_(0.5))(...square())).toThrow(/can't be cast/)
  })
})

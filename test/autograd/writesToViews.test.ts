// Writes to views while gradients are recorded. Random programs are compared with the same without memory, in which each write is a scatter into the base: values, gradients, and
// gradients of gradients; eager, compiled, and through aotFunction. A third of the programs each day; TENSORFX_FUZZ=2000 draws more.
import { describe, expect, it } from 'vitest'
import { fx, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { aotFunction } from 'tensorfx/aot'
import { compile } from 'tensorfx/compile'
import { grad, hessian, vmap } from 'tensorfx/func'
import { drawViewWrites, textOfViewWrites, withMemory, withoutMemory } from '../../scripts/fuzz/viewWrites.mjs'
import { api } from '../fuzz/api.ts'
import { seeds } from '../helpers/rotation.ts'

const { operator } = fx

const COUNT = Math.max(60, Number(process.env['TENSORFX_FUZZ'] ?? 0))
const FIRST = Number(process.env['TENSORFX_FUZZ_SEED'] ?? 0)

const weights = (): Tensor => torch.tensor([0.3, -0.2, 0.5], { dtype: 'float64', requiresGrad: true })

/** The value, its gradient, and the gradient of the gradient's sum of squares. */
function derivatives(f: (w: Tensor) => Tensor, isTwice: boolean): readonly (readonly number[])[] {
  const w = weights()
  const value = f(w)
  if (!value.requiresGrad) return [[value.item() as number]]
  const [first] = torch.autograd.grad(value, [w], { createGraph: isTwice })
  const results = [value, first as Tensor]
  if (isTwice && (first as Tensor).requiresGrad) results.push(torch.autograd.grad((first as Tensor).square().sum(), [w])[0] as Tensor)
  return results.map((t) => Array.from(t.detach().contiguous().toTypedArray(), Number))
}

const close = (ours: readonly (readonly number[])[], theirs: readonly (readonly number[])[]): boolean =>
  ours.length === theirs.length &&
  ours.every((list, i) => list.every((v, k) => Math.abs(v - (theirs[i]?.[k] ?? NaN)) <= 1e-9 * (1 + Math.abs(theirs[i]?.[k] ?? 0))))

/** The programs of which a way to run them gives something else than the scatters. */
function wrongOnes(run: (f: (w: Tensor) => Tensor) => (w: Tensor) => Tensor, isTwice: boolean, count: number): readonly string[] {
  return seeds('TENSORFX_FUZZ', count, FIRST).flatMap((seed) => {
    const program = drawViewWrites(api, seed)
    const theirs = derivatives((w) => withoutMemory(api, program, w), isTwice)
    try {
      const ours = derivatives(
        run((w) => withMemory(api, program, w)),
        isTwice,
      )
      return close(ours, theirs) ? [] : [`${seed} ${textOfViewWrites(program)}: ${JSON.stringify(ours)} instead of ${JSON.stringify(theirs)}`]
    } catch (error) {
      return [`${seed} ${textOfViewWrites(program)}: ${String(error)}`]
    }
  })
}

describe('random writes to views equal scatters into the base', { timeout: 600_000 }, () => {
  it('in eager mode, twice differentiated', () => expect(wrongOnes((f) => f, true, COUNT)).toEqual([]))
  it('in compiled functions', () => expect(wrongOnes((f) => compile(f, { backend: 'eager' }), false, COUNT)).toEqual([]))
  it('in compiled kernels', () => expect(wrongOnes((f) => compile(f), false, COUNT >> 2)).toEqual([]))
  it('through aotFunction', () =>
    expect(
      wrongOnes(
        (f) =>
          aotFunction(f, {
            fwCompiler:
              (gm) =>
              (...values) =>
                gm.forward(...values) as unknown[],
          }) as typeof f,
        false,
        COUNT,
      ),
    ).toEqual([]))
})

describe('writes to views', () => {
  const w = (): Tensor => torch.tensor([2, 3], { requiresGrad: true })
  const gradOf = (w: Tensor): unknown => w.grad?.toArray()

  it('give the base and all its views their history, under the names of PyTorch', () => {
    const [a, z] = [w(), torch.zeros([2, 2])]
    const [first, second] = [z.select(0, 0), z.select(0, 1)]
    first.copy_(a)
    expect([z.requiresGrad, z.isLeaf, z.gradFn?.name]).toEqual([true, false, 'CopySlices'])
    expect(second.requiresGrad).toBe(true)
    expect([first.gradFn?.name, second.gradFn?.name]).toEqual(['AsStridedBackward0', 'AsStridedBackward0'])
    second.add_(a.mul(5))
    z.sum().add(first.sum()).backward()
    expect(gradOf(a)).toEqual([7, 7])
  })

  it('of diagonals, items, windows with strides, and of a base whose dimensions are swapped in memory', () => {
    const a = w()
    const z = torch.zeros([2, 2])
    z.diagonal().copy_(a)
    z.asStrided([2], [2], 1).copy_(a.mul(10))
    z.mul(
      torch.tensor([
        [1, 2],
        [3, 4],
      ]),
    )
      .sum()
      .backward()
    // The window overwrote the end of the diagonal.
    expect(z.toArray()).toEqual([
      [2, 20],
      [0, 30],
    ])
    expect(gradOf(a)).toEqual([21, 40])
    const b = w()
    const swapped = torch
      .ones([3, 2])
      .t()
      .clone()
      .mul(b.reshape([2, 1]))
    swapped.narrow(1, 1, 2).mul_(b.reshape([2, 1]))
    swapped.sum().backward()
    expect(gradOf(b)).toEqual([1 + 4 * 2, 1 + 4 * 3])
  })

  it('keep what a gradient needs of the overwritten values, and nothing else', () => {
    const a = w()
    const z = a.mul(1)
    z.narrow(0, 0, 1).sin_()
    z.mul_(z.clone())
    z.sum().backward()
    expect((gradOf(a) as number[])[0]).toBeCloseTo(2 * Math.sin(2) * Math.cos(2), 5)
    expect((gradOf(a) as number[])[1]).toBeCloseTo(6, 5)
  })

  it('raise the version of what shares the memory', () => {
    const a = w()
    const z = torch.zeros([2, 2])
    z.select(0, 0).copy_(a)
    const squares = z.square()
    z.select(0, 1).copy_(a)
    expect(() => squares.sum().backward()).toThrow(/modified in place/)
  })

  it('can be seen by hooks, kept gradients, and a second backward that is refused', () => {
    const a = w()
    const z = torch.zeros([2])
    z.narrow(0, 0, 1).copy_(a.narrow(0, 1, 1))
    z.retainGrad()
    const seen: unknown[] = []
    z.registerHook((grad) => void seen.push(grad.toArray()))
    z.mul(3).sum().backward()
    expect([gradOf(a), z.grad?.toArray(), seen]).toEqual([[0, 3], [3, 3], [[3, 3]]])
    expect(() => z.sum().backward()).toThrow(/walked before/)
  })

  it.each([
    ['a view of a leaf', (a: Tensor) => a.narrow(0, 0, 1).mul_(2), /view of a leaf that requires grad/],
    ['a view of a leaf that is a view', () => torch.zeros([4]).view([2, 2]).requiresGrad_().select(0, 0).mul_(2), /leaf that requires grad/],
    ['a view that was made under noGrad', (a: Tensor) => torch.noGrad(() => a.mul(1).narrow(0, 0, 1)).copy_(a.narrow(0, 0, 1)), /made inside noGrad/],
    [
      'a view of a detached tensor',
      (a: Tensor) =>
        a
          .mul(1)
          .detach()
          .narrow(0, 0, 1)
          .copy_(a.narrow(0, 0, 1)),
      /of a detached tensor/,
    ],
    ['a view with repeated elements', (a: Tensor) => torch.zeros([1]).expand([2]).copy_(a), /./],
  ])('are refused for %s', (_, write, message) => {
    const a = w()
    expect(() => write(a)).toThrow(message)
  })

  it('to a detached tensor give that one a history, and not what shares its memory', () => {
    const a = w()
    const z = torch.zeros([2])
    const apart = z.detach()
    apart.copy_(a)
    expect([z.requiresGrad, apart.requiresGrad, z.toArray()]).toEqual([false, true, [2, 3]])
    apart.sum().backward()
    expect(gradOf(a)).toEqual([1, 1])
  })

  it('to the base of a view that was made inside noGrad leave that without a history (difference: no-grad-views)', () => {
    const a = w()
    const z = torch.zeros([2])
    const [apart, view] = [torch.noGrad(() => z.narrow(0, 0, 1)), z.narrow(0, 0, 1)]
    z.copy_(a)
    expect([apart.requiresGrad, apart.toArray(), view.requiresGrad]).toEqual([false, [2], true])
    view.mul(apart).sum().backward()
    expect(gradOf(a)).toEqual([2, 0])
    expect(() => apart.mul_(a.narrow(0, 0, 1))).toThrow(/made inside noGrad/)
  })

  it('of a detached tensor are refused, and have no history after a write to that tensor (difference: views-of-detached)', () => {
    const a = w()
    const z = torch.zeros([2])
    const apart = z.detach()
    const view = apart.narrow(0, 0, 1)
    expect(() => view.copy_(a.narrow(0, 0, 1))).toThrow(/of a detached tensor/)
    apart.copy_(a)
    expect([apart.requiresGrad, z.requiresGrad, view.requiresGrad, view.toArray()]).toEqual([true, false, false, [2]])
    // A view that is made after the write has the history.
    apart.narrow(0, 0, 1).mul(5).sum().backward()
    expect(gradOf(a)).toEqual([5, 0])
  })

  it('of lists give the tensor behind them a history, as of any view (difference: list-views-writable)', () => {
    const a = w()
    const z = torch.zeros([2, 2])
    for (const row of z.unbind()) row.copy_(a)
    const [, right] = z.chunk(2, 1)
    right?.mul_(3)
    z.sum().backward()
    expect(gradOf(a)).toEqual([2, 6])
  })

  it('through operator.setitem, in eager mode and compiled', () => {
    const f = (a: Tensor): Tensor => {
      const z = torch.zeros([2, 2])
      operator.setitem(z, 0, a)
      operator.setitem(z, [1, 1], a.sum())
      return z.square().sum()
    }
    for (const run of [f, compile(f), compile(f, { backend: 'aot_eager' })]) {
      const a = w()
      run(a).backward()
      expect(gradOf(a)).toEqual([2 * 2 + 10, 2 * 3 + 10])
    }
  })

  it('under vmap, and in derivatives of derivatives', () => {
    const f = (a: Tensor): Tensor => {
      const z = a.mul(1)
      z.narrow(0, 0, 1).mul_(a.narrow(0, 1, 1))
      return z.square().sum()
    }
    const rows = torch.tensor([
      [2, 3],
      [4, 5],
    ])
    expect(vmap(grad(f))(rows).toArray()).toEqual(rows.unbind().map((row) => grad(f)(row).toArray()))
    expect(vmap(grad(f))(rows).toArray()).toEqual([
      [36, 30],
      [200, 170],
    ])
    expect((hessian(f)(torch.tensor([2, 3])) as Tensor).toArray()).toEqual([
      [18, 24],
      [24, 10],
    ])
  })
})

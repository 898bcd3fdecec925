// Graphs with operators that have no shader: what has one stays in compiled parts. The GPU has a thread of its own, for which the program waits.
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { compile, torch } from 'tensorfx'
import { init, stats } from 'tensorfx/webgpu'
import type { Tensor } from 'tensorfx'
import { randomFrom } from '../../../scripts/fuzz/random.mjs'
import { bundledUrl } from '../../../scripts/bundled.mjs'
import { threadEntry } from '../../../src/gpu/thread.ts'
import { third } from '../../helpers/rotation.ts'

threadEntry.url = bundledUrl('entries/webgpuThread.js')

beforeAll(async () => init({ fallback: 'wasm' }))
afterAll(async () => init({}))

const N = 5
type Step = (pick: () => Tensor) => Tensor

/** Steps that have shaders, on square matrices. Values stay between -1 and 1, so that no chain of them is much worse conditioned than its parts. */
const steps: readonly Step[] = [
  (pick) => pick().tanh(),
  (pick) => pick().mul(0.5).add(0.25),
  (pick) => pick().add(pick()).mul(0.5),
  (pick) => pick().mul(pick()),
  (pick) => pick().matmul(pick()).div(N),
  (pick) => torch.softmax(pick(), 1),
  (pick) => pick().t(),
  (pick) => pick().mean(0, true).sub(pick()).mul(0.5),
  (pick) => torch.topk(pick(), N, 1)[0],
  (pick) => torch.where(pick().gt(0), pick(), pick().t()),
  (pick) => torch.cat([pick().narrow(0, 0, 2), pick().narrow(0, 2, N - 2)], 0),
]

/** Steps that have none: a pointwise one, which would be fused with others, one of several results, and one that is a call. */
const apart: readonly Step[] = [
  (pick) => torch.lgamma(pick().abs().add(1)),
  (pick) => {
    const [q, r] = torch.linalg.qr(pick().add(torch.eye(N, { device: 'webgpu' }).mul(3)))
    return q.matmul(r).div(4)
  },
  (pick) => torch.matrixExp(pick().mul(0.25)).div(3),
]

interface Drawn {
  readonly fn: (...inputs: Tensor[]) => Tensor[]
  readonly count: number
}

/** A program of steps on what came before, with so many steps without a shader among them. */
function draw(seed: number, without: number): Drawn {
  const { int } = randomFrom(seed)
  const length = 4 + int(8)
  const at = new Set(Array.from({ length: without }, () => int(length)))
  const chosen = Array.from({ length }, (_, i): readonly [Step | undefined, number] => [
    at.has(i) ? apart[int(apart.length)] : steps[int(steps.length)],
    int(2 ** 20),
  ])
  const fn = (...inputs: Tensor[]): Tensor[] => {
    const values = [...inputs]
    for (const [step, chance] of chosen) {
      const { int: next } = randomFrom(chance)
      const value = step?.(() => values[Math.max(0, values.length - 1 - next(4))] ?? torch.ones([N, N]))
      if (value !== undefined) values.push(value)
    }
    return values.slice(-3)
  }
  return { fn, count: at.size }
}

const inputs = (): Tensor[] => [torch.rand([N, N]).mul(2).sub(1), torch.rand([N, N]).mul(2).sub(1)]

describe('drawn graphs with operators that have no shader', () => {
  test.each(third([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]))('give what eager mode gives, in few submissions, drawn case %i', (seed) => {
    torch.manualSeed(seed)
    const { fn, count } = draw(19_000 + seed, 1 + (seed % 2))
    const compiled = compile(fn)
    for (let call = 0; call < 3; call++) {
      const given = inputs().map((x) => x.to('webgpu'))
      const want = fn(...given).map((x) => x.cpu())
      const before = stats()
      const got = compiled(...given)
      const after = stats()
      got.forEach((x, i) => torch.testing.assertClose(x.cpu(), want[i], { rtol: 1e-4, atol: 1e-5 }))
      // One for each part, and one for each read of what an operator without a shader takes.
      const [submits, readbacks] = [(after?.submits ?? 0) - (before?.submits ?? 0), (after?.readbacks ?? 0) - (before?.readbacks ?? 0)]
      expect(submits).toBeLessThanOrEqual(2 * count + 1)
      expect(readbacks).toBeLessThanOrEqual(count)
    }
  })

  test.each(third([1, 2, 3, 4, 5, 6]))('have the gradients of eager mode, and write to their arguments, drawn case %i', (seed) => {
    torch.manualSeed(seed)
    const { fn } = draw(20_000 + seed, 1)
    const step = (x: Tensor, y: Tensor, total: Tensor): Tensor => {
      x.grad = null
      const loss = fn(x, y).reduce<Tensor>((sum, value) => sum.add(value.square().mean()), torch.zeros([], { device: 'webgpu' }))
      loss.backward()
      total.add_(loss.detach())
      y.copy_(y.mul(0.5).add(torch.lgamma(y.abs().add(1)).mul(0.1)))
      return loss.detach()
    }
    const outcome = (run: typeof step, [x, y]: readonly Tensor[]): readonly unknown[] => {
      const [a, b, total] = [x?.to('webgpu').requiresGrad_(), y?.to('webgpu'), torch.zeros([1], { device: 'webgpu' })]
      if (a === undefined || b === undefined) return []
      const losses = [1, 2, 3].map(() => run(a, b, total).cpu())
      return [...losses, total.cpu(), b.cpu(), a.grad?.cpu()]
    }
    const given = inputs()
    const want = outcome(step, given)
    outcome(compile(step), given).forEach((value, i) => torch.testing.assertClose(value, want[i], { rtol: 1e-4, atol: 1e-5 }))
  })
})

describe('a graph with an operator that has no shader', () => {
  const f = (x: Tensor): Tensor[] => [torch.linalg.qr(x.mul(2).add(1))[1].abs().mul(3).tanh(), torch.softmax(x.matmul(x), 1)]

  test('compiles what has one, for any layout of what the operator gives', () => {
    const compiled = compile(f)
    for (const turned of [false, true]) {
      const x = turned ? torch.randn([3, 3]).t() : torch.randn([3, 3])
      compiled(x.to('webgpu')).forEach((value, i) => torch.testing.assertClose(value.cpu(), f(x)[i]))
    }
    const { length } = compiled.kernels()
    expect(length).toBeGreaterThan(2)
    const ops = compiled.kernels().flatMap(({ ops: names }) => names)
    expect(ops).toEqual(expect.arrayContaining(['tanh', 'mm', 'mul']))
    expect(ops).not.toContain('qr')
  })

  test('names it where there is no fallback', async () => {
    await init({})
    try {
      expect(() => compile(f)(torch.randn([3, 3]).to('webgpu'))).toThrow(/torch\.linalg\.qr has no form for tensors on webgpu.*fallback: 'wasm'/s)
    } finally {
      await init({ fallback: 'wasm' })
    }
  })
})

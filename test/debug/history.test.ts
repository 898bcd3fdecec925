// The latest calls of a graph, kept by content.
import { describe, expect, it } from 'vitest'
import { nn, noGrad, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { FakeTensorMode, withMode } from 'tensorfx/dispatch'
import { randomFrom } from '../../scripts/fuzz/random.mjs'
import { CallHistory, sameContent } from '../../src/debug/runs/history.ts'
import { sameBytes } from '../../src/kernels/index.ts'
import { present } from '../../src/errors/index.ts'
import type { Storage } from '../../src/tensor/index.ts'

const t = torch.tensor
const memoryOf = (tensor: unknown): Storage => (tensor as Tensor).storage as Storage
const values = (call: readonly unknown[]): unknown[] => call.map((input) => (input instanceof torch.Tensor ? input.toArray() : input))

/** All that a script keeps of a value. */
const told = (value: unknown): unknown => {
  if (typeof value !== 'object' || value === null || !('storage' in value)) return value
  const { shape, strides, offset, dtype, requiresGrad, isParameter } = value as Tensor
  return { shape, strides, offset, dtype, requiresGrad, isParameter, values: (value as Tensor).detach().toArray() }
}

describe('the history of calls', () => {
  it.each(Array.from({ length: 12 }, (_, seed) => seed))('holds what the inputs were, however they change and share memory (%i)', (seed) => {
    const { chance, int, next, pick } = randomFrom(seed)
    const history = new CallHistory(4)
    const base = torch.randn([4, 4])
    const views = (): unknown[] => [base, base.t(), base.narrow(0, 1, 2), base.view(-1), base.select(0, 2), torch.tensor([1, 2, 3]), 7, null]
    let inputs: unknown[] = views()
    const wanted: unknown[][] = []
    for (let call = 0; call < 8; call++) {
      for (let change = 0; change < 2; change++) {
        const at = int(inputs.length)
        const value = inputs[at]
        const kind = next()
        if (kind < 0.3) inputs = inputs.with(at, pick(views().slice(0, 6)))
        else if (kind < 0.5) inputs = inputs.with(at, torch.randn([2, 3], { requiresGrad: chance(0.5) }))
        else if (kind < 0.6) inputs = inputs.with(at, (value as Tensor | null)?.clone?.() ?? value)
        else if (kind < 0.7) inputs = inputs.with(at, base.to('float64'))
        else noGrad(() => void (inputs[at] as Tensor | null)?.mul_?.(2))
      }
      wanted.push(inputs.map(told))
      expect(history.add(inputs).map(told)).toEqual(wanted.at(-1))
    }
    expect(history.calls.map((call) => call.map(told))).toEqual(wanted.slice(-4))
    // What shares memory within a call shares it in the copy, and nothing else does.
    const last = present(history.calls.at(-1), 'a call')
    for (const [i, a] of inputs.entries())
      for (const [k, b] of inputs.entries())
        if (told(a) !== a && told(b) !== b) expect(memoryOf(last[i]) === memoryOf(last[k]), `${i} and ${k}`).toBe(memoryOf(a) === memoryOf(b))
  })

  it('keeps the last ones as they were, the last one at least', () => {
    for (const [limit, kept] of [[3, 3] as const, [1, 1] as const, [0, 1] as const]) {
      const history = new CallHistory(limit)
      expect(history.calls).toEqual([])
      const n = t([0])
      for (let i = 1; i <= 5; i++) {
        n.add_(1)
        expect(values(history.add([n, i, 'text', null]))).toEqual([[i], i, 'text', null])
        expect(history.calls.map(values)).toEqual(
          Array.from({ length: Math.min(i, kept) }, (_, k) => i - Math.min(i, kept) + k + 1).map((k) => [[k], k, 'text', null]),
        )
      }
      expect(memoryOf(history.calls.at(-1)?.[0])).not.toBe(n.storage)
    }
  })

  it('holds memory once that has not changed since the call before, whatever memory the program has it in', () => {
    const history = new CallHistory(4)
    const [weight, x] = [t([1, 2]), t([3])]
    const [first] = [history.add([weight, x])]
    x.add_(1)
    const second = history.add([weight, x])
    const third = history.add([t([1, 2]), t([4])])
    expect([second[0] === first[0], second[1] === first[1], third[0] === first[0], third[1] === second[1]]).toEqual([true, false, true, true])
    expect([first, second, third].map(values)).toEqual([
      [[1, 2], [3]],
      [[1, 2], [4]],
      [[1, 2], [4]],
    ])
    weight.add_(1)
    const fourth = history.add([weight, x])
    expect([memoryOf(fourth[0]) === memoryOf(first[0]), values(first)]).toEqual([false, [[1, 2], [3]]])
  })

  it('shares the memory of another view, but not the tensor', () => {
    const base = t([1, 2, 3, 4])
    const other = (change: (x: Tensor) => Tensor): readonly [boolean, boolean, unknown] => {
      const history = new CallHistory(4)
      const [before] = history.add([base])
      const [now] = history.add([change(base)])
      return [memoryOf(now) === memoryOf(before), now === before, (now as Tensor).toArray()]
    }
    expect(other((x) => x)).toEqual([true, true, [1, 2, 3, 4]])
    expect(other((x) => x.detach())).toEqual([true, true, [1, 2, 3, 4]])
    expect(other((x) => x.narrow(0, 1, 2))).toEqual([true, false, [2, 3]])
    expect(other((x) => x.narrow(0, 0, 2))).toEqual([true, false, [1, 2]])
    expect(other((x) => x.reshape([2, 2]))).toEqual([
      true,
      false,
      [
        [1, 2],
        [3, 4],
      ],
    ])
    expect(other((x) => x.slice(0, 0, 4, 2))).toEqual([true, false, [1, 3]])
    expect(other((x) => x.detach().requiresGrad_())).toEqual([true, false, [1, 2, 3, 4]])
    expect(other((x) => new nn.Parameter(x, { requiresGrad: false }))).toEqual([true, false, [1, 2, 3, 4]])
    expect(other((x) => x.reshape([2, 2]).t())).toEqual([
      true,
      false,
      [
        [1, 3],
        [2, 4],
      ],
    ])
    // The same bytes may be other numbers.
    expect(other(() => t([1, 2, 3, 4]).to('int32'))).toEqual([false, false, [1, 2, 3, 4]])
    const zeros = new CallHistory(2)
    zeros.add([torch.zeros([2])])
    expect((zeros.add([torch.zeros([2], { dtype: 'int32' })])[0] as Tensor).dtype).toBe('int32')
  })

  it('keeps apart what the program has apart, and together what it has together', () => {
    const history = new CallHistory(2)
    history.add([torch.zeros([2]), torch.zeros([2])])
    const [a, b] = history.add([torch.zeros([2]), torch.zeros([2])])
    expect(memoryOf(a)).not.toBe(memoryOf(b))
    const one = torch.zeros([2])
    const [c, d, e] = history.add([one, one.view(2, 1), torch.zeros([2])])
    expect([memoryOf(c) === memoryOf(d), memoryOf(c) === memoryOf(e)]).toEqual([true, false])
    // Memory that is where other memory was.
    const moved = new CallHistory(2)
    moved.add([t([1]), t([2])])
    const again = t([1])
    expect(values(moved.add([again, again]))).toEqual([[1], [1]])
    // Memory that was one before and is two now.
    const split = new CallHistory(2)
    split.add([one, one])
    const [f, g] = split.add([torch.zeros([2]), torch.zeros([2])])
    expect(memoryOf(f)).not.toBe(memoryOf(g))
  })

  it('takes inputs without memory', () => {
    const fake = withMode(new FakeTensorMode(), () => torch.ones([2]))
    const history = new CallHistory(2)
    for (let i = 0; i < 2; i++) expect((history.add([fake, t([1])])[0] as Tensor).storage).toBeNull()
  })

  it('takes calls with other inputs: fewer, more, of other kinds', () => {
    const history = new CallHistory(9)
    const calls = [[], [1, t([1])], [t([1]), 1], [t([1]), 2, t([1])], [[t([1])]], [t([])], [t([1, 2])]]
    for (const call of calls) history.add(call)
    expect(history.calls.map(values)).toEqual([[], [1, [1]], [[1], 1], [[1], 2, [1]], [[expect.anything()]], [[]], [[1, 2]]])
  })
})

describe('bytes', () => {
  it('are the same if all are', () => {
    const bytes = (...of: number[]): Uint8Array => Uint8Array.from(of)
    expect([sameBytes(bytes(), bytes()), sameBytes(bytes(1, 2), bytes(1, 2))]).toEqual([true, true])
    expect([
      sameBytes(bytes(1, 2), bytes(1, 3)),
      sameBytes(bytes(9, 2), bytes(1, 2)),
      sameBytes(bytes(1), bytes(1, 0)),
      sameBytes(bytes(1, 0), bytes(1)),
    ]).toEqual([false, false, false, false])
    expect([
      sameContent(memoryOf(t([1])), memoryOf(t([1]))),
      sameContent(memoryOf(t([1])), memoryOf(t([1, 1]))),
      sameContent(memoryOf(t([0])), memoryOf(t([-0]))),
    ]).toEqual([true, false, false])
  })
})

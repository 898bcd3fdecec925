// The latest calls of a graph, by content; and errors that come after a call.
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { noGrad, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { CallHistory, sameBytes, sameContent } from '../../src/debug/history.ts'
import { settled } from '../../src/debug/late.ts'
import { present } from '../../src/errors/index.ts'
import { drawn } from './faultyBackends.ts'

/** All that a script keeps of a value. */
const told = (value: unknown): unknown => {
  if (typeof value !== 'object' || value === null || !('storage' in value)) return value
  const { shape, strides, offset, dtype, requiresGrad, isParameter } = value as Tensor
  return { shape, strides, offset, dtype, requiresGrad, isParameter, values: (value as Tensor).detach().toArray() }
}

const memoryOf = (value: unknown): unknown => (value as Tensor).storage

describe('the history of calls', () => {
  it.each(Array.from({ length: 12 }, (_, seed) => seed))('holds what the inputs were, however they change and share memory (%i)', (seed) => {
    const random = drawn(seed)
    const history = new CallHistory(4)
    const base = torch.randn([4, 4])
    const views = (): unknown[] => [base, base.t(), base.narrow(0, 1, 2), base.view(-1), base.select(0, 2), torch.tensor([1, 2, 3]), 7, null]
    let inputs: unknown[] = views()
    const wanted: unknown[][] = []
    for (let call = 0; call < 8; call++) {
      for (let change = 0; change < 2; change++) {
        const at = Math.floor(random() * inputs.length)
        const value = inputs[at]
        const kind = random()
        if (kind < 0.3) inputs = inputs.with(at, present(views()[Math.floor(random() * 6)], 'a view'))
        else if (kind < 0.5) inputs = inputs.with(at, torch.randn([2, 3], { requiresGrad: random() < 0.5 }))
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

  it('keeps one copy of what did not change, and never of the memory of the program', () => {
    const history = new CallHistory(3)
    const [x, w] = [torch.ones([2]), torch.ones([3], { requiresGrad: true })]
    for (let call = 0; call < 3; call++) {
      history.add([x, w, 5])
      noGrad(() => x.add_(1))
    }
    const [first, second, third] = history.calls.map((call) => call as readonly Tensor[])
    expect([first?.[1] === second?.[1], second?.[1] === third?.[1], first?.[0] === second?.[0]]).toEqual([true, true, false])
    expect(history.calls.flat().some((value) => value === x || value === w || (typeof value === 'object' && memoryOf(value) === w.storage))).toBe(
      false,
    )
    // As a view of the same memory it is another tensor.
    const other = history.add([x, w.detach(), 5])[1] as Tensor
    expect([other === third?.[1], memoryOf(other) === memoryOf(third?.[1]), other.requiresGrad]).toEqual([false, true, false])
  })

  it('tells views of one memory apart by each of what makes them', () => {
    const base = torch.ones([4, 4])
    const parameter = base.detach()
    parameter.isParameter = true
    const views = [
      base,
      base.t(),
      base.narrow(0, 1, 2),
      base.narrow(0, 2, 2),
      base.narrow(1, 0, 2),
      base.view(-1),
      base.detach().requiresGrad_(),
      parameter,
      torch.asStrided(base, [4, 4], [0, 1]),
    ]
    for (const a of views)
      for (const b of views) {
        const history = new CallHistory(2)
        const [first, second] = [history.add([a]), history.add([b])]
        expect([told(first[0]), told(second[0])]).toEqual([told(a), told(b)])
        expect([first[0] === second[0], memoryOf(first[0]) === memoryOf(second[0])]).toEqual([a === b, true])
      }
    // A dtype can be the only difference.
    const history = new CallHistory(2)
    const numbers = [torch.zeros([2], { dtype: 'int32' }), torch.zeros([2])]
    expect(numbers.map((x) => told(history.add([x])[0]))).toEqual(numbers.map(told))
  })

  it('compares memory byte by byte', () => {
    const bytes = (...values: number[]): Uint8Array => Uint8Array.from(values)
    expect([sameBytes(bytes(1, 2), bytes(1, 2)), sameBytes(bytes(1, 2), bytes(1, 3)), sameBytes(bytes(1), bytes(1, 2))]).toEqual([true, false, false])
    expect(sameBytes(bytes(), bytes(1))).toBe(false)
    const storage = (values: number[]) => present(torch.tensor(values).storage, 'memory')
    expect([
      sameContent(storage([1, 2]), storage([1, 2])),
      sameContent(storage([1, 2]), storage([1, 3])),
      sameContent(storage([1]), storage([1, 2])),
    ]).toEqual([true, false, false])
  })
})

describe('what comes after a call', () => {
  const names = ['unhandledRejection', 'uncaughtException'] as const
  const others = new Map<string, ((...args: never[]) => void)[]>()
  // The test runner's own listeners would take these errors for failures of a test.
  beforeEach(() => {
    for (const name of names) {
      others.set(name, process.listeners(name as 'uncaughtException') as never)
      process.removeAllListeners(name)
    }
  })
  afterEach(() => {
    for (const name of names) for (const listener of others.get(name) ?? []) process.on(name, listener as never)
  })

  it('is told with the result: the first error of a promise that nothing awaits, or of the next turns', async () => {
    const error = (text: string): RangeError => new RangeError(text)
    const rejected = await settled(() => (void Promise.reject(error('one')), void Promise.reject(error('two')), 5))
    expect(rejected).toEqual({ result: 5, late: { thrown: error('one') } })
    const thrown = await settled(() => {
      setImmediate(() => {
        throw error('three')
      })
    })
    expect(thrown.late?.thrown).toEqual(error('three'))
    const chained = await settled(() => void Promise.resolve().then(() => Promise.reject(error('four'))))
    expect(chained.late?.thrown).toEqual(error('four'))
  })

  it('is nothing where all is handled; what is thrown is thrown; nothing goes on listening', async () => {
    expect(await settled(() => Promise.reject(new Error('handled')).catch(() => 1))).toMatchObject({ late: null })
    await expect(
      settled(() => {
        throw new TypeError('at once')
      }),
    ).rejects.toThrow('at once')
    expect(names.map((name) => process.listenerCount(name))).toEqual([0, 0])
  })
})

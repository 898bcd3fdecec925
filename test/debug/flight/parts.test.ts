// The parts of a flight recorder by themselves: bad elements, losses that jump, and copies made when memory is written to.
import { describe, expect, it } from 'vitest'
import { nn, optim, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { FakeTensorMode, withMode } from 'tensorfx/dispatch'
import { randomFrom } from '../../../scripts/fuzz/random.mjs'
import { badnessOf, badnessOfBytes, elementAt, indexOf, isBad, largestOf, onBytes } from '../../../src/debug/flight/badness.ts'
import { Copies } from '../../../src/debug/flight/copies.ts'
import { Origins, earliest } from '../../../src/debug/flight/origins.ts'
import type { Argument, Origin } from '../../../src/debug/flight/origins.ts'
import { Snapshot, stateTensors } from '../../../src/debug/flight/state.ts'
import type { Sources } from '../../../src/debug/flight/state.ts'
import { Losses, badTensors, lossOf, lossValue, median, triggerOf } from '../../../src/debug/flight/trouble.ts'
import type { Check } from '../../../src/debug/flight/trouble.ts'

const t = torch.tensor

describe('bad elements', () => {
  it.each(['float64', 'float32', 'float16', 'bfloat16'] as const)('of %s are found, the first of each kind', (dtype) => {
    const of = (...values: number[]): unknown => badnessOf(t(values, { dtype }))
    expect(of(1, 0, -0, 60_000)).toEqual({ nan: null, infinite: null, isPositive: true })
    expect(of(1, NaN, 2, NaN)).toEqual({ nan: 1, infinite: null, isPositive: false })
    expect(of(1, 2, Infinity, -Infinity)).toEqual({ nan: null, infinite: 2, isPositive: true })
    expect(of(-Infinity, Infinity)).toEqual({ nan: null, infinite: 0, isPositive: false })
    expect(of(1, Infinity, NaN, NaN, -Infinity)).toEqual({ nan: 2, infinite: 1, isPositive: true })
    expect(of(NaN, NaN, -Infinity)).toEqual({ nan: 0, infinite: 2, isPositive: false })
  })

  it('are those of a view, in its order, and of other bytes with its layout', () => {
    const base = t([
      [1, NaN, 3],
      [Infinity, 5, 6],
    ])
    expect([badnessOf(base.t()), badnessOf(base.select(1, 2)), badnessOf(base.select(0, 1))]).toEqual([
      { nan: 2, infinite: 1, isPositive: true },
      { nan: null, infinite: null, isPositive: true },
      { nan: null, infinite: 0, isPositive: true },
    ])
    const bytes = base.storage?.readBytes() ?? new Uint8Array()
    const like = torch.zeros([2, 3])
    expect(badnessOfBytes(like.t(), bytes)).toMatchObject({ nan: 2, infinite: 1 })
    expect(onBytes(like.select(0, 1), bytes).toArray()).toEqual([Infinity, 5, 6])
    base.fill_(0)
    expect(onBytes(like, bytes).toArray()).toEqual([
      [1, NaN, 3],
      [Infinity, 5, 6],
    ])
  })

  it('are not looked for in integers and in values that are not there', () => {
    const fake = withMode(new FakeTensorMode(), () => torch.ones([2]))
    for (const tensor of [t([1], { dtype: 'int64' }), t([true]), fake, torch.zeros([0])]) expect(isBad(badnessOf(tensor))).toBe(false)
    expect([isBad(badnessOf(t([NaN]))), isBad(badnessOf(t([Infinity])))]).toEqual([true, true])
  })

  it('have an index, by which they are read', () => {
    const x = torch.arange(24).reshape([2, 3, 4])
    for (let place = 0; place < 24; place++) {
      const index = indexOf(x.shape, place)
      expect([index.length, elementAt(x, index), elementAt(x.permute([2, 0, 1]), [index[2] ?? 0, index[0] ?? 0, index[1] ?? 0])]).toEqual([
        3,
        place,
        place,
      ])
    }
    expect([indexOf([], 0), elementAt(t(7), [])]).toEqual([[], 7])
  })

  it('do not count as the largest', () => {
    expect([largestOf(t([1, -7, 3])), largestOf(t([NaN, Infinity, -2])), largestOf(t([NaN])), largestOf(torch.zeros([0]))]).toEqual([7, 2, 0, 0])
  })
})

describe('losses', () => {
  it('have a median', () => {
    expect([median([3]), median([9, 1, 2]), median([4, 1, 3, 10])]).toEqual([3, 2, 3.5])
  })

  it('are a step result, or where it has them', () => {
    const loss = t([2])
    for (const result of [loss, [loss, 'more'], { loss }, { loss: [loss] }, [{ loss }]]) expect(lossOf(result)).toBe(loss)
    expect([lossOf(3), lossOf([3]), lossOf({ loss: 3 })]).toEqual([3, 3, 3])
    for (const none of [null, undefined, 'text', [], {}, torch.ones([2]), [torch.ones([2])], { other: 3 }, () => 3]) expect(lossOf(none)).toBeNull()
    expect([lossValue(null), lossValue(3), lossValue(loss), lossValue(t(4))]).toEqual([null, 3, 2, 4])
    const fake = withMode(new FakeTensorMode(), () => torch.ones([]))
    expect(lossValue(fake)).toBeNull()
  })

  it('jump only after five, far above the median, the spread and the beginning', () => {
    const jumps = (values: readonly number[], factor: number | null = 10, window = 20): readonly number[] => {
      const losses = new Losses(factor, window)
      return values.flatMap((loss, i) => (losses.isJump(loss) ? [i] : []))
    }
    expect(jumps([1, 1, 1, 1, 1000])).toEqual([])
    expect(jumps([1, 1, 1, 1, 1, 1000])).toEqual([5])
    expect(jumps([1, 1, 1, 1, 1, 1000], null)).toEqual([])
    expect(jumps([1, 1, 1, 1, 1, 9])).toEqual([])
    // A jump does not become usual.
    expect(jumps([1, 1, 1, 1, 1, 1000, 1, 1000, 1])).toEqual([5, 7])
    // NaN and infinities are other trouble.
    expect(jumps([1, 1, 1, 1, 1, NaN, Infinity, 1, 1000])).toEqual([8])
    // Back to where the training began is no jump.
    expect([29, 31].map((last) => jumps([50, 40, 30, 20, 10, 1, 1, 1, 1, 1, 1, 1, last], 10, 5))).toEqual([[], [12]])
    // Losses of small batches that differ much.
    expect(jumps([1, 20, 1, 20, 1, 20, 60])).toEqual([])
  })
})

describe('copies', () => {
  const content = (copy: { content(): Uint8Array }): number[] => [...new Float32Array(copy.content().slice().buffer)]

  it('are made at the next write, and hold what was there', () => {
    const copies = new Copies()
    const x = t([1, 2])
    const first = copies.hold(x, false)
    expect([copies.size, first.bytes, content(first)]).toEqual([0, null, [1, 2]])
    expect(copies.hold(x, false)).toBe(first)
    x.add_(1)
    expect([copies.size, content(first)]).toEqual([8, [1, 2]])
    x.add_(1)
    const second = copies.hold(x, false)
    expect([second === first, content(first), content(second), copies.size]).toEqual([false, [1, 2], [3, 4], 8])
    x.mul_(2)
    expect([content(second), copies.size, first.isLost, second.isLost]).toEqual([[3, 4], 16, false, false])
    first.restore()
    expect([x.toArray(), content(second)]).toEqual([
      [1, 2],
      [3, 4],
    ])
    copies.release(first)
    expect(copies.size).toBe(16)
    copies.release(first)
    expect(copies.size).toBe(8)
    copies.release(second)
    expect(copies.size).toBe(0)
  })

  it('that are released before a write are never made', () => {
    const copies = new Copies()
    const x = t([1, 2])
    const copy = copies.hold(x, false)
    copies.release(copy)
    x.add_(1)
    expect([copies.size, copy.bytes]).toEqual([0, null])
    expect(copies.hold(x, false)).not.toBe(copy)
  })

  it('count memory that only the record keeps alive', () => {
    const copies = new Copies()
    const x = t([1, 2])
    const copy = copies.hold(x, true)
    expect(copies.size).toBe(8)
    x.add_(1)
    expect(copies.size).toBe(8)
    copies.release(copy)
    expect(copies.size).toBe(0)
  })

  it('of what is written without a word are lost, and nothing is restored from them', () => {
    const copies = new Copies()
    const x = t([1, 2])
    const copy = copies.hold(x, false)
    const { storage } = x
    if (storage === null) throw new Error('no memory')
    storage.version++
    expect(copy.isLost).toBe(true)
    copy.restore()
    expect(x.toArray()).toEqual([1, 2])
    expect(copies.hold(x, false)).not.toBe(copy)
    const fake: Tensor = withMode(new FakeTensorMode(), () => torch.ones([2]))
    expect(() => copies.hold(fake, false)).toThrow('flightRecorder: a fake tensor has no data to record')
  })
})

describe('numbers that are drawn', () => {
  const VALUES = [0, -0, 1, -2.5, 7, NaN, Infinity, -Infinity]
  const { int: draw } = randomFrom(5)
  const cases = Array.from({ length: 60 }, () => Array.from({ length: 1 + draw(6) }, () => VALUES[draw(draw(2) === 0 ? 5 : VALUES.length)] ?? 0))

  it('have the first bad elements and the largest magnitude that a plain search finds', () => {
    for (const values of cases) {
      const x = t(values)
      const [nan, infinite] = [values.findIndex(Number.isNaN), values.findIndex((value) => Math.abs(value) === Infinity)]
      const isPositive = nan < 0 && infinite < 0 ? true : values[infinite] === Infinity
      expect(badnessOf(x)).toEqual({ nan: nan < 0 ? null : nan, infinite: infinite < 0 ? null : infinite, isPositive })
      expect(largestOf(x)).toBe(Math.max(0, ...values.filter(Number.isFinite).map(Math.abs)))
    }
  })

  it('jump where the plain rule says it', () => {
    const middle = (values: readonly number[]): number => {
      const [a = 0, b = 0] = [values.length - 1, values.length].map((n) => values.toSorted((p, q) => p - q)[n >> 1])
      return (a + b) / 2
    }
    for (let round = 0; round < 40; round++) {
      const [factor, window] = [1.5 + draw(4), 3 + draw(6)]
      const losses = new Losses(factor, window)
      const seen: number[] = []
      for (let i = 0; i < 16; i++) {
        const loss = (draw(4) === 0 ? 12 : 1) * (draw(9) - 3)
        const recent = seen.slice(-Math.max(window, 5))
        const usual = middle(recent)
        const spread = Math.max(...recent.map((one) => Math.abs(one - usual)))
        const wanted = recent.length >= 5 && loss > usual + (factor - 1) * Math.max(Math.abs(usual), spread) && loss > middle(seen.slice(0, 5))
        expect([round, i, losses.isJump(loss)]).toEqual([round, i, wanted])
        if (!wanted) seen.push(loss)
      }
    }
  })
})

it('a loss is looked for ten deep', () => {
  const nested = (depth: number): unknown => (depth === 0 ? 7 : [nested(depth - 1)])
  expect([lossOf(nested(9)), lossOf(nested(10))]).toEqual([7, null])
})

describe('the state', () => {
  const model = new nn.BatchNorm1d(2)
  const optimizer = new optim.Adam([...model.parameters(), t([5], { requiresGrad: true })], { lr: 0.1 })
  const weight = model.weight as unknown as Tensor
  weight.grad = t([1, 1])
  optimizer.step()
  const input = t([1], { requiresGrad: true })
  input.grad = t([2])
  const scheduled = t([3])
  const sources: Sources = {
    models: [
      ['', model],
      ['1.', model],
    ],
    optimizers: [optimizer],
    tensors: new Map([
      ['plain', t([1])],
      ['learned', t([1], { requiresGrad: true })],
      ['again', weight],
    ]),
    stateful: [{ stateDict: () => ({ deep: [scheduled] }), loadStateDict: () => {} }],
    generators: [],
  }
  const all = stateTensors(sources, [3, { x: input }])

  it('has every tensor once, by its kind and name', () => {
    expect(all.map(({ kind, name, tensor }) => [kind, name, ...tensor.shape])).toEqual([
      ['parameter', 'weight', 2],
      ['parameter', 'bias', 2],
      ['buffer', 'runningMean', 2],
      ['buffer', 'runningVar', 2],
      ['buffer', 'numBatchesTracked'],
      ['tensor', 'plain', 1],
      ['parameter', 'learned', 1],
      ['parameter', 'parameter 2', 1],
      ['gradient', 'weight', 2],
      ['optimizer state', 'expAvg of weight', 2],
      ['optimizer state', 'expAvgSq of weight', 2],
      ['tensor', 'state 0', 1],
      ['input', 'input 1', 1],
      ['gradient', 'input 1', 1],
    ])
  })

  it('is bad where a step made it so', () => {
    const trouble = (names: readonly string[], values: readonly number[], checks: readonly Check[] = ['gradients', 'weights']): unknown => {
      const copies = new Copies()
      const before = new Snapshot(copies, sources, [3, { x: input }])
      const touched = all.filter(({ kind, name }) => names.includes(`${kind} ${name}`))
      const held = touched.map(({ tensor }) => tensor.detach().clone())
      for (const { tensor } of touched) torch.noGrad(() => tensor.copy_(t([...values].slice(0, tensor.numel))))
      const found = badTensors(all, before, new Set(checks)).map(triggerOf)
      for (const [i, { tensor }] of touched.entries()) torch.noGrad(() => tensor.copy_(held[i] as Tensor))
      return found
    }
    const trigger = (kind: string, name: string, value: number, at: number): unknown => ({ kind, name, value, index: [at] })
    expect(trouble(['parameter bias'], [1, NaN])).toEqual([trigger('parameter', 'bias', NaN, 1)])
    expect(trouble(['parameter bias'], [1, 2])).toEqual([])
    expect(trouble(['parameter bias'], [Infinity, NaN])).toEqual([trigger('parameter', 'bias', NaN, 1)])
    expect(trouble(['buffer runningVar', 'gradient weight'], [Infinity, -Infinity])).toEqual([
      trigger('buffer', 'runningVar', Infinity, 0),
      trigger('gradient', 'weight', Infinity, 0),
    ])
    expect(trouble(['buffer runningVar', 'gradient weight'], [1, -Infinity], ['weights'])).toEqual([trigger('buffer', 'runningVar', -Infinity, 1)])
    expect(trouble(['buffer runningVar', 'gradient weight'], [1, -Infinity], ['gradients'])).toEqual([trigger('gradient', 'weight', -Infinity, 1)])
    expect(trouble(['input input 1', 'tensor state 0'], [NaN])).toEqual([trigger('tensor', 'state 0', NaN, 0)])
    // What was infinite before may stay so; a gradient may not.
    torch.noGrad(() => [weight, weight.grad, model.bias as unknown as Tensor].map((one) => one?.copy_(t([Infinity, 1]))))
    expect(trouble(['parameter bias'], [2, Infinity])).toEqual([trigger('gradient', 'weight', Infinity, 0)])
    expect(trouble(['parameter bias'], [Infinity, NaN], ['weights'])).toEqual([trigger('parameter', 'bias', NaN, 1)])
    expect(trouble([], [])).toEqual([trigger('gradient', 'weight', Infinity, 0)])
    torch.noGrad(() => [weight, weight.grad, model.bias as unknown as Tensor].map((one) => one?.fill_(1)))
  })
})

describe('origins', () => {
  const [bad, inf, good] = [t([1, NaN]), t([Infinity, 1]), t([1, 2])]
  const argument = (tensor: Tensor): Argument => ({ tensor, badness: badnessOf(tensor) })
  /** Operators on tensors, each told by its name: what the origins of the last result are. */
  const run = (intended: boolean, ...calls: readonly [string, readonly Tensor[], readonly number[], ...Tensor[]][]): unknown => {
    const origins = new Origins<string>()
    for (const tensor of [bad, inf, good])
      origins.enters(
        tensor,
        badnessOf(tensor),
        (kind) => intended && kind === 'infinite',
        () => `outside ${String(tensor.toArray())}`,
      )
    let last: Tensor = good
    for (const [name, args, numbers, ...results] of calls) {
      origins.computed(args.map(argument), numbers, results.map(argument), () => name)
      last = results.at(-1) ?? last
    }
    return (['nan', 'infinite'] as const).map((kind) => {
      const origin = origins.of(last, kind)
      return origin === null ? null : [origin.where, origin.bad, origin.isIntended, origin.output, origin.index, origin.element, origin.order]
    })
  }
  const [NAN, INF] = ['outside 1,NaN', 'outside Infinity,1']

  it('are what came first and was not intended', () => {
    const result = (...values: number[]): Tensor => t(values)
    expect(run(false)).toEqual([null, null])
    expect(run(false, ['log', [good], [], good, result(NaN, -Infinity)])).toEqual([
      ['log', 'nan', false, 1, [0], NaN, 2],
      ['log', 'infinite', false, 1, [1], -Infinity, 3],
    ])
    expect(run(false, ['add', [good, bad], [], result(1, NaN)])).toEqual([[NAN, 'nan', false, 0, [1], NaN, 0], null])
    // A NaN comes from a NaN before it comes from an infinity; an infinity from an infinity.
    expect(run(false, ['add', [inf, bad], [], result(NaN, Infinity)])).toEqual([
      [NAN, 'nan', false, 0, [1], NaN, 0],
      [INF, 'infinite', false, 0, [0], Infinity, 1],
    ])
    expect(run(false, ['sub', [inf], [], result(NaN, 1)])).toEqual([[INF, 'infinite', false, 0, [0], Infinity, 1], null])
    expect(run(false, ['sub', [bad], [], result(Infinity, 1)])).toEqual([null, [NAN, 'nan', false, 0, [1], NaN, 0]])
    // An intended infinity is the cause of infinities, but a NaN of it has an operator at fault.
    expect(run(true, ['add', [inf], [], result(Infinity, 1)])).toEqual([null, [INF, 'infinite', true, 0, [0], Infinity, 1]])
    expect(run(true, ['sub', [inf, inf], [], result(NaN, 1)])).toEqual([['sub', 'nan', false, 0, [0], NaN, 2], null])
    expect(run(true, ['sub', [inf, bad], [], result(NaN, -Infinity)])).toEqual([
      [NAN, 'nan', false, 0, [1], NaN, 0],
      [NAN, 'nan', false, 0, [1], NaN, 0],
    ])
    // So has a number that the program gives.
    expect(run(false, ['fill', [], [1, -Infinity], result(-Infinity, NaN)])).toEqual([
      ['fill', 'nan', false, 0, [1], NaN, 2],
      ['fill', 'infinite', true, 0, [0], -Infinity, 3],
    ])
    expect(run(false, ['fill', [], [1, 2], result(-Infinity, 1)])).toEqual([null, ['fill', 'infinite', false, 0, [0], -Infinity, 2]])
  })

  it('are those of memory: good results forget them, and other parts of it do not count', () => {
    const memory = t([NaN, 1])
    const [first, second] = [memory.narrow(0, 0, 1), memory.narrow(0, 1, 1)]
    const spoil = ['spoil', [good], [], first] as const
    expect(run(false, [...spoil], ['read', [first], [], t([NaN])])).toEqual([['spoil', 'nan', false, 0, [0], NaN, 2], null])
    expect(run(false, [...spoil], ['read', [second], [], t([NaN])])).toEqual([['read', 'nan', false, 0, [0], NaN, 3], null])
    expect(run(false, [...spoil], ['good', [], [], second], ['read', [first], [], t([NaN])])).toEqual([['spoil', 'nan', false, 0, [0], NaN, 2], null])
    const origins = new Origins<string>()
    const told = (tensor: Tensor): unknown => {
      origins.computed([], [], [argument(tensor)], () => 'spoil')
      return origins.of(memory, 'nan')?.where
    }
    expect([told(memory), told(memory.fill_(0).narrow(0, 0, 1)), told(memory)]).toEqual(['spoil', 'spoil', undefined])
  })

  it('of the first are the earliest', () => {
    const of = (...orders: number[]): unknown => earliest(orders.map((order) => ({ order }) as Origin<string>))?.order
    expect([of(3, 1, 2), of(1), of()]).toEqual([1, 1, undefined])
  })
})

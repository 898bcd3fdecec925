// Calls with sizes that change are answered by the program itself where capturing them gains nothing: which, by times of a clock of the test's own.
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { compile, noGrad, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { isCompiling, withConfig } from 'tensorfx/compile'
import { counters, onEvent } from 'tensorfx/debug'
import { dispatchState } from '../../../src/dispatch/index.ts'
import { clock } from '../../../src/dynamo/tree/budget.ts'

let time = 0
const { now } = clock
beforeEach(() => {
  time = 0
  clock.now = () => time
})
afterEach(() => {
  clock.now = now
})

/** Milliseconds that a call takes. */
interface Speed {
  program: number
  captured: number
}

/** A function that is compiled with sizes, and how its latest calls were answered. */
class Subject {
  readonly speed: Speed = { program: 1, captured: 1 }
  answers: ('program' | 'captured')[] = []
  readonly call: ((x: Tensor) => Tensor) & { readonly graphs: () => readonly unknown[] }

  constructor(options: { fullgraph?: boolean; skipReplay?: boolean; backend?: string } = {}, body = (x: Tensor): Tensor => x.mul(2).sum()) {
    const step = (x: Tensor): Tensor => {
      const answer = dispatchState.mode === null ? 'program' : 'captured'
      this.answers.push(answer)
      time += this.speed[answer]
      return body(x)
    }
    this.call = compile(step, { dynamic: true, ...options })
  }

  /** How calls with so many rows were answered, in turn. */
  with(...rows: readonly number[]): readonly string[] {
    this.answers = []
    for (const n of rows) expect(this.call(torch.ones([n, 2])).item()).toBe(4 * n)
    return this.answers
  }
}

const times = <T>(n: number, value: T): readonly T[] => new Array<T>(n).fill(value)

describe('calls with sizes that change', () => {
  it('are captured until it is known that there are no kernels for any sizes; then the program answers those with new sizes', () => {
    const subject = new Subject()
    expect(subject.with(2, 3, 4)).toEqual(times(3, 'captured'))
    // One now and then is captured: the first, the second, the fourth ...
    const later = subject.with(...Array.from({ length: 64 }, (_, i) => 5 + i))
    expect(later.flatMap((answer, i) => (answer === 'captured' ? [i + 1] : []))).toEqual([1, 2, 4, 8, 16, 32, 64])
  })

  const chain = (x: Tensor): Tensor => {
    let y = x.expand([x.shape[0] ?? 0, 2]).repeat([1, 512])
    for (let i = 0; i < 8; i++) y = y.mul(2).mul(0.5)
    return y.sum().div(256)
  }

  it.each(['program', 'captured'] as const)(
    'that come again are timed where the graph has kernels, each list of sizes: the %s is faster',
    (faster) => {
      const subject = new Subject({}, chain)
      subject.with(2, 3, 4, 5, 6, 7, 8)
      subject.speed[faster] = 0.5
      expect(subject.with(...times(5, 50))).toEqual(times(5, 'captured'))
      expect(subject.with(...times(8, 50))).toEqual(times(4, ['captured', 'program']).flat())
      expect(subject.with(50, 60, 50)).toEqual([faster, 'captured', faster])
      // The sixteenth call, and then the thirty-second.
      const slower = faster === 'program' ? 'captured' : 'program'
      expect(subject.with(...times(17, 50))).toEqual([slower, ...times(15, faster), slower])
    },
  )

  it('are answered in the other way from then on if the slower one turns out to be faster when it is tried again', () => {
    const subject = new Subject({}, chain)
    subject.speed.program = 0.5
    subject.with(2, 3, ...times(13, 50))
    subject.speed.captured = 0.25
    expect(subject.with(...times(5, 50))).toEqual(['program', 'program', ...times(3, 'captured')])
  })

  it('are captured where the graph has kernels of its own', () => {
    const subject = new Subject({}, chain)
    expect(subject.with(...Array.from({ length: 24 }, (_, i) => 2 + i))).toEqual(times(24, 'captured'))
  })

  it.each([{ fullgraph: true }, { skipReplay: true }, { backend: 'eager' }])('are captured with %o, which asks for it', (options) => {
    expect(new Subject(options).with(...Array.from({ length: 24 }, (_, i) => 2 + i))).toEqual(times(24, 'captured'))
  })

  it('are captured while someone listens, and with verifySizes', () => {
    const subject = new Subject()
    subject.with(2, 3, 4, 5, 6, 7)
    const off = onEvent(() => undefined)
    expect(subject.with(8, 9, 10)).toEqual(times(3, 'captured'))
    off()
    expect(withConfig({ verifySizes: true }, () => subject.with(11, 12, 13))).toEqual(times(3, 'captured'))
  })

  it('are captured where the program asks whether it is', () => {
    const subject = new Subject({}, (x) => (isCompiling() ? x.mul(2) : x.mul(3)).sum())
    expect(subject.with(...Array.from({ length: 24 }, (_, i) => 2 + i))).toEqual(times(24, 'captured'))
  })

  it('are captured again when a call takes a path of its own', () => {
    let factor = 2
    const subject = new Subject({}, (x) => (factor === 2 ? x.mul(2).sum() : x.add(1).sum()))
    subject.with(2, 3, 4, 5, 6)
    factor = 1
    // The third and the fourth are those that the program answers and that which is captured to see whether its path is known.
    expect(subject.with(7, 8)).toEqual(['program', 'captured'])
    expect(subject.with(9, 10)).toEqual(times(2, 'captured'))
  })

  it.each(['program', 'captured'] as const)('that come again are timed, with one list of sizes: the %s is faster', (faster) => {
    const subject = new Subject()
    subject.with(2, 3, 4)
    subject.speed[faster] = 0.5
    subject.with(...times(8, 50))
    expect(subject.with(...times(24, 50))).toEqual(times(24, 'captured'))
    subject.with(...times(8, 60))
    expect(subject.with(50, 60, 50, 60)).toEqual(times(4, faster))
  })

  it('are timed with one list only', () => {
    const subject = new Subject()
    subject.with(2, 3, 4)
    for (let i = 0; i < 8; i++) subject.with(50, 60, 70)
    expect(subject.with(50, 60, 70, 50, 60, 70)).toEqual(['captured', 'program', 'program', 'captured', 'program', 'program'])
  })

  it('that come often are captured in any case, so that they get graphs of their own, for so many lists as graphs are allowed', () => {
    const subject = new Subject()
    subject.speed.captured = 2
    subject.with(2, 3, 4, ...times(32, 50))
    expect(subject.with(...times(18, 50))).toEqual(times(18, 'program'))
    subject.with(...times(8, 60))
    expect(withConfig({ recompileLimit: 1 }, () => subject.with(50, ...times(50, 60)))).toEqual(['captured', ...times(50, 'program')])
  })

  it('count for a graph of their own: the first one that is captured after fifty gets it', () => {
    const subject = new Subject()
    subject.speed.captured = 2
    subject.with(2, 3, 4, ...times(50, 50))
    expect(subject.call.graphs()).toHaveLength(1)
    expect(subject.with(50)).toEqual(['captured'])
    expect(subject.call.graphs()).toHaveLength(2)
  })

  it('leave gradients as they are', () => {
    const w = torch.ones([2], { requiresGrad: true })
    const step = compile((x: Tensor) => x.mul(w).sum(), { dynamic: true })
    for (let n = 2; n < 20; n++) {
      step(torch.ones([n, 2])).backward()
      expect(w.grad?.toArray()).toEqual([n, n])
      w.grad = null
    }
    expect(noGrad(() => step(torch.ones([30, 2]))).requiresGrad).toBe(false)
  })
})

describe('calls of a graph of one operator, without sizes', () => {
  /** How each call was answered, by the first letter. */
  function answers(speed: Speed, calls: number, body = (x: Tensor): Tensor => x.mul(2)): string {
    let log = ''
    const f = compile((x: Tensor) => {
      const answer = dispatchState.mode === null ? 'program' : 'captured'
      log += answer[0] ?? ''
      time += speed[answer]
      return body(x)
    })
    for (let i = 0; i < calls; i++) expect(f(torch.ones([3])).toArray()).toEqual(body(torch.ones([3])).toArray())
    return log
  }

  it('are answered by the program where that is faster, but for one now and then', () => {
    const before = counters.limits['oneOperator'] ?? 0
    const log = answers({ program: 0.001, captured: 0.003 }, 140)
    expect(log.length).toBe(140)
    // The first call is recorded and five are replayed; then calls of either way are timed, in turns.
    expect(log.slice(0, 31)).toBe(`cccccc${'cp'.repeat(12)}c`)
    expect([...log].flatMap((answer, i) => (answer === 'c' && i > 31 ? [i] : []))).toEqual([33, 65, 129])
    expect(counters.limits['oneOperator']).toBe(before + 1)
  })

  it('are captured where the graph is faster, where it has more operators, and where the order of a sum may differ', () => {
    expect(answers({ program: 0.003, captured: 0.001 }, 60).slice(32)).toMatch(/^c+$/)
    expect(answers({ program: 0.001, captured: 0.003 }, 60, (x) => x.mul(2).add(1))).toMatch(/^c+$/)
    expect(answers({ program: 0.001, captured: 0.003 }, 60, (x) => x.sum())).toMatch(/^c+$/)
  })

  it('are captured again when the program does more, and right in between', () => {
    let more = false
    const f = compile((x: Tensor) => {
      time += dispatchState.mode === null ? 0.001 : 0.003
      return more ? x.mul(2).add(1) : x.mul(2)
    })
    for (let i = 0; i < 40; i++) expect(f(torch.ones([3])).toArray()).toEqual([2, 2, 2])
    more = true
    for (let i = 0; i < 100; i++) expect(f(torch.ones([3])).toArray()).toEqual([3, 3, 3])
    expect(f.graphs()).toHaveLength(2)
  })
})

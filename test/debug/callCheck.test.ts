// One call after the other, judged without a compiler: each rule by its words, what is put back, and what is right all the same.
import { afterEach, describe, expect, it } from 'vitest'
import { nn, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { config } from 'tensorfx/compile'
import { Graph, GraphModule, symbolicTrace } from 'tensorfx/fx'
import { CallCheck } from '../../src/debug/judge/callCheck.ts'
import type { Finding } from '../../src/debug/judge/callCheck.ts'
import { isolated } from '../../src/debug/runs/isolated.ts'
import { resetConfig } from './inProcess.ts'

afterEach(resetConfig)

const t = torch.tensor
type Code = (...inputs: Tensor[]) => unknown

/** Makes the calls, and judges each. */
class Judged {
  readonly findings: (Finding | null)[] = []
  readonly reports: string[] = []
  readonly results: unknown[] = []
  readonly #check: CallCheck
  readonly #code: Code

  constructor(gm: GraphModule, code: Code) {
    this.#code = code
    this.#check = new CallCheck(
      gm,
      (...inputs) => code(...(inputs as Tensor[])),
      (why) => void this.reports.push(why),
    )
  }

  call(...inputs: unknown[]): Finding | null {
    const before = isolated(null, inputs).inputs
    this.#check.begin()
    const result = torch.noGrad(() => this.#code(...(inputs as Tensor[])))
    this.results.push(result)
    const finding = this.#check.judge(before, inputs, result)
    this.findings.push(finding)
    return finding
  }
}

const judged = (forward: Code, code: Code): Judged => new Judged(symbolicTrace(forward), code)
const values = (tensors: unknown): unknown => (tensors as Tensor[]).map((one) => one.toArray())

describe('a right call', () => {
  it('has no finding, and changes nothing: inputs, results, random numbers', () => {
    const forward: Code = (x, y) => [x.mul(2), x.add(y), x.sum()]
    const calls = judged(forward, forward)
    const [x, y] = [t([1, 2]), t([3, 4])]
    torch.manualSeed(3)
    const state = torch.getRngState()
    for (let i = 0; i < 10; i++) expect(calls.call(x, y)).toBeNull()
    expect([x.toArray(), y.toArray(), torch.getRngState(), calls.reports]).toEqual([[1, 2], [3, 4], state, []])
    for (const result of calls.results) expect(values(result)).toEqual([[2, 4], [4, 6], 3])
  })

  it('may draw random numbers, the same as the graph', () => {
    const forward: Code = (x) => [torch.nn.functional.dropout(x, 0.5, true)]
    const x = torch.ones([64])
    torch.manualSeed(3)
    expect(judged(forward, forward).call(x)).toBeNull()
    expect(judged(forward, (v) => [torch.nn.functional.dropout(v, 0.25, true)]).call(x)?.rule).toBe('numbers')
  })

  it('may return views where the graph does, empty tensors, one tensor, and what is none', () => {
    const x = t([
      [1, 2],
      [3, 4],
    ])
    for (const forward of [(v) => [v.t(), v.select(0, 0)], (v) => [v.narrow(0, 0, 0)], (v) => v.mul(2), (v) => [v.mul(2), null, 3]] satisfies Code[])
      expect(judged(forward, forward).call(x)).toBeNull()
    expect(
      judged(
        (v) => [torch.zeros([0]).add(v.sum())],
        (v) => [v.flatten().narrow(0, 0, 0)],
      ).call(x),
    ).toBeNull()
    expect(
      judged(
        (v) => [v.mul(2), 3],
        (v) => [v.mul(2), 4],
      ).call(x),
    ).toMatchObject({ rule: 'numbers', reasons: [expect.stringMatching(/3 and 4/), 'Accuracy failed for key name output 1 (3)'] })
  })

  it('cannot be judged where the graph fails on eager kernels, and says so', () => {
    const calls = judged(
      (x) => [x.reshape([7])],
      (x) => [x],
    )
    expect([calls.call(t([1])), calls.reports]).toEqual([null, [expect.stringMatching(/^it fails on eager kernels: .*reshape/s)]])
  })
})

describe('numbers', () => {
  it('are named by the output that has them', () => {
    const found = judged(
      (x) => [x.mul(2), x.add(1)],
      (x) => [x.mul(2), x.add(2)],
    ).call(t([1, 2]))
    expect(found).toMatchObject({ rule: 'numbers', message: 'Its numbers are wrong.' })
    expect(found?.reasons).toEqual([expect.stringMatching(/^RMSE .* element 0 is 3, not 2$/), 'Accuracy failed for key name output 1 (add)'])
    config.sameTwoModelsUseFp64 = false
    const plain = judged(
      (x) => [x.mul(2)],
      (x) => [x.mul(3)],
    ).call(t([1, 2]))
    expect(plain?.reasons[0]).toMatch(/^Accuracy failed: allclose/)
  })

  it('are those of one tensor, where the code returns one', () => {
    const one = judged(
      (x) => x.mul(2),
      (x) => x.mul(3),
    ).call(t([1, 2]))
    expect(one).toMatchObject({
      rule: 'numbers',
      reasons: [expect.stringMatching(/element 1 is 6, not 4/), 'Accuracy failed for key name output 0 (mul)'],
    })
  })

  it('may be more exact than the reference', () => {
    const cancels: Code = (x) => [x.add(1e5).sub(1e5)]
    expect(judged(cancels, (x) => [x.mul(1)]).call(t([0.3, 0.7, 0.11]))).toBeNull()
    expect(judged(cancels, (x) => [x.mul(3)]).call(t([0.3, 0.7, 0.11]))?.rule).toBe('numbers')
    // Without float64, runs on moved inputs show what the reference is worth.
    config.sameTwoModelsUseFp64 = false
    expect(judged(cancels, (x) => [x.mul(1)]).call(t([0.3, 0.7, 0.11]))).toBeNull()
    expect(judged(cancels, (x) => [x.mul(3)]).call(t([0.3, 0.7, 0.11]))?.rule).toBe('numbers')
  })

  it('where a graph rejects moved inputs, the others decide', () => {
    const graph = new Graph()
    const picky = (x: Tensor): Tensor => {
      if (x.select(0, 0).item() !== Math.fround(0.3)) throw new RangeError('other inputs')
      return x.mul(2)
    }
    graph.output([graph.callFunction(picky, [graph.placeholder('x')])])
    expect(new Judged(new GraphModule({}, graph), (x) => [x.mul(3)]).call(t([0.3, 0.1]))).toMatchObject({ rule: 'numbers' })
  })

  it('of tensors that the graph holds count too, and are put back', () => {
    class Counts extends nn.Module {
      constructor() {
        super()
        this.registerBuffer('n', t([1, 2]))
        this.registerBuffer('m', t([5]))
      }
      forward(x: Tensor): unknown {
        const [n, m] = ['n', 'm'].map((name) => Reflect.get(this, name) as Tensor) as [Tensor, Tensor]
        return [x.add(n.add_(1)), x.mul(m)]
      }
    }
    const gm = symbolicTrace(new Counts())
    const n = gm.attribute('n') as Tensor
    const right: Code = (x) => gm.forward(x as never)
    const calls = new Judged(gm, right)
    for (let i = 1; i <= 3; i++) expect([calls.call(t([0, 0])), n.toArray()]).toEqual([null, [1 + i, 2 + i]])
    const twice = new Judged(gm, (x) => {
      const result = right(x)
      n.add_(1)
      return result
    }).call(t([0, 0]))
    expect(twice?.rule).toBe('numbers')
    expect(twice?.reasons.join()).toContain("Accuracy failed for key name attribute 'n'")
    expect(n.toArray()).toEqual([4, 5])
    config.sameTwoModelsUseFp64 = false
    expect(new Judged(gm, right).call(t([0, 0]))).toBeNull()
    expect(n.toArray()).toEqual([5, 6])
    const never = new Judged(gm, (x) => [x.add(n).add(1), x.mul(5)]).call(t([0, 0]))
    expect(never?.reasons.join()).toContain("attribute 'n'")
  })
})

describe('inputs', () => {
  const double: Code = (x, y) => [x.mul(2).add(y.mul(0))]

  it('that the graph does not write are overwritten: they are named, and put back', () => {
    const [x, y] = [t([1, 2]), t([3, 4])]
    const found = judged(double, (a, b) => {
      const result = double(a, b)
      b.fill_(9)
      return result
    }).call(x, y)
    expect(found).toEqual({ rule: 'inputs', message: "Input 1 ('y') was overwritten, and the graph does not write to it.", reasons: [] })
    expect([x.toArray(), y.toArray()]).toEqual([
      [1, 2],
      [3, 4],
    ])
  })

  it('that the graph writes have what it writes, but for rounding', () => {
    const writes: Code = (x) => [x.add_(0.1).mul(2)]
    const by = (amount: number): Finding | null => {
      const x = t([1, 2])
      const found = judged(writes, (v) => {
        v.add_(amount)
        return [v.mul(2)]
      }).call(x)
      if (found !== null) expect(x.toArray()).toEqual([1, 2])
      return found
    }
    expect([by(0.1), by(0.1 + 1e-7)]).toEqual([null, null])
    const found = by(0.2)
    expect(found).toMatchObject({
      rule: 'inputs',
      message: "Input 0 ('x') has another value after the call than the graph writes to it on eager kernels.",
    })
    expect(found?.reasons).toEqual([expect.stringMatching(/element 1 is 2\.2/)])
    // Also where the code does not write, and its results are right.
    expect(judged(writes, (v) => [v.add(0.1).mul(2)]).call(t([1, 2]))).toMatchObject({ rule: 'inputs', message: found?.message })
  })

  it('may be written with outputs that are their new values', () => {
    const gm = symbolicTrace((x: Tensor, y: Tensor) => [x.add(1), y.mul(2)])
    gm.meta['writeBacks'] = new Map([[0, 0]])
    const write = (value: (x: Tensor) => Tensor): Finding | null => {
      const calls = new Judged(gm, (x, y) => {
        const result = x.add(1)
        x.copy_(value(x))
        return [result, y.mul(2)]
      })
      return calls.call(t([1, 2]), t([3]))
    }
    expect(write((x) => x.add(1))).toBeNull()
    expect(write((x) => x.add(2))?.message).toBe("Input 0 ('x') was overwritten, and the graph does not write to it.")
    const both = symbolicTrace((x: Tensor, y: Tensor) => [x.add(1), y.mul(2)])
    both.meta['writeBacks'] = new Map([
      [0, 0],
      [1, 1],
    ])
    const writesBoth: Code = (x, y) => [x.add_(1), y.mul_(2)]
    expect(new Judged(both, writesBoth).call(t([1, 2]), t([3]))).toBeNull()
    expect(new Judged(both, (x, y) => [x.add_(1), y.mul_(2), y.add_(1)].slice(0, 2)).call(t([1, 2]), t([3]))?.rule).toBeDefined()
    // What shares memory with a new value may lie there too.
    const viewed = symbolicTrace((x: Tensor) => {
      const y = x.add(1)
      return [y, y.view(2, 1)]
    })
    viewed.meta['writeBacks'] = new Map([[0, 0]])
    const inPlace: Code = (x) => {
      const y = x.add_(1)
      return [y, y.view(2, 1)]
    }
    expect(new Judged(viewed, inPlace).call(t([1, 2]))).toBeNull()
    // The new value may lie in the input itself.
    expect(new Judged(gm, (x, y) => [x.add_(1), y.mul(2)]).call(t([1, 2]), t([3]))).toBeNull()
    expect(new Judged(gm, (x, y) => [x.add(1), y.mul_(2)]).call(t([1, 2]), t([3]))?.message).toMatch(/^Input 1 \('y'\) was overwritten/)
  })
})

describe('outputs', () => {
  it('of earlier calls stay as they are', () => {
    const buffer = torch.zeros([2])
    const calls = judged(
      (x) => [x.mul(1), x.mul(2)],
      (x) => [x.mul(1), buffer.copy_(x.mul(2))],
    )
    const found = calls.call(t([1, 2]))
    expect(found).toEqual({
      rule: 'outputs',
      message: "Output 1 ('mul_1') lies in memory that the next call uses again for its result, while the program still has it.",
      reasons: [],
    })
    expect(buffer.toArray()).toEqual([2, 4])
  })

  it('are put back, where a run of the judge has overwritten them without a word', () => {
    const buffer = torch.zeros([2])
    let count = 0
    const calls = judged(
      (x) => [x.mul(2)],
      (x) => {
        const values = count++ === 0 ? x.mul(2) : x.mul(7)
        buffer.storage?.writeBytes(new Uint8Array(Float32Array.from(values.toTypedArray() as Float32Array).buffer))
        return [buffer]
      },
    )
    expect(calls.call(t([1, 2]))).toMatchObject({ rule: 'outputs', message: expect.stringMatching(/^Output 0 \('mul'\) lies in memory/) })
    expect(buffer.toArray()).toEqual([2, 4])
  })

  it('are watched for eight calls', () => {
    const overwritingAt = (call: number): Finding | null => {
      let first: Tensor | null = null
      let count = 0
      const calls = judged(
        (x) => [x.mul(2)],
        (x) => {
          // Each call is run twice: once for the program.
          if (count++ === 2 * call) first?.fill_(7)
          const result = x.mul(2)
          first ??= result
          return [result]
        },
      )
      let found: Finding | null = null
      for (let i = 0; i <= call; i++) found = calls.call(t([i]))
      return found
    }
    expect([overwritingAt(8)?.rule, overwritingAt(9)]).toEqual(['outputs', null])
  })

  it('may be a tensor that the graph holds', () => {
    class Holds extends nn.Module {
      constructor() {
        super()
        this.registerBuffer('n', t([1, 2]))
      }
      forward(x: Tensor): unknown {
        const n = Reflect.get(this, 'n') as Tensor
        return [n, x.add(n)]
      }
    }
    const gm = symbolicTrace(new Holds())
    const calls = new Judged(gm, (x) => gm.forward(x as never))
    for (let i = 0; i < 3; i++) expect(calls.call(t([0, 0]))).toBeNull()
  })

  it('may be inputs of a later call, which writes to them', () => {
    const writes: Code = (x) => [x.mul(2), x.add_(1)]
    const calls = judged(writes, writes)
    expect(calls.call(t([1, 2]))).toBeNull()
    const [first] = calls.results[0] as Tensor[]
    expect(calls.call(first)).toBeNull()
    expect(first?.toArray()).toEqual([3, 5])
  })

  it('that a later call overwrites are named with their call, and put back', () => {
    let last: Tensor | null = null
    let count = 0
    const calls = judged(
      (x) => [x.mul(2)],
      (x) => {
        // The runs of the judge are others.
        if (++count === 5) last?.fill_(7)
        const result = x.mul(2)
        if (count === 1) last = result
        return [result]
      },
    )
    const found = [1, 2, 3].map((value) => calls.call(t([value])))
    expect(found).toEqual([
      null,
      null,
      {
        rule: 'outputs',
        message: "The call overwrote output 0 ('mul') of call 1: its memory was used again, while the program still has it.",
        reasons: [],
      },
    ])
    expect(values(calls.results[0])).toEqual([[2]])
  })

  it('do not lie in the memory of an input, unless they do on eager kernels', () => {
    const found = judged(
      (x, y) => [x.add(y), y.mul(1)],
      (x, y) => [x.add(y), y.view(2)],
    ).call(t([1, 2]), t([3, 4]))
    expect(found).toEqual({
      rule: 'aliases',
      message:
        "Output 1 ('mul') lies in the memory of input 1 ('y'): a write to one would change the other. On eager kernels it has memory of its own.",
      reasons: [],
    })
    expect(
      judged(
        (x, y) => [x.add(y), y.view(2)],
        (x, y) => [x.add(y), y.view(2)],
      ).call(t([1, 2]), t([3, 4])),
    ).toBeNull()
  })

  it('are the same for the same inputs', () => {
    let calls = 0
    const flaky = judged(
      (x) => [x.mul(2)],
      (x) => [x.mul(++calls % 2 === 0 ? 3 : 2)],
    ).call(t([1, 2]))
    expect(flaky).toMatchObject({
      rule: 'repeats',
      message:
        'The same inputs do not always give the same result: 4 of 8 runs had wrong numbers. The backend is flaky, or its result depends on earlier calls.',
    })
    expect(flaky?.reasons[0]).toMatch(/element 1 is 6, not 4/)
    let second = 0
    expect(
      judged(
        (x) => [x.add(1), x.mul(2)],
        (x) => [x.add(1), x.mul(++second > 1 ? 3 : 2)],
      ).call(t([1, 2])),
    ).toMatchObject({ rule: 'repeats', message: expect.stringContaining('7 of 8 runs') })
    let shapes = 0
    expect(
      judged(
        (x) => [x.mul(2)],
        (x) => [++shapes === 1 ? x.mul(2) : x.mul(2).reshape([1, 2])],
      ).call(t([1, 2])),
    ).toMatchObject({
      rule: 'repeats',
      message: expect.stringContaining('7 of 8 runs had wrong numbers'),
      reasons: [expect.stringContaining('shapes differ'), expect.anything()],
    })
    let thrown = 0
    const throws = judged(
      (x) => [x.mul(2)],
      (x) => {
        if (++thrown > 1) throw new RangeError('spent')
        return [x.mul(2)]
      },
    ).call(t([1, 2]))
    expect(throws).toMatchObject({
      rule: 'repeats',
      message: expect.stringContaining('7 of 8 runs had wrong numbers or threw'),
      reasons: ['RangeError: spent'],
    })
    let first = true
    const once = judged(
      (x) => [x.mul(2)],
      (x) => {
        const factor = first ? 3 : 2
        first = false
        return [x.mul(factor)]
      },
    ).call(t([1, 2]))
    expect(once).toMatchObject({ rule: 'repeats', message: expect.stringContaining('1 of 8 runs') })
    expect(once?.reasons[0]).toMatch(/element 1 is 6, not 4/)
  })
})

describe('what is saved for the backward', () => {
  it('has numbers of its own, and memory that later calls leave alone', () => {
    const gm = symbolicTrace((x: Tensor) => [x.mul(2), x.add(1)])
    const check = new CallCheck(
      gm,
      (x) => [(x as Tensor).mul(2), (x as Tensor).add(1)],
      () => {},
    )
    const x = t([1, 2])
    check.begin()
    expect(check.judgeNumbers([x], [x], [x.mul(2), x.add(1)])).toBeNull()
    expect(check.judgeNumbers([t([1, 2])], [x], [x.mul(2), x.add(2)])).toMatchObject({
      rule: 'numbers',
      message: 'What it saves for the backward is wrong.',
      reasons: [expect.stringMatching(/element 0 is 3, not 2/), 'Accuracy failed for key name output 1 (add)'],
    })
    const saved = t([9])
    expect(check.judge([x], [x], [x.mul(2), x.add(1)], [saved])).toBeNull()
    check.begin()
    saved.fill_(0)
    expect(check.judge([x], [x], [x.mul(2), x.add(1)])?.message).toBe(
      'The call overwrote a value that was saved for the backward of call 1: its memory was used again, while the program still has it.',
    )
    expect(saved.toArray()).toEqual([9])
  })
})

// What a judge says of two models: each reason by its text, and what it runs to find out.
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { nn, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { config } from 'tensorfx/compile'
import { sameTwoModels, setLogSink } from 'tensorfx/debug'
import { Graph, GraphModule, symbolicTrace } from 'tensorfx/fx'
import { registerPytreeNode } from 'tensorfx/pytree'
import { judgedSame } from '../../src/debug/closeness/same.ts'
import { compareTwoModels } from '../../src/debug/judge/twoModels.ts'
import type { Verdict } from '../../src/debug/judge/twoModels.ts'
import { listen, resetConfig } from './inProcess.ts'
import { Bn, G, Mlp, backwardTimes, det } from './prelude.ts'

let said: (readonly [string, string])[] = []
beforeEach(() => void (said = listen()))
afterEach(() => {
  setLogSink(null)
  resetConfig()
})

const t = torch.tensor
const leaf = (): Tensor => det([5, 3], { grad: true })
const SAME: Verdict = { status: 'same', reasons: [], kinds: [], error: null, origin: null }

/** A graph of one node, whose function sees the values. */
function graphOf(fn: (x: Tensor) => unknown): GraphModule {
  const graph = new Graph()
  graph.output(graph.callFunction(Object.defineProperty(fn, 'name', { value: 'body' }), [graph.placeholder('x')]))
  return new GraphModule({}, graph)
}

const judgedReason = (ref: unknown, res: unknown, others: readonly unknown[] = [], fp64: unknown = null): true | string => {
  const reasons: string[] = []
  return judgedSame(ref, res, fp64, { tol: 1e-3, logError: (reason) => void reasons.push(reason) }, others) ? true : reasons.join()
}

describe('a verdict', () => {
  it('has no reasons if all is the same', () => {
    expect(compareTwoModels(symbolicTrace(new Mlp()), new Mlp(), [leaf()])).toEqual(SAME)
  })

  it('names what differs: output, gradients, buffers, parameters, inputs', () => {
    const namesOf = (verdict: Verdict): readonly string[] => verdict.reasons.map((reason) => /\(([^()]+)\)$/.exec(reason)?.[1] ?? reason)
    const gm = symbolicTrace(new Mlp())
    expect(namesOf(compareTwoModels(gm, new Mlp((y) => (y as Tensor).mul(2)), [leaf()], { onlyFwd: true }))).toEqual(['output'])
    expect(namesOf(compareTwoModels(gm, new Mlp((y) => backwardTimes(y as Tensor, 2)), [leaf()]))).toEqual([
      ...['gradient of lin1.weight', 'gradient of lin1.bias', 'gradient of lin2.weight', 'gradient of lin2.bias'],
      'gradient of input 0',
    ])
    class Moved extends Bn {
      override forward(x: Tensor): Tensor {
        const y = super.forward(x)
        torch.noGrad(() => {
          this.bn.runningMean?.add_(1)
          this.lin.bias?.add_(1)
          x.add_(1)
        })
        return y
      }
    }
    expect(namesOf(compareTwoModels(symbolicTrace(new Bn()), new Moved(), [det([5, 3])], { onlyFwd: true }))).toEqual([
      ...['buffer bn.runningMean', 'parameter lin.bias', 'input 0'],
    ])
  })

  it('has each step to a part that differs', () => {
    const gm = symbolicTrace(new G((_m, x: Tensor) => ({ a: x })))
    expect(compareTwoModels(gm, (x: Tensor) => ({ a: x.add(1) }), [det([2])]).reasons).toEqual([
      expect.stringMatching(/^RMSE .*; element 1 is 0\.875, not -0\.125; Accuracy failed for key name a \(output\)$/) as string,
    ])
  })

  it('says why nothing was judged', () => {
    const boom = (): never => {
      throw new RangeError('boom')
    }
    const failing = graphOf(boom)
    expect(compareTwoModels(failing, boom, [leaf()])).toEqual({
      ...SAME,
      status: 'not judged',
      reasons: [expect.stringMatching(/^the graph fails without the backend: RangeError: While executing %body.*boom$/s) as string],
      error: expect.any(Error) as Error,
      origin: 'graph',
    })
    expect(compareTwoModels(symbolicTrace(new Mlp()), (x: Tensor) => new Mlp().call(x.detach()), [leaf()], { onlyFwd: true })).toMatchObject({
      status: 'same',
    })
    const detached = compareTwoModels(symbolicTrace(new G((_m, x: Tensor) => x.mul(2))), (x: Tensor) => x.detach().mul(2), [leaf()])
    expect(detached).toEqual({
      ...SAME,
      status: 'not judged',
      reasons: ['the outputs of the compiled function require no gradient, and those of the graph do, so its backward was not judged'],
    })
  })

  it('treats a gradient that one of the two does not have as zero', () => {
    const takesTwo = class extends nn.Module {
      readonly factor: number
      constructor(factor: number) {
        super()
        this.factor = factor
      }
      forward(x: Tensor, y: Tensor): Tensor {
        return x.mul(2).add(y.mul(this.factor))
      }
    }
    const one = (x: Tensor, _y: Tensor): Tensor => x.mul(2)
    class Without extends nn.Module {
      forward(x: Tensor, y: Tensor): Tensor {
        return one(x, y)
      }
    }
    /** Adds nothing to the output, and a gradient to y. */
    class Sneaky extends nn.Module {
      forward(x: Tensor, y: Tensor): Tensor {
        return x.mul(2).add(y).sub(y.detach())
      }
    }
    const inputs = (): Tensor[] => [leaf(), leaf()]
    const zero = symbolicTrace(new takesTwo(0))
    const none = symbolicTrace(new Without())
    expect(compareTwoModels(zero, new Without(), inputs())).toEqual(SAME)
    expect(compareTwoModels(none, new takesTwo(0), inputs())).toEqual(SAME)
    for (const gm of [zero, none])
      expect(compareTwoModels(gm, new Sneaky(), inputs()).reasons).toEqual([expect.stringMatching(/\(gradient of input 1\)$/) as string])
    expect(compareTwoModels(symbolicTrace(new Sneaky()), new Without(), inputs()).reasons).toEqual([
      expect.stringMatching(/\(gradient of input 1\)$/) as string,
    ])
  })
})

describe('the runs of a judge', () => {
  it('are two where the result is right: the graph, and the graph in float64', () => {
    let runs = 0
    const gm = graphOf((x) => {
      runs++
      return x.mul(2)
    })
    expect(compareTwoModels(gm, (x: Tensor) => x.mul(2), [det([3])])).toEqual(SAME)
    expect(runs).toBe(2)
  })

  it('with moved inputs may fail, or give other shapes, and hide nothing then', () => {
    const wanted = t([0.3, 0.7])
    const picky = graphOf((x) => {
      if (x.dtype === 'float32' && !torch.equal(x, wanted)) throw new RangeError('other inputs')
      return x.mul(2)
    })
    expect(compareTwoModels(picky, (x: Tensor) => x.mul(3), [wanted]).status).toBe('different')
    // Those at the threshold fall below it when they are moved, so that all others come at other places.
    const values = t([...Array.from({ length: 8 }, () => 0.3 * (1 + 2 ** -23)), ...Array.from({ length: 32 }, (_, i) => 1.1 * (i + 1))])
    const above = (x: Tensor): Tensor => torch.maskedSelect(x, x.gt(0.3))
    const wrong = t(Array.from({ length: 40 }, (_, i) => (i === 20 ? 1 : 0)))
    expect(compareTwoModels(symbolicTrace(above), above, [values])).toEqual(SAME)
    expect(compareTwoModels(symbolicTrace(above), (x: Tensor) => above(x).add(wrong), [values]).status).toBe('different')
  })
})

describe('without a float64 reference', () => {
  class Cancels extends nn.Module {
    forward(x: Tensor): Tensor {
      return x.add(1e5).sub(1e5)
    }
  }

  it('what rounding explains is the same, and nothing else', () => {
    const x = det([64]).add(0.01)
    expect(compareTwoModels(new Cancels(), (v: Tensor) => v.add(5e4).sub(1e5).add(5e4), [x])).toEqual(SAME)
    expect(compareTwoModels(new Cancels(), (v: Tensor) => v.mul(1), [x])).toEqual(SAME)
    expect(compareTwoModels(new Cancels(), (v: Tensor) => v.mul(2), [x]).status).toBe('different')
    expect(said.every(([level, text]) => level === 'warning' && text === 'Could not generate fp64 outputs')).toBe(true)
  })

  it('NaN is compared by place', () => {
    const sameNan = class extends nn.Module {
      forward(x: Tensor): Tensor {
        return x.mul(2)
      }
    }
    const first = (x: Tensor): Tensor => x.mul(2).add(t([NaN, 0, 0]))
    expect(compareTwoModels(new sameNan(), first, [det([3])]).reasons).toEqual([
      'Accuracy failed: allclose not within tol=0.001; element 0 is NaN, not -1.5 (output)',
    ])
  })

  it('says so if one is required', () => {
    expect(() => sameTwoModels(new Mlp(), new Mlp(), [leaf()], { requireFp64: true })).toThrow(
      expect.objectContaining({
        message: expect.stringContaining('Could not generate fp64 outputs, workaround with config.sameTwoModelsUseFp64 = false') as string,
        cause: expect.objectContaining({
          message: expect.stringContaining('a Module that has no graph cannot be run in float64.') as string,
        }) as Error,
      }) as Error,
    )
    config.sameTwoModelsUseFp64 = false
    expect(sameTwoModels(new Mlp(), new Mlp(), [leaf()], { requireFp64: true })).toBe(true)
  })

  it('because the inputs cannot be widened, the plain comparison decides', () => {
    class Narrow {
      readonly x: Tensor
      constructor(x: Tensor) {
        if (x.dtype !== 'float32') throw new TypeError('only float32')
        this.x = x
      }
    }
    registerPytreeNode(Narrow, { flatten: ({ x }) => ({ children: [x], context: null }), unflatten: ([x]) => new Narrow(x as Tensor) })
    const gm = graphOf((narrow) => (narrow as unknown as Narrow).x.mul(2))
    const timesThree = ({ x }: Narrow): Tensor => x.mul(3)
    expect(compareTwoModels(gm, ({ x }: Narrow) => x.mul(2), [new Narrow(det([2]))])).toEqual(SAME)
    expect(compareTwoModels(gm, timesThree, [new Narrow(det([2]))]).status).toBe('different')
    expect(compareTwoModels(gm, timesThree, [new Narrow(det([2]))], { requireFp64: true })).toMatchObject({ status: 'not judged', origin: 'float64' })
  })
})

describe('integers', () => {
  const int = (...values: number[]): Tensor => t(values, { dtype: 'int64' })

  it('may be any between those of runs that rounding makes differ', () => {
    expect(judgedReason(int(1, 5), int(1, 6), [int(1, 7)])).toBe(true)
    expect(judgedReason(int(1, 7), int(1, 6), [int(1, 5)])).toBe(true)
    expect(judgedReason(int(1, 5), int(1, 8), [int(1, 7), int(1, 6)])).toBe(
      'Accuracy failed: int64 tensors of shape [2] differ: element 1 is 8, not 5',
    )
    expect(judgedReason(int(1, 5), int(1, 4), [int(1, 7)])).toMatch('element 1 is 4, not 5')
    // A run of another shape says nothing.
    expect(judgedReason(int(1, 5), int(1, 6), [int(9, 9, 9)])).toMatch('element 1 is 6')
    expect(judgedReason(int(5), int(6), [null])).toMatch('element 0 is 6')
  })
})

describe('sameTwoModels', () => {
  it('names itself and the argument that is wrong', () => {
    const gm = symbolicTrace(new Mlp())
    expect(() => sameTwoModels(3 as never, gm, [])).toThrow(/^sameTwoModels: argument 'gm' must be a GraphModule or another Module, got 3/)
    expect(() => sameTwoModels(gm, 3 as never, [])).toThrow(/^sameTwoModels: argument 'compiled'/)
    expect(() => sameTwoModels(gm, gm, 3 as never)).toThrow(/^sameTwoModels: argument 'inputs'/)
    expect(() => sameTwoModels(gm, gm, [], { fp64: true } as never)).toThrow(/^sameTwoModels: unknown option 'fp64'/)
  })

  it('logs what differs, and what kept it from judging', () => {
    const gm = symbolicTrace(new Mlp())
    expect(sameTwoModels(gm, new Mlp((y) => (y as Tensor).add(1)), [leaf()], { onlyFwd: true })).toBe(false)
    expect(
      sameTwoModels(gm, () => {
        throw new RangeError('boom')
      }, [leaf()]),
    ).toBe(false)
    expect(said).toEqual([
      ['error', expect.stringMatching(/^RMSE .*\(output\)$/) as string],
      ['error', 'The models were not compared: the compiled model fails: RangeError: boom'],
    ])
  })
})

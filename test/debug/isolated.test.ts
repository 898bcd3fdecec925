// Copies that share nothing with the originals, and runs that leave no trace.
import { afterEach, describe, expect, it } from 'vitest'
import { compile, noGrad, nn, torch } from 'tensorfx'
import { config } from 'tensorfx/compile'
import { FakeTensorMode, RecordMode, withMode } from 'tensorfx/dispatch'
import { registerPytreeNode } from 'tensorfx/pytree'
import { compareTwoModels } from '../../src/debug/judge/twoModels.ts'
import { contained, isolated, isolatedInFloat64, isolatedInputs, undone } from '../../src/debug/runs/isolated.ts'
import { anomaly } from '../../src/autograd/anomaly.ts'
import { hookState } from '../../src/autograd/index.ts'
import { dispatchState } from '../../src/dispatch/index.ts'
import { setModuleTracingHook } from '../../src/module/index.ts'
import { compareGradients, detectAnomaly } from 'tensorfx/debug'
import { symbolicTrace } from 'tensorfx/fx'
import { Generator, Storage, Tensor } from '../../src/tensor/index.ts'
import { resetConfig } from './inProcess.ts'

afterEach(resetConfig)

const t = torch.tensor
const tensors = (values: readonly unknown[]): Tensor[] => values as Tensor[]

describe('isolated', () => {
  it('keeps values, layout, dtype, requiresGrad and isParameter, and shares no memory', () => {
    const base = t([1, 2, 3, 4, 5, 6]).reshape([2, 3])
    const inputs = [base.t(), base.select(0, 1), t([1, 2], { dtype: 'int64' }), t([0.5], { requiresGrad: true }), new nn.Linear(2, 2).weight]
    const copies = tensors(isolatedInputs(inputs))
    copies.forEach((copy, i) => {
      const like = inputs[i] as Tensor
      expect([copy.toArray(), copy.strides, copy.offset, copy.dtype]).toEqual([like.toArray(), like.strides, like.offset, like.dtype])
      expect([copy.requiresGrad, copy.isParameter, copy.isLeaf, copy.grad]).toEqual([like.requiresGrad, like.isParameter, true, null])
      expect(copy.storage).not.toBe(like.storage)
    })
    copies[0]?.fill_(9)
    expect(base.toArray()).toEqual([
      [1, 2, 3],
      [4, 5, 6],
    ])
    // The second is a view of the same memory.
    expect(copies[1]?.toArray()).toEqual([9, 9, 9])
  })

  it('keeps what is shared between inputs and the model', () => {
    const layer = new nn.Linear(2, 2)
    const tied = new nn.Sequential(layer, layer)
    const x = torch.ones([2])
    const { model, inputs } = isolated(tied, [x, [x, { w: layer.weight }], new Map([['x', x]])])
    const [first, [second, { w }], map] = inputs as [Tensor, [Tensor, { w: Tensor }], Map<string, Tensor>]
    expect(second).toBe(first)
    expect(map.get('x')).toBe(first)
    const copied = model as unknown as { 0: nn.Linear; 1: nn.Linear }
    expect(copied[0]).toBe(copied[1])
    expect(copied[0].weight).toBe(w)
    expect(w).not.toBe(layer.weight)
  })

  it('makes a leaf of what has a history, and leaves gradients alone', () => {
    const x = t([1, 2], { requiresGrad: true })
    x.sum().backward()
    const [leaf, later] = tensors(isolatedInputs([x, x.mul(2)]))
    expect([leaf?.grad, leaf?.isLeaf, later?.requiresGrad, later?.isLeaf, later?.gradFn]).toEqual([null, true, true, true, null])
    leaf?.mul(3).sum().backward()
    expect(x.grad?.toArray()).toEqual([1, 1])
  })

  it('copies generators, typed arrays and registered classes; a function is returned as it is', () => {
    class Pair {
      readonly a: unknown
      readonly b: unknown
      constructor(a: unknown, b: unknown) {
        this.a = a
        this.b = b
      }
    }
    const undo = registerPytreeNode(Pair, { flatten: ({ a, b }) => ({ children: [a, b], context: null }), unflatten: ([a, b]) => new Pair(a, b) })
    const generator = new Generator(7)
    generator.draw()
    const numbers = new Float32Array([1, 2])
    const x = t([1])
    const fn = (): number => 1
    const [date, plain] = [new Date(0), new (class Other {})()]
    const { model, inputs } = isolated(fn, [generator, numbers, new Pair(x, 3), null, 'text', date, plain])
    undo()
    const [own, array, pair, ...rest] = inputs as [Generator, Float32Array, Pair, ...unknown[]]
    expect(model).toBe(fn)
    expect(own.getState()).toEqual({ seed: 7, offset: 1 })
    own.draw()
    expect(generator.getState()).toEqual({ seed: 7, offset: 1 })
    array[0] = 5
    expect(numbers[0]).toBe(1)
    expect(pair).toBeInstanceOf(Pair)
    expect([pair.a === x, (pair.a as Tensor).toArray(), pair.b]).toEqual([false, [1], 3])
    // What is of no known class is the same object.
    expect([rest.slice(0, 2), rest[2] === date, rest[3] === plain]).toEqual([[null, 'text'], true, true])
  })

  it('reads memory as it is now, where compile has recorded a write and not performed it', () => {
    const n = torch.zeros([2])
    let seen: unknown = null
    const f = compile((x: Tensor) => {
      n.add_(1)
      seen = tensors(isolatedInputs([n]))[0]
        ?.storage?.peekBytes()
        ?.every((byte) => byte === 0)
      return x.mul(2)
    })
    f(t([1]))
    expect(seen).toBe(true)
    expect(n.toArray()).toEqual([1, 1])
    f(t([1]))
    expect([seen, n.toArray()]).toEqual([false, [2, 2]])
  })
})

describe('contained', () => {
  it('puts back memory, versions, gradients and random states, also after an error', () => {
    const n = torch.zeros([2])
    const w = t([1, 2], { requiresGrad: true })
    w.grad = torch.ones([2])
    const own = new Generator(3)
    torch.manualSeed(5)
    const before = [n.storage?.version, torch.getRngState(), own.getState()]
    const work = (): number[] => {
      n.add_(1)
      n.add_(1)
      w.mul(2).sum().backward()
      return [...(torch.rand([2]).toArray() as number[]), ...(torch.rand([2], { generator: own }).toArray() as number[]), n.sum().item()]
    }
    const drawn = contained(work)
    expect(drawn[4]).toBe(4)
    expect(() =>
      contained(() => {
        work()
        throw new RangeError('boom')
      }),
    ).toThrow('boom')
    expect([n.toArray(), w.grad.toArray()]).toEqual([
      [0, 0],
      [1, 1],
    ])
    expect([n.storage?.version, torch.getRngState(), own.getState()]).toEqual(before)
    expect(contained(work)).toEqual(drawn)
  })

  it('puts back a gradient that was not there', () => {
    const w = t([1, 2], { requiresGrad: true })
    contained(() => w.mul(2).sum().backward())
    expect(w.grad).toBeNull()
  })

  it('runs with gradients, outside of noGrad, and restores modes, default dtype, anomaly mode and hooks', () => {
    const w = t([1], { requiresGrad: true })
    const heard: string[] = []
    const handle = w.registerHook(() => void heard.push('leaf'))
    const [inner, leaves] = [hookState.inner, hookState.leaves]
    noGrad(() =>
      contained(() => {
        torch.setDefaultDtype('float64')
        torch.setGradEnabled(true)
        const y = w.mul(2)
        y.registerHook(() => void heard.push('inner'))
        y.backward()
      }),
    )
    expect(heard).toEqual(['inner'])
    expect([hookState.inner, hookState.leaves, torch.getDefaultDtype(), torch.isGradEnabled()]).toEqual([inner, leaves, 'float32', true])
    w.mul(2).backward()
    expect(heard).toEqual(['inner', 'leaf'])
    handle.remove()
  })
})

describe('isolatedInFloat64', () => {
  const floats = ['float16', 'bfloat16', 'float32', 'float64'] as const
  const others = ['bool', 'uint8', 'int8', 'int16', 'int32', 'int64'] as const

  it.each(floats)('has the values of %s in float64, in the same layout', (dtype) => {
    const base = torch.tensor([0.5, -2, 3, NaN, Infinity, 0, 1, 7], { dtype }).reshape([2, 4])
    const inputs = [base, base.t(), base.select(0, 1), base.slice(1, 1, 4, 2), base.select(0, 0).unsqueeze(0).expand([3, 4])]
    const wide = tensors(isolatedInFloat64(null, inputs).inputs)
    for (const [i, copy] of wide.entries()) {
      const like = inputs[i] as Tensor
      expect([copy.dtype, copy.shape, copy.strides, copy.offset]).toEqual(['float64', like.shape, like.strides, like.offset])
      expect(copy.toArray()).toEqual(like.toArray())
    }
    // One memory, and not that of the program.
    wide[0]?.fill_(9)
    expect(new Set(wide.flatMap((copy) => [...copy.toTypedArray()]))).toEqual(new Set([9]))
    expect(base.select(0, 0).select(0, 0).item()).toBe(0.5)
  })

  it.each(others)('leaves %s as it is', (dtype) => {
    const x = torch.tensor([1, 0, 1], { dtype })
    const [copy] = tensors(isolatedInFloat64(null, [x]).inputs)
    expect([copy?.dtype, copy?.toArray()]).toEqual([dtype, x.toArray()])
    expect(copy?.storage).not.toBe(x.storage)
  })

  it('copies memory that tensors of several dtypes share once for each, and its last bytes that make no element', () => {
    const storage = Storage.allocate(14)
    const words = new Tensor([3], 'int32', storage)
    const bytes = new Tensor([14], 'uint8', storage)
    const numbers = new Tensor([3], 'float32', storage)
    numbers.copy_(t([1.5, -2, 3]))
    const [w, b, f, again] = tensors(isolatedInFloat64(null, [words, bytes, numbers, new Tensor([2], 'float32', storage, [1], 1)]).inputs)
    expect([w?.toArray(), b?.toArray(), f?.toArray(), again?.toArray()]).toEqual([words.toArray(), bytes.toArray(), [1.5, -2, 3], [-2, 3]])
    expect([w?.storage === b?.storage, f?.storage === again?.storage, f?.storage === w?.storage]).toEqual([true, true, false])
    expect([w?.storage?.nbytes, f?.storage?.nbytes]).toEqual([14, 24])
  })

  it('keeps requiresGrad, and the parameters of a model', () => {
    const { model, inputs } = isolatedInFloat64(new nn.Linear(2, 2), [t([1], { requiresGrad: true })])
    expect([...model.parameters()].map((p) => [p.dtype, p.isParameter, p.requiresGrad])).toEqual([
      ['float64', true, true],
      ['float64', true, true],
    ])
    expect([tensors(inputs)[0]?.requiresGrad, tensors(inputs)[0]?.isLeaf]).toEqual([true, true])
    // A mode hears nothing of it.
    const mode = new RecordMode()
    const x = t([1])
    withMode(mode, () => isolatedInFloat64(null, [x]))
    expect(mode.calls).toEqual([])
  })
})

describe('a copy of a value that has no memory', () => {
  it('of a fake tensor has none either', () => {
    const fake = withMode(new FakeTensorMode(), () => torch.ones([2, 3]))
    const [copy] = tensors(isolatedInputs([fake]))
    expect([copy?.storage, copy?.shape, copy?.dtype]).toEqual([null, [2, 3], 'float32'])
  })

  it('of a value that compile has not computed yet has its value', () => {
    let copy: Tensor | undefined
    compile((x: Tensor) => {
      const y = x.mul(2)
      ;[copy] = tensors(isolatedInputs([y]))
      return y.add(1)
    })(t([1, 2]))
    expect(copy?.toArray()).toEqual([2, 4])
  })
})

describe('a trace', () => {
  it('has the memory of the program that was written to, as it was, and nothing that the run made', () => {
    const [n, m] = [t([1, 2]), t([5])]
    contained((trace) => {
      expect([trace.written().size, trace.hasWritten(present(n))]).toEqual([0, false])
      const own = torch.zeros([2])
      own.add_(1)
      n.add_(1)
      n.mul_(7)
      n.select(0, 0).zero_()
      expect([...trace.written()].map(([storage, bytes]) => [storage === n.storage, [...new Float32Array(bytes.slice().buffer)]])).toEqual([
        [true, [1, 2]],
      ])
      expect([n, m, own].map((tensor) => trace.hasWritten(present(tensor)))).toEqual([true, false, false])
      m.add_(1)
      expect(trace.hasWritten(present(m))).toBe(true)
    })
    expect([n.toArray(), m.toArray()]).toEqual([[1, 2], [5]])
  })

  it('may be inside of another, which goes on afterwards', () => {
    const n = t([1])
    const w = t([1], { requiresGrad: true })
    torch.manualSeed(1)
    const state = torch.getRngState()
    contained((outer) => {
      n.add_(1)
      contained(() => {
        n.add_(10)
        w.mul(2).backward()
        torch.rand([1])
      })
      expect([n.item(), w.grad, torch.getRngState()]).toEqual([2, null, state])
      w.mul(3).backward()
      w.mul(3).backward()
      torch.rand([1])
      torch.rand([1])
      const late = t([1])
      expect(outer.hasWritten(present(late))).toBe(false)
      n.mul_(5)
    })
    expect([n.item(), w.grad, torch.getRngState()]).toEqual([1, null, state])
  })
})

const present = (tensor: Tensor): Storage => {
  if (tensor.storage === null) throw new Error('no memory')
  return tensor.storage
}

describe('where a run begins', () => {
  it('undone calls hooks and keeps modes; settings and what was written are put back', () => {
    const w = t([1], { requiresGrad: true })
    const heard: string[] = []
    const handle = w.registerHook(() => void heard.push('leaf'))
    const mode = new RecordMode()
    config.reproAfter = 'dynamo'
    withMode(mode, () =>
      undone(() => {
        expect([config.reproAfter, dispatchState.mode]).toEqual([null, mode])
        config.reproTolerance = 7
        torch.setDefaultDtype('float64')
        w.mul(2).backward()
      }),
    )
    handle.remove()
    expect([heard, w.grad, config.reproAfter, config.reproTolerance === 7, torch.getDefaultDtype()]).toEqual([
      ['leaf'],
      null,
      'dynamo',
      false,
      'float32',
    ])
    expect(mode.calls.map(({ op }) => op.name)).toContain('mul')
  })

  it('contained leaves every mode, tracer and anomaly mode, which go on afterwards', () => {
    const layer = new nn.Linear(2, 2)
    const called: string[] = []
    const before = setModuleTracingHook({
      callModule: (module, forward, args) => {
        called.push(module.constructor.name)
        return forward(...args)
      },
    })
    const mode = new RecordMode()
    const nan = t([-1], { requiresGrad: true })
    try {
      withMode(mode, () => {
        Object.assign(dispatchState, { recording: true, changingNumbers: true, internal: true })
        const outside = { ...dispatchState }
        const count = mode.calls.length
        detectAnomaly(() => {
          contained(() => {
            expect(dispatchState).toMatchObject({
              mode: null,
              modes: [],
              gradEnabled: true,
              recording: false,
              changingNumbers: false,
              internal: false,
            })
            layer.call(torch.ones([1, 2]))
            expect(() => nan.log().mul(0).sum().backward()).not.toThrow()
          })
          expect(anomaly.enabled).toBe(true)
        })
        expect([mode.calls.length, called]).toEqual([count, []])
        expect(dispatchState).toEqual(outside)
        Object.assign(dispatchState, { recording: false, changingNumbers: false, internal: false })
      })
      layer.call(torch.ones([1, 2]))
      expect(called).toEqual(['Linear'])
    } finally {
      setModuleTracingHook(before)
    }
  })

  it('hooks that a run registers on its own leaves are forgotten, and the number of those of the program is what it was', () => {
    const w = t([1], { requiresGrad: true })
    const handle = w.registerHook(() => {})
    const leaves = hookState.leaves
    contained(() => {
      expect(hookState.leaves).toBe(0)
      const own = t([1], { requiresGrad: true })
      own.registerHook(() => {}).remove()
    })
    expect([leaves > 0, hookState.leaves]).toEqual([true, leaves])
    handle.remove()
    expect(hookState.leaves).toBe(leaves - 1)
  })
})

describe('a function that is compared', () => {
  class Net extends nn.Module {
    readonly inner = new nn.Linear(3, 2)
    readonly norm = new nn.BatchNorm1d(2)
    forward(x: Tensor): Tensor {
      return this.norm(this.inner(x))
    }
  }

  it('is the same if it is right, whatever holds its parameters, and nothing of it changes', () => {
    const gm = symbolicTrace(new Net())
    const x = torch.randn([4, 3], { requiresGrad: true })
    const other = gm.deepCopy()
    const compiled = compile(gm)
    const state = JSON.stringify([...gm.stateDict(), ...other.stateDict()])
    const called = (v: Tensor): Tensor => other.call(v) as Tensor
    for (const [what, right] of Object.entries({ gm, compiled, other, own: (v: Tensor) => gm.call(v) as Tensor, called, both: compile(called) }))
      expect([what, compareTwoModels(gm, right, [x])]).toMatchObject([what, { status: 'same', reasons: [], error: null, origin: null }])
    expect(JSON.stringify([...gm.stateDict(), ...other.stateDict()])).toBe(state)
    expect([...gm.parameters(), ...other.parameters(), x].map(({ grad }) => grad)).toEqual(Array(9).fill(null))
  })

  it('has its own buffers beside memory that held the same', () => {
    class Counts extends nn.Module {
      constructor() {
        super()
        this.registerBuffer('n', torch.zeros([2]))
      }
      forward(x: Tensor): Tensor {
        return x.add((Reflect.get(this, 'n') as Tensor).add_(1))
      }
    }
    const gm = symbolicTrace(new Counts())
    const n = Reflect.get(gm, 'n') as Tensor
    const [ones, short] = [torch.ones([2]), torch.zeros([1])]
    const run = (x: Tensor): Tensor => {
      ones.add_(1)
      short.add_(1)
      return gm.call(x) as Tensor
    }
    expect(compareTwoModels(gm, run, [t([1, 2])])).toMatchObject({ status: 'same', reasons: [] })
    const other = torch.zeros([2])
    const aside = (x: Tensor): Tensor => {
      short.add_(1)
      return x.add(other.add_(1))
    }
    expect(compareTwoModels(gm, aside, [t([1, 2])])).toMatchObject({ status: 'same', reasons: [] })
    expect(compareTwoModels(gm, (x: Tensor) => x.add(1), [t([1, 2])])).toMatchObject({ status: 'different' })
    const late = t([5, 5])
    expect(compareTwoModels(gm, (x: Tensor) => x.add(late.fill_(1)), [t([1, 2])]).reasons).toEqual([expect.stringMatching(/\(buffer n\)$/)])
    expect([n, ones, short, other, late].map((tensor) => tensor.toArray())).toEqual([[0, 0], [1, 1], [0], [0, 0], [5, 5]])
  })

  it('has the parameters of its module where it uses them, beside others that are equal', () => {
    class Scaled extends nn.Module {
      readonly frozen = new nn.Parameter(t([5, 6]), { requiresGrad: false })
      readonly w = new nn.Parameter(t([1, 2]))
      forward(x: Tensor): Tensor {
        return x.mul(this.w).add(this.frozen)
      }
    }
    const scaled = new Scaled()
    const gm = symbolicTrace(scaled)
    const x = t([3, 4])
    const twin = t([1, 2], { requiresGrad: true })
    const beside = (v: Tensor): Tensor => (gm.call(v) as Tensor).add(twin.sub(twin.detach()).mul(5))
    expect(compareTwoModels(gm, beside, [x])).toMatchObject({ status: 'same', reasons: [] })
    // A frozen parameter has no leaf to be found by.
    const own = (v: Tensor): Tensor => v.mul(twin).add(t([5, 6]))
    expect(compareTwoModels(gm, own, [x])).toMatchObject({ status: 'same', reasons: [] })
    expect(compareTwoModels(gm, (v: Tensor) => own(v.mul(2).sub(v)).add(twin.sub(twin.detach())), [x])).toMatchObject({ status: 'different' })
  })

  it('has a buffer that it does not write to, beside one that held the same and is written', () => {
    class Two extends nn.Module {
      constructor() {
        super()
        this.registerBuffer('n', torch.zeros([2]))
        this.registerBuffer('m', torch.zeros([2]))
      }
      forward(x: Tensor): Tensor {
        const [n, m] = ['n', 'm'].map((name) => Reflect.get(this, name) as Tensor) as [Tensor, Tensor]
        return x.add(n.add_(1)).add(m)
      }
    }
    const gm = symbolicTrace(new Two())
    expect(compareTwoModels(gm, (x: Tensor) => gm.call(x) as Tensor, [t([1, 2])])).toMatchObject({ status: 'same', reasons: [] })
  })

  it('has gradients under the names of the other, or numbers', () => {
    const w = t([1, 2], { requiresGrad: true })
    const v = t([3, 4], { requiresGrad: true })
    const one = (x: Tensor): Tensor => x.mul(w).add(v)
    expect(compareGradients(one, (x: Tensor) => x.mul(w).add(v.mul(2)), [t([1, 2])]).rows.map(({ name, differs }) => [name, differs])).toEqual([
      ['loss', true],
      // The tape leads to v first.
      ['parameter 0', true],
      ['parameter 1', false],
    ])
    // Without a normalization, behind which gradients are only what rounding leaves.
    const model = new nn.Linear(3, 2)
    const result = compareGradients(model, compile(model), [torch.ones([4, 3])])
    expect([result.rows.map(({ name }) => name), result.first]).toEqual([['loss', 'weight', 'bias'], null])
  })

  it('differs if its forward, its backward or a buffer is wrong', () => {
    const gm = symbolicTrace(new Net())
    const x = torch.randn([4, 3], { requiresGrad: true })
    const differing = (wrong: (v: Tensor) => Tensor): readonly string[] => {
      const { status, reasons } = compareTwoModels(gm, wrong, [x])
      expect(status).toBe('different')
      return reasons.map((reason) => /\(([^()]*)\)$/.exec(reason)?.[1] ?? reason)
    }
    const right = (v: Tensor): Tensor => gm.call(v) as Tensor
    expect(differing((v) => right(v).mul(1.5))[0]).toBe('output')
    expect(differing((v) => right(v).detach().mul(3).sub(right(v).mul(2)))).toContain('gradient of inner.weight')
    expect(differing((v) => right(v.mul(2).sub(v.detach())))).toContain('gradient of input 0')
    const stale = (v: Tensor): Tensor => {
      const y = right(v)
      const { runningMean } = gm.getSubmodule('norm') as nn.BatchNorm1d
      noGrad(() => runningMean?.add_(1))
      return y
    }
    expect(differing(stale)).toEqual(['buffer norm.runningMean'])
  })
})

describe('a module that is compared', () => {
  /** A layer with two weights that start from the same values, under any names. */
  const layer = (names: readonly [string, string], factor = 1): nn.Module => {
    class Layer extends nn.Module {
      constructor() {
        super()
        for (const name of names) this.registerParameter(name, new nn.Parameter(t([1, 2])))
      }
      forward(x: Tensor): Tensor {
        const [a, b] = names.map((name) => Reflect.get(this, name) as Tensor) as [Tensor, Tensor]
        return x
          .mul(a)
          .add(b.mul(2 * factor))
          .sub(b.detach().mul(2 * factor - 2))
      }
    }
    return new Layer()
  }

  it('has its parameters under other names, found by their values', () => {
    const gm = symbolicTrace(layer(['a', 'b']))
    const x = t([3, 4])
    expect(compareTwoModels(gm, layer(['a', 'other']), [x])).toMatchObject({ status: 'same', reasons: [] })
    expect(compareTwoModels(gm, layer(['a', 'other'], 2), [x]).reasons).toEqual([expect.stringMatching(/\(gradient of b\)$/) as string])
    expect(compareTwoModels(gm, layer(['a', 'b'], 2), [x]).reasons).toEqual([expect.stringMatching(/\(gradient of b\)$/) as string])
    class Swapped extends nn.Module {
      readonly b = new nn.Parameter(t([1, 2]))
      readonly a = new nn.Parameter(t([1, 2]))
      forward(v: Tensor): Tensor {
        return v.mul(this.a).add(this.b.mul(2))
      }
    }
    // The end of a name says more than a value does.
    expect(compareTwoModels(gm, new nn.Sequential(new Swapped()), [x])).toMatchObject({ status: 'same', reasons: [] })
    class Renamed extends nn.Module {
      readonly unused = new nn.ParameterDict({ a: new nn.Parameter(t([1, 2, 3])) })
      readonly scale = new nn.Parameter(t([1, 2]))
      readonly b = new nn.Parameter(t([1, 2]))
      forward(v: Tensor): Tensor {
        return v.mul(this.scale).add(this.b.mul(2))
      }
    }
    expect(compareTwoModels(gm, new Renamed(), [x])).toMatchObject({ status: 'same', reasons: [] })
    const wrapper = new nn.Sequential(layer(['a', 'b']))
    expect(compareTwoModels(gm, wrapper, [x])).toMatchObject({ status: 'same', reasons: [] })
  })

  it('may lack one', () => {
    const gm = symbolicTrace(layer(['a', 'b']))
    class One extends nn.Module {
      readonly a = new nn.Parameter(t([1, 2]))
      forward(x: Tensor): Tensor {
        return x.mul(this.a).add(t([2, 4]))
      }
    }
    expect(compareTwoModels(gm, new One(), [t([3, 4])])).toMatchObject({
      status: 'not judged',
      reasons: ["'b' has no counterpart in the compiled model"],
    })
  })
})

// Module: the tree of children, parameters and buffers, hooks, copies and printing.
import { describe, expect, test } from 'vitest'
import { ArgumentError, nn, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { attributeAt, cloneModule, functionalCall, getAttribute, isLibraryLayer, splitPath } from '../../src/module/index.ts'
import type { TensorLike } from '../../src/protocol/index.ts'
import { isTensorLike } from '../../src/protocol/index.ts'

const { tensor } = torch
const { Module, Parameter } = nn

class Scale extends Module {
  readonly factor: nn.Parameter
  constructor(factor: number) {
    super()
    this.factor = new Parameter(tensor([factor]))
    this.registerBuffer('calls', tensor([0]))
    this.registerBuffer('hidden', tensor([9]), { persistent: false })
  }
  override forward(x: Tensor): Tensor {
    return x.mul(this.factor)
  }
}
class Net extends Module {
  readonly first = new Scale(2)
  readonly second = new Scale(3)
  readonly shared = this.first
  readonly bias = new Parameter(tensor([1]))
  override forward(x: Tensor): Tensor {
    return this.second.call(this.first.call(x)).add(this.bias)
  }
}
const keys = (pairs: Iterable<readonly [string, ...unknown[]]>): readonly string[] => [...pairs].map(([key]) => key)
/** Checks that two lists hold the same objects. */
const sameItems = (actual: readonly unknown[], expected: readonly unknown[]): void => {
  expect(actual.length).toBe(expected.length)
  expect(actual.findIndex((item, i) => item !== expected[i])).toBe(-1)
}
const values = (output: unknown): unknown => (output instanceof torch.Tensor ? output.toArray() : output)

describe('the tree', () => {
  const net = new Net()

  test('children in order, and every module below once, with its path', () => {
    expect(keys(net.namedChildren())).toEqual(['first', 'second', 'shared'])
    expect([...net.children()]).toEqual([net.first, net.second, net.first])
    expect(keys(net.namedModules())).toEqual(['', 'first', 'second'])
    expect(keys(net.namedModules('net'))).toEqual(['net', 'net.first', 'net.second'])
    expect([...net.modules()]).toEqual([net, net.first, net.second])
  })

  test('parameters and buffers with dotted names, shared ones once', () => {
    expect(keys(net.namedParameters())).toEqual(['bias', 'first.factor', 'second.factor'])
    sameItems([...net.parameters()], [net.bias, net.first.factor, net.second.factor])
    expect(keys(net.namedBuffers())).toEqual(['first.calls', 'first.hidden', 'second.calls', 'second.hidden'])
    expect([...net.buffers()].map(values)).toEqual([[0], [9], [0], [9]])
    class Tied extends Module {
      readonly a = new Parameter(tensor([1]))
      readonly b = this.a
      override forward(): void {}
    }
    const tied = new Tied()
    expect(keys(tied.ownParameters())).toEqual(['a', 'b'])
    expect(keys(tied.namedParameters())).toEqual(['a'])
    const buffer = tensor([5])
    tied.registerBuffer('x', buffer)
    tied.registerBuffer('y', buffer)
    expect(keys(tied.namedBuffers())).toEqual(['x'])
    expect([...tied.ownBuffers()].map(([name, , persistent]) => [name, persistent])).toEqual([
      ['x', true],
      ['y', true],
    ])
  })

  test('by path', () => {
    expect([net.getSubmodule(''), net.getSubmodule('first')]).toEqual([net, net.first])
    expect(net.getParameter('second.factor')).toBe(net.second.factor)
    expect(net.getParameter('bias')).toBe(net.bias)
    expect(values(net.getBuffer('first.hidden'))).toEqual([9])
    expect(() => net.getSubmodule('first.inner.deep')).toThrow(
      new ArgumentError("getSubmodule: Scale has no child 'inner' (looking for 'first.inner.deep')."),
    )
    expect(() => net.getSubmodule('bias')).toThrow("getSubmodule: Net has no child 'bias' (looking for 'bias').")
    expect(() => net.getParameter('first.calls')).toThrow(new ArgumentError("getParameter: 'first.calls' is not a parameter of Net."))
    expect(() => net.getBuffer('first.factor')).toThrow(new ArgumentError("getBuffer: 'first.factor' is not a buffer of Net."))
    expect(() => net.getBuffer('first.none')).toThrow(ArgumentError)
    expect([net.first.hasBuffer('calls'), net.first.hasBuffer('factor'), net.hasBuffer('calls')]).toEqual([true, false, false])
  })

  test('train, eval, requiresGrad_, zeroGrad and apply reach all modules', () => {
    const own = new Net()
    expect(own.eval()).toBe(own)
    expect([...own.modules()].map((m) => m.training)).toEqual([false, false, false])
    expect(own.train()).toBe(own)
    expect([...own.modules()].map((m) => m.training)).toEqual([true, true, true])
    expect(own.requiresGrad_(false)).toBe(own)
    expect([...own.parameters()].map((p) => p.requiresGrad)).toEqual([false, false, false])
    expect([...own.requiresGrad_().parameters()].map((p) => p.requiresGrad)).toEqual([true, true, true])
    for (const parameter of own.parameters()) parameter.grad = tensor([1])
    own.zeroGrad()
    expect([...own.parameters()].map((p) => p.grad)).toEqual([null, null, null])
    const order: string[] = []
    expect(own.apply((m) => void order.push(m.getName()))).toBe(own)
    expect(order).toEqual(['Scale', 'Scale', 'Scale', 'Net'])
  })

  test('attributes and paths', () => {
    expect([splitPath('a.b.c'), splitPath('a'), splitPath('.a')]).toEqual([
      ['a.b', 'c'],
      ['', 'a'],
      ['', 'a'],
    ])
    expect([attributeAt({ a: { b: 1 } }, 'a.b'), attributeAt({ a: null }, 'a.b'), attributeAt({ a: 'text' }, 'a.length')]).toEqual([
      1,
      undefined,
      undefined,
    ])
    expect([getAttribute(null, 'a'), getAttribute(3, 'toFixed'), getAttribute({ a: 1 }, 'a')]).toEqual([undefined, undefined, 1])
    expect([isLibraryLayer(new nn.Linear(1, 1)), isLibraryLayer(net)]).toEqual([true, false])
  })
})

describe('registration', () => {
  test('what is registered is an ordinary property', () => {
    const net = new Net()
    const [buffer, parameter, child] = [tensor([1]), new Parameter(tensor([2])), new Scale(1)]
    net.registerBuffer('mean', buffer)
    net.registerBuffer('none', null)
    net.registerParameter('gain', parameter)
    net.registerParameter('absent', null)
    net.addModule('0', child)
    sameItems(
      ['mean', 'none', 'gain', 'absent', '0'].map((name) => getAttribute(net, name)),
      [buffer, null, parameter, null, child],
    )
    expect(keys(net.ownBuffers())).toEqual(['mean'])
    expect([net.hasBuffer('none'), keys(net.ownParameters())]).toEqual([true, ['bias', 'gain']])
  })

  test('names must not be empty, have dots or be those of members, and values must fit', () => {
    const net = new Net()
    const [buffer, parameter] = [tensor([1]), new Parameter(tensor([2]))]
    for (const name of ['', 'a.b', 'toString', 'constructor', '__proto__']) {
      const message = (where: string): string => `${where}: argument 'name' must be a name without dots that no Module has already, got '${name}'.`
      expect(() => net.registerBuffer(name, buffer)).toThrow(new ArgumentError(message('registerBuffer')))
      expect(() => net.registerParameter(name, parameter)).toThrow(new ArgumentError(message('registerParameter')))
      expect(() => net.addModule(name, net)).toThrow(new ArgumentError(message('addModule')))
    }
    expect(() => net.registerBuffer('b', 3 as never)).toThrow(new ArgumentError("registerBuffer: 'b' must be a Tensor or null, got 3."))
    expect(() => net.registerParameter('p', buffer)).toThrow(
      new ArgumentError("registerParameter: 'p' must be a Parameter or null, got a Tensor of shape [1]. Make one: new nn.Parameter(tensor)."),
    )
    expect(() => net.addModule('m', {} as never)).toThrow(new ArgumentError("addModule: argument 'm' must be a Module, got an object."))
  })
})

describe('hooks', () => {
  test('pre-hooks may replace the arguments, each seeing those of the one before', () => {
    const scale = new Scale(2)
    const seen: unknown[] = []
    scale.registerForwardPreHook((module, args) => {
      seen.push(module === scale, args.map(values))
    })
    scale.registerForwardPreHook((_, [x]) => [(x as Tensor).add(1)])
    const last = scale.registerForwardPreHook((_, args) => void seen.push(args.map(values)))
    expect(scale.call(tensor([1])).toArray()).toEqual([4])
    expect(seen).toEqual([true, [[1]], [[2]]])
    last.remove()
    expect(scale.call(tensor([1])).toArray()).toEqual([4])
    expect(seen).toEqual([true, [[1]], [[2]], true, [[1]]])
  })

  test('hooks see the arguments and may replace the output', () => {
    const scale = new Scale(2)
    const seen: unknown[] = []
    const first = scale.registerForwardHook((module, args, output) => void seen.push(module === scale, args.map(values), values(output)))
    const second = scale.registerForwardHook((_, __, output) => (output as Tensor).add(10))
    const third = scale.registerForwardHook((_, __, output) => void seen.push(values(output)))
    expect(scale.call(tensor([1])).toArray()).toEqual([12])
    expect(seen).toEqual([true, [[1]], [2], [12]])
    const replaced = scale.registerForwardHook(() => null)
    expect(scale.call(tensor([1]))).toBeNull()
    for (const hook of [first, second, third, replaced]) hook.remove()
    seen.length = 0
    expect(scale.call(tensor([1])).toArray()).toEqual([2])
    expect(seen).toEqual([])
  })

  test('forward itself runs no hooks', () => {
    const scale = new Scale(2)
    scale.registerForwardHook(() => null)
    expect(scale.forward(tensor([1])).toArray()).toEqual([2])
  })
})

describe('cloneModule', () => {
  const copyTensor = (t: TensorLike): TensorLike => {
    if (!(t instanceof torch.Tensor)) return t
    return t.isParameter ? new Parameter(t.detach().clone()) : t.clone()
  }

  test('each thing is copied once, so that sharing stays', () => {
    const net = new Net()
    const copy = cloneModule(net, copyTensor)
    expect(copy).toBeInstanceOf(Net)
    expect([copy === net, copy.first === net.first, copy.bias === net.bias]).toEqual([false, false, false])
    expect(copy.shared).toBe(copy.first)
    expect(keys(copy.namedBuffers())).toEqual(keys(net.namedBuffers()))
    expect(keys(copy.stateDict())).toEqual(keys(net.stateDict()))
    expect([copy.getParameter('first.factor') === copy.first.factor, copy.getBuffer('first.calls') === net.getBuffer('first.calls')]).toEqual([
      true,
      false,
    ])
  })

  test('lists, plain objects and values in them', () => {
    class Bag extends Module {
      readonly list: unknown[] = [1, tensor([2]), { deep: tensor([3]) }]
      readonly date = new Date(0)
      readonly nothing = null
      readonly fn = (): number => 1
      readonly self: nn.Module = this
      override forward(): void {}
    }
    const bag = new Bag()
    const copied: TensorLike[] = []
    const copy = cloneModule(bag, (t) => {
      copied.push(t)
      return copyTensor(t)
    })
    expect(copied.filter(isTensorLike)).toHaveLength(2)
    expect(copy.list).not.toBe(bag.list)
    expect(copy.list[0]).toBe(1)
    expect([values(copy.list[1]), copy.list[1] === bag.list[1]]).toEqual([[2], false])
    expect(Object.keys(copy.list[2] as object)).toEqual(['deep'])
    expect(copy.list[2]).not.toBe(bag.list[2])
    expect([copy.date === bag.date, copy.nothing, copy.fn === bag.fn, copy.self === copy]).toEqual([true, null, true, true])
  })

  test('hooks and buffers are those of the copy from then on', () => {
    const scale = new Scale(2)
    scale.registerForwardHook((_, __, output) => (output as Tensor).add(1))
    const copy = cloneModule(scale, copyTensor)
    expect(copy.call(tensor([1])).toArray()).toEqual([3])
    copy.registerForwardHook(() => 'copy')
    copy.registerForwardPreHook(() => [tensor([5])])
    copy.registerBuffer('more', tensor([1]))
    expect(scale.call(tensor([1])).toArray()).toEqual([3])
    expect(scale.hasBuffer('more')).toBe(false)
  })

  test('a module that copies itself is asked to', () => {
    class Own extends Module {
      readonly text: string
      constructor(text: string) {
        super()
        this.text = text
      }
      cloneWith(copy: (value: unknown) => unknown): Own {
        return new Own(`copy of ${String(copy(this.text))}`)
      }
      override forward(): void {}
    }
    const own = new Own('a')
    own.registerForwardHook(() => 'hooked')
    const copy = cloneModule(own, copyTensor)
    expect([copy.text, copy.call()]).toEqual(['copy of a', 'hooked'])
  })
})

describe('functionalCall', () => {
  test('runs with the given values, and puts the own ones back, also after an error', () => {
    const net = new Net()
    expect(values(functionalCall(net, { 'first.factor': tensor([5]), bias: tensor([0]) }, [tensor([1])]))).toEqual([15])
    expect(net.call(tensor([1])).toArray()).toEqual([7])
    expect(() => functionalCall(net, { bias: tensor([0]) }, [null])).toThrow(TypeError)
    expect(net.bias.toArray()).toEqual([1])
    expect(Object.keys(net)).toEqual(Object.keys(new Net()))
  })

  test('a tensor under two names is replaced under both, unless told otherwise', () => {
    class Tied extends Module {
      readonly a = new Parameter(tensor([1]))
      readonly b = this.a
      override forward(): unknown {
        return [this.a.toArray(), this.b.toArray()]
      }
    }
    const tied = new Tied()
    const [two, three] = [tensor([2]), tensor([3])]
    expect(functionalCall(tied, { a: two }, [])).toEqual([[2], [2]])
    expect(functionalCall(tied, { a: two }, [], { tieWeights: false })).toEqual([[2], [1]])
    expect(functionalCall(tied, { a: two, b: two }, [])).toEqual([[2], [2]])
    expect(functionalCall(tied, { a: two, b: three }, [], { tieWeights: false })).toEqual([[2], [3]])
    expect(() => functionalCall(tied, { a: two, b: three }, [])).toThrow(
      new ArgumentError("functionalCall: 'b' is the same tensor as another given name, but has another value; give it once."),
    )
  })

  test('says all that is wrong with the given values', () => {
    const scale = new Scale(2)
    const start = 'functionalCall: Error(s) in the given parameters and buffers: '
    const end = '. The module has factor, calls, hidden.'
    expect(() => functionalCall(scale, { x: tensor([1]), y: tensor([1]) }, [])).toThrow(new ArgumentError(`${start}Unexpected key(s): x, y${end}`))
    expect(() => functionalCall(scale, { factor: 3 as never }, [])).toThrow(new ArgumentError(`${start}factor is not a tensor${end}`))
    expect(() => functionalCall(scale, { factor: tensor([1]) }, [], { strict: true })).toThrow(
      new ArgumentError(`${start}Missing key(s): calls, hidden${end}`),
    )
    const all = { factor: tensor([4]), calls: tensor([0]), hidden: tensor([0]) }
    expect(values(functionalCall(scale, all, [tensor([1])], { strict: true }))).toEqual([4])
    class Empty extends Module {
      override forward(): void {}
    }
    expect(() => functionalCall(new Empty(), { a: tensor([1]) }, [])).toThrow('The module has none.')
  })
})

describe('toString', () => {
  class Named extends Module {
    readonly extra: string
    readonly inner: nn.Module | null
    constructor(extra: string, inner: nn.Module | null = null) {
      super()
      this.extra = extra
      this.inner = inner
    }
    override extraRepr(): string {
      return this.extra
    }
    override forward(): void {}
  }

  test('as in PyTorch: children on lines of their own, and what the layer adds before them', () => {
    expect(String(new Named(''))).toBe('Named()')
    expect(String(new Named('a=1'))).toBe('Named(a=1)')
    expect(String(new Named('', new Named('b=2')))).toBe('Named(\n  (inner): Named(b=2)\n)')
    expect(String(new Named('a=1', new Named('', new Named('c'))))).toBe('Named(\n  a=1\n  (inner): Named(\n    (inner): Named(c)\n  )\n)')
  })
})

describe('lists of parameters and buffers', () => {
  test('take a prefix, and leave children out without recurse, as in PyTorch', () => {
    const net = new nn.Sequential(new nn.BatchNorm1d(2), new nn.Linear(2, 3))
    const names = (pairs: Iterable<readonly [string, unknown]>): string[] => Array.from(pairs, ([name]) => name)
    expect(names(net.namedParameters('net'))).toEqual(['net.0.weight', 'net.0.bias', 'net.1.weight', 'net.1.bias'])
    expect(names(net.namedParameters('net', false))).toEqual([])
    const norm = new nn.BatchNorm1d(2)
    expect(names(norm.namedParameters('norm', false))).toEqual(['norm.weight', 'norm.bias'])
    expect(names(net.namedBuffers('net'))).toEqual(['net.0.runningMean', 'net.0.runningVar', 'net.0.numBatchesTracked'])
    expect([[...net.parameters()].length, [...net.parameters(false)].length, [...norm.parameters(false)].length]).toEqual([4, 0, 2])
    expect([[...net.buffers()].length, [...net.buffers(false)].length, [...norm.buffers(false)].length]).toEqual([3, 0, 3])
  })

  test('list a shared parameter once', () => {
    const layer = new nn.Linear(2, 2)
    expect([...new nn.Sequential(layer, layer).namedParameters('both')].map(([name]) => name)).toEqual(['both.0.weight', 'both.0.bias'])
  })

  test('refuse other arguments when they are called', () => {
    const net: object = new nn.Linear(2, 2)
    const call =
      (name: string, ...args: readonly unknown[]) =>
      () =>
        Reflect.apply(Reflect.get(net, name), net, args)
    expect(call('parameters', 'weight')).toThrow("parameters: argument 'recurse' must be true or false, got 'weight'")
    expect(call('namedParameters', true)).toThrow("namedParameters: argument 'prefix' must be a string, got true")
    expect(call('buffers', true, true)).toThrow('buffers: 2 arguments given but it takes 1; true is one too many')
    expect(call('modules', 1)).toThrow('modules: 1 argument given but it takes none')
  })
})

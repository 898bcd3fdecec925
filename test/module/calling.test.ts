// A module is called like a function, and is otherwise an ordinary object of its class.
import { inspect } from 'node:util'
import { describe, expect, it } from 'vitest'
import { compile, nn, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { Graph, GraphModule, Tracer, symbolicTrace, wrap } from 'tensorfx/fx'
import { treeLeaves } from 'tensorfx/pytree'

const { cond, ones, tensor } = torch

const values = (t: Tensor): unknown => t.toArray()

class Scale extends nn.Module {
  readonly weight = new nn.Parameter(tensor([2, 3]))
  override forward(x: Tensor, options: { readonly bias?: number } = {}): Tensor {
    return x.mul(this.weight).add(options.bias ?? 0)
  }
}

class Net extends nn.Module {
  readonly scale = new Scale()
  readonly fc = new nn.Linear(2, 1)
  override forward(input: Tensor): Tensor {
    return this.fc(torch.relu(this.scale(input)))
  }
}

const x = tensor([1, 2])

describe('a call', () => {
  it('runs forward with all arguments, as call does', () => {
    const scale = new Scale()
    expect(values(scale(x, { bias: 1 }))).toEqual([3, 7])
    expect(values(scale.call(x, { bias: 1 }))).toEqual([3, 7])
    expect(values(new nn.Sequential(new nn.ReLU(), scale)(tensor([-1, 2])))).toEqual([0, 6])
  })

  it('runs the hooks in order, with the arguments and the output that they replace', () => {
    const scale = new Scale()
    const seen: unknown[] = []
    scale.registerForwardPreHook((module, args) => {
      seen.push(module === scale, args.length)
      return [tensor([10, 10])]
    })
    const handle = scale.registerForwardHook((_module, _args, output) => (output as Tensor).neg())
    expect(values(scale(x))).toEqual([-20, -30])
    handle.remove()
    expect(values(scale(x))).toEqual([20, 30])
    expect(seen).toEqual([true, 1, true, 1])
  })

  it('runs an override of call, and an own method call of one module', () => {
    class Loud extends Scale {
      override call(...args: Parameters<this['forward']>): ReturnType<this['forward']> {
        super.call(...args)
        return super.call(...args)
      }
    }
    const loud = new Loud()
    let calls = 0
    loud.registerForwardHook(() => void calls++)
    expect([values(loud(x)), calls]).toEqual([[2, 6], 2])
    const patched = new Scale()
    Object.defineProperty(patched, 'call', { value: () => 'patched' })
    expect(patched(x)).toBe('patched')
  })

  it('does not depend on this, and cannot construct', () => {
    const scale = new Scale()
    const { scale: detached } = { scale }
    expect(values(detached(x))).toEqual([2, 6])
    expect([x].map((t) => values(scale(t)))).toEqual([[2, 6]])
    expect(() => Reflect.construct(scale as never, [])).toThrow(TypeError)
  })

  it('of a module without forward says what to do', () => {
    const list = new nn.ModuleList([new nn.ReLU()])
    expect(() => Reflect.apply(list, undefined, [x])).toThrow(/nn\.ModuleList has no forward: call its modules one by one/)
    expect(() => Reflect.apply(new nn.ModuleDict(), undefined, [x])).toThrow(/nn\.ModuleDict has no forward/)
  })

  it('works on GraphModules, compiled modules and branches of cond', () => {
    const net = new Net()
    const expected = values(net.call(x))
    expect(values(symbolicTrace(net)(x))).toEqual(expected)
    expect(values(compile(net)(x))).toEqual(expected)
    const scale = new Scale()
    expect(values(cond(true, scale, new nn.ReLU(), [x]))).toEqual([2, 6])
  })
})

describe('a module as an object', () => {
  it('is an instance of its classes, with no own properties but its fields', () => {
    const scale = new Scale()
    expect([scale instanceof Scale, scale instanceof nn.Module, Object.getPrototypeOf(scale) === Scale.prototype]).toEqual([true, true, true])
    expect(Reflect.ownKeys(scale)).toEqual(['training', 'weight'])
    expect([scale.constructor.name, Reflect.get(scale, 'name'), Reflect.get(scale, 'length'), Reflect.get(scale, 'bind')]).toEqual([
      'Scale',
      undefined,
      undefined,
      undefined,
    ])
  })

  it('can have fields, accessors and children called name and length, and private fields', () => {
    class Odd extends nn.Module {
      #calls = 0
      override name = 'odd'
      declare length: nn.Linear
      constructor() {
        super()
        this.length = new nn.Linear(2, 2)
      }
      get calls(): number {
        return this.#calls
      }
      override forward(input: Tensor): Tensor {
        this.#calls++
        return this.length(input)
      }
    }
    const odd = new Odd()
    odd(x)
    odd.name = 'renamed'
    expect([odd.calls, odd.name]).toEqual([1, 'renamed'])
    expect([...odd.stateDict().keys()]).toEqual(['length.weight', 'length.bias'])
    expect(Object.keys(odd)).toEqual(['training', 'name', 'length'])
    expect(new nn.Sequential(odd, odd).length).toBe(2)
  })

  it('prints as its layers, in text, in the console and inside other values', () => {
    const net = new Net()
    const text = 'Net(\n  (scale): Scale()\n  (fc): Linear(in_features=2, out_features=1, bias=True)\n)'
    expect(String(net)).toBe(text)
    expect(`${net}`).toBe(text)
    expect(inspect(net)).toBe(text)
    expect(inspect([new nn.ReLU()])).toBe('[ ReLU() ]')
  })

  it('is written by JSON.stringify as its properties, and is refused by structuredClone', () => {
    expect(JSON.parse(JSON.stringify({ layer: new nn.ReLU() }))).toEqual({ layer: { training: true, inplace: false } })
    expect(() => structuredClone(new nn.ReLU())).toThrow(/could not be cloned/)
  })

  it('apply calls a function for every module, children first', () => {
    const seen: string[] = []
    const net = new Net()
    expect(net.apply((module) => void seen.push(module.getName()))).toBe(net)
    expect(seen).toEqual(['Scale', 'Linear', 'Net'])
  })

  it('is a leaf of a pytree', () => {
    const scale = new Scale()
    expect(treeLeaves({ scale, x: [1] })).toEqual([scale, 1])
  })
})

describe('a call that is traced', () => {
  const lines = (gm: GraphModule): string[] =>
    [...gm.graph.nodes].map((node) => `${node.op} ${typeof node.target === 'string' ? node.target : node.target.name}`)

  it('is recorded like call: a leaf as call_module, other modules by what they compute', () => {
    const gm = symbolicTrace(new Net())
    expect(lines(gm)).toEqual([
      'placeholder input',
      'get_attr scale.weight',
      'call_method mul',
      'call_method add',
      'call_function relu',
      'call_module fc',
      'output output',
    ])
    class Leaves extends Tracer {
      override isLeafModule(): boolean {
        return true
      }
    }
    const net = new Net()
    expect([...new Leaves().trace(net).nodes].map((node) => String(node.target))).toContain('scale')
  })

  it('of a GraphModule is traced through, or recorded if it is a leaf', () => {
    class Outer extends nn.Module {
      readonly inner = symbolicTrace(new Net())
      override forward(input: Tensor): Tensor {
        return this.inner(input)
      }
    }
    const outer = new Outer()
    const gm = symbolicTrace(outer)
    expect(lines(gm)).toContain('call_module inner.fc')
    expect(values(gm(x))).toEqual(values(outer(x)))
  })

  it('of a module that is not in the tree throws an error that names it', () => {
    const outside = new nn.ReLU()
    class Uses extends nn.Module {
      override forward(input: Tensor): Tensor {
        return outside(input)
      }
    }
    expect(() => symbolicTrace(new Uses())).toThrow(/module ReLU is not installed as a submodule/)
  })

  it('a module as an argument becomes get_attr, and is not taken for a function', () => {
    const apply = wrap((layer: nn.Module, t: Tensor): Tensor => Reflect.apply(layer, undefined, [t]) as Tensor, { name: 'test.applyLayer' })
    class Passes extends nn.Module {
      readonly act = new nn.ReLU()
      override forward(input: Tensor): Tensor {
        return apply(this.act, input)
      }
    }
    const gm = symbolicTrace(new Passes())
    expect(lines(gm)).toEqual(['placeholder input', 'get_attr act', 'call_function applyLayer', 'output output'])
    expect(values(gm(tensor([-1, 1])))).toEqual([0, 1])
  })
})

describe('where a function is expected', () => {
  it('a module is refused with what to do instead', () => {
    const relu = new nn.ReLU()
    expect(() => wrap(relu, { name: 'test.relu' })).toThrow(/got ReLU\. To record a module as one call, override isLeafModule/)
    const graph = new Graph()
    const input = graph.placeholder('x')
    expect(() => graph.callFunction(relu, [input])).toThrow(/the target is a module, ReLU; add the module to the GraphModule and call it by its path/)
  })

  it('a module that is not a tensor is named by its class', () => {
    expect(() => torch.relu(new nn.ReLU() as never)).toThrow(/must be a Tensor.*got a ReLU/)
    expect(() => new GraphModule(3 as never, new Graph())).toThrow(/Unsupported type number/)
    expect(() => ones([1]).add(new Net() as never)).toThrow(/got a Net/)
  })
})

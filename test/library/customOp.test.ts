// torch.library.customOp: operators that a program computes in JavaScript. Expected values come from JavaScript's Math, messages from PyTorch 2.x where it has them.
import { describe, expect, expectTypeOf, it, test } from 'vitest'
import { ArgumentError, AutogradError, compile, fx, nn, torch } from 'tensorfx'
import { graphFromJson, graphToJson } from 'tensorfx/fx/json'
import type { Tensor } from 'tensorfx'
import { makeFx } from 'tensorfx/aot'
import { FakeTensorMode, withMode } from 'tensorfx/dispatch'
import { loadGraphModule, saveGraphModule } from 'tensorfx/interop'
import { lookupTarget, targetInfo } from '../../src/protocol/index.ts'

const { customOp, registerAutograd, registerFake } = torch.library
const { grad } = torch.autograd

/** A tensor of `fn` of each element. */
const mapped = (x: Tensor, fn: (value: number) => number): Tensor =>
  torch
    .tensor(
      Array.from(x.toTypedArray(), (value) => fn(Number(value))),
      { dtype: x.dtype },
    )
    .reshape(x.shape)

const numbers = (x: Tensor | null | undefined): number[] => Array.from(x?.toTypedArray() ?? [], Number)

let runs = 0
const wave = customOp('customtest::my_wave', {
  schema: '(Tensor x, float scale=1, *, float shift=0) -> Tensor',
  forward: (x, scale, shift) => {
    runs++
    return mapped(x, (value) => Math.sin(value) * scale + shift)
  },
  fake: (x) => torch.emptyLike(x),
  backward: ({ inputs: { x, scale }, needsInputGrad }, g) => ({ x: needsInputGrad.x ? g.mul(x.cos()).mul(scale) : null }),
})

const data = [0.5, -1.25, 2]
const x = (): Tensor => torch.tensor(data, { dtype: 'float64' }).requiresGrad_()
const waves = (scale: number, shift: number): number[] => data.map((value) => Math.sin(value) * scale + shift)
const close = (got: readonly number[], expected: readonly number[]): void => {
  expect(got).toHaveLength(expected.length)
  got.forEach((value, i) => expect(value).toBeCloseTo(expected[i] ?? NaN, 10))
}

describe('a custom operator', () => {
  it('is declared by an object, and called with arguments by position and options (difference: custom-op-object)', () => {
    close(numbers(wave(x())), waves(1, 0))
    close(numbers(wave(x(), 3)), waves(3, 0))
    close(numbers(wave(x(), 3, { shift: 2 })), waves(3, 2))
    close(numbers(wave(x(), { scale: 3, shift: 2 })), waves(3, 2))
  })

  it('has the types of its schema', () => {
    expectTypeOf(wave).returns.toEqualTypeOf<Tensor>()
    type Options = { readonly scale?: number; readonly shift?: number }
    expectTypeOf<Parameters<typeof wave>>().toEqualTypeOf<[Tensor, Options?] | [Tensor, number, Options?]>()
    // @ts-expect-error scale is a number
    expect(() => wave(x(), 'three')).toThrow("torch.ops.customtest.my_wave: argument 'scale' must be a number, got 'three'.")
    // @ts-expect-error there is no such option
    expect(() => wave(x(), { shfit: 1 })).toThrow(
      "torch.ops.customtest.my_wave: unknown option 'shfit'; did you mean 'shift'? Known are x, scale, shift.",
    )
  })

  it('is a member of torch.ops, under its name in camelCase', () => {
    expect(torch.ops['customtest']?.['myWave']).toBe(wave)
    expect(lookupTarget('torch.ops.customtest.my_wave')).toBe(wave)
    expect(wave.schema).toBe('(Tensor x, float scale=1, *, float shift=0) -> Tensor')
  })

  it('is differentiated by its backward (difference: gradients-by-name)', () => {
    const input = x()
    close(
      numbers(grad(wave(input, 3).sum(), [input])[0]),
      data.map((value) => 3 * Math.cos(value)),
    )
  })

  it('computes shapes, not data, under FakeTensorMode', () => {
    const before = runs
    const fake = withMode(new FakeTensorMode(), () => wave(x()))
    expect([fake.isFake, fake.shape, fake.dtype]).toEqual([true, [3], 'float64'])
    expect(runs).toBe(before)
  })
})

describe('in graphs', () => {
  const program = (a: Tensor): Tensor => wave(a.mul(2), 3).add(1)
  const expected = data.map((value) => Math.sin(2 * value) * 3 + 1)

  it('symbolicTrace records one node, which prints the name', () => {
    const gm = fx.symbolicTrace(program)
    expect(String(gm.graph)).toContain('%my_wave : [num_users=1] = call_function[target=torch.ops.customtest.my_wave](args = (%mul, 3), kwargs = {})')
    expect(gm.code).toContain('torch.ops.customtest.myWave(mul, 3)')
    close(numbers(gm.call(x())), expected)
  })

  it('makeFx records one node below autograd', () => {
    const gm = makeFx((a: Tensor) => grad(program(a).sum(), [a])[0])(x())
    expect(gm.graph.findNodes({ op: 'call_function', target: wave })).toHaveLength(1)
    close(
      numbers(gm.call(x())),
      data.map((value) => 6 * Math.cos(2 * value)),
    )
  })

  it('compile calls it between fused kernels, forward and backward', () => {
    const compiled = compile(program, { fullgraph: true })
    const input = x()
    const result = compiled(input)
    close(numbers(result), expected)
    close(
      numbers(grad(result.sum(), [input])[0]),
      data.map((value) => 6 * Math.cos(2 * value)),
    )
    expect(compiled.graphs()).toHaveLength(1)
    expect(
      compiled
        .kernels()
        .filter((kernel) => kernel.kind === 'extern')
        .map((kernel) => kernel.text),
    ).toEqual(['torch.ops.customtest.my_wave'])
    close(
      numbers(compiled(input.detach().add(1).requiresGrad_())),
      data.map((value) => Math.sin(2 * value + 2) * 3 + 1),
    )
  })

  it('compile does not make a graph input of a number that decides about the shape', () => {
    const repeatedTo = customOp('customtest::resized', {
      schema: '(Tensor x, float factor) -> Tensor',
      forward: (a, factor) => torch.full([Math.round(a.numel * factor)], 7),
      fake: (a, factor) => torch.empty([Math.round(a.numel * factor)]),
    })
    const compiled = compile((a: Tensor, factor: number) => repeatedTo(a, factor).add(1))
    for (const factor of [1, 2, 3, 0.5]) expect(compiled(torch.ones([4]), factor).shape).toEqual([4 * factor])
  })

  it('graphs are saved by name, and a name that is not registered is an error that says so', () => {
    const gm = fx.symbolicTrace(program)
    const json = graphToJson(gm.graph)
    close(numbers(new fx.GraphModule({}, graphFromJson(json)).call(x())), expected)
    const renamed = JSON.parse(JSON.stringify(json).replaceAll('customtest.my_wave', 'elsewhere.my_wave')) as typeof json
    expect(() => graphFromJson(renamed)).toThrow(
      new ArgumentError(
        "graphFromJson: unknown function 'torch.ops.elsewhere.my_wave' at node 'my_wave'; import the module that registers it first.",
      ),
    )
  })

  it('a GraphModule file keeps the operator', () => {
    class Net extends nn.Module {
      scale: nn.Parameter = new nn.Parameter(torch.tensor([2, 2, 2], { dtype: 'float64' }))
      override forward(a: Tensor): Tensor {
        return wave(a.mul(this.scale), 3).add(1)
      }
    }
    const loaded = loadGraphModule(saveGraphModule(fx.symbolicTrace(new Net())))
    close(numbers(loaded.call(x())), expected)
  })
})

describe('several results', () => {
  const sincos = customOp('customtest::sincos', {
    schema: '(Tensor x) -> (Tensor, Tensor)',
    forward: (a) => [mapped(a, Math.sin), mapped(a, Math.cos)],
    fake: (a) => [torch.emptyLike(a), torch.emptyLike(a)],
    backward: ({ outputs: [sin, cos] }, gs, gc) => ({ x: gs.mul(cos).sub(gc.mul(sin)) }),
  })

  it('are an array, and the gradient of one that is not used is zeros', () => {
    const input = x()
    const [sin, cos] = sincos(input)
    close([...numbers(sin), ...numbers(cos)], [...data.map(Math.sin), ...data.map(Math.cos)])
    close(
      numbers(grad(cos.sum(), [input])[0]),
      data.map((value) => -Math.sin(value)),
    )
    const compiled = compile((a: Tensor) => {
      const [s, c] = sincos(a)
      return s.mul(2).add(c)
    })
    const result = compiled(input)
    close(
      numbers(result),
      data.map((value) => 2 * Math.sin(value) + Math.cos(value)),
    )
    close(
      numbers(grad(result.sum(), [input])[0]),
      data.map((value) => 2 * Math.cos(value) - Math.sin(value)),
    )
  })

  it('lists of tensors are arguments and results', () => {
    const doubled = customOp('customtest::doubled', {
      schema: '(Tensor[] tensors) -> Tensor[]',
      forward: (tensors) => tensors.map((t) => t.mul(2)),
      fake: (tensors) => tensors.map((t) => torch.emptyLike(t)),
      backward: (_, ...grads) => ({ tensors: grads.map((g) => g.mul(2)) }),
    })
    const [a, b] = [torch.tensor([1, 2]).requiresGrad_(), torch.tensor([3]).requiresGrad_()]
    const results = doubled([a, b])
    expect(results.map((t) => t.toArray())).toEqual([[2, 4], [6]])
    const [ga, gb] = grad(results[0]?.sum() ?? a, [a, b], { allowUnused: true })
    expect([ga?.toArray(), gb?.toArray()]).toEqual([[2, 2], [0]])
  })
})

describe('an operator that writes to an argument', () => {
  const addInto = customOp('customtest::add_into', {
    schema: '(Tensor(a!) out, Tensor x) -> ()',
    forward: (out, a) => {
      out.add_(a)
    },
  })

  it('does so when it is called, and returns nothing', () => {
    const out = torch.zeros([2])
    expect(addInto(out, torch.tensor([1, 2]))).toBeUndefined()
    expect(out.toArray()).toEqual([1, 2])
  })

  it('is not dead code in a symbolic trace', () => {
    const gm = fx.symbolicTrace((out: Tensor, a: Tensor) => {
      addInto(out, a)
      return out
    })
    expect(targetInfo(addInto)?.effects).toBe('mutates')
    gm.graph.eliminateDeadCode()
    gm.recompile()
    expect(gm.call(torch.ones([2]), torch.tensor([1, 2])).toArray()).toEqual([2, 3])
  })

  it('writes in compiled functions and in graphs of makeFx', () => {
    const program = (out: Tensor, a: Tensor): Tensor => {
      addInto(out, a.mul(2))
      return out.mul(10)
    }
    const compiled = compile(program, { fullgraph: true })
    const gm = makeFx(program)(torch.ones([2]), torch.tensor([1, 2]))
    for (const run of [compiled, (out: Tensor, a: Tensor): Tensor => gm.call(out, a)]) {
      const out = torch.ones([2])
      expect(run(out, torch.tensor([1, 2])).toArray()).toEqual([30, 50])
      expect(out.toArray()).toEqual([3, 5])
    }
  })

  it('makes a backward through a tensor that it overwrote an error', () => {
    const a = torch.ones([2]).requiresGrad_()
    const square = a.mul(2)
    const loss = square.mul(square).sum()
    torch.noGrad(() => addInto(square.detach(), torch.ones([2])))
    expect(() => loss.backward()).toThrow('a tensor needed for its gradient has been modified in place after the call')
  })

  it('has no gradient', () => {
    const out = torch.zeros([2])
    addInto(out, torch.ones([2]).requiresGrad_())
    expect(() => out.sum().backward()).toThrow('no derivative')
    expect(() =>
      customOp('customtest::bad_into', {
        schema: '(Tensor(a!) out) -> ()',
        forward: () => undefined,
        backward: () => ({}),
      }),
    ).toThrow('Cannot register autograd formula for non-functional operator torch.ops.customtest.bad_into')
  })
})

describe('errors', () => {
  const schema = '(Tensor x) -> Tensor'
  const forward = (a: Tensor): Tensor => a.mul(2)

  it('a backward without a formula; registerAutograd adds one', () => {
    const late = customOp('customtest::late', { schema, forward })
    const a = torch.tensor([1, 2]).requiresGrad_()
    expect(() => late(a).sum().backward()).toThrow(
      new AutogradError(
        'Trying to backward through torch.ops.customtest.late but no autograd formula was registered. Please use torch.library.registerAutograd to add one.',
      ),
    )
    expect(() => compile((t: Tensor) => late(t))(a)).toThrow('There was no fake impl registered for torch.ops.customtest.late.')
    registerFake(late, (t) => torch.emptyLike(t))
    registerAutograd(late, (_, g) => ({ x: g.mul(2) }))
    expect(grad(compile((t: Tensor) => late(t).sum())(a), [a])[0]?.toArray()).toEqual([2, 2])
    expect(() => registerFake(late, (t) => t)).toThrow('torch.library.registerFake: torch.ops.customtest.late already has a fake impl registered.')
    expect(() => registerAutograd(late, () => ({}))).toThrow('torch.ops.customtest.late already has a backward registered.')
  })

  it('in compiled code, a backward without a formula is the same error', () => {
    const none = customOp('customtest::none', { schema, forward, fake: (a) => torch.emptyLike(a) })
    const a = torch.tensor([1, 2]).requiresGrad_()
    expect(() => compile((t: Tensor) => none(t).sum())(a).backward()).toThrow('no autograd formula was registered')
  })

  it('results that are, or share memory with, an argument or each other', () => {
    const message = 'The output of this custom operator (1) must not also be an input to this custom operator and (2) may not alias any inputs'
    const same = customOp('customtest::same', { schema, forward: (a) => a })
    const view = customOp('customtest::view', { schema, forward: (a) => a.reshape([-1]) })
    const twins = customOp('customtest::twins', {
      schema: '(Tensor x) -> (Tensor, Tensor)',
      forward: (a) => {
        const once = a.mul(2)
        return [once, once]
      },
    })
    for (const op of [same, view, twins]) expect(() => op(torch.ones([2]))).toThrow(message)
    expect(() => same(torch.ones([2]))).toThrow('torch.ops.customtest.same: ')
  })

  it('results that are not what the schema promises', () => {
    const wrong = (name: string, result: unknown): (() => unknown) => {
      const options = { schema: '(Tensor x) -> (Tensor, Tensor)', forward: () => result }
      const op: unknown = Reflect.apply(customOp, null, [`customtest::${name}`, options])
      return () => (typeof op === 'function' ? Reflect.apply(op, null, [torch.ones([2])]) : null)
    }
    const text = (got: string, name: string): string =>
      `torch.ops.customtest.${name}: its forward must return an array of 2 Tensors, as its schema says (${name}(Tensor x) -> (Tensor, Tensor)), got ${got}.`
    expect(wrong('wrong1', torch.ones([1]))).toThrow(new ArgumentError(text('a Tensor', 'wrong1')))
    expect(wrong('wrong2', [torch.ones([1])])).toThrow(new ArgumentError(text('an array of 1', 'wrong2')))
    expect(wrong('wrong3', Promise.resolve())).toThrow(new ArgumentError(text('a Promise', 'wrong3')))
  })

  it('gradients that do not fit', () => {
    const run = (name: string, result: unknown): (() => void) => {
      const op = customOp(`customtest::${name}`, {
        schema: '(Tensor x, float s=1) -> Tensor',
        forward: () => torch.ones([2]),
        backward: () => result as object,
      })
      return () =>
        op(torch.ones([2]).requiresGrad_())
          .sum()
          .backward()
    }
    const where = (name: string): string => `backward of torch.ops.customtest.${name}: `
    expect(run('grad1', [torch.ones([2])])).toThrow(
      `${where('grad1')}it must return an object of gradients by the names of the arguments, such as { x: … }, got an array.`,
    )
    expect(run('grad2', { y: torch.ones([2]) })).toThrow(
      `${where('grad2')}it returned a gradient for 'y', which is not a tensor argument; those are x.`,
    )
    expect(run('grad3', { x: 1 })).toThrow(`${where('grad3')}the gradient of 'x' must be a Tensor or null, got number.`)
  })

  test.each([
    ['wave', "the name of an operator must be 'namespace::name', such as 'mylib::my_op', got 'wave'."],
    ['a::b::c', "the name of an operator must be 'namespace::name'"],
    ['__proto__::x', "the name of an operator must be 'namespace::name'"],
    ['tensorfx::x', "the namespace 'tensorfx' belongs to tensorfx; choose one of your own for 'tensorfx::x'."],
    ['customtest::my_wave', "'customtest::my_wave' is already defined, as torch.ops.customtest.myWave."],
    ['customtest::myWave', "'customtest::myWave' is already defined, as torch.ops.customtest.myWave."],
  ])('the name %s', (name, message) => {
    expect(() => customOp(name, { schema, forward })).toThrow(`torch.library.customOp: ${message}`)
  })

  test.each([
    [{ schema, forward, fakes: forward }, "unknown option 'fakes' of 'customtest::wrong'; known are schema, forward, fake, backward, module."],
    [{ schema }, "'customtest::wrong' needs forward, a function that computes the results."],
    [{ forward }, "'customtest::wrong' needs a schema"],
    [{ schema, forward: 1 }, "forward of 'customtest::wrong' must be a function, got 1."],
    [{ schema: 'other(Tensor x) -> Tensor', forward }, "the schema of 'customtest::wrong' has another name: 'other(Tensor x) -> Tensor'."],
    [{ schema: '(Tensor x, int x) -> Tensor', forward }, "the schema of 'customtest::wrong' has two arguments called 'x'."],
  ])('the options %j', (options, message) => {
    expect(() => Reflect.apply(customOp, null, ['customtest::wrong', options])).toThrow(`torch.library.customOp: ${message}`)
    expect(torch.ops['customtest']?.['wrong']).toBeUndefined()
  })

  it('a schema may repeat the name', () => {
    expect(customOp('customtest::named', { schema: 'customtest::named(Tensor x) -> Tensor', forward })(torch.ones([1])).toArray()).toEqual([2])
    expect(customOp('customtest::short', { schema: 'short(Tensor x) -> Tensor', forward })(torch.ones([1])).toArray()).toEqual([2])
  })
})

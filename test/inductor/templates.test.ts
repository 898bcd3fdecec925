// Templates: which calls they take, what is fused into them, and that one need not be a matrix product.
import { afterEach, describe, expect, it } from 'vitest'
import { compile, fx, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { compileFx, defineTemplate, registerTemplate } from 'tensorfx/inductor'
import type { BufferView, CompiledGraph, Template, TemplateIo } from 'tensorfx/inductor'
import { accumulate, at, call, compileKernel, declare, forLoop, identityOf, load, local, loopVar, read } from 'tensorfx/kernels'
import type { BufferParam, Expr, LoopVar } from 'tensorfx/kernels'
import { ArgumentError } from '../../src/errors/index.ts'

let unregister: (() => void)[] = []
const register = (template: Template): void => void unregister.push(registerTemplate(template))
afterEach(() => {
  for (const undo of unregister) undo()
  unregister = []
})

/** Compiles the graph of `f`, with no capture and no decomposition before inductor. */
function compiled(f: (...args: never[]) => unknown, ...inputs: Tensor[]): { graph: CompiledGraph; outputs: readonly Tensor[] } {
  const graph = compileFx(fx.symbolicTrace(f), inputs)
  return { graph, outputs: graph(...inputs) as Tensor[] }
}

const close = (actual: Tensor, expected: Tensor, tolerance = 1e-5): void => {
  expect(actual.shape).toEqual(expected.shape)
  expect(actual.sub(expected).abs().max().item() as number).toBeLessThan(tolerance)
}

interface Rows {
  readonly view: BufferView
  readonly rows: number
  readonly cols: number
}

/** Softmax of the last dimension of a matrix in one kernel: three passes over each row, written in the loop IR. */
const rowSoftmax = (fuses = true, name = 'row softmax'): Template =>
  defineTemplate<Rows>({
    name,
    ops: [torch.softmax],
    fuses,
    match: (opCall, viewOf) => {
      const self = opCall.tensor('self')
      const [rows, cols] = self.shape
      if (rows === undefined || cols === undefined || self.ndim !== 2 || self.dtype !== 'float32' || opCall.number('dim') !== 1) return null
      return { view: viewOf(self), rows, cols }
    },
    spec: ({ view, rows, cols }) => ({ out: { shape: [rows, cols], dtype: 'float32' }, iter: [rows, cols], reads: [view] }),
    emit: ({ view, cols }, io) => ({ compiled: compileKernel({ name, params: io.params, body: softmaxRows(view, cols, io) }), scratchBytes: 0 }),
  })

function softmaxRows(view: BufferView, cols: number, io: TemplateIo): ReturnType<typeof forLoop>[] {
  const [row, col] = io.loops as [LoopVar, LoopVar]
  const [input] = io.buffers as [BufferParam]
  const inner = loopVar('c', cols)
  const element = (loop: LoopVar): Expr => load(input, at([row, view.strides[0] ?? 0], [loop, view.strides[1] ?? 0]))
  const [top, total] = [local('top', 'float32'), local('total', 'float32')]
  const shifted = (loop: LoopVar): Expr => call('exp', call('sub', element(loop), read(top)))
  const pass = (into: typeof top, combine: 'max' | 'add', value: (loop: LoopVar) => Expr) => [
    declare(into, identityOf(combine, 'float32')),
    forLoop(inner, 'simd', [accumulate(into, combine, value(inner))]),
  ]
  return [
    forLoop(row, 'serial', [
      ...pass(top, 'max', element),
      ...pass(total, 'add', shifted),
      forLoop(col, 'simd', io.epilogue(call('div', shifted(col), read(total)))),
    ]),
  ]
}

describe('a template that is no matrix product', () => {
  const softmax = (x: Tensor): Tensor => torch.softmax(x, 1)

  it('computes the operator, with what follows fused into it', () => {
    torch.manualSeed(3)
    const [x, bias] = [torch.randn([7, 21]), torch.randn([21])]
    const f = (a: Tensor, b: Tensor): Tensor => torch.relu(torch.softmax(a, 1).add(b)).mul(2)
    expect(compiled(f, x, bias).graph.kernels.map((k) => k.kind)).not.toContain('template')
    register(rowSoftmax())
    const { graph, outputs } = compiled(f, x, bias)
    expect(graph.kernels).toHaveLength(1)
    expect(graph.kernels[0]).toMatchObject({ kind: 'template', ops: ['softmax', 'add', 'relu', 'mul'] })
    expect(graph.kernels[0]?.text).toContain('softmax template [7 x 21], epilogue add -> relu -> mul')
    close(outputs[0] as Tensor, f(x, bias))
  })

  it('reads the strides of its input', () => {
    register(rowSoftmax())
    const x = torch.randn([21, 5])
    close(compiled((a: Tensor) => torch.softmax(a.t(), 1), x).outputs[0] as Tensor, softmax(x.t()))
  })

  it('serves compile() where the operator reaches inductor whole', () => {
    register(rowSoftmax())
    const x = torch.randn([4, 9])
    const fast = compile((a: Tensor) => torch.softmax(a, 1).mul(3))
    close(fast(x), softmax(x).mul(3))
    expect(fast.kernels().map((k) => [k.kind, ...k.ops])).toEqual([['template', 'softmax', 'mul']])
  })

  it('leaves a call that it does not match to the decomposition', () => {
    register(rowSoftmax())
    const x = torch.randn([4, 9])
    const { graph, outputs } = compiled((a: Tensor) => torch.softmax(a, 0), x)
    expect(graph.kernels.map((k) => k.kind)).not.toContain('template')
    close(outputs[0] as Tensor, torch.softmax(x, 0))
  })

  it('stands alone when it has no epilogue', () => {
    register(rowSoftmax(false))
    const x = torch.randn([4, 9])
    const f = (a: Tensor): Tensor => torch.softmax(a, 1).mul(2)
    const { graph, outputs } = compiled(f, x)
    expect(graph.kernels.map((k) => [k.kind, ...k.ops])).toEqual([
      ['template', 'softmax'],
      ['loops', 'mul'],
    ])
    close(outputs[0] as Tensor, f(x))
  })

  it('comes before those that were there, until it is removed', () => {
    const seen: string[] = []
    const watched = (name: string): Template => {
      const template = rowSoftmax(true, name)
      return { ...template, bind: (opCall, viewOf) => (seen.push(name), template.bind(opCall, viewOf)) }
    }
    const run = (): string[] => {
      seen.length = 0
      compiled(softmax, torch.ones([2, 3]))
      return [...seen]
    }
    register(watched('first'))
    const remove = registerTemplate(watched('second'))
    expect(run()).toEqual(['second'])
    remove()
    remove()
    expect(run()).toEqual(['first'])
  })
})

describe('what is wrong with a template is said when it is defined', () => {
  const template =
    (ops: readonly unknown[]): (() => Template) =>
    () =>
      defineTemplate({
        name: 'mine',
        ops: ops as [],
        match: () => null,
        spec: () => ({ out: { shape: [], dtype: 'float32' }, iter: [], reads: [] }),
        emit: () => {
          throw new Error('unused')
        },
      })

  it('a function that is not an operator', () => {
    const matmull = (): void => {}
    expect(template([matmull])).toThrow(ArgumentError)
    expect(template([matmull])).toThrow("template 'mine': matmull is not an operator; list functions of the operator table, e.g. torch.mm.")
    expect(template(['mm'])).toThrow("template 'mine': an entry of ops is not an operator")
  })

  it('an operator that is made of others', () => {
    expect(template([torch.nn.functional.conv2d])).toThrow(/torch\.nn\.functional\.conv2d is composed of other operators/)
  })
})

describe('the built-in templates', () => {
  const templatesOf = (f: (...args: never[]) => unknown, ...inputs: Tensor[]): readonly (readonly string[])[] =>
    compiled(f, ...inputs)
      .graph.kernels.filter((k) => k.kind === 'template')
      .map((k) => k.ops)

  it('take products of float32, and leave other dtypes to eager kernels', () => {
    const [a, b] = [torch.randn([3, 4]), torch.randn([4, 5])]
    const mm = (x: Tensor, y: Tensor): Tensor => x.mm(y)
    expect(templatesOf(mm, a, b)).toEqual([['mm']])
    expect(templatesOf(mm, a.to('float64'), b.to('float64'))).toEqual([])
    expect(templatesOf((x: Tensor, y: Tensor) => torch.bmm(x, y), torch.randn([2, 3, 4]), torch.randn([2, 4, 5]))).toEqual([['bmm']])
  })

  it('linear flattens leading dimensions that walk as one, and leaves others alone', () => {
    const [w, bias] = [torch.randn([5, 4]), torch.randn([5])]
    const linear = (x: Tensor, weight: Tensor, b: Tensor): Tensor => torch.nn.functional.linear(x, weight, b)
    for (const x of [torch.randn([4]), torch.randn([3, 4]), torch.randn([2, 3, 4])]) {
      const { graph, outputs } = compiled(linear, x, w, bias)
      expect(graph.kernels.map((k) => k.kind)).toEqual(['template'])
      close(outputs[0] as Tensor, linear(x, w, bias))
    }
    const turned = (x: Tensor, weight: Tensor, b: Tensor): Tensor => torch.nn.functional.linear(x.transpose(0, 1), weight, b)
    const x = torch.randn([3, 2, 4])
    const { graph, outputs } = compiled(turned, x, w, bias)
    expect(graph.kernels.map((k) => k.kind)).not.toContain('template')
    close(outputs[0] as Tensor, turned(x, w, bias))
  })

  it('convolutions with groups or without a batch take another way, and are right', () => {
    const conv = (groups: number) => (x: Tensor, w: Tensor) => torch.nn.functional.conv2d(x, w, null, { groups, padding: 1 })
    const x = torch.randn([2, 4, 8, 8])
    const compiledConv = compile(conv(2))
    close(compiledConv(x, torch.randn([6, 2, 3, 3]).mul(0)), torch.zeros([2, 6, 8, 8]))
    const w = torch.randn([6, 2, 3, 3])
    close(compile(conv(2))(x, w), conv(2)(x, w))
    const whole = torch.randn([6, 4, 3, 3])
    close(compile(conv(1))(x, whole), conv(1)(x, whole))
  })

  it('an epilogue that overwrites an input does so when every old value has been read', () => {
    const run = (f: (x: Tensor, w: Tensor, a: Tensor) => Tensor): [Tensor, Tensor] => {
      torch.manualSeed(1)
      const [w, a, x] = [torch.randn([5, 6]), torch.randn([6, 8]), torch.ones([5, 8])]
      return [f(x, w, a), x]
    }
    const f = (x: Tensor, w: Tensor, a: Tensor): Tensor => {
      const y = w.mm(a)
      const old = y.mul(x)
      x.add_(y)
      return old.add(3)
    }
    const [[expected, updated], [actual, overwritten]] = [run(f), run(compile(f))]
    close(actual, expected)
    close(overwritten, updated)
  })
})

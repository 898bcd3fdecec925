// Backends: what they may return, and their names.
import { describe, expect, expectTypeOf, it, test } from 'vitest'
import { ArgumentError, compile, fx, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { BackendCompilerFailed, InvalidBackend, listBackends, lookupBackend, registerBackend } from 'tensorfx/compile'
import type { Backend, BackendCode } from 'tensorfx/compile'
import { backendImports, isImportable, runnable } from '../../../src/dynamo/index.ts'
import { attempt } from '../against.ts'

const program = (x: Tensor): Tensor => torch.relu(x).sub(1)

/** A copy of the graph in which relu is tanh. */
const rewritten = (gm: fx.GraphModule): fx.GraphModule => {
  const copy = gm.deepCopy()
  for (const node of copy.graph.nodes) if (node.op === 'call_function' && node.target === torch.relu) node.target = torch.tanh
  copy.recompile()
  return copy
}

const backends: Readonly<Record<string, Backend>> = {
  'a function':
    (gm) =>
    (...inputs) =>
      gm.forward(...inputs),
  'gm.forward': (gm) => gm.forward,
  'the GraphModule': (gm) => gm,
}

describe.each(Object.entries(backends))('a backend may return %s', (_, backend) => {
  it('of the graph that it got', () => {
    const x = torch.tensor([-2, 3]).requiresGrad_()
    const result = compile(program, { backend })(x)
    expect(result.toArray()).toEqual([-1, 2])
    expect(torch.autograd.grad(result.sum(), [x])[0]?.toArray()).toEqual([0, 1])
  })

  it('of another graph, and that one is run', () => {
    const result = compile(program, { backend: (gm, inputs) => backend(rewritten(gm), inputs) })(torch.tensor([-2, 3]))
    expect(result.toArray()).toEqual([expect.closeTo(Math.tanh(-2) - 1, 6), expect.closeTo(Math.tanh(3) - 1, 6)])
  })
})

describe('gm.forward', () => {
  const gm = fx.symbolicTrace(program)

  it('runs the graph without the module before it', () => {
    const { forward } = gm
    expect(forward(torch.tensor([3])).toArray()).toEqual([2])
    expect(Object.keys(gm)).not.toContain('forward')
  })

  it('follows the graph when it is recompiled, and a copy has its own', () => {
    const copy = gm.deepCopy()
    const { forward } = copy
    copy.graph.findNodes({ op: 'call_function', target: torch.relu }).forEach((node) => (node.target = torch.neg))
    copy.recompile()
    expect(forward(torch.tensor([3])).toArray()).toEqual([-4])
    expect(gm.forward(torch.tensor([3])).toArray()).toEqual([2])
  })

  it("of a subclass is the subclass's", () => {
    class Doubled extends fx.GraphModule {
      override forward(...args: readonly unknown[]): unknown {
        return [super.forward(...args)]
      }
    }
    const { forward } = new Doubled({}, gm.graph)
    expect(forward(torch.tensor([3]))).toHaveLength(1)
  })
})

test.each([[null], [undefined], [3], [{}]])('a backend that returns %s is an error', (result) => {
  const backend: unknown = () => result
  const run = (): unknown => Reflect.apply(compile, null, [program, { backend }])(torch.ones([1]))
  expect(run).toThrow(BackendCompilerFailed)
  expect(run).toThrow("compiler_fn did not return callable: a backend must return a function of the graph's inputs or a GraphModule, got ")
})

test('the type of what a backend returns', () => {
  expectTypeOf<fx.GraphModule>().toExtend<BackendCode>()
  expectTypeOf<fx.GraphModule['forward']>().toExtend<BackendCode>()
  expectTypeOf<(x: Tensor, n: number) => Tensor[]>().toExtend<BackendCode>()
  expectTypeOf<number>().not.toExtend<BackendCode>()
  expect(runnable(fx.symbolicTrace(program))(torch.tensor([3]))).toBeInstanceOf(torch.Tensor)
})

describe('names', () => {
  const x = torch.tensor([-2, 3])
  const backend: Backend = (gm) => gm

  it('that are taken are an error; the same backend again is none', () => {
    registerBackend('names_test', backend)
    registerBackend('names_test', backend)
    expect(lookupBackend('names_test')).toBe(backend)
    for (const name of ['names_test', 'inductor', 'eager'])
      expect(() => registerBackend(name, (gm) => gm)).toThrow(
        new ArgumentError(`registerBackend: duplicate name: there is already a backend '${name}'. Choose another name for this one.`),
      )
    expect(lookupBackend('names_test')).toBe(backend)
    expect(listBackends().filter((name) => name === 'names_test')).toHaveLength(1)
    expect(() => registerBackend('', backend)).toThrow('registerBackend: expected a name')
  })

  it('of backends that are passed as functions are those that they are registered under, or their own', () => {
    const failing: Backend = () => {
      throw new RangeError('cannot')
    }
    const messageFor = (fn: Backend): string => String(attempt(() => compile(program, { backend: fn })(x)))
    expect(messageFor(failing)).toContain("backend='failing' raised:\nRangeError: cannot")
    registerBackend('registered_failing', failing)
    expect(messageFor(failing)).toContain("backend='registered_failing' raised")
    const eager: Backend = () => failing(null as never, [])
    expect(messageFor(eager)).toContain("backend='eager (a function)' raised")
    expect(messageFor(() => failing(null as never, []))).toContain("backend='custom' raised")
  })

  it('and backends that are none are errors', () => {
    const wrong: readonly (readonly [string, ...unknown[]])[] = [
      ['3 and a function', 3, backend],
      ['undefined and a function', undefined, backend],
      ["'names_other' and null", 'names_other', null],
      ["'names_other' and 'eager'", 'names_other', 'eager'],
    ]
    for (const [got, ...args] of wrong)
      expect(() => Reflect.apply(registerBackend, undefined, args)).toThrow(
        new ArgumentError(`registerBackend: expected a name and a function (gm, exampleInputs) => compiled, got ${got}.`),
      )
    expect(() => registerBackend('names_other', backend, { tag: [] } as never)).toThrow("registerBackend: unknown option 'tag'")
    expect(listBackends()).not.toContain('names_other')
    registerBackend('names_hidden', (gm) => gm, { tags: ['debug'] })
    registerBackend('names_tagged', (gm) => gm, { tags: ['fast'] })
    expect(listBackends().filter((name) => name.startsWith('names_'))).toEqual(['names_test', 'names_tagged'])
  })

  it('are importable by other processes if they are built in or a module registers them', () => {
    registerBackend('names_module', (gm) => gm, { module: 'file:///backend.mjs' })
    expect(['inductor', 'eager', 'aot_eager', 'names_module', 'names_test', 'nope'].map(isImportable)).toEqual([true, true, true, true, false, false])
    expect(['inductor', 'names_module', 'nope'].map(backendImports)).toEqual([[], ['file:///backend.mjs'], []])
  })

  it('of the backends that fail on purpose say how', () => {
    const run = (backend: string): unknown => attempt(() => (compile((t: Tensor) => t.relu().add(1), { backend })(x) as Tensor).toArray())
    expect(String(run('relu_compile_error_TESTING_ONLY'))).toContain('relu found in graph')
    expect(String(run('relu_runtime_error_TESTING_ONLY'))).toContain('ReluRuntimeError')
    expect(run('relu_accuracy_error_TESTING_ONLY')).toEqual(x.relu().add(2).toArray())
    // Without a relu they do not fail, and other operators are as they were.
    for (const backend of ['relu_compile_error_TESTING_ONLY', 'relu_runtime_error_TESTING_ONLY', 'relu_accuracy_error_TESTING_ONLY'])
      expect(compile((t: Tensor) => t.neg().add(1), { backend })(x).toArray()).toEqual([3, -2])
    for (const backend of ['eager', 'aot_eager', 'inductor']) expect(run(backend)).toEqual(x.relu().add(1).toArray())
    expect(listBackends().filter((name) => name.includes('TESTING'))).toEqual([])
  })

  it('that are unknown are an error that says which one was meant', () => {
    expect(() => compile(program, { backend: 'inductr' })).toThrow(InvalidBackend)
    expect(() => compile(program, { backend: 'inductr' })).toThrow(
      "Invalid backend: 'inductr'. Did you mean 'inductor'? Registered are eager, aot_eager,",
    )
    expect(() => compile(program, { backend: 'nope' })).toThrow("Invalid backend: 'nope'. Registered are")
  })
})

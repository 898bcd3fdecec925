// What an error is compared by: its innermost cause. What counts as wrong numbers.
import { describe as suite, expect, it } from 'vitest'
import { ArgumentError, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { Graph, GraphModule, symbolicTrace } from 'tensorfx/fx'
import { config, registerBackend } from 'tensorfx/compile'
import { describe, judge, minifyBackendFailure, setLogSink, signatureOf } from 'tensorfx/debug'
import type { FailureSpec } from 'tensorfx/debug'
import { checkFailureSpec, runBackend } from '../../src/debug/judge/judge.ts'
import type { Backend } from '../../src/dynamo/index.ts'

const asTensor = (value: unknown): Tensor => value as Tensor

const cyclic = (): Error => {
  const outer = new Error('outer 1')
  const inner = new TypeError("inner 'x' 2", { cause: outer })
  outer.cause = inner
  return outer
}

suite('an error whose causes form a circle', () => {
  it('has the signature of the last error before it repeats', () => {
    expect(signatureOf(cyclic())).toBe('TypeError||inner _ #')
    const own = new Error('own')
    own.cause = own
    expect(signatureOf(own)).toBe('Error||own')
  })

  it('is described once', () => {
    expect(describe(cyclic())).toBe("Error: outer 1\ncaused by TypeError: inner 'x' 2")
  })
})

suite('an error', () => {
  it('has the signature of its innermost cause that is an error', () => {
    const inner = new ArgumentError("sin: 'x' has 3 dims")
    expect(signatureOf(new Error('compile failed', { cause: inner }))).toBe('ArgumentError|TFX_ARGUMENT|sin: _ has # dims')
    expect(signatureOf(new Error('outer', { cause: 'a text' }))).toBe('Error||outer')
    expect(describe(new Error('outer', { cause: 'a text' }))).toBe('Error: outer\ncaused by a text')
  })

  it('has the signature of others that differ in numbers, names, lists and quoted parts', () => {
    const signature = (message: string): string => signatureOf(new RangeError(message))
    expect(signature(`buf12 has "no" 'x' of \`y\` in [1, 2, 3] at 3.5\nsecond line`)).toBe('RangeError||# has _ _ of _ in [] at #.#')
    expect(signature('')).toBe('RangeError||')
  })

  it('with a chain of a hundred thousand causes is described in a hundred lines', () => {
    let error = new Error('0')
    for (let i = 1; i < 100_000; i++) error = new Error(String(i), { cause: error })
    expect(describe(error).split('\n')).toHaveLength(100)
  })

  it('may be any value, one that cannot be converted to text included', () => {
    const odd = Object.create(null) as object
    expect(signatureOf('text')).toBe('text')
    expect(signatureOf(odd)).toBe('an object')
    expect(describe(new Error('outer', { cause: odd }))).toBe('Error: outer\ncaused by an object')
  })
})

suite('wrong numbers', () => {
  const t = torch.tensor
  const spec: FailureSpec = { backend: '', accuracy: 'accuracy', checkStr: null, signature: null, onlyFwd: false }
  const statusOf = (gm: GraphModule, inputs: readonly unknown[], compiled: Backend, changes: Partial<FailureSpec> = {}): string =>
    judge(gm, inputs, { ...spec, ...changes }, compiled).status

  it('of integers count unless the setting says otherwise', () => {
    const largest = symbolicTrace((x: Tensor) => [torch.argmax(x)])
    const smallest: Backend = () => (x) => [torch.argmin(asTensor(x))]
    expect(judge(largest, [t([1, 2])], spec, smallest)).toMatchObject({ status: 'fails', signature: 'accuracy|integer' })
    config.reproIgnoreNonFp = true
    expect(statusOf(largest, [t([1, 2])], smallest)).toBe('passes')
    expect(statusOf(largest, [t([1, 2])], smallest, { accuracy: 'strict_accuracy' })).toBe('fails')
    config.reproIgnoreNonFp = false
  })

  it('of gradients count unless only the forward is judged', () => {
    const gm = symbolicTrace((x: Tensor) => [torch.sin(x)])
    const withoutCos: Backend = () => (x) => [torch.sin(asTensor(x)).detach().add(asTensor(x)).sub(asTensor(x).detach())]
    const x = t([1, 2], { requiresGrad: true })
    expect(statusOf(gm, [x], withoutCos)).toBe('fails')
    expect(statusOf(gm, [x], withoutCos, { onlyFwd: true })).toBe('passes')
  })

  it('need a float64 reference, unless any difference counts', () => {
    const graph = new Graph()
    const float32Only = (x: Tensor): Tensor => {
      if (x.dtype === 'float64') throw new TypeError('no float64')
      return x.mul(2)
    }
    graph.output([graph.callFunction(float32Only, [graph.placeholder('x')])])
    const narrow = new GraphModule({}, graph)
    expect(judge(narrow, [t([1])], spec, (gm) => gm)).toEqual({
      status: 'unrelated',
      message: expect.stringMatching(/Could not generate fp64 outputs.*\ncaused by TypeError: .*\nno float64$/) as string,
    })
    setLogSink(() => {})
    expect(statusOf(narrow, [t([1])], (gm) => gm, { accuracy: 'strict_accuracy' })).toBe('passes')
    setLogSink(null)
  })

  it('are the failure, and an error while compiling is not', () => {
    const gm = symbolicTrace((x: Tensor) => [torch.sin(x)])
    const cosine: Backend = () => (x) => [torch.cos(asTensor(x))]
    expect(judge(gm, [t([1, 2])], spec, cosine)).toEqual({
      status: 'fails',
      message: expect.stringMatching(/^Bad accuracy detected\nRMSE/) as string,
      signature: 'accuracy|value',
    })
    const failing: Backend = () => {
      throw new RangeError('no kernel 7')
    }
    expect(judge(gm, [t([1])], spec, failing)).toEqual({
      status: 'unrelated',
      message: 'an error, not wrong numbers: RangeError: no kernel 7',
      signature: 'RangeError||no kernel #',
    })
  })
})

suite('an error of the backend', () => {
  const gm = symbolicTrace((x: Tensor) => [torch.sin(x)])
  const failing: Backend = () => {
    throw new RangeError('no kernel 7')
  }
  const spec: FailureSpec = { backend: '', accuracy: 'none', checkStr: null, signature: null, onlyFwd: true }
  const told = (changes: Partial<FailureSpec>): string => {
    const { status, message } = judge(gm, [torch.ones([1])], { ...spec, ...changes }, failing)
    return `${status}: ${message}`
  }

  it('counts if it has the text or signature that is looked for, and says otherwise why not', () => {
    const error = 'RangeError: no kernel 7'
    expect(told({})).toBe(`fails: ${error}`)
    expect(told({ checkStr: 'kernel' })).toBe(`fails: ${error}`)
    expect(told({ checkStr: 'loop' })).toBe(`unrelated: the error does not contain 'loop': ${error}`)
    expect(told({ signature: 'RangeError||no kernel #' })).toBe(`fails: ${error}`)
    expect(told({ signature: 'RangeError||no loop' })).toBe(`unrelated: a different error: ${error}`)
    // The text decides if both are given.
    expect(told({ checkStr: 'kernel', signature: 'RangeError||no loop' })).toBe(`fails: ${error}`)
    expect(told({ death: 'crash' })).toBe(`unrelated: an error, not the end of the process: ${error}`)
  })

  it('counts where only the backward of the graph fails without the backend, if only the forward is judged', () => {
    const graph = new Graph()
    const withoutBackward = (x: Tensor): Tensor => {
      const y = x.mul(2)
      y.registerHook(() => {
        throw new TypeError('no backward')
      })
      return y
    }
    graph.output([graph.callFunction(withoutBackward, [graph.placeholder('x')])])
    const x = torch.tensor([1], { requiresGrad: true })
    const statusOf = (onlyFwd: boolean): string => judge(new GraphModule({}, graph), [x], { ...spec, onlyFwd }, failing).status
    expect([statusOf(true), statusOf(false)]).toEqual(['fails', 'unrelated'])
  })

  it('does not count where the graph fails without the backend, too', () => {
    const graph = new Graph()
    graph.output([graph.callFunction(torch.reshape, [graph.placeholder('x'), [7]])])
    const { status, message } = judge(new GraphModule({}, graph), [torch.ones([2])], spec, failing)
    expect([status, message]).toEqual(['unrelated', expect.stringMatching(/^the graph fails without the backend too: .*reshape/) as string])
  })
})

suite('wrong numbers of one kind', () => {
  const t = torch.tensor
  const spec: FailureSpec = { backend: '', accuracy: 'accuracy', checkStr: null, signature: null, onlyFwd: false }
  const x = t([1, 2])
  const kindOf = (gm: GraphModule, inputs: readonly unknown[], backend: Backend, signature: string | null = null): unknown => {
    const outcome = judge(gm, inputs, { ...spec, signature }, backend)
    return [outcome.status, outcome.signature]
  }
  const doubled = symbolicTrace((a: Tensor) => [torch.mul(a, 2)])

  it('are told from those of other kinds: form, NaN, integers, written inputs, gradients', () => {
    expect(kindOf(doubled, [x], () => (a) => [torch.mul(asTensor(a), 3)])).toEqual(['fails', 'accuracy|value'])
    expect(kindOf(doubled, [x], () => (a) => [torch.mul(asTensor(a), 2).sum()])).toEqual(['fails', 'accuracy|form'])
    expect(kindOf(doubled, [x], () => (a) => [torch.mul(asTensor(a), t([NaN, 2]))])).toEqual(['fails', 'accuracy|nan'])
    expect(kindOf(doubled, [x], () => (a) => [torch.mul(asTensor(a), t([Infinity, 2]))])).toEqual(['fails', 'accuracy|nan'])
    const writing = symbolicTrace((a: Tensor) => [torch.mul(a.add_(1), 2)])
    expect(kindOf(writing, [x], () => (a) => [torch.mul(torch.add(asTensor(a), 1), 2)])).toEqual(['fails', 'accuracy|written'])
  })

  it('do not count where those of another kind are looked for, and are the same failure where they are among several', () => {
    const wrong: Backend = () => (a) => [torch.mul(asTensor(a), 3)]
    expect(kindOf(doubled, [x], wrong, 'accuracy|nan')).toEqual(['unrelated', 'accuracy|value'])
    expect(kindOf(doubled, [x], wrong, 'accuracy|value')).toEqual(['fails', 'accuracy|value'])
    const leaf = t([1, 2], { requiresGrad: true })
    expect(
      kindOf(
        doubled,
        [leaf],
        (gm) => (gm.graph.findNodes({ op: 'placeholder' }).length === 1 ? (a) => [torch.mul(asTensor(a), 3)] : gm.forward.bind(gm)),
        'accuracy|value',
      ),
    ).toEqual(['fails', 'accuracy|value'])
  })

  it('of the backward graph are found where the backend gets forward graphs and backward graphs', async () => {
    // Right but for the graphs of backwards, which are the only ones with tangents.
    registerBackend('wrong_backward', (gm) => {
      const isBackward = gm.graph.findNodes({ op: 'placeholder' }).some((node) => node.name.startsWith('tangent'))
      return (...inputs: never[]) => {
        const outputs = gm.forward(...inputs) as (Tensor | null)[]
        // Like compiled code, what is returned has no history.
        return outputs.map((value) => (value === null ? null : isBackward ? value.detach().mul(2) : value.detach()))
      }
    })
    const gm = symbolicTrace((a: Tensor) => [torch.cos(torch.mul(torch.sin(a), a))])
    const leaf = t([0.5, 2], { requiresGrad: true })
    const asked = { ...spec, backend: 'wrong_backward' }
    expect(judge(gm, [leaf], asked)).toMatchObject({ status: 'fails', signature: 'accuracy|gradient' })
    expect(judge(gm, [leaf], { ...asked, onlyFwd: true }).status).toBe('passes')
    expect(judge(gm, [t([0.5, 2])], asked).status).toBe('passes')
    const small = await minifyBackendFailure(gm, [leaf], { backend: 'wrong_backward', accuracy: 'accuracy', isolate: false, print: () => {} })
    expect([...small.gm.graph.nodes].filter((node) => node.op === 'call_function')).toHaveLength(1)
    expect(asTensor(small.inputs[0]).requiresGrad).toBe(true)
    expect(judge(small.gm, small.inputs, asked).status).toBe('fails')
    expect(judge(small.gm, small.inputs, { ...asked, backend: 'eager' }).status).toBe('passes')
  })
})

suite('judging', () => {
  const t = torch.tensor
  const double = symbolicTrace((x: Tensor) => [torch.mul(x, 2)])
  const spec: FailureSpec = { backend: '', accuracy: 'accuracy', checkStr: null, signature: null, onlyFwd: true }
  const times =
    (factor: number): Backend =>
    () =>
    (x) => [torch.mul(asTensor(x), factor)]

  it('names itself and the argument that is wrong', () => {
    expect(() => judge(3 as never, [], spec)).toThrow(/^judge: /)
    expect(() => judge(double, 3 as never, spec)).toThrow(/^judge: argument 'inputs' must be an array/)
    expect(() => judge(double, [], 3 as never)).toThrow(/^judge: argument 'spec' must be what counts as a failure/)
    expect(() => judge(double, [], spec, 'eager', 3 as never)).toThrow(/^judge: argument 'earlier' must be an array/)
    expect(() => checkFailureSpec({ ...spec, accuracy: 'exact' as never })).toThrow(
      "accuracy must be 'none', 'accuracy' or 'strict_accuracy', got 'exact'.",
    )
    expect(() => checkFailureSpec({ ...spec, death: 'boredom' })).toThrow("death must be 'crash', 'hang', 'any', 'exit N' or null, got 'boredom'.")
    for (const accuracy of ['none', 'accuracy', 'strict_accuracy'] as const) expect(checkFailureSpec({ ...spec, accuracy }).accuracy).toBe(accuracy)
    for (const death of [null, 'crash', 'hang', 'any', 'exit 7']) expect(checkFailureSpec({ ...spec, death })).toEqual({ ...spec, death })
  })

  it('says what it has seen of a right backend', () => {
    const x = t([1, 2])
    expect(judge(double, [x], { ...spec, accuracy: 'none' }, times(2))).toEqual({ status: 'passes', message: 'compiled and ran' })
    expect(judge(double, [x], { ...spec, accuracy: 'none' }, 'eager')).toEqual({ status: 'passes', message: 'compiled and ran' })
    expect(judge(double, [x], spec, times(2))).toEqual({ status: 'passes', message: 'accurate' })
    expect(judge(double, [x], { ...spec, contract: true }, times(2))).toEqual({ status: 'passes', message: 'accurate' })
  })

  it('runs no backward where only the forward is judged', () => {
    const hooked: Backend = () => (x) => {
      const y = torch.mul(asTensor(x), 2)
      y.registerHook(() => {
        throw new RangeError('no backward')
      })
      return [y]
    }
    const statusOf = (onlyFwd: boolean): string =>
      judge(double, [t([1, 2], { requiresGrad: true })], { ...spec, accuracy: 'none', onlyFwd }, hooked).status
    expect([statusOf(true), statusOf(false)]).toEqual(['passes', 'fails'])
  })

  it('counts wrong numbers of any kind, if it is strict', () => {
    const told = (accuracy: FailureSpec['accuracy']): unknown =>
      judge(double, [t([1, 2])], { ...spec, accuracy, signature: 'accuracy|nan' }, times(3))
    expect(told('strict_accuracy')).toMatchObject({ status: 'fails', signature: 'accuracy' })
    expect(told('accuracy')).toMatchObject({ status: 'unrelated', signature: 'accuracy|value' })
  })

  it('names all ways in which numbers are wrong', () => {
    const two = symbolicTrace((x: Tensor) => [torch.mul(x, 2), torch.argmax(x)])
    const wrong: Backend = () => (x) => [torch.mul(asTensor(x), 3), torch.argmin(asTensor(x))]
    const told = judge(two, [t([1, 2])], { ...spec, signature: 'accuracy|nan' }, wrong)
    expect(told).toMatchObject({
      status: 'unrelated',
      message: expect.stringMatching(/^wrong in another way \(\w+(, \w+)*\): Bad accuracy detected\nRMSE/) as string,
    })
    const gradient = symbolicTrace((x: Tensor) => [torch.sin(x)])
    const both: Backend = () => (x) => [torch.mul(torch.sin(asTensor(x)), 2)]
    const leaf = t([1, 2], { requiresGrad: true })
    expect(judge(gradient, [leaf], { ...spec, onlyFwd: false, signature: 'accuracy|nan' }, both).message).toMatch(
      /^wrong in another way \(value, gradient\): /,
    )
  })

  it('of several calls names the one that is wrong', () => {
    // Right, but for what follows the first.
    const stale: Backend = () => {
      let first: Tensor | null = null
      return (x) => [(first ??= torch.mul(asTensor(x), 2)).clone()]
    }
    const outcome = judge(double, [t([3])], spec, stale, [[t([1])]])
    expect(outcome).toMatchObject({ status: 'fails', message: expect.stringMatching(/^Bad accuracy detected\nAt call 2: /) as string })
    expect(judge(double, [t([3])], spec, times(3), [[t([1])]]).message).toMatch(/^Bad accuracy detected\nIts numbers are wrong/)
    const failing = symbolicTrace((x: Tensor) => [torch.reshape(x, [7])])
    expect(judge(failing, [t([3])], spec, times(2), [[t([1])]])).toMatchObject({
      status: 'unrelated',
      message: expect.stringMatching(/reshape/) as string,
    })
    const boom: Backend = () => () => {
      throw new RangeError('boom')
    }
    expect(judge(double, [t([3])], spec, boom, [[t([1])]])).toMatchObject({
      status: 'unrelated',
      message: 'an error, not wrong numbers: RangeError: boom',
    })
    expect(judge(double, [t([3])], { ...spec, accuracy: 'none' }, boom, [[t([1])]])).toMatchObject({ status: 'fails', message: 'RangeError: boom' })
  })

  it('is what a script runs: runBackend throws what is wrong', () => {
    registerBackend('triples', () => (...inputs: never[]) => [torch.mul(asTensor(inputs[0]), 3)])
    registerBackend('doubles', () => (...inputs: never[]) => [torch.mul(asTensor(inputs[0]), 2)])
    registerBackend('throws', () => () => {
      throw new RangeError('boom')
    })
    const run = (backend: string, changes: Partial<FailureSpec> = {}, gm = double, earlier: readonly (readonly unknown[])[] = []): void =>
      runBackend(gm, [t([1, 2])], { ...spec, ...changes }, backend, earlier)
    expect(() => run('doubles')).not.toThrow()
    expect(() => run('doubles', { accuracy: 'none' })).not.toThrow()
    expect(() => run('doubles', { contract: true })).not.toThrow()
    expect(() => run('triples', { accuracy: 'none' })).not.toThrow()
    expect(() => run('triples', { accuracy: 'none', contract: true })).not.toThrow()
    for (const changes of [{ accuracy: 'none' }, { accuracy: 'none', contract: true }, {}, { contract: true }] as const)
      expect(() => run('throws', changes)).toThrow(RangeError)
    const wrong = (message: string): Error =>
      expect.objectContaining({ name: 'AccuracyError', message: expect.stringContaining(message) as string }) as Error
    expect(() => run('triples')).toThrow(wrong('Bad accuracy detected'))
    expect(() => run('triples', { contract: true })).toThrow(wrong('Bad accuracy detected'))
    expect(() => run('triples', {}, double, [[t([5, 6])]])).toThrow(wrong('Bad accuracy detected'))
    const failing = symbolicTrace((x: Tensor) => [torch.reshape(x, [7])])
    expect(() => run('doubles', { contract: true }, failing)).toThrow(wrong('The numbers could not be judged'))
  })
})

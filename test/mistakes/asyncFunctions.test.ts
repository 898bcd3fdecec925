// Async functions where tensorfx calls a function: awaited they work, and what cannot wait says so.
import { afterEach, describe, expect, it, vi } from 'vitest'
import { UnknownNameError, compile, fx, nn, optim, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { makeFx } from 'tensorfx/aot'
import { grad, jacrev, jvp, vmap } from 'tensorfx/func'

const x = torch.ones([2, 3])

class Waiting extends nn.Module {
  fc = new nn.Linear(3, 2)
  override async forward(input: Tensor): Promise<Tensor> {
    const y = this.fc.call(input)
    await Promise.resolve()
    return y.relu()
  }
}
/** A program in JavaScript: it calls a method of what a call returned. */
const method = (value: unknown, name: string): unknown => Reflect.apply(Reflect.get(Object(value), name) as () => unknown, value, [])

const rejected = vi.fn()
process.on('unhandledRejection', rejected)
afterEach(async () => {
  await new Promise((resolve) => setTimeout(resolve, 5))
  expect(rejected).not.toHaveBeenCalled()
})

describe('an async forward', () => {
  it('gives a Promise that is awaited as any other', async () => {
    const model = new Waiting()
    const promise = model.call(x)
    expect(promise instanceof Promise).toBe(true)
    expect((await promise).shape).toEqual([2, 2])
    expect((await Promise.all([model.call(x), model.call(x)])).map((y) => y.ndim)).toEqual([2, 2])
    await expect(model.call(x).then((y) => y.shape)).resolves.toEqual([2, 2])
    await expect(model.call(torch.ones([2, 4]))).rejects.toThrow('input has 4 features')
  })

  it('names the missing await where a tensor is expected', () => {
    const model = new Waiting()
    const say = "Waiting.forward is async, so its result is a Promise, which has no 'sum': write await before the call, (await …).sum."
    expect(() => method(model.call(x), 'sum')).toThrow(new UnknownNameError(say))
    expect(() => Reflect.get(model.call(x), 'shape') as unknown).toThrow("which has no 'shape'")
    expect(() => new nn.Sequential(model, new nn.ReLU()).call(x)).toThrow('got a Promise (write await before it)')
    expect(() => Reflect.apply(torch.sum, undefined, [model.call(x)]) as unknown).toThrow('got a Promise (write await before it)')
    // What others ask of Promises stays undefined.
    expect(Reflect.get(model.call(x), 'status')).toBeUndefined()
  })

  it('is the same when it is compiled', async () => {
    const warn = vi.spyOn(console, 'warn').mockImplementation(() => {})
    const model = new Waiting()
    const [want, promise] = [await model.call(x), compile(model).call(x)]
    expect(() => method(promise, 'sum')).toThrow("which has no 'sum': write await before the call")
    expect(torch.equal(await promise, want)).toBe(true)
    const f = compile(async (a: Tensor) => {
      const b = a.add(1)
      await Promise.resolve()
      return b.mul(2)
    })
    expect((await f(x)).toArray()).toEqual(x.add(1).mul(2).toArray())
    expect(() => method(f(x), 'mean')).toThrow("is async, so its result is a Promise, which has no 'mean'")
    expect(warn.mock.calls.map(([text]) => String(text))).toEqual([expect.stringContaining('is async'), expect.stringContaining('is async')])
    warn.mockRestore()
  })
})

describe('what cannot wait refuses an async function', () => {
  const later = async (a: Tensor): Promise<Tensor> => {
    const b = a.add(1)
    await Promise.resolve()
    return b.sum()
  }
  it.each([
    ['symbolicTrace of a function', () => fx.symbolicTrace(later), 'an async function cannot be traced'],
    ['symbolicTrace of a module', () => fx.symbolicTrace(new Waiting()), 'an async function cannot be traced'],
    [
      'makeFx',
      () => makeFx(later)(x),
      'makeFx: fn is async, and only what it does before its first await would count; give a function without await',
    ],
    ['grad', () => Reflect.apply(grad, undefined, [later])(x), 'grad: fn is async'],
    ['jacrev', () => Reflect.apply(jacrev, undefined, [later])(x), 'fn is async'],
    ['jvp', () => Reflect.apply(jvp, undefined, [later, [x], [x]]), 'fn is async'],
    ['vmap', () => Reflect.apply(vmap, undefined, [later])(x), 'vmap: fn is async'],
  ])('%s', (_name, run, message) => {
    expect(run).toThrow(message)
  })

  it.each([
    ['SGD', (params: Iterable<Tensor>) => new optim.SGD(params, { lr: 1 })],
    ['Adam', (params: Iterable<Tensor>) => new optim.Adam(params, { lr: 1 })],
    ['LBFGS', (params: Iterable<Tensor>) => new optim.LBFGS(params, { lr: 1 })],
  ])('the step of %s, which changes nothing', (name, make) => {
    const w = torch.tensor([1, 2]).requiresGrad_()
    w.sum().backward()
    const closure = async (): Promise<Tensor> => {
      await Promise.resolve()
      throw new Error('the loss failed')
    }
    expect(() => make([w]).step(closure)).toThrow(
      `optim.${name}.step: the closure is async, and only what it does before its first await would count; await the loss and call backward before step().`,
    )
    expect(w.toArray()).toEqual([1, 2])
  })
})

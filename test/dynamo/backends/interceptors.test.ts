// interceptBackends: several wrappers around the backends that compile calls.
import { afterEach, describe, expect, it } from 'vitest'
import { ArgumentError, compile, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { interceptBackends } from 'tensorfx/debug'
import type { BackendInterceptor, Remover } from 'tensorfx/debug'

let removers: Remover[] = []
afterEach(() => {
  for (const remove of removers) remove()
  removers = []
})

/** Notes the calls of a backend, and what it was called. */
const noting =
  (calls: string[], label: string): BackendInterceptor =>
  (backend, name) =>
  (gm, inputs) => {
    calls.push(`${label} ${name} ${gm.className.replace(/^__compiled_fn_\d+/, 'graph')}`)
    return backend(gm, inputs)
  }
const put = (where: 'dynamo' | 'aot', interceptor: BackendInterceptor): Remover => {
  const remove = interceptBackends(where, interceptor)
  removers.push(remove)
  return remove
}

describe('interceptBackends', () => {
  it('wraps in order of registration: what was registered last is called first', () => {
    const calls: string[] = []
    put('dynamo', noting(calls, 'a'))
    put('dynamo', noting(calls, 'b'))
    put('aot', noting(calls, 'c'))
    const x = torch.ones([2])
    x.requiresGrad = true
    const f = compile((t: Tensor) => t.sin().sum(), { backend: 'eager' })
    f(x).backward()
    expect(calls).toEqual(['b eager graph', 'a eager graph', 'c eager graph_forward', 'c eager graph_backward'])
  })

  it('removes each alone, also of one that is registered twice', () => {
    const calls: string[] = []
    const interceptor = noting(calls, 'a')
    const first = put('dynamo', interceptor)
    const second = put('dynamo', interceptor)
    const run = (): unknown => compile((t: Tensor) => t.mul(2), { backend: 'eager' })(torch.ones([2]))
    run()
    expect(calls).toHaveLength(2)
    first()
    first()
    run()
    expect(calls).toHaveLength(3)
    second[Symbol.dispose]()
    run()
    expect(calls).toHaveLength(3)
  })

  it('can replace what a graph computes', () => {
    put('dynamo', (backend) => (gm, inputs) => {
      const inner: unknown = backend(gm, inputs)
      if (typeof inner !== 'function') throw new Error('the backend returned no function')
      return (...values: never[]) => (Reflect.apply(inner, undefined, values) as Tensor[]).map((value) => value.add(1))
    })
    expect(compile((t: Tensor) => t.mul(2))(torch.ones([2])).toArray()).toEqual([3, 3])
  })

  it('rejects other places and what is no function', () => {
    expect(() => Reflect.apply(interceptBackends, undefined, ['inductor', () => undefined])).toThrow(
      /'where' must be 'dynamo' or 'aot', got 'inductor'/,
    )
    expect(() => Reflect.apply(interceptBackends, undefined, ['aot', 3])).toThrow(ArgumentError)
  })
})

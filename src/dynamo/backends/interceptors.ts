// What wraps backends: the debugger, and programs that watch or replace what compile calls.
import { remover } from '../../events/index.ts'
import type { Remover } from '../../events/index.ts'
import { checkArgument, checkCallable, checkCount } from '../../protocol/index.ts'
import type { Backend } from './backend.ts'

/** Puts something around a backend: takes it and the name by which messages call it, and returns what is called in its place. */
export type BackendInterceptor = (backend: Backend, name: string) => Backend

/** Around whole captured graphs, and around each forward and backward graph. */
const interceptors: Record<'dynamo' | 'aot', readonly BackendInterceptor[]> = { dynamo: [], aot: [] }

/**
 * Puts `interceptor` around every backend that compile calls from now on: as a whole, with captured graphs (`'dynamo'`), or where it gets the forward and the backward graph of each
 * (`'aot'`). There can be several; each wraps what those that were registered before it made of the backend. Returns a function that removes it, which `using` calls at the end of a block. What is compiled already stays as it is.
 * Throws ArgumentError for another place, or if `interceptor` is not a function.
 *
 *     using counting = interceptBackends('dynamo', (backend) => (gm, inputs) => {
 *       console.log(gm.graph.nodes.length)
 *       return backend(gm, inputs)
 *     })
 */
export function interceptBackends(where: 'dynamo' | 'aot', interceptor: BackendInterceptor): Remover {
  checkCount('interceptBackends', arguments, 2)
  checkArgument(where === 'dynamo' || where === 'aot', 'interceptBackends', 'where', "'dynamo' or 'aot'", where)
  checkCallable('interceptBackends', 'interceptor', interceptor)
  // A function of its own for each registration: the same interceptor may be registered twice.
  const own: BackendInterceptor = (backend, name) => interceptor(backend, name)
  interceptors[where] = [...interceptors[where], own]
  return remover(() => (interceptors[where] = interceptors[where].filter((other) => other !== own)))
}

/** The backend with all interceptors around it. */
export const intercepted = (where: 'dynamo' | 'aot', backend: Backend, name: string): Backend =>
  interceptors[where].reduce((inner, interceptor) => interceptor(inner, name), backend)

// What a program can ask of a trace around it. PyTorch's get_proxy_mode, disable_proxy_modes_tracing and get_isolated_graphmodule.
import { dispatchState, withoutModes } from '../../dispatch/index.ts'
import type { GraphModule } from '../../fx/index.ts'
import type { Module } from '../../module/index.ts'
import { checkArray } from '../../protocol/index.ts'
import { makeFx } from './makeFx.ts'
import type { MakeFxOptions } from './makeFx.ts'
import { ProxyTensorMode } from '../trace/proxyMode.ts'

/** The mode that records operators now; null outside of {@link makeFx}. PyTorch's get_proxy_mode. */
export const getProxyMode = (): ProxyTensorMode | null => dispatchState.modes.findLast((mode) => mode instanceof ProxyTensorMode) ?? null

/**
 * Runs a function without recording it: operators on real tensors compute at once. It must not use the tensors of the trace. PyTorch's
 * disable_proxy_modes_tracing.
 */
export const disableProxyModesTracing = <T>(fn: () => T): T => withoutModes(fn)

/** The graph of a function, captured apart from a trace that may be in progress. PyTorch's get_isolated_graphmodule. */
export const getIsolatedGraphModule = (
  fn: Module | ((...args: never[]) => unknown),
  args: readonly unknown[],
  options: MakeFxOptions = {},
): GraphModule => {
  checkArray('getIsolatedGraphModule', 'args', args)
  return withoutModes(() => makeFx(fn, options)(...args))
}
